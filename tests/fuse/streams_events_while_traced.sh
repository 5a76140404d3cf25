#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# proc/<pid>/events_pipe: what a running program allocates and frees, as RMM's CSV, while
# trace/enable is 1; what a reader was too slow for is counted; nobody waits for a reader.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

reads() { # FILE TEXT
    grep -q "$2" "$work/$1"
}
gone() { # PID
    ! kill -0 "$1" 2>/dev/null
}
start_daemon
start_program a
pid=${program_pid[a]}
process=proc/$pid

# Switched off there is the header, and nothing is made.
expect "$process/trace/enable" 0
expect "$process/trace/lost" 0
[ "$(head -n 1 "$mnt/$process/events_pipe")" = Thread,Time,Action,Pointer,Size,Stream ] || fail "no header"
tell a event allocate 0x1000 64 0x2
[ "$(find "$run" -name '*.events' | wc -l)" = 0 ] || fail "a ring without need"

cat "$mnt/$process/events_pipe" >"$work/events" &
cat=$!
echo 1 >"$mnt/$process/trace/enable"
expect "$process/trace/enable" 1
tell a event allocate 0x2000 1024 0
tell a event free 0x2000 1024 0
tell a event failure 0 1099511627776 0x7f0000001000
eventually reads events failure
row='^[0-9]+,[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}'
mapfile -t rows <"$work/events"
[ "${#rows[@]}" = 4 ] || fail "rows: $(cat "$work/events")"
[[ "${rows[1]}" =~ $row,allocate,0x2000,1024,0$ ]] || fail "row 1: ${rows[1]}"
[[ "${rows[2]}" =~ $row,free,0x2000,1024,0$ ]] || fail "row 2: ${rows[2]}"
[[ "${rows[3]}" =~ $row,allocate\ failure,\(nil\),1099511627776,0x7f0000001000$ ]] || fail "row 3: ${rows[3]}"

# A reader that comes later has what is still in the ring; one that is killed is gone.
[ "$(head -n 4 "$mnt/$process/events_pipe" | tail -n 1)" = "${rows[3]}" ] || fail "a second reader"
kill -KILL "$cat"
eventually gone "$cat"
wait "$cat" 2>/dev/null || true

echo 0 >"$mnt/$process/trace/enable"
tell a event allocate 0x3000 1 0
echo 1 >"$mnt/$process/trace/enable"
for word in 2 on "" "1 1"; do
    if echo "$word" >"$mnt/$process/trace/enable"; then
        fail "'$word' was obeyed"
    fi 2>/dev/null
done

# A reader that stops is overrun, and the loss is counted; rows stay whole.
mkfifo "$work/slow"
cat "$mnt/$process/events_pipe" >"$work/slow" &
exec {slow}<"$work/slow"
read -r header <&"$slow"
[ "$header" = Thread,Time,Action,Pointer,Size,Stream ] || fail "header: $header"
for _ in $(seq 8); do
    tell a events 20000
done
end_program a
timeout 120 cat <&"$slow" >"$work/late" || fail "the pipe of an exited process does not end"
lost=$(cat "$mnt/$process/trace/lost")
[ "$lost" -gt 0 ] || fail "nothing was lost"
[ "$(($(wc -l <"$work/late") + lost))" = 160003 ] ||
    fail "$(wc -l <"$work/late") rows and $lost lost"
! grep -vqE "$row,(allocate|free|allocate failure),(0x[0-9a-f]+|\\(nil\\)),[0-9]+,(0|0x[0-9a-f]+)$" "$work/late" ||
    fail "torn: $(grep -vE "$row" "$work/late" | head -n 1)"
! grep -q 0x3000 "$work/late" || fail "an event while it was switched off"

# A writer killed in the middle leaves a ring that is read to its end.
start_program b
process=proc/${program_pid[b]}
echo 1 >"$mnt/$process/trace/enable"
tell b events 10
cat "$mnt/$process/events_pipe" >"$work/killed" &
cat=$!
echo "events 100000000" >&"${program_in[b]}"
many() { [ "$(wc -l <"$work/killed")" -gt 100 ]; }
eventually many
kill_program b
eventually gone "$cat"
stop_daemon
