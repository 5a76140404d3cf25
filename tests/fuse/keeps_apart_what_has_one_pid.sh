#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two segments of one pid are one directory, figures added. A process whose pid the daemon
# cannot tell is proc/seg-<id>.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

start_daemon
# An exec within one process: the first program's segment is over, the pid stays.
start_program a sh -c 'printf "place 0 GPU-0 0000:00:00.0 1000 T\nalloc 0 100\nquit\n" |
    "$RMMFS_PROGRAM" >/dev/null; exec "$0"'
gpu a 0
tell a alloc 0 7
expect "proc/${program_pid[a]}/state" live
expect "proc/${program_pid[a]}/gpu1/current_bytes" 7

stop_daemon

# A daemon in a pid namespace of its own cannot tell the pids of programs outside.
unshare --pid --fork --mount-proc true 2>/dev/null || skip "no pid namespaces here"
cat >"$work/inside.sh" <<'END'
set -eu
"$RMMFS" -f "$mnt" 2>>"$log" &
daemon=$!
for i in $(seq 200); do
    [ ! -e "$mnt/gpu1" ] || break
    sleep 0.05
done
for process in "$mnt"/proc/*; do
    echo "${process##*/} $(cat "$process/state") $(cat "$process/gpu1/current_bytes" 2>/dev/null)"
done >"$work/processes"
cat "$mnt/gpu1/current_bytes" >"$work/sum"
kill -TERM "$daemon"
wait "$daemon"
END
export mnt log work
unshare --pid --fork --mount-proc bash "$work/inside.sh" || fail "inside: exit status $?"
grep -qE '^seg-[0-9a-f]{16} live 7$' "$work/processes" || fail "processes: $(cat "$work/processes")"
[ "$(cat "$work/sum")" = 7 ] || fail "gpu1/current_bytes is $(cat "$work/sum")"
