#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# proc/<pid>/gpuN/mr: a directory a resource, its figures, a link to its upstream, what is
# free in pools; it leaves with the resource.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

start_daemon
start_program a
gpu a 0
tell a location 32 host - 0 host
tell a resource 1 cuda cuda 0 0
tell a resource 2 pool big 0 1
tell a resource 3 pool small 0 1
tell a resource 4 pinned odd/name 32 2
tell a take 2 4096
tell a hole 2 1000 750
tell a hole 3 1000 250
mr=proc/${program_pid[a]}/gpu0/mr

[ "$(ls "$mnt/$mr" | tr '\n' ' ')" = "1.cuda 2.big 3.small " ] || fail "mr has $(ls "$mnt/$mr")"
expect "$mr/2.big/type" pool
expect "$mr/2.big/current_bytes" 4096
expect "$mr/2.big/current_count" 1
expect "$mr/2.big/peak_bytes" 4096
expect "$mr/2.big/largest_free_bytes" 750
expect "$mr/2.big/fragmentation" 0.250
expect "$mr/3.small/fragmentation" 0.750
expect "$mr/1.cuda/fragmentation" 0.000
expect_key "$mr/2.big/stat" free_bytes 1000
expect_key "$mr/2.big/stat" growth_count 0
expect "proc/${program_pid[a]}/gpu0/fragmentation" 0.500
expect gpu0/fragmentation 0.500
expect gpu0/largest_free_bytes 750
expect_key gpu0/stat free_bytes 2000
[ "$(readlink "$mnt/$mr/2.big/upstream")" = ../1.cuda ] || fail "upstream is $(readlink "$mnt/$mr/2.big/upstream")"
expect "$mr/3.small/upstream/type" cuda
expect_gone "$mr/1.cuda/upstream"
host=proc/${program_pid[a]}/host/mr/4.odd_name
expect "$host/type" pinned
expect "$host/upstream/current_bytes" 4096

tell a close 3
expect gpu0/fragmentation 0.250
eventually test ! -e "$mnt/$mr/3.small"
tell a resource 5 pool again 0 1
expect "$mr/5.again/current_bytes" 0
expect "$mr/2.big/current_bytes" 4096

# More than one piece of the slot table.
for i in $(seq 100 180); do
    tell a resource "$i" pool "p$i" 0 1
done
[ "$(ls "$mnt/$mr" | wc -l)" = 84 ] || fail "mr has $(ls "$mnt/$mr" | wc -l)"
expect "$mr/180.p180/type" pool
stop_daemon
