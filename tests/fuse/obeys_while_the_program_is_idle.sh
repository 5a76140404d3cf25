#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# With RMM_REQUEST_THREAD=1 a program that does nothing obeys trims, limits and requests for its
# blocks; without it, and once it has stopped the thread, it does not.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

trim() { # FILE WORD: the errno's words, or "ok"
    if (echo "$2" >"$mnt/$1") 2>"$work/answer"; then
        echo ok
    else
        sed 's/.*: //' "$work/answer"
    fi
}
trim_as() { # NUMBER FILE: the same, beside others
    if (echo all >"$mnt/$2") 2>"$work/answer.$1"; then
        echo ok
    else
        sed 's/.*: //' "$work/answer.$1"
    fi
}
# While a busy machine delays the thread by more than the daemon waits: again.
trims() { # FILE WORD
    for _ in $(seq 40); do
        answer=$(trim "$1" "$2")
        [ "$answer" != ok ] || return 0
        [ "$answer" = "Connection timed out" ] || fail "trim of $1: $answer"
    done
    fail "no trim of $1 in 40 tries"
}
reserved() { # AT MOST
    [ "$(cat "$mnt/$process/reserved_bytes")" -le "$1" ]
}
keeps_much() { # what the pool has free
    tell a return 0
    tell a borrow 0 33554432 4
    tell a return 0
    [ "$(cat "$mnt/$process/reserved_bytes")" -ge 134217728 ] || fail "it keeps nothing"
}
threads() { # of the program, by name
    cat /proc/"${program_pid[a]}"/task/*/comm
}
lists_blocks() { # the map has the program's live blocks
    [ "$(grep -c " used " "$mnt/$resource/map" 2>/dev/null)" = 4 ]
}

start_daemon
start_program a env RMM_DRIVER=sim RMM_REQUEST_THREAD=1
tell a pool 0
tell a borrow 0 1000 1
process=proc/${program_pid[a]}/gpu0
resource=$(cd "$mnt" && echo "$process"/mr/*.pool)
threads | grep -qx rmm-requests || fail "no thread: $(threads)"

# Trims, and nothing between.
for _ in $(seq 20); do
    keeps_much
    trims "$process/trim" all
    reserved 134217727 || fail "nothing was given back"
done
keeps_much
trims "$resource/trim" all
reserved 134217727 || fail "nothing was given back"
tell a return 0
trims "$process/trim" all
expect "$process/reserved_bytes" 0

# A limit: free memory above it goes back, also what is freed later.
keeps_much
echo 50000000 >"$mnt/$process/limit_bytes"
eventually reserved 50000000
echo max >"$mnt/$process/limit_bytes"
tell a borrow 0 33554432 4
echo 50000000 >"$mnt/$process/limit_bytes"
tell a return 0
eventually reserved 50000000
echo max >"$mnt/$process/limit_bytes"

# Its blocks.
tell a return 0
tell a borrow 0 12345 4
eventually lists_blocks

# Stopped and killed programs do no harm; the next daemon wakes the thread as well.
kill_daemon
start_daemon
keeps_much
trims "$process/trim" all
kill -STOP "${program_pid[a]}"
answer=$(trim "$process/trim" all)
[ "$answer" = "Connection timed out" ] || fail "trim of a stopped program: $answer"
kill -CONT "${program_pid[a]}"
trims "$process/trim" all

# exec: another segment, with a thread of its own.
tell a exec
tell a pool 0
tell a borrow 0 1000 1
eventually test -e "$mnt/$process/trim"
keeps_much
trims "$process/trim" all
end_program a

# Killed amid trims: the writers are told, and the daemon goes on.
start_program b env RMM_DRIVER=sim RMM_REQUEST_THREAD=1
tell b pool 0
tell b borrow 0 1000 1
process=proc/${program_pid[b]}/gpu0
for i in $(seq 4); do
    (for _ in $(seq 25); do trim_as "$i" "$process/trim"; done) >>"$work/answers" &
    writers[i]=$!
done
kill -KILL "${program_pid[b]}"
wait "${writers[@]}"
! grep -vE "^(ok|Connection timed out|Device or resource busy|No such process|No such file or directory|Permission denied)$" \
    "$work/answers" || fail "answers: $(sort "$work/answers" | uniq -c)"
expect version 1

start_program a env RMM_DRIVER=sim
tell a pool 0
tell a borrow 0 1000 1
process=proc/${program_pid[a]}/gpu0
! threads | grep -qx rmm-requests || fail "a thread that nobody asked for"
answer=$(trim "$process/trim" all)
[ "$answer" = "Connection timed out" ] || fail "trim of an idle program: $answer"
end_program a
stop_daemon
