#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A daemon that ends between the mount and its first answer unmounts: one that is told to end, and
# one that cannot start its threads. Both left a mount that answered "Transport endpoint is not
# connected".
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

list_gpus 1
start_programs 100 1 GPU-00000000 # the start takes long enough to be met
began() { is_mounted || ! kill -0 "$daemon" 2>/dev/null; }
for signal in TERM INT HUP; do
    for _ in $(seq 5); do
        "$RMMFS" -f "$mnt" 2>>"$log" &
        daemon=$!
        until began; do :; done
        kill "-$signal" "$daemon"
        wait "$daemon" || fail "rmmfs ended with $? after SIG$signal"
        ! is_mounted || fail "SIG$signal left a mount"
    done
done

# One that leaves the terminal has done so, or ends with a reason.
for _ in $(seq 5); do
    "$RMMFS" "$mnt" 2>>"$log" &
    daemon=$!
    until began; do :; done
    kill -TERM "$daemon" 2>/dev/null || true
    wait "$daemon" || true
    daemon=
    if is_mounted; then
        daemon=$(cat "$mnt/daemon/pid") || fail "SIGTERM left a mount that nobody serves"
        kill -TERM "$daemon"
        unmounted() { ! is_mounted; }
        eventually unmounted
        daemon=
    fi
done

# Before the mount a signal ends it at once, also while it waits for a daemon that does not answer.
start_daemon
kill -STOP "$daemon"
is_stopped() { [ -z "$(grep -h '^State:' "/proc/$daemon"/task/*/status | grep -v stopped)" ]; }
eventually is_stopped # a thread that still took the request would let no signal end its reader
"$RMMFS" "$mnt" 2>>"$log" &
starter=$!
is_rmmfs() { [ "$(readlink "/proc/$starter/exe")" != "$(readlink /proc/$$/exe)" ]; }
eventually is_rmmfs # until then it is a shell, with the traps of this one
kill -TERM "$starter"
status=0
wait "$starter" || status=$?
[ "$status" = 143 ] || fail "a start that waits ended with $status"
kill -CONT "$daemon"
stop_daemon
end_programs

# So does one that cannot start all its threads, and says so. Which limit hits which thread depends
# on the machine.
real=$RMMFS
serves_or_ended() { answers 2>/dev/null || ! kill -0 "$daemon" 2>/dev/null; }
for limit in $(seq 14000 3000 50000); do
    printf '#!/bin/bash\nulimit -v %s\nexec %s "$@"\n' "$limit" "$real" >"$work/limited"
    chmod +x "$work/limited"
    "$work/limited" -f "$mnt" 2>"$work/told" &
    daemon=$!
    eventually serves_or_ended
    if kill -0 "$daemon" 2>/dev/null; then
        stop_daemon
        continue
    fi
    wait "$daemon" || true
    daemon=
    ! is_mounted || fail "with $limit KiB of addresses it left a mount: $(cat "$work/told")"
    grep -qv '\[info\]' "$work/told" || fail "with $limit KiB of addresses it did not say why it ended"
done

# One that was started with signals blocked or ignored, as by a runtime that starts a container again, ends.
printf '#!/bin/sh\nexec env --block-signal --ignore-signal=CHLD %s "$@"\n' "$real" >"$work/blocked"
chmod +x "$work/blocked"
RMMFS=$work/blocked
start_daemon
"$RMMFS" --ping "$mnt" || fail "--ping fails with SIGCHLD ignored"
stop_daemon
