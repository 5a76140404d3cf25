#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In a folder that all users may write to, names that another user took first stop nothing: the
# state is in a folder of the daemon's own. A write that fails is said once, shown, and tried
# again.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
as=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
list_gpus 1

chmod 1777 "$run"
"${as[@]}" mkdir -p "$run/rmmfs.state.new/x" "$run/rmmfs.state/x" "$run/rmmfs.state.lock/x" "$run/rmmfs.0/x"
start_daemon
expect daemon/persistence ok
grep -q "did not belong to root: renamed it to rmmfs.0.not-ours" "$log" || fail "nothing said of the folder"
start_program a
gpu a 0
tell a alloc 0 100
end_program a
expect gpu0/peak_bytes 100
kill_daemon
start_daemon
expect gpu0/peak_bytes 100
expect gpu0/total_bytes 100
[ "$(stat -c '%a %u' "$run/rmmfs.0")" = "700 0" ] || fail "the folder is $(stat -c '%a %u' "$run/rmmfs.0")"
mkdir "$work/second"
"$RMMFS" -f "$work/second" 2>"$work/second.log" &
second=$!
eventually test -e "$work/second/version"
[ "$(cat "$work/second/daemon/persistence")" = "off: another rmmfs uses $run/rmmfs.0/rmmfs.state" ] ||
    fail "of the second: $(cat "$work/second/daemon/persistence")"
kill -TERM "$second"
wait "$second" || fail "the second ended with $?"

# Something is in the way after all.
: >"$log"
mkdir "$run/rmmfs.0/rmmfs.state.new"
echo reset >"$mnt/gpu0/peak_bytes"
failing="failing: cannot write $run/rmmfs.0/rmmfs.state: File exists"
eventually is daemon/persistence "$failing"
sleep 2.2 # it has tried again
expect daemon/persistence "$failing"
[ "$(grep -c "cannot write" "$log")" = 1 ] || fail "not said once: $(cat "$log")"
rmdir "$run/rmmfs.0/rmmfs.state.new"
eventually is daemon/persistence ok
eventually rm -rf "${run:?}/rmmfs.0" # while the daemon may write; and made again, without an end or a reset
eventually test -e "$run/rmmfs.0/rmmfs.state"
stop_daemon

# Another user's file beside the segments is not this daemon's state.
rm -r "$run/rmmfs.state" "$run/rmmfs.0"
"${as[@]}" sh -c "printf 'rmmfs-state 1\nmark host peak_bytes 5\nend\n' >$run/rmmfs.state"
start_daemon
expect host/peak_bytes 0
expect daemon/persistence ok
stop_daemon

# No space: said with the reason.
chmod 755 "$run"
if "$RMMFS_PROGRAM" mounts true 2>/dev/null; then
    mkdir "$work/full"
    cat >"$work/full.sh" <<'END'
set -eu
mount -t tmpfs -o size=16k,mode=755 tmpfs "$work/full"
head -c 16384 /dev/zero >"$work/full/filler" 2>/dev/null || true
RMM_RUNTIME_DIR=$work/full "$RMMFS" -f "$mnt" 2>>"$log" &
daemon=$!
for i in $(seq 1200); do [ ! -e "$mnt/version" ] || break; sleep 0.05; done
cat "$mnt/daemon/persistence" >"$work/told"
rm "$work/full/filler"
for i in $(seq 1200); do [ "$(cat "$mnt/daemon/persistence")" != ok ] || break; sleep 0.05; done
cat "$mnt/daemon/persistence" >"$work/told.then"
kill -TERM "$daemon"
wait "$daemon"
END
    work=$work mnt=$mnt log=$log "$RMMFS_PROGRAM" mounts bash "$work/full.sh" || fail "a full file system: $?"
    grep -q "failing: cannot write .*rmmfs.state: No space left on device" "$work/told" || fail "$(cat "$work/told")"
    [ "$(cat "$work/told.then")" = ok ] || fail "not tried again: $(cat "$work/told.then")"
fi

# Nor may a file be longer than a limit (`ulimit -f`): the same, and the daemon goes on.
mkdir "$work/limited"
RMM_RUNTIME_DIR=$work/limited
start_daemon
prlimit --pid "$daemon" --fsize=0
echo 0 >"$mnt/gpu0/peak_bytes" # which is kept
grep -q "failing: cannot write .*rmmfs.state: File too large" "$mnt/daemon/persistence" ||
    fail "a limit of the size of files: $(cat "$mnt/daemon/persistence")"
stop_daemon
