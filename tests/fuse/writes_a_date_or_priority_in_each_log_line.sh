#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The daemon's log on stderr has date, time and level; in the journal of systemd, which keeps
# the time, the priority; and what goes to another file than the journal has the time again.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

time='[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}[+-][0-9]{2}:[0-9]{2}'
unset JOURNAL_STREAM
start_daemon
stop_daemon
grep -qE "^rmmfs: \[$time\]\[info\] mounted on $mnt\$" "$log" || fail "no date: $(cat "$log")"

: >"$log"
JOURNAL_STREAM=$(stat -c %d:%i "$log")
export JOURNAL_STREAM
start_daemon
stop_daemon
grep -qx "<6>mounted on $mnt" "$log" || fail "no priority: $(cat "$log")"
! grep -qv '^<[0-7]>' "$log" || fail "lines without a priority: $(cat "$log")"
mkdir "$work/full" && : >"$work/full/file" && : >"$log"
! "$RMMFS" -f "$work/full" 2>>"$log" || fail "mounted over files"
grep -q "^<3>" "$log" || fail "the reason has no priority: $(cat "$log")"

log=$work/another.log
start_daemon
stop_daemon
grep -qE "^rmmfs: \[$time\]\[info\] mounted" "$log" || fail "taken for the journal: $(cat "$log")"
