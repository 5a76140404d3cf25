#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Type=notify: READY=1 when the files are there, STOPPING=1 at the end.
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
listener=$!
eventually test -S "$work/notify"
NOTIFY_SOCKET=$work/notify start_daemon
eventually grep -q READY=1 "$work/heard"
stop_daemon
wait "$listener"
[ "$(tr '\n' ' ' <"$work/heard")" = "READY=1 STOPPING=1 " ] || fail "heard $(cat "$work/heard")"
