#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Type=notify: READY=1 when the files are there, STOPPING=1 at the end; between them WATCHDOG=1 if
# the manager asks for it, and not while the daemon stands still. The unit is one that systemd
# understands.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

python3 - "$work/notify" >"$work/heard" <<'END' &
import socket, sys
heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
heard.bind(sys.argv[1])
while True:
    text = heard.recv(100).decode()
    print(text, flush=True)
    if text == "STOPPING=1":
        break
END
stopped() { grep -q "^State:.T" "/proc/$daemon/status"; }
# All that was sent before has been heard.
hears() { # TEXT
    python3 - "$work/notify" "$1" <<'END'
import socket, sys
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(sys.argv[2].encode(), sys.argv[1])
END
    eventually grep -q "^$1\$" "$work/heard"
}
listener=$!
eventually test -S "$work/notify"
NOTIFY_SOCKET=$work/notify WATCHDOG_USEC=1000000 start_daemon
eventually grep -q READY=1 "$work/heard"
told() { [ "$(grep -c WATCHDOG=1 "$work/heard")" -ge "$1" ]; }
eventually told 3
kill -STOP "$daemon"
eventually stopped
hears "it stands still"
before=$(grep -c WATCHDOG=1 "$work/heard")
sleep 1.5
hears "it still does"
! told $((before + 1)) || fail "a daemon that stands still says that it is alive"
kill -CONT "$daemon"
eventually told $((before + 1))
stop_daemon
wait "$listener"
[ "$(grep =1 "$work/heard" | grep -v WATCHDOG=1 | tr '\n' ' ')" = "READY=1 STOPPING=1 " ] || fail "heard $(cat "$work/heard")"

if command -v systemd-analyze >/dev/null; then
    sed "s,@RMMFS_BINDIR@,${RMMFS%/*}," "${test_path%/tests/*}/fusefs/rmmfs.service.in" >"$work/rmmfs.service"
    systemd-analyze verify --man=no "$work/rmmfs.service" >"$work/verified" 2>&1 ||
        fail "systemd-analyze: $(cat "$work/verified")"
    ! grep "rmmfs.service" "$work/verified" || fail "systemd-analyze does not like the unit"
fi
