#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A write to trim waits until the program has obeyed, at its next allocation, but not long: one
# that is idle, stopped or killed costs the writer an error and the daemon nothing.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

trim() { # FILE WORD: the errno's words, or "ok"
    local answer=$work/answer.$BASHPID
    if (echo "$2" >"$mnt/$1") 2>"$answer"; then
        echo ok
    else
        sed 's/.*: //' "$answer"
    fi
}
# While the program allocates. It may come too late on a busy machine: again.
trims() { # FILE WORD
    local tries writer
    for tries in $(seq 40); do
        trim "$1" "$2" >"$work/answer" &
        writer=$!
        while kill -0 "$writer" 2>/dev/null; do
            tell a borrow 0 10 1
        done
        wait "$writer"
        [ "$(cat "$work/answer")" != ok ] || return 0
        [ "$(cat "$work/answer")" = "Connection timed out" ] ||
            fail "trim of $1: $(cat "$work/answer")"
    done
    fail "no trim of $1 in $tries tries"
}
keeps_much() { # what the pool has free
    tell a return 0
    tell a borrow 0 33554432 4
    tell a return 0
    [ "$(cat "$mnt/$process/reserved_bytes")" -ge 134217728 ] || fail "it keeps nothing"
}

start_daemon
start_program a env RMM_DRIVER=sim
tell a pool 0
tell a borrow 0 1000 1
process=proc/${program_pid[a]}/gpu0
resource=$(cd "$mnt" && echo "$process"/mr/*.pool)

# Idle: nothing is done, then or later.
keeps_much
reserved=$(cat "$mnt/$process/reserved_bytes")
answer=$(trim "$resource/trim" all)
[ "$answer" = "Connection timed out" ] || fail "trim of an idle program: $answer"
tell a borrow 0 10 1
expect "$process/reserved_bytes" "$reserved"

# Obeyed: all, and of the process; and no more than so many bytes.
keeps_much
trims "$resource/trim" all
[ "$(cat "$mnt/$process/reserved_bytes")" -lt 134217728 ] || fail "nothing was given back"
keeps_much
trims "$process/trim" all
[ "$(cat "$mnt/$process/reserved_bytes")" -lt 134217728 ] || fail "nothing was given back"
keeps_much
reserved=$(cat "$mnt/$process/reserved_bytes")
trims "$process/trim" 40MiB
[ "$(cat "$mnt/$process/reserved_bytes")" -ge $((reserved - 41943040)) ] || fail "too much was given back"

for word in '' some -1 5K max; do
    answer=$(trim "$process/trim" "$word")
    [ "$answer" = "Invalid argument" ] || fail "trim with '$word': $answer"
done

# Many at once, of a program that does not run: one waits, the others are told, and the tree is
# read meanwhile. None stays behind.
kill -STOP "${program_pid[a]}"
for i in $(seq 30); do
    trim "$process/trim" all >"$work/many.$i" &
done
expect version 1
expect "$process/limit_bytes" max
wait $(jobs -p | grep -v "^$daemon\$" | grep -v "^${program_pid[a]}\$")
sort -u "$work"/many.* >"$work/answers"
! grep -vE "Connection timed out|Device or resource busy|Disk quota exceeded" "$work/answers" ||
    fail "answers: $(cat "$work/answers")"
grep -q "Connection timed out" "$work/answers" || fail "no writer waited: $(cat "$work/answers")"
kill -CONT "${program_pid[a]}"
tell a borrow 0 10 1
trims "$process/trim" all

# The daemon is killed while one waits: the program may obey, and the next one trims again.
kill -STOP "${program_pid[a]}"
trim "$process/trim" all >"$work/answer" &
writer=$!
kill_daemon
wait "$writer"
[ "$(cat "$work/answer")" != ok ] || fail "a trim that no program obeyed succeeded"
kill -CONT "${program_pid[a]}"
tell a borrow 0 10 1
start_daemon
trims "$process/trim" all

# The program is killed while one waits.
kill -STOP "${program_pid[a]}"
trim "$process/trim" all >"$work/answer" &
writer=$!
kill_program a
wait "$writer"
grep -qE "No such process|No such device|Connection timed out|Permission denied|Read-only|No such file" "$work/answer" ||
    fail "trim of a killed program: $(cat "$work/answer")"

# The daemon ends while one waits.
start_program a env RMM_DRIVER=sim
tell a pool 0
tell a borrow 0 1000 1
process=proc/${program_pid[a]}/gpu0
trim "$process/trim" all >"$work/answer" &
writer=$!
stop_daemon
wait "$writer"
[ "$(cat "$work/answer")" != ok ] || fail "a trim that no program obeyed succeeded"
