#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two segments of one pid are one directory, figures added, and end as one process. A process
# whose pid the daemon cannot tell is proc/seg-<id>.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

list_gpus 2
start_daemon
cat "$mnt/events_pipe" >"$work/events" &
reader=$!
exits() { # PID
    grep "\"exit\", \"pid\": $1," "$work/events"
}

# An exec: the first program's segment is over, the process goes on. What is held is what
# the second holds, totals are of both.
start_program a
gpu a 0
tell a alloc 0 100
process=proc/${program_pid[a]}
expect "$process/gpu0/current_bytes" 100
tell a exec
expect "$process/state" live
expect "$process/gpu0/current_bytes" 0
expect gpu0/current_bytes 0
gpu a 0
gpu a 1
tell a alloc 0 30
tell a alloc 1 7
expect "$process/state" live
expect "$process/gpu0/current_bytes" 30
expect "$process/gpu0/total_bytes" 130
expect "$process/gpu0/current_count" 1
expect "$process/gpu1/current_bytes" 7
expect gpu0/current_bytes 30
expect gpu0/total_bytes 130

# The library twice in one process: both are live.
library=${RMMFS%/fusefs/rmmfs}/lib/librmm-c.so
if [ -e "$library" ]; then
    cp "$library" "$work/first.so"
    cp "$library" "$work/second.so"
    RMM_DRIVER=sim start_program b
    tell b load 1000 "$work/first.so"
    tell b load 1000 "$work/second.so"
    process=proc/${program_pid[b]}
    sim=gpu2
    expect "$sim/uuid" SIM-0
    expect "$process/$sim/current_bytes" 2000
    expect "$sim/current_bytes" 2000
    expect "$sim/peak_bytes" 2000
    [ "$(ls "$mnt/$process/$sim/mr" | wc -l)" = 2 ] || fail "mr: $(ls "$mnt/$process/$sim/mr")"
    for resource in "$mnt/$process/$sim/mr"/*; do
        [ "$(cat "$resource/current_bytes")" = 1000 ] || fail "$resource"
    done
    echo >"$mnt/$process/$sim/peak_bytes"
    b=${program_pid[b]}
    kill_program b
    expect "$sim/current_bytes" 0
    expect "$sim/total_bytes" 2000
    expect "$process/$sim/current_bytes" 2000
fi

# The event of an end tells once what was held on all GPUs.
start_program c
gpu c 0
gpu c 1
tell c alloc 0 30
tell c alloc 1 7
c=${program_pid[c]}
end_program c
eventually exits "$c" >/dev/null
exits "$c" | grep -q '"bytes": 37,' || fail "the event of the end: $(exits "$c")"
stop_daemon
wait "$reader" || true
[ ! -e "$library" ] || [ "$(exits "$b" | wc -l)" = 1 ] || fail "events of one end: $(exits "$b")"

# A daemon in a pid namespace of its own cannot tell the pids of programs outside.
in_own_pids=("$RMMFS_PROGRAM" mounts unshare --pid --fork --mount-proc --propagation unchanged)
"${in_own_pids[@]}" true 2>/dev/null || skip "no pid namespaces here"
cat >"$work/inside.sh" <<'END'
set -eu
"$RMMFS" -f "$mnt" 2>>"$log" &
daemon=$!
for i in $(seq 1200); do
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
"${in_own_pids[@]}" bash "$work/inside.sh" || fail "inside: exit status $?"
grep -qE '^seg-[0-9a-f]{16} live 7$' "$work/processes" || fail "processes: $(cat "$work/processes")"
[ "$(cat "$work/sum")" = 7 ] || fail "gpu1/current_bytes is $(cat "$work/sum")"
