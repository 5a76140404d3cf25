#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A process ends and leaves the lock of its segment to a child. The segment lives, but the
# pid is free, and may soon be another process's: the segment is shown as seg-<id>.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

# The list of locks is read in its own time.
is_without_pid() {
    compgen -G "$mnt/proc/seg-*" >/dev/null
}

start_program model
cp "$(segments)" "$work/template"
kill_program model
start_daemon
mkfifo "$work/orphan.in"
python3 "$(dirname "$0")/attack.py" orphan "$run" "$work/template" \
    <"$work/orphan.in" >"$work/orphan.out" &
exec {orphan_in}>"$work/orphan.in"
eventually test -s "$work/orphan.out"
read -r pid child <"$work/orphan.out"
eventually is "proc/$pid/state" live
echo >&"$orphan_in"
eventually grep -q ended "$work/orphan.out"
eventually is_without_pid
expect "$(cd "$mnt" && echo proc/seg-*)/state" live
expect_gone "proc/$pid"

# A daemon that starts later says the same.
stop_daemon
start_daemon
eventually is_without_pid
expect "$(cd "$mnt" && echo proc/seg-*)/state" live
expect_gone "proc/$pid"
kill "$child"
eventually is "$(cd "$mnt" && echo proc/seg-*)/state" exited
stop_daemon
