#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whatever a user's program writes into its segment: what cannot be is in no sum and no mark of
# the node, the segment is named in daemon/rejected, totals can be reset for good, no false GPU
# takes the place of a real one, and no key is twice in a file.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

other=65534
as=(setpriv --reuid "$other" --regid "$other" --clear-groups --)
forge=$(dirname "$0")/forge_segment.py
lie() {
    python3 "$forge" "$segment" "$@"
}
start_liar() { # NAME: $segment is its
    start_program "$1" "${as[@]}"
    gpu "$1" 0
    tell "$1" location 32 host - 0 host
    tell "$1" alloc 0 5
    tell "$1" alloc 32 7
    segment=$(find "$run" -regex ".*/$other\.[0-9a-f]*" -perm -u+w)
}
twice() { # FILE: keys that are there twice
    awk '!/^#/ { print $1 }' "$mnt/$1" | sort | uniq -d
}
chmod 1777 "$run"
list_gpus 2

# Names that this version shows, under another statistic, and two resources of one name.
start_liar liar
tell liar resource 1 cuda pool 0 0
tell liar resource 2 cuda pool 0 0
for names in oom_count:current_count invalid_free_count:free_bytes peak_count:fragmentation; do
    lie rename "${names%:*}" "${names#*:}"
done
lie same_ids
start_daemon
start_program honest
gpu honest 0
tell honest location 32 host - 0 host
tell honest alloc 0 1000
tell honest alloc 32 100
pid=${program_pid[liar]}
for file in gpu0/stat "proc/$pid/gpu0/stat" "proc/$pid/stat" host/stat devices gpu0/processes; do
    [ -z "$(twice "$file")" ] || fail "twice in $file: $(twice "$file")"
done
for file in "$mnt/proc/$pid"/gpu0/mr/*/stat; do
    [ -z "$(twice "${file#"$mnt/"}")" ] || fail "twice in $file: $(twice "${file#"$mnt/"}")"
done
[ -z "$(sed 's/ [^ ]*$//' "$mnt/metrics" | grep -v '^#' | sort | uniq -d)" ] ||
    fail "series twice: $(sed 's/ [^ ]*$//' "$mnt/metrics" | grep -v '^#' | sort | uniq -d | head -n 3)"
cp "$mnt/json" "$work/json"
python3 - "$work/json" <<'END' || fail "json"
import json, sys
def once(pairs):
    assert len({key for key, _ in pairs}) == len(pairs), [key for key, _ in pairs]
    return dict(pairs)
node = json.load(open(sys.argv[1]), object_pairs_hook=once)
for process in node["processes"]:
    for device in process["devices"]:
        names = [resource["resource"] for resource in device["resources"]]
        assert len(set(names)) == len(names), names
END
kill_program liar

# Values that cannot be, at a GPU and at host memory.
for value in -1 -2 $((1 << 62)); do
    start_liar liar
    for location in 0 32; do
        for name in current_bytes reserved_bytes padding_bytes peak_bytes node_peak_bytes lifetime_peak_bytes; do
            lie set "$location" "$name" "$value"
        done
        [ "$value" -gt 0 ] || lie set "$location" total_bytes "$value"
    done
    pid=${program_pid[liar]}
    expect gpu0/current_bytes 1000
    expect host/current_bytes 100
    expect gpu0/peak_bytes 1005 # at the beginning the first liar held 5
    expect "proc/$pid/gpu0/current_bytes" -1
    expect_key gpu0/stat processes_left_out 1
    expect_key gpu0/stat lifetime_peak_bytes 1005
    grep -q "^$other $pid ${segment##*/} has implausible figures\$" "$mnt/daemon/rejected" ||
        fail "rejected: $(cat "$mnt/daemon/rejected")"
    grep -q "segment ${segment##*/} of process $pid reports an impossible " "$log" || fail "not in the log"
    kill_program liar
    expect gpu0/current_bytes 1000
    expect host/current_bytes 100
done
expect gpu0/peak_bytes 1005

# Totals that could be: they stay until they are reset, then for good.
start_liar liar
lie set 0 total_bytes $((1 << 62))
kill_program liar
[ "$(cat "$mnt/gpu0/total_bytes")" -gt $((1 << 62)) ] || fail "total_bytes $(cat "$mnt/gpu0/total_bytes")"
! "${as[@]}" sh -c "echo reset >$mnt/gpu0/total_bytes" 2>/dev/null || fail "the liar resets totals"
! sh -c "echo 0 >$mnt/gpu0/total_bytes" 2>/dev/null || fail "0 resets totals"
! sh -c "echo reset >$mnt/proc/${program_pid[honest]}/gpu0/total_bytes" 2>/dev/null || fail "of a process"
echo reset >"$mnt/gpu0/total_bytes"
expect gpu0/total_bytes 1000
kill_daemon
start_daemon
expect gpu0/total_bytes 1000
expect gpu0/current_bytes 1000

# False GPUs, a false name and uuid of a true one.
start_program liar "${as[@]}"
for i in $(seq 0 30); do
    tell liar location "$i" "GPU-false$i" 0000:01:00.0 1 false
done
expect gpu0/uuid GPU-00000000
expect gpu1/uuid GPU-00000001
expect gpu1/name "Test GPU 1"
[ "$(grep -c ^gpu "$mnt/devices")" = 18 ] || fail "$(grep -c ^gpu "$mnt/devices") GPUs"
grep -q "^$other gpus 16 16 " "$mnt/daemon/over_budget" || fail "over_budget: $(cat "$mnt/daemon/over_budget")"
tell honest location 1 SIM-0 - 1000 Simulated
eventually is by-uuid/SIM-0/current_bytes 0
stop_daemon
