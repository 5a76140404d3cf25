#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rmm-exporter as a user without rights: /metrics has the bytes of the files, in the format that the
# client asks for, with rmm_up; the page; other paths and methods get an error; IPv4, IPv6, several
# addresses, sockets of systemd; wrong usage gets one line.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=tests/fuse/exporter.sh
. "${test_path%/*}/exporter.sh"

list_gpus 1
start_daemon
start_program a
gpu a 0
tell a alloc 0 12345
start_exporter

# The bytes of the file, but for what differs from read to read.
same_as_file() { # FILE TYPE
    [ "$(sed -n '3p' "$work/body")" = "rmm_up 1" ] || fail "no rmm_up: $(head -n 3 "$work/body")"
    sed 1,3d "$work/body" | cmp - "$mnt/$1" || fail "$1 has other bytes over HTTP"
    grep -qi "^content-type: $2.\$" "$work/head" || fail "$1: $(cat "$work/head")"
    grep -qi "^content-length: $(stat -c %s "$work/body").\$" "$work/head" || fail "$1: $(cat "$work/head")"
}
text="text/plain; version=0.0.4; charset=utf-8"
open="application/openmetrics-text; version=1.0.0; charset=utf-8"
[ "$(fetch /metrics)" = 200 ] || fail "/metrics: $(cat "$work/head")"
same_as_file metrics "$text"
grep -qx 'rmm_device_current_bytes{gpu="0",UUID="GPU-00000000"} 12345' "$work/body" || fail "no figure"
while read -r accept; do
    wanted=metrics type=$text
    [ "${accept%% *}" = text ] || wanted=metrics.om type=$open
    [ "$(fetch /metrics -H "Accept: ${accept#* }")" = 200 ] || fail "$accept: $(cat "$work/head")"
    same_as_file $wanted "$type"
done <<'END'
open application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1
open application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2
open application/OpenMetrics-text ; version=1.0.0
open application/openmetrics-text
text application/openmetrics-text;version=0.0.1,text/plain;version=0.0.4;q=0.5
text application/openmetrics-text;q=0.5,text/plain
text application/openmetrics-text;q=0.0,*/*;q=0.001
text */*
text ,;,;q=,q=;;=,application/openmetrics-text;q=x
text text/html,application/xhtml+xml
END
[ "$(fetch /metrics.all)" = 200 ] || fail "/metrics.all: $(cat "$work/head")"
same_as_file metrics.all "$text"
tail -n 1 "$mnt/metrics.om" | grep -qx '# EOF' || fail "no end"

# The page, with the user's own view of it.
for path in / /index.html; do
    [ "$(fetch $path)" = 200 ] || fail "$path: $(cat "$work/head")"
    grep -q '</html>' "$work/body" || fail "$path is cut: $(tail -n 3 "$work/body")"
    grep -qi '^content-type: text/html; charset=utf-8' "$work/head" || fail "$(cat "$work/head")"
done
[ "$(fetch /json)" = 200 ] && cmp "$work/body" "$mnt/json" || fail "/json: $(cat "$work/head")"
grep -qi '^content-type: application/json' "$work/head" || fail "/json: $(cat "$work/head")"
[ "$(fetch /metrics?name=x)" = 200 ] || fail "a query is no error"
[ "$(fetch /healthz)" = 200 ] && [ "$(cat "$work/body")" = ok ] || fail "/healthz: $(cat "$work/body")"
for path in /metric /metrics/ /../etc/passwd /version /%2e%2e/version /proc; do
    [ "$(fetch $path --path-as-is)" = 404 ] || fail "$path: $(cat "$work/head")"
done
for method in POST PUT DELETE OPTIONS; do
    [ "$(fetch /metrics -X $method -d some)" = 405 ] || fail "$method: $(cat "$work/head")"
    grep -qi '^allow: GET, HEAD' "$work/head" || fail "$method: $(cat "$work/head")"
done
[ "$(fetch /metrics -I)" = 200 ] && cmp "$work/head" "$work/body" || fail "HEAD: $(cat "$work/head")"
[ "$(fetch /metrics -X GET -d "$(printf %9999s)")" = 200 ] || fail "GET with a body: $(cat "$work/head")"
same_as_file metrics "$text"
stop_exporter
[ ! -s "$work/exporter.log" ] || fail "it says: $(cat "$work/exporter.log")"

# Several addresses; all of them with IPv6 and IPv4.
read -r first second <<<"$(free_ports 2)"
"${as_user[@]}" "$exporter_program" --mount "$mnt" --listen "127.0.0.1:$first" --listen ":$second" 2>>"$work/exporter.log" &
exporter=$! port=$first
eventually exporter_answers
hosts=(127.0.0.1:"$first" 127.0.0.1:"$second")
[ ! -e /proc/net/if_inet6 ] || ! grep -qw lo /proc/net/if_inet6 || hosts+=("[::1]:$second")
for host in "${hosts[@]}"; do
    curl -s "http://$host/metrics" | grep -x "rmm_up 1" >/dev/null || fail "$host does not answer"
done

# What cannot be listened on.
refused() { # TEXT [OPTION...]
    local text=$1 status=0
    shift
    "$exporter_program" "$@" >"$work/out" 2>&1 || status=$?
    [ "$status" -ne 0 ] && [ "$(wc -l <"$work/out")" -eq 1 ] && grep -qF -- "$text" "$work/out" ||
        fail "rmm-exporter $*: $status $(cat "$work/out")"
}
refused "cannot listen on 127.0.0.1:$first: Address already in use" --listen "127.0.0.1:$first"
refused "cannot listen on 192.0.2.1:$first: Cannot assign requested address" --listen "192.0.2.1:$first"
for address in 127.0.0.1 localhost:80 ::1:80 '[::1]' '[::1]80' 1.2.3.4:0 1.2.3.4:65536 1.2.3.4:http ''; do
    refused "not ADDRESS:PORT" --listen "$address"
done
refused "is not an absolute path" --mount tree
refused "is not a number of seconds" --timeout 0
refused "unexpected argument" tree
refused "8 addresses at most" --listen{=,=,=,=,=,=,=,=,=}:1
stop_exporter

# Sockets of systemd: TCP, and of the Unix domain as for a proxy.
if command -v systemd-socket-activate >/dev/null; then
    port=$(free_ports 1)
    "${as_user[@]}" env -C / systemd-socket-activate -l "127.0.0.1:$port" -l "@rmm-exporter-test-$$" \
        "$exporter_program" --mount "$mnt" 2>>"$work/exporter.log" &
    exporter=$!
    eventually exporter_answers
    metrics_are 1 || fail "by a socket of systemd: $(cat "$work/body")"
    curl -s --abstract-unix-socket "rmm-exporter-test-$$" http://x/metrics | grep -x "rmm_up 1" >/dev/null ||
        fail "nothing by the Unix socket"
    stop_exporter
fi
status=0
# shellcheck disable=SC2016  # the inner shell's
sh -c 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" 3</dev/null' "$exporter_program" 2>"$work/out" || status=$?
[ "$status" = 1 ] && grep -q "one is no listening stream socket" "$work/out" || fail "$status $(cat "$work/out")"
end_program a
stop_daemon
