#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# /rmm/metrics passes promtool, /rmm/metrics.om a strict parser of OpenMetrics, and both have the
# same samples; /rmm/rmm.prom is what a textfile collector takes. Names that need quoting stay
# whole. A series has the labels by which DCGM's are joined.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
command -v promtool >/dev/null || skip "no promtool (Debian: prometheus)"
python=/usr/bin/python3 # that of the packages
"$python" -c 'import prometheus_client' 2>/dev/null || skip "no python3-prometheus-client"

cat >"$work/compare.py" <<'END'
import pathlib
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

tree = pathlib.Path(sys.argv[1])


def samples(parse, name):
    """The samples of a text by name and labels: none twice, and none without a help."""
    found = {}
    for family in parse((tree / name).read_text()):
        assert family.documentation, family
        for sample in family.samples:
            key = (sample.name, *sorted(sample.labels.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


plain = samples(prometheus, 'metrics')
assert plain == samples(prometheus, 'rmm.prom')
strict = samples(openmetrics, 'metrics.om')
assert plain == strict, set(plain.items()) ^ set(strict.items())
every = samples(prometheus, 'metrics.all')
assert plain.items() <= every.items(), plain.items() - every.items()
assert (tree / 'metrics.om').read_text().endswith('\n# EOF\n')
pool = {'gpu': '0', 'UUID': 'GPU-00000000', 'pid': sys.argv[2], 'comm': 'rmmfs_program',
        'resource': '2.odd"\\name', 'type': 'pool'}
for name, value in (('current_bytes', 4096), ('allocated_bytes_total', 4096),
                    ('allocations_total', 1), ('current_allocations', 1),
                    ('free_bytes', 1000), ('fragmentation_ratio', 0.25)):
    assert every['rmm_resource_' + name, *sorted(pool.items())] == value, name
device = {'gpu': '0', 'UUID': 'GPU-00000000'}
assert plain['rmm_device_current_bytes', *sorted(device.items())] == 5000
assert plain['rmm_device_oom_total', *sorted(device.items())] == 1
assert plain['rmm_device_capacity_bytes', *sorted(device.items())] == 1000000
info = {**device, 'pci_bus_id': '0000:00:00.0', 'name': 'Test GPU 0'}
assert plain['rmm_device_info', *sorted(info.items())] == 1
assert ('rmm_device_current_bytes', ('gpu', 'host')) in plain
of_program = [key for key in plain if ('pid', sys.argv[2]) in key]
assert len(of_program) == 8, of_program  # a pool over another resource: 3 of the process, 3 of the pool, up, info
info = next(dict(key[1:]) for key in of_program if key[0] == 'rmm_process_info')
assert info['comm'] == 'rmmfs_program' and info['uid'] == sys.argv[3], info
of_user = {'kind': 'user', 'name': sys.argv[3], 'uid': sys.argv[3]}
assert plain['rmm_job_current_bytes', *sorted(of_user.items())] == 5000
assert plain['rmm_job_peak_bytes', *sorted(of_user.items())] == 5000
assert ('rmm_device_driver_free_bytes', *sorted(device.items())) not in plain  # unknown
END

list_gpus 1
start_daemon
start_program a
gpu a 0
tell a resource 1 cuda cuda 0 0
tell a resource 2 pool 'odd"\name' 0 1
tell a take 2 4096
tell a hole 2 1000 750
tell a alloc 0 5000
tell a oom 0
for file in metrics metrics.all rmm.prom; do
    promtool check metrics <"$mnt/$file" >"$work/lint" 2>&1 || fail "promtool: $(cat "$work/lint")"
    [ ! -s "$work/lint" ] || fail "promtool on $file: $(cat "$work/lint")"
done
"$python" "$work/compare.py" "$mnt" "${program_pid[a]}" "$uid" || fail "the formats differ"

# What a textfile collector wants: a last line that ends.
cp "$mnt/rmm.prom" "$work/copy.prom"
[ "$(tail -c 1 "$work/copy.prom" | od -An -tx1)" = " 0a" ] || fail "the last line has no end"

# Its series end with it, and one that cannot be read is 0.
ended=${program_pid[a]}
kill_program a
eventually is "proc/$ended/state" exited
! grep -q "pid=\"$ended\"" "$mnt/metrics" || fail "an exited process has series"
stop_daemon
