#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The dashboard over an hour of 50 nodes with 40 programs each, in a real Prometheus: each query of a panel
# and of a variable returns data, for all nodes and for one, and each series names its node. Its
# structure; what the recording rules for it give. RMM_TEST_PROGRAMS=200 takes a minute where nothing else runs.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=tests/fuse/exporter.sh
. "${test_path%/*}/exporter.sh"
for program in prometheus promtool; do
    command -v "$program" >/dev/null || skip "no $program (Debian: prometheus)"
done
python=/usr/bin/python3 # that of the packages
"$python" -c 'import yaml' 2>/dev/null || skip "no python3-yaml"
source=${test_path%/tests/fuse/*}
monitoring=$source/fusefs/monitoring
dashboard() {
    "$python" "$source/tests/fuse/dashboard.py" "$@"
}

dashboard check "$monitoring/rmm-dashboard.json" || fail "structure"
# A mistake in it is noticed.
for mistake in 's/instance=~\\"$node\\",/ /' 's/{{instance}} //' 's/"allValue": "\.\*"/"allValue": ".+"/' 's/"x": 12/"x": 0/'; do
    sed "$mistake" "$monitoring/rmm-dashboard.json" >"$work/mistaken.json"
    ! dashboard check "$work/mistaken.json" 2>/dev/null || fail "not noticed: $mistake"
done

each=${RMM_TEST_PROGRAMS:-40}
end=$(($(date +%s) / 240 * 240)) # rules are evaluated at multiples of their interval
dashboard data 50 "$each" "$end" >"$work/data.om"
promtool tsdb create-blocks-from openmetrics "$work/data.om" "$work/tsdb" >"$work/blocks" 2>&1 || fail "$(tail -n 5 "$work/blocks")"
rm "$work/data.om"
echo "{}" >"$work/prometheus.yml"

port=$(free_ports 1) prometheus=
url=http://127.0.0.1:$port
prometheus_is_ready() {
    kill -0 "$prometheus" 2>/dev/null || fail "Prometheus: $(tail -n 3 "$work/prometheus.log")"
    curl -s -m 10 "$url/-/ready" | grep -q Ready
}
start_prometheus() {
    prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" --storage.tsdb.retention.time=10d \
        --web.listen-address="127.0.0.1:$port" >"$work/prometheus.log" 2>&1 &
    prometheus=$!
    eventually prometheus_is_ready
}
stop_prometheus() {
    kill "$prometheus"
    wait "$prometheus" || true
}
record() { # RULE...: what they would have recorded
    dashboard rules "$monitoring/rmm.rules.yml" "$@" >"$work/record.yml"
    start_prometheus
    promtool tsdb create-blocks-from rules --start=$((end - 4800)) --end="$end" --eval-interval=240s \
        --url="$url" --output-dir="$work/tsdb" "$work/record.yml" >"$work/blocks" 2>&1 || fail "$(tail -n 5 "$work/blocks")"
    stop_prometheus
}
record rmm:process_current_bytes:min10m rmm:process_info:owner rmm:processes:count
record rmm:process_current_bytes:growth44m rmm:process_current_bytes:owner
record rmm:current_bytes:owner rmm:current_bytes:comm

start_prometheus
dashboard ask "$monitoring/rmm-dashboard.json" "$url" "$end" >"$work/answers" 2>&1 || fail "$(tail -n 5 "$work/answers")"
cat "$work/answers"
value() { # QUERY
    curl -s -m 60 -G "$url/api/v1/query" --data-urlencode "query=$1" --data-urlencode "time=$end" |
        "$python" -c 'import json, sys; print(json.load(sys.stdin)["data"]["result"][0]["value"][1])'
}
programs=$((50 * each))
[ "$(value 'count(rmm:process_current_bytes:owner{user!="",owner!=""})')" = "$programs" ] || fail "programs without an owner"
[ "$(value 'count(count by (user) (rmm:process_current_bytes:owner))')" = 20 ] || fail "users: $(value 'count(count by (user) (rmm:process_current_bytes:owner))')"
for name in process_current_bytes:owner current_bytes:owner current_bytes:comm; do
    [ "$(value "sum(rmm:$name)")" = "$(value 'sum(rmm_process_current_bytes)')" ] || fail "rmm:$name: $(value "sum(rmm:$name)") of $(value "sum(rmm_process_current_bytes)"); $(value "count(rmm:$name)") of $(value "count(rmm_process_current_bytes)"), $(value "max(timestamp(rmm:$name))") $end"
done
stop_prometheus
