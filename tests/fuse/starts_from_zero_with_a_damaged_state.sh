#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A state file that is cut, of another version, or no state at all: said once, put aside,
# and the daemon begins anew. A second daemon in one runtime directory does not fight for it.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

start_daemon
start_program a
gpu a 0
tell a alloc 0 100
end_program a
expect gpu0/peak_bytes 100
stop_daemon
cp "$run/rmmfs.state" "$work/good"
for damage in "head -n 3" "sed s/state.1/state.2/" "rev" "sed s/^mark/mar/" "head -c 0"; do
    $damage "$work/good" >"$run/rmmfs.state"
    : >"$log"
    start_daemon
    grep -q "is damaged at line" "$log" || fail "$damage: nothing said"
    [ -e "$run/rmmfs.state.bad" ] || fail "$damage: not put aside"
    stop_daemon
done
cp "$work/good" "$run/rmmfs.state"
start_daemon
expect gpu0/peak_bytes 100
mkdir "$work/second"
"$RMMFS" -f "$work/second" 2>"$work/second.log" &
second=$!
eventually test -e "$work/second/version"
grep -q "another rmmfs uses" "$work/second.log" || fail "the second said: $(cat "$work/second.log")"
kill -TERM "$second"
wait "$second" || fail "the second ended with $?"
expect gpu0/peak_bytes 100
stop_daemon

# Names that another user took first.
mkfifo "$run/rmmfs.state.new"
rm "$run/rmmfs.state.lock"
ln -s /etc/passwd "$run/rmmfs.state.lock"
start_daemon
start_program b
gpu b 0
tell b alloc 0 200
end_program b
expect gpu0/peak_bytes 200
kill_daemon
start_daemon
expect gpu0/peak_bytes 200
[ ! -L "$run/rmmfs.state.lock" ] || fail "the lock is still a link"
stop_daemon
