#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A daemon that starts just after another one was told to end waits for that end, again and
# again; beside one that stays it is refused. --clear unmounts what a killed daemon left, and
# never what a live one has mounted.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

list_gpus 1
"$RMMFS" "$mnt" || fail "the first does not start"
for i in $(seq 15); do
    daemon=$(cat "$mnt/daemon/pid")
    kill -TERM "$daemon"
    "$RMMFS" "$mnt" >"$work/out" 2>&1 || fail "start $i after a SIGTERM: $(cat "$work/out")"
    [ "$(cat "$mnt/daemon/pid")" != "$daemon" ] || fail "start $i: the old one is still there"
    expect daemon/persistence ok
done
daemon=$(cat "$mnt/daemon/pid")
"$RMMFS" --clear "$mnt" || fail "--clear beside a live daemon: exit status $?"
answers || fail "--clear unmounted a live daemon"
! "$RMMFS" "$mnt" >"$work/out" 2>&1 || fail "a second daemon on one mount point"
grep -q "mounted on $mnt already (pid $daemon)" "$work/out" || fail "$(cat "$work/out")"
kill -KILL "$daemon"
dead() { ! cat "$mnt/version" 2>"$work/error" && grep -q "not connected" "$work/error"; }
eventually dead
"$RMMFS" --clear "$mnt" || fail "--clear of a dead mount: exit status $?"
! is_mounted || fail "--clear left a dead mount"
"$RMMFS" --clear "$mnt" || fail "--clear of nothing: exit status $?"
daemon=
! "$RMMFS" --clear "$work/nowhere/deeper" >"$work/out" 2>&1 || fail "--clear of a path that is not there"
[ "$(wc -l <"$work/out")" = 1 ] || fail "not one line: $(cat "$work/out")"
