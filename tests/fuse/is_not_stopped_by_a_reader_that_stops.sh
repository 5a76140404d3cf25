#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A user makes system calls on the tree that never end, so that the kernel keeps what it took for
# them: asynchronous reads of a pipe, which are as many as the kernel has under way at a time; a listing
# of proc/ into memory whose file system never answers, which keeps proc/ locked. Files that are
# closed leave the daemon's memory all the same, and a process that is gone leaves the tree.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
as=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
reading=

hostile() { # ARGUMENTS...: $reading is its pid
    : >"$work/hostile.out" # without the "ok" of the one before
    "${as[@]}" "$RMMFS_HOSTILE" "$@" >"$work/hostile.out" &
    reading=$!
    eventually grep -q ok "$work/hostile.out"
}
open_and_close() { # COUNT: more than a user may keep open
    local i
    for ((i = 0; i < $1; i++)); do
        : <"$mnt/version" || return 1
    done
}
in_time() { # COMMAND...
    timeout -s KILL 60 "$@" >/dev/null || fail "$*: $?"
}

list_gpus 1
start_daemon
start_program innocent
gpu innocent 0
tell innocent alloc 0 100

# Twice the twelve that the kernel has under way.
hostile aio 24 "$mnt/events_pipe"
sleep 1
export mnt
export -f open_and_close
timeout -s KILL 300 setpriv --reuid 65533 --regid 65533 --clear-groups -- bash -c "open_and_close 4200" ||
    fail "a user's files stay open: $(cat "$mnt/daemon/over_budget")"
kill -KILL "$reading"
wait "$reading" 2>/dev/null || true

# A segment that cannot be read any more leaves the tree as soon as its process has ended.
touch "$work/memory"
chmod 666 "$work/memory"
"$RMMFS_HANG" "$work/memory" file >"$work/hang.out" &
hanging=$!
eventually grep -q ok "$work/hang.out"
before=$(segments)
start_program leaving
gpu leaving 0
segment=$(segments | grep -vxF "$before")
leaving=proc/${program_pid[leaving]}
expect "$leaving/state" live
hostile list "$work/memory" "$mnt/proc"
umount -l "$work/memory" # it stays where it is mapped
truncate -s 100 "$segment"
eventually is "$leaving/state" unreadable
kill_program leaving
expect_gone "$leaving"
in_time ls "$mnt/proc"
tell innocent alloc 0 10
expect "proc/${program_pid[innocent]}/gpu0/current_bytes" 110
start_program late
gpu late 0
in_time cat "$mnt/proc/${program_pid[late]}/state"
kill -0 "$reading" || fail "the listing ended"
kill -KILL "$reading" "$hanging"
wait "$reading" "$hanging" 2>/dev/null || true
stop_daemon
