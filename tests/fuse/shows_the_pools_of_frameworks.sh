#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What PyTorch's own allocator has given out and what it keeps, of programs that are unchanged:
# at the GPU, the process and the resource, in metrics and json, and in rmm-top. PyTorch's
# functions of figures are a stand-in's.
#
#   RMM_PYTHON, PYTHONPATH  Python and the built package
#   RMM_TOP                 empty: built without it
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
here=${test_path%/*}
MiB=1048576

# "device allocated peak reserved" in MiB, replaced at once
figures() { # PROGRAM ROW...
    local file=$work/figures.$1 row
    shift
    for row in "$@"; do
        # shellcheck disable=SC2086  (numbers)
        set -- $row
        echo "$1 $(($2 * MiB)) $(($3 * MiB)) $(($4 * MiB))"
    done >"$file.new"
    mv "$file.new" "$file"
}
train() { # PROGRAM: its pid is in $program
    RMM_DRIVER=sim RMM_SIM_DEVICES=2 "$RMM_PYTHON" -m rmm_c.frameworks "$here/torch_program.py" \
        "$work/figures.$1" >>"$work/said" 2>&1 &
    program=$!
}

start_daemon
figures a "0 100 300 512" "1 0 0 0"
train a
first=$program
eventually is "proc/$first/gpu0/current_bytes" $((100 * MiB))
expect gpu0/current_bytes $((100 * MiB))
expect gpu0/reserved_bytes $((512 * MiB))
expect gpu0/cached_bytes $((412 * MiB))
expect gpu0/peak_bytes $((300 * MiB))
mr=proc/$first/gpu0/mr/$(basename "$mnt/proc/$first/gpu0/mr"/*torch)
expect "$mr/type" observed
expect "$mr/current_bytes" $((100 * MiB))
expect "$mr/cached_bytes" $((412 * MiB))
expect "$mr/growth_count" 1
[ ! -e "$mnt/proc/$first/gpu1" ] || fail "a device that PyTorch does not use is shown"
grep -q "^rmm_process_current_bytes{.*pid=\"$first\".*} $((100 * MiB))\$" "$mnt/metrics" ||
    fail "metrics: $(grep current_bytes "$mnt/metrics")"
grep -q "^rmm_resource_cached_bytes{.*resource=\"1.torch\".*type=\"observed\".*} $((412 * MiB))\$" "$mnt/metrics.all" ||
    fail "metrics.all: $(grep cached_bytes "$mnt/metrics.all")"
if [ -n "$RMM_TOP" ]; then
    "$RMM_TOP" --mount "$mnt" --json >"$work/top"
    grep -q '"observed"' "$work/top" || fail "rmm-top: $(cat "$work/top")"
fi

# Two programs add up. What a reset forgets does not come back with the framework's peak.
figures b "0 50 60 64" "1 7 8 9"
train b
second=$program
eventually is gpu1/current_bytes $((7 * MiB))
expect gpu0/current_bytes $((150 * MiB))
expect gpu0/reserved_bytes $((576 * MiB))
echo >"$mnt/$mr/peak_bytes"
echo >"$mnt/gpu0/peak_bytes"
figures a "0 110 300 512"
eventually is "$mr/current_bytes" $((110 * MiB))
expect "$mr/peak_bytes" $((110 * MiB))
expect gpu0/peak_bytes $((160 * MiB))
expect gpu0/lifetime_peak_bytes $((300 * MiB))

# At the end everything leaves the sums.
rm "$work/figures.a" "$work/figures.b"
wait "$first" || fail "the first program failed: $(cat "$work/said")"
wait "$second" || fail "the second program failed: $(cat "$work/said")"
expect gpu0/current_bytes 0
expect gpu0/reserved_bytes 0
expect gpu1/cached_bytes 0
[ ! -s "$work/said" ] || fail "the programs said something"
stop_daemon
