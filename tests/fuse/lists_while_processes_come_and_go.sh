#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Listing and reading everything while processes start and die: no listing has a name
# twice, a process that lives all the time is in every one, and the daemon stays well.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

start_daemon
start_program steady
gpu steady 0
tell steady alloc 0 1000
steady=${program_pid[steady]}

churn() {
    local i
    for i in $(seq 25); do
        printf 'location 0 GPU-00000000 0000:00:00.0 1000000 Test\nalloc 0 10\nresource 1 pool pool 0 0\nquit\n' |
            "$RMMFS_PROGRAM" >/dev/null
        "$RMMFS_PROGRAM" < <(sleep 0.05) >/dev/null &
        kill -KILL $! 2>/dev/null || true
    done
    wait
}
look() {
    while [ ! -e "$work/enough" ]; do
        ls "$mnt/proc" >"$work/list.$1"
        [ -z "$(sort "$work/list.$1" | uniq -d)" ] || echo twice >"$work/bad.$1"
        grep -qx "$steady" "$work/list.$1" || echo "not there" >"$work/bad.$1"
        grep -r . "$mnt/proc" >/dev/null 2>&1 || true
        [ "$(cat "$mnt/proc/$steady/gpu0/current_bytes")" = 1000 ] || echo figure >"$work/bad.$1"
        [ "$(cat "$mnt/gpu0/current_bytes")" -ge 1000 ] || echo sum >"$work/bad.$1"
    done
}

look 1 &
looks=($!)
look 2 &
looks+=($!)
churn &
churns=($!)
churn &
churns+=($!)
wait "${churns[@]}"
touch "$work/enough"
wait "${looks[@]}"
cat "$work"/bad.* 2>/dev/null && fail "a listing or a figure was wrong"
expect gpu0/current_bytes 1000
expect daemon/segments 1
expect daemon/segments_rejected 0
stop_daemon
