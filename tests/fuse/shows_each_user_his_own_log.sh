#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What programs log may name files and addresses: each user sees the messages of his own
# processes, root all.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

as() { # UID COMMAND...
    setpriv --reuid "$1" --regid "$1" --clear-groups -- "${@:2}"
}

chmod 1777 "$run"
start_daemon
start_program theirs setpriv --reuid 65534 --regid 65534 --clear-groups --
start_program ours
tell theirs log 3 of theirs
tell ours log 3 of ours
[ "$(as 65534 cut -d' ' -f2- "$mnt/log")" = "of theirs" ] || fail "theirs: $(as 65534 cat "$mnt/log")"
[ "$(as 65534 stat -c %s "$mnt/log")" = "$(as 65534 cat "$mnt/log" | wc -c)" ] || fail "size"
[ "$(as 1234 cat "$mnt/log")" = "" ] || fail "a third user sees $(as 1234 cat "$mnt/log")"
[ "$(wc -l <"$mnt/log")" = 2 ] || fail "root does not see all: $(cat "$mnt/log")"
[ "$(as 65534 head -n 1 "$mnt/log_pipe" | cut -d' ' -f2-)" = "of theirs" ] || fail "log_pipe"
status=0
as 1234 timeout -s INT 0.3 cat "$mnt/log_pipe" >"$work/third" || status=$?
[ "$status" = 124 ] && [ ! -s "$work/third" ] || fail "a third user's pipe: $(cat "$work/third")"
pid=${program_pid[theirs]}
as 65534 cat "$mnt/proc/$pid/log" | grep -q "of theirs" || fail "the owner cannot read"
! as 1234 cat "$mnt/proc/$pid/log" 2>/dev/null || fail "uid 1234 reads a foreign log"
! as 1234 cat "$mnt/proc/$pid/log_pipe" 2>/dev/null || fail "uid 1234 reads a foreign pipe"
as 65534 sh -c "echo debug >$mnt/proc/$pid/log_level" || fail "the owner cannot set the level"
! as 1234 sh -c "echo debug >$mnt/proc/$pid/log_level" 2>/dev/null || fail "uid 1234 sets the level"
stop_daemon
