#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# /rmm/log: all processes' messages in one file of true size that only grows, which tail -F
# follows, also when it is full and another takes its name.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

start_daemon
start_program a
start_program b
has() { # TEXT
    grep -q "$1" "$mnt/log"
}
followed() { # TEXT
    grep -q "$1" "$work/followed"
}

tell a log 3 first of a
tell b log 3 first of b
eventually has "\[${program_pid[a]}\].*\[warn\] first of a"
has "\[${program_pid[b]}\].*\[warn\] first of b" || fail "log: $(cat "$mnt/log")"
size=$(stat -c %s "$mnt/log")
[ "$size" = "$(wc -c <"$mnt/log")" ] && [ "$size" = "$(cat "$mnt/log" | wc -c)" ] ||
    fail "size is $size, text has $(wc -c <"$mnt/log")"

# On one descriptor only what is new comes, and nothing that was read moves.
exec {kept}<"$mnt/log"
read -r first <&"$kept"
tell a log 3 second of a
[ "$(stat -c %s "$mnt/log")" -gt "$size" ] || fail "it does not grow"
[ "$(head -n 1 "$mnt/log")" = "$first" ] || fail "its first line has changed"
[ "$(dd if="$mnt/log" bs=1 skip="$size" status=none | cut -d' ' -f2-)" = "second of a" ] ||
    fail "what is new is not behind what was there"

tail -n +1 -F --sleep-interval=0.05 "$mnt/log" >"$work/followed" 2>"$work/tail.err" &
eventually followed "second of a"
tell b log 3 while followed
eventually followed "while followed"

# Fill it: 1 MiB, then a new file; tail goes over to it.
inode=$(stat -c %i "$mnt/log")
long=$(printf 'x%.0s' $(seq 230))
for i in $(seq 5000); do
    tell a log 3 "$i $long"
    if [ $((i % 100)) = 0 ]; then
        stat -c %i "$mnt/log" >"$work/inode" # looking takes in what is in the ring
        [ "$(cat "$work/inode")" = "$inode" ] || break
    fi
done
[ "$(stat -c %i "$mnt/log")" != "$inode" ] || fail "never another file"
[ "$(stat -c %s "$mnt/log.1")" -ge 1048576 ] || fail "log.1 has $(stat -c %s "$mnt/log.1")"
[ "$(head -n 1 "$mnt/log.1")" = "$first" ] || fail "log.1 is not the one before"
tell b log 3 in the new file
eventually followed "in the new file"
has "in the new file" || fail "the new file does not have it"
[ "$(grep -c "while followed" "$work/followed")" = 1 ] || fail "tail saw a line twice"

# What was logged between two looks by a program that then was killed is there.
tell b log 5 "the last words"
kill_program b
has "the last words" || fail "a killed program's last message is lost"

# More than a program's ring has room for, while nobody looks: how many are gone is told.
kill -STOP "$daemon"
for i in $(seq 1000); do
    tell a log 3 "unseen $i"
done
kill -CONT "$daemon"
eventually has "unseen 1000$"
has "^# lost [0-9]* messages of " || fail "what was lost is not told: $(tail -n 3 "$mnt/log")"
[ $(($(grep -c "unseen [0-9]*$" "$mnt/log") + $(awk '/^# lost/ { sum += $3 } END { print sum + 0 }' "$mnt/log"))) = 1000 ] ||
    fail "not each line is there or counted"
stop_daemon
