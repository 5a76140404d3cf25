#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A daemon that starts just after another one was told to end waits for that end, again and
# again; beside one that stays it is refused, also if both start at once. --clear unmounts what a
# killed daemon left, and never what a live one has mounted.
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
kill -TERM "$(cat "$mnt/daemon/pid")"
gone() { ! is_mounted; }
eventually gone

# Of several that start at once one serves, and the others say so.
for i in $(seq 10); do
    rm -f "$work/out".*
    for j in 1 2 3 4; do
        { "$RMMFS" "$mnt" >"$work/out.$j" 2>&1 && echo started >>"$work/out.$j"; } &
        starts[$j]=$!
    done
    wait "${starts[@]}" || true
    mounts=$(awk -v at="$mnt" '$5 == at' /proc/self/mountinfo | wc -l)
    [ "$mounts" = 1 ] || fail "$mounts mounts after starts at once"
    daemon=$(cat "$mnt/daemon/pid")
    [ "$(grep -l started "$work/out".* | wc -l)" = 1 ] || fail "not one started: $(cat "$work/out".*)"
    [ "$(grep -c "mounted on $mnt already (pid $daemon)" "$work/out".* | grep -c :1)" = 3 ] ||
        fail "not told why: $(cat "$work/out".*)"
    kill -TERM "$daemon"
    eventually gone
done
"$RMMFS" "$mnt" || fail "it does not start after the starts at once"
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
