#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the diagnosis of a program finds comes as events of the node, and as rows of
# diag/findings_pipe; also of a program that was killed, and with bounds where the file lies.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

chmod 1777 "$run"
list_gpus 1
a=(setpriv --reuid 1001 --regid 1001 --clear-groups --)
forge() { # SEGMENT TOTAL COUNT:KIND...
    python3 "$(dirname "$test_path")/forge_findings.py" "$1.diag" "${@:2}"
}
reads() { # FILE TEXT
    grep -qE "$2" "$work/$1" 2>/dev/null
}
found() { # PROGRAM COUNT CLASS: an event
    echo "\"type\": \"finding\", \"pid\": ${program_pid[$1]}, .*\"count\": $2, .*\"text\": \"$3\""
}
events_of() { # PROGRAM
    grep -c "\"type\": \"finding\", \"pid\": ${program_pid[$1]}," "$work/events" || true
}

start_program early
gpu early 0
early=$(segments)
forge "$early" 7 7:1
start_daemon
cat "$mnt/events_pipe" >"$work/events" 2>/dev/null &

start_program theirs "${a[@]}"
gpu theirs 0
theirs=$(uid=1001 segments)
pipe=proc/${program_pid[theirs]}/diag/findings_pipe
eventually test -e "$mnt/$pipe"
! ls "$mnt/${pipe%/*}" | grep -q pipe || fail "the pipe is listed"
[ "$(stat -c %a "$mnt/$pipe")" = 400 ] || fail "mode of the pipe"
! setpriv --reuid 1002 --regid 1002 --clear-groups -- cat "$mnt/$pipe" 2>/dev/null ||
    fail "another user reads the findings"
"${a[@]}" cat "$mnt/$pipe" >"$work/rows" 2>/dev/null &
rows=$!
eventually reads rows '^#finding'

# The file comes when the diagnosis begins; then one event for each class and look, with the rise.
forge "$theirs" 3 2:1 1:99
eventually reads events "$(found theirs 2 out_of_bounds)"
eventually reads events "$(found theirs 1 unknown)"
eventually reads rows "^out_of_bounds	write	cuMemsetD8Async	2	.*	0	.*"
eventually reads rows "^unknown	write	cuMemsetD8Async	1	.*	1	.*"
forge "$theirs" 8 7:1 1:99
eventually reads events "$(found theirs 5 out_of_bounds)"
eventually reads rows "^out_of_bounds	write	cuMemsetD8Async	7	.*	0	.*"
[ "$(grep -c . "$work/rows")" = 4 ] || fail "rows of what did not change: $(cat "$work/rows")"

# What found no entry; what cannot be; what falls and rises; more entries than are read.
forge "$theirs" 18 7:1 1:99
eventually reads events "$(found theirs 10 unknown)"
before=$(events_of theirs)
forge "$theirs" 18446744073709551615 7:1 1:99
sleep 0.3
[ "$(events_of theirs)" = "$before" ] || fail "an impossible number is an event"
for i in $(seq 30); do
    forge "$theirs" $((i % 2)) 7:1
done
forge "$theirs" 1000 $(seq -f "%g:1" 500)
eventually reads events "$(found theirs '[0-9]+' out_of_bounds)"
truncate -c -s 300 "$theirs.diag" # -c: with fs.protected_regular nobody may create over it
sleep 0.2
expect version 1

# The last findings of a killed program; none from before the daemon.
start_program short
gpu short 0
short=$(segments | grep -v "$early")
forge "$short" 4 4:1
pid=${program_pid[short]} expected=$(found short 4 out_of_bounds)
kill_program short
eventually reads events "\"exit\", \"pid\": $pid,"
reads events "$expected" || fail "the last findings of a killed program are missing"
[ "$(events_of early)" = 0 ] || fail "findings from before the daemon"
forge "$early" 8 8:1
eventually reads events "$(found early 1 out_of_bounds)"

# The pipe ends with the program.
end_program theirs
wait "$rows" || fail "the end of the pipe is $?"
stop_daemon
