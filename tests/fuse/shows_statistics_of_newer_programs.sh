#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Statistics that only the schema in a segment names are in metrics, json and stat, with the type
# that it tells. Of programs that disagree the first wins, and no name makes two metrics one.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
command -v promtool >/dev/null || skip "no promtool (Debian: prometheus)"

chmod 1777 "$run"
list_gpus 1
forge=$(dirname "$test_path")/forge_segment.py
gauge=1 counter=2 mark=3
# start_newer NAME COMMAND... -- SCOPE NAME KIND STATISTIC, SCOPE ...: its segment comes into the
# folder when its schema is that of a newer program.
start_newer() {
    local name=$1 command=() segment
    shift
    while [ "$1" != -- ]; do
        command+=("$1")
        shift
    done
    mkdir "$work/$name"
    chmod 1777 "$work/$name"
    start_program "$name" "${command[@]}" env RMM_RUNTIME_DIR="$work/$name"
    gpu "$name" 0
    segment=$(find "$work/$name" -regex '.*/[0-9]*\.[0-9a-f]*')
    echo "${@:2}" | tr , '\n' | while read -r -a entry; do
        python3 "$forge" "$segment" add "${entry[@]}"
    done
    mv "$work/$name"/* "$run"
}
value() { # SERIES-REGEX
    awk -v want="^$1 " '$0 ~ want { print $NF }' "$mnt/metrics"
}
shows() { # SERIES-REGEX VALUE
    [ "$(value "$1")" = "$2" ] || fail "$1 is '$(value "$1")', not '$2': $(grep "${1%%[{\\]*}" "$mnt/metrics")"
}
is_clean() {
    promtool check metrics <"$mnt/metrics" >"$work/lint" 2>&1 || fail "promtool: $(cat "$work/lint")"
    [ ! -s "$work/lint" ] || fail "promtool: $(cat "$work/lint")"
    /usr/bin/python3 - "$mnt" <<'END' || fail "the formats differ"
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus
def samples(parse, name):
    found = [(s.name, sorted(s.labels.items()), s.value)
             for family in parse(open(sys.argv[1] + "/" + name).read()) for s in family.samples]
    assert len({str(sample[:2]) for sample in found}) == len(found), "twice"
    return found
assert sorted(samples(prometheus, "metrics")) == sorted(samples(openmetrics, "metrics.om"))
END
}

start_daemon
start_newer a env -- 1 evicted_count $counter oom_count, 1 spilled_bytes $gauge reserved_bytes, \
    1 worst_total $mark peak_bytes, 2 spill_count $counter oom_count
tell a resource 1 pool pool 0 0
tell a reserve 0 5000
tell a alloc 0 700
tell a oom 0
tell a refuse 1
eventually grep -q spilled "$mnt/metrics"
a=${program_pid[a]}
gpu='gpu="0",UUID="GPU-00000000"'
shows "rmm_process_evicted_total\\{$gpu,pid=\"$a\".*" 1
shows "rmm_device_evicted_total\\{$gpu\\}" 1
shows "rmm_device_spilled_bytes\\{$gpu\\}" 5000
shows "rmm_device_worst\\{$gpu\\}" 700
shows "rmm_resource_spill_total\\{.*resource=\"1.pool\".*" 1
grep -q "^# TYPE rmm_process_evicted_total counter" "$mnt/metrics" || fail "TYPE of a counter"
grep -q "^# TYPE rmm_process_spilled_bytes gauge" "$mnt/metrics" || fail "TYPE of a gauge"
grep -q "^# HELP rmm_resource_spill_total Statistic spill_count" "$mnt/metrics" || fail "HELP"
grep -q "^# UNIT rmm_process_spilled_bytes bytes" "$mnt/metrics.om" || fail "UNIT"
is_clean
python3 - "$mnt/json" <<'END' || fail "json"
import json, sys
node = json.load(open(sys.argv[1]))
device = node["processes"][0]["devices"][0]
assert device["evicted_count"] == 1 and device["spilled_bytes"] == 5000, device
assert device["resources"][0]["spill_count"] == 1
assert node["devices"][0]["evicted_count"] == 1
END
expect_key gpu0/stat evicted_count 1
expect_key "proc/$a/gpu0/stat" spilled_bytes 5000
[ "$(wc -l <"$mnt/daemon/rejected")" = 1 ] || fail "rejected: $(cat "$mnt/daemon/rejected")"

# Another user's program: of other kinds, with names that are taken, and too many.
many=
for i in $(seq 20); do
    many="$many, 1 many${i}_bytes $gauge reserved_bytes"
done
start_newer b setpriv --reuid 1001 --regid 1001 --clear-groups -- 1 evicted_count $gauge oom_count, \
    1 spilled_bytes $counter reserved_bytes, 1 up $gauge oom_count, 1 allocations $counter oom_count, \
    1 evicted $counter oom_count, 1 capacity_bytes $gauge reserved_bytes, 1 spilled_bytes_total $gauge oom_count"$many"
tell b reserve 0 9000
tell b oom 0
b=${program_pid[b]}
eventually grep -q many "$mnt/metrics"
is_clean
shows "rmm_device_evicted_total\\{$gpu\\}" 1
shows "rmm_device_spilled_bytes\\{$gpu\\}" 5000
shows "rmm_device_reserved_bytes\\{$gpu\\}" 14000
shows "rmm_process_up\\{pid=\"$b\".*" 1
[ "$(grep -c "^rmm_device_many.*{$gpu}" "$mnt/metrics")" = 16 ] || fail "$(grep -c "^rmm_device_many" "$mnt/metrics") names of one user"
grep -q "^1001 $b .* has statistics that conflict" "$mnt/daemon/rejected" || fail "rejected: $(cat "$mnt/daemon/rejected")"
[ "$(grep -c "has statistics" "$mnt/daemon/rejected")" = 1 ] || fail "also A is rejected"
expect_key gpu0/stat evicted_count 1
python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$mnt/json" || fail "json"

# What an ended program counted stays in the device's counter, also over a restart.
end_program a
eventually is "proc/$a/state" exited
shows "rmm_device_evicted_total\\{$gpu\\}" 1
kill_daemon
start_daemon
eventually grep -q many "$mnt/metrics"
shows "rmm_device_evicted_total\\{$gpu\\}" 1
is_clean
stop_daemon
