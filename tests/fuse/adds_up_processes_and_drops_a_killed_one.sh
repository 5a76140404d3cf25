#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpuN is the sum of live processes; who is killed leaves the sums at once, and nothing else
# changes.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

list_gpus 2
start_daemon
start_program a
start_program b
gpu a 0
gpu b 0
gpu b 1
tell a alloc 0 1000
tell a reserve 0 4096
tell b alloc 0 200
tell b alloc 0 30
tell b alloc 1 7
tell b pad 0 26
tell b reserve 0 512

expect gpu0/current_bytes 1230
expect gpu0/current_count 3
expect gpu0/reserved_bytes 4608
expect gpu0/padding_bytes 26
expect gpu0/cached_bytes 3352
expect gpu1/current_bytes 7
expect "proc/${program_pid[a]}/gpu0/current_bytes" 1000
expect "proc/${program_pid[b]}/gpu0/current_bytes" 230
expect "proc/${program_pid[b]}/gpu1/current_bytes" 7
expect "proc/${program_pid[b]}/state" live
expect daemon/segments 2
expect gpu0/capacity_bytes 1000000
expect gpu0/name "Test GPU 0"
[ "$(grep -c live "$mnt/gpu0/processes")" = 2 ] || fail "gpu0/processes has not two"

b=${program_pid[b]}
kill_program b
expect gpu0/current_bytes 1000
expect gpu1/current_bytes 0
expect gpu0/current_count 1
expect gpu0/reserved_bytes 4096
expect gpu0/total_bytes 1230
expect gpu0/total_count 3
expect "proc/$b/state" exited
expect "proc/$b/gpu0/current_bytes" 230
expect "proc/${program_pid[a]}/gpu0/current_bytes" 1000
expect daemon/segments 1
expect gpu0/peak_bytes 1230

tell a alloc 0 5
expect gpu0/current_bytes 1005
stop_daemon
