# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the tests of rmm-exporter begin with, after common.sh. Sourced.
#
#   RMM_EXPORTER   the program (as built in build/dev, unless told otherwise)
exporter_program=${RMM_EXPORTER:-$build/tools/exporter/rmm-exporter}
command -v curl >/dev/null || skip "no curl"
if [ -n "${test_users:-}" ]; then
    cp "$exporter_program" "$work"
    exporter_program=$work/rmm-exporter
fi
as_user=()
[ "$uid" != 0 ] || as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
exporter=

# N ports that nobody has; all at once, so that they differ.
free_ports() { # N
    python3 -c '
import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for one in sockets:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))' "$1"
}

# fetch PATH [CURL'S OPTION...]: of the exporter, to $work/head and $work/body; prints the status.
fetch() {
    local path=$1
    shift
    curl -s -m 60 -D "$work/head" -o "$work/body" -w '%{http_code}' "$@" "http://127.0.0.1:$port$path" || true
}

exporter_answers() {
    kill -0 "$exporter" 2>/dev/null || fail "rmm-exporter did not start: $(cat "$work/exporter.log")"
    [ "$(fetch /healthz)" = 200 ]
}

# As a user without rights, where the test may be two users.
start_exporter() { # [OPTION...]
    port=$(free_ports 1)
    "${as_user[@]}" "$exporter_program" --mount "$mnt" --listen "127.0.0.1:$port" "$@" 2>>"$work/exporter.log" &
    exporter=$!
    eventually exporter_answers
}

# Its exit status must be 0: a sanitizer that found something changes it.
stop_exporter() {
    local status=0
    kill -TERM "$exporter"
    wait "$exporter" || status=$?
    exporter=
    [ "$status" -eq 0 ] || fail "rmm-exporter ended with $status: $(cat "$work/exporter.log")"
}

up() { # VALUE: rmm_up of the last answer
    grep -qx "rmm_up $1" "$work/body"
}

metrics_are() { # VALUE: a question about a new answer
    [ "$(fetch /metrics)" = 200 ] && up "$1"
}
