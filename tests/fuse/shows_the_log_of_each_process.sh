#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# proc/<pid>/log: what the program logged, while it runs and after it was killed; the level
# is changed while it runs.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

start_daemon
start_program a
start_program b
a=proc/${program_pid[a]}
b=proc/${program_pid[b]}
line='^\[[0-9]+\]\[[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}[+-][0-9]{2}:[0-9]{2}\]'

expect "$a/log" ""
tell a log 2 pool grew
tell b log 4 no room for 12 bytes
[[ "$(cat "$mnt/$a/log")" =~ ${line}\[info\]\ pool\ grew$ ]] || fail "a's log: $(cat "$mnt/$a/log")"
[[ "$(cat "$mnt/$b/log")" =~ ${line}\[error\]\ no\ room\ for\ 12\ bytes$ ]] ||
    fail "b's log: $(cat "$mnt/$b/log")"

# The level: what the program begins with, what is written, what is refused.
expect "$a/log_level" info
tell a log 1 not wanted
echo debug >"$mnt/$a/log_level"
expect "$a/log_level" debug
tell a log 1 wanted
echo error >"$mnt/$a/log_level"
tell a log 3 not wanted either
[ "$(cut -d' ' -f2- "$mnt/$a/log")" = $'pool grew\nwanted' ] || fail "a's log: $(cat "$mnt/$a/log")"
expect "$b/log_level" info
for word in loud "" trace "debug info"; do # traces are compiled out
    if echo "$word" >"$mnt/$a/log_level"; then
        fail "'$word' was obeyed"
    fi 2>/dev/null
done
expect "$a/log_level" error
tell a log 4 the last words

# More than the ring holds: the newest stay.
for i in $(seq 300); do
    tell b log 3 "number $i"
done
[ "$(wc -l <"$mnt/$b/log")" = 128 ] || fail "$(wc -l <"$mnt/$b/log") lines"
[ "$(tail -n 1 "$mnt/$b/log" | cut -d' ' -f2-)" = "number 300" ] || fail "the newest is not there"

pid=${program_pid[a]}
kill_program a
eventually is "proc/$pid/state" exited
tail -n 1 "$mnt/$a/log" | grep -q "the last words" || fail "a killed program's log: $(cat "$mnt/$a/log")"
if echo debug >"$mnt/$a/log_level"; then
    fail "the level of an exited process was set"
fi 2>/dev/null
[ "$(stat -c %a "$mnt/$b/log")" = 400 ] || fail "mode of log"
stop_daemon
