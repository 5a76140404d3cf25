#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rmm-exporter goes on, and says rmm_up 0, whatever becomes of the daemon: stopped, killed, started
# again; a file system whose readers cannot even be killed. It ends at once, and frees its port.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=tests/fuse/exporter.sh
. "${test_path%/*}/exporter.sh"

start_exporter --timeout 0.5
metrics_are 0 || fail "not mounted: $(cat "$work/body")"
[ "$(fetch /)" = 503 ] && grep -qx "rmm-exporter: $mnt: rmmfs is not mounted there" "$work/body" || fail "$(cat "$work/body")"
list_gpus 1
start_daemon
start_program a
gpu a 0
tell a alloc 0 700
eventually metrics_are 1

# Stopped: each scrape gets its answer, in both formats, and /healthz at once.
kill -STOP "$daemon"
for _ in 1 2 3 4 5 6; do
    metrics_are 0 || fail "stopped: $(cat "$work/head" "$work/body")"
done
[ "$(grep -vc '^#' "$work/body")" = 1 ] || fail "more than rmm_up: $(cat "$work/body")"
[ "$(fetch /metrics -H 'Accept: application/openmetrics-text')" = 200 ] && up 0 &&
    [ "$(tail -n 1 "$work/body")" = "# EOF" ] || fail "OpenMetrics: $(cat "$work/body")"
[ "$(fetch /)" = 503 ] && grep -q "rmmfs does not answer within 0.5 s" "$work/body" || fail "page: $(cat "$work/body")"
[ "$(fetch /healthz)" = 200 ] || fail "no health"
# Clients that go away while it waits, and many at once, which share a reader.
for _ in $(seq 50); do
    curl -s -m 0.1 -o /dev/null "http://127.0.0.1:$port/metrics" &
done
sleep 0.2
most=$(pgrep -c -P "$exporter" || true)
[ "$most" -le 3 ] || fail "$most readers at once"
kill -CONT "$daemon"
eventually metrics_are 1
grep -q 'current_bytes.* 700$' "$work/body" || fail "no figures: $(head -n 9 "$work/body")"

# Killed, and started again.
kill_daemon
metrics_are 0 || fail "killed: $(cat "$work/body")"
start_daemon
eventually metrics_are 1

# The end, while it waits for an answer.
kill -STOP "$daemon"
curl -s -o /dev/null "http://127.0.0.1:$port/metrics" &
sleep 0.1
stop_exporter
kill -CONT "$daemon"
[ "$(grep -c "does not answer within 0.5 s" "$work/exporter.log")" -ge 1 ] || fail "log: $(cat "$work/exporter.log")"
[ "$(wc -l <"$work/exporter.log")" -le 10 ] || fail "a line for each scrape: $(cat "$work/exporter.log")"

# Readers whose requests were taken: SIGKILL does not end them.
mkdir "$work/hung"
touch "$work/hung/metrics" "$work/hung/metrics.om" "$work/hung/index.html"
"$RMMFS_HANG" "$work/hung/metrics" file >"$work/hang.out" 2>&1 &
hang=$!
eventually grep -q ok "$work/hang.out"
start_exporter --timeout 0.2 --mount "$work/hung"
for _ in 1 2 3 4 5 6 7 8; do
    metrics_are 0 || fail "hung: $(cat "$work/body")"
done
[ "$(pgrep -c -P "$exporter")" = 4 ] || fail "$(pgrep -c -P "$exporter") readers are left"
[ "$(fetch /)" = 503 ] && grep -q "4 readers still wait for it" "$work/body" || fail "page: $(cat "$work/body")"
# The next one has the port, while they are still there.
old=$port
stop_exporter
"${as_user[@]}" "$exporter_program" --mount "$mnt" --listen "127.0.0.1:$old" 2>>"$work/exporter.log" &
exporter=$! port=$old
eventually exporter_answers
eventually metrics_are 1
stop_exporter
kill "$hang"
wait "$hang" || true
umount -l "$work/hung/metrics" 2>/dev/null || true
end_program a
stop_daemon
