#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A user who logs without end pushes out only that user's own lines: the log of another user stays
# as it is, and in root's log of all the flood has a share, and a line that tells of the rest.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

as() { # UID COMMAND...
    setpriv --reuid "$1" --regid "$1" --clear-groups -- "${@:2}"
}

chmod 1777 "$run"
start_daemon
start_program innocent setpriv --reuid 1002 --regid 1002 --clear-groups --
start_program flood setpriv --reuid 1001 --regid 1001 --clear-groups --
tell innocent log 3 of the innocent
has() { # UID TEXT
    as "$1" grep -q "$2" "$mnt/log"
}
has 1002 "of the innocent" || fail "not there: $(as 1002 cat "$mnt/log")"
inode=$(as 1002 stat -c %i "$mnt/log")
size=$(as 1002 stat -c %s "$mnt/log")
root_inode=$(stat -c %i "$mnt/log")

# As much as the log of all has room for.
began=$SECONDS
long=$(printf 'x%.0s' $(seq 230))
for i in $(seq 45); do
    for j in $(seq 100); do
        echo "log 3 $i $j $long" >&"${program_in[flood]}"
        hear flood log
    done
    stat "$mnt/log" >/dev/null # takes in what is in the ring
done
has 1001 "45 100 x" || fail "the flood's own log has not its last line"
[ "$(as 1001 stat -c %s "$mnt/log")" -lt 300000 ] || fail "the flood's log: $(as 1001 stat -c %s "$mnt/log")"
[ "$(as 1001 stat -c %s "$mnt/log.1")" -lt 300000 ] || fail "the flood's log.1"
[ "$(as 1002 stat -c '%i %s' "$mnt/log")" = "$inode $size" ] || fail "the innocent's log is another one"
has 1002 "of the innocent" || fail "the innocent's line is gone"
! has 1002 xxx || fail "the innocent's log has the flood"
[ "$(stat -c %i "$mnt/log")" = "$root_inode" ] || fail "the log of all is full"
has 0 "of the innocent" || fail "root does not see the innocent's line"
# Each line of the flood is there or counted: 256 KiB of them, and what comes back in a second.
lines() {
    grep -c "x$" "$mnt/log"
}
all_told() {
    over=$(awk '/^# uid 1001: [0-9]+ messages over budget$/ { sum += $4 } END { print sum + 0 }' "$mnt/log")
    [ $(($(lines) + over)) -eq 4500 ]
}
eventually all_told
[ "$(lines)" -gt 100 ] && [ "$(lines)" -lt $((1000 + (SECONDS - began) * 5)) ] ||
    fail "root sees $(lines) lines of the flood after $((SECONDS - began)) s"
# Who was not over it goes on.
tell innocent log 3 later
has 0 later && has 1002 later || fail "the innocent's next line"
stop_daemon
