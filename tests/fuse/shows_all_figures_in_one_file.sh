#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# /rmm/json and /rmm/metrics.all say of every level what its own files say: each statistic of two
# processes, their resources and both devices, names that need quoting, a process that ended.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
command -v python3 >/dev/null || skip "no python3"

cat >"$work/compare.py" <<'END'
import json
import pathlib
import re
import sys

tree = pathlib.Path(sys.argv[1])
metrics = {}
types = set()
for line in (tree / 'metrics.all').read_text().splitlines():
    if line.startswith('# TYPE'):
        family, kind = line.split()[2:]
        assert family not in types and kind in ('gauge', 'counter'), line
        types.add(family)
    elif not line.startswith('#'):
        name, labels, value = re.fullmatch(r'(\w+)(?:\{(.*)\})? (\d+|0\.\d{3})', line).groups()
        assert name in types, line
        labels = {key: json.loads(f'"{text}"')
                  for key, text in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or '')}
        for other in ('type', 'UUID', 'comm'):
            labels.pop(other, None)
        key = (name, *sorted(labels.items()))
        assert key not in metrics, line
        metrics[key] = value


WORDS = {'total_bytes': 'allocated_bytes', 'total_count': 'allocations', 'freed_count': 'frees',
         'current_count': 'current_allocations', 'peak_count': 'peak_allocations',
         'node_peak_count': 'node_peak_allocations', 'device_free_bytes': 'driver_free_bytes'}


def metric(prefix, name):
    """A series has the name of the file, by the conventions of Prometheus."""
    found = prefix + WORDS.get(name, name.removesuffix('_count'))
    return found + '_total' if found + '_total' in types else found


def compare(level, folder, prefix, live=True, **labels):
    """Each key of a level has a file of its name; unknown is null there, no sample here."""
    names = {file.name for file in folder.iterdir() if re.search('_(bytes|count)$', file.name)}
    names -= {'limit_bytes'}
    assert names == {key for key in level if re.search('_(bytes|count)$', key)}, (folder, names)
    for name in names:
        value = (folder / name).read_text().strip()
        assert value == ('-1' if level[name] is None else str(level[name])), (folder, name)
        sample = metrics.get((metric(prefix, name), *sorted(labels.items())))
        assert sample == (value if live and value != '-1' else None), (folder, name, sample)


node = json.loads((tree / 'json').read_text())
assert node['schema_version'] == 1
for device in node['devices']:
    folder = tree / device['device']
    compare(device, folder, 'rmm_device_', gpu=device['device'].removeprefix('gpu'))
    for name in ('uuid', 'pci_bus_id', 'name'):
        assert (name in device) == (folder / name).exists(), (folder, name)
        assert name not in device or device[name] + '\n' == (folder / name).read_text()
for process in node['processes']:
    pid, live = process['pid'], process['state'] == 'live'
    started = (tree / 'proc' / pid / 'start_time_ns').read_text().strip()
    assert str(process['start_time_ns']) == started, (pid, process['start_time_ns'])
    up = metrics.get(('rmm_process_up', ('pid', pid), ('uid', str(process['uid']))))
    assert up == ('1' if live else None), (pid, up)
    for device in process['devices']:
        where = {'gpu': device['device'].removeprefix('gpu'), 'pid': pid}
        folder = tree / 'proc' / pid / device['device']
        compare(device, folder, 'rmm_process_', live, **where)
        listed = {path.name for path in (folder / 'mr').iterdir()}
        assert listed == {resource['resource'] for resource in device['resources']}
        for resource in device['resources']:
            name = resource['resource']
            assert (folder / 'mr' / name / 'type').read_text() == resource['type'] + '\n'
            upstream = folder / 'mr' / name / 'upstream'
            assert resource['instance_id'] == int(name.split('.')[0])
            assert (resource['upstream_id'] is None) == (not upstream.exists())
            if upstream.exists():
                assert resource['upstream_id'] == int(upstream.resolve().name.split('.')[0])
            compare(resource, folder / 'mr' / name, 'rmm_resource_', live, resource=name, **where)
few = [line for line in (tree / 'metrics').read_text().splitlines() if not line.startswith('#')]
assert set(few) <= set((tree / 'metrics.all').read_text().splitlines()), 'metrics is no part of metrics.all'
print([len(node['devices']), len(node['processes']),
       sum(len(p['devices']) for p in node['processes']),
       sum(len(d['resources']) for p in node['processes'] for d in p['devices'])])
END

compare() { # COUNTS
    local counts
    counts=$(python3 "$work/compare.py" "$mnt" 2>&1) || fail "$counts"
    [ "$counts" = "$1" ] || fail "devices, processes, their devices, resources: $counts, not $1"
}

list_gpus 2
start_daemon
compare "[3, 0, 0, 0]" # nobody runs
for name in a b; do
    start_program $name
    gpu $name 0
    tell $name resource 1 cuda cuda 0 0
    tell $name resource 2 pool 'odd"\name' 0 1
    tell $name take 2 4096
done
gpu b 1
tell b location 32 host - 0 host
tell b resource 3 pinned host/memory 32 0

compare "[3, 2, 4, 5]"
grep -q '"resource": "2.odd\\"\\\\name"' "$mnt/json" || fail "the odd name is not quoted"
ended=${program_pid[a]}
kill_program a
eventually is "proc/$ended/state" exited
compare "[3, 2, 4, 5]" # its last figures, in no series
end_program b
stop_daemon
