#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program that runs over HIP: its GPU and its figures are in the tree like those of CUDA. The
# stand-in of HIP's library has a simulated GPU of its own here.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
: "${RMM_HIP_STANDIN:?the stand-in}" "${RMM_REPLAY:?rmm-replay}"

printf 'Thread,Time,Action,Pointer,Size,Stream\n%s\n%s\n%s\n' \
    '1,00:00:00.000000,allocate,0x10,5000,0' '1,00:00:00.000001,allocate,0x20,300,0' \
    '1,00:00:00.000002,free,0x10,5000,0' >"$work/log.csv"

start_daemon
RMM_DRIVER=hip LD_LIBRARY_PATH=${RMM_HIP_STANDIN%/*} "$RMM_REPLAY" --resource pool "$work/log.csv" \
    >"$work/out" 2>&1 || fail "rmm-replay: $(cat "$work/out")"
grep -q 'real (RMM_DRIVER=hip)' "$work/out" || fail "rmm-replay says $(cat "$work/out")"
expect gpu0/uuid GPU-5eed000000000000
expect gpu0/pci_bus_id 0000:43:00.0
expect gpu0/name "AMD on a Simulated GPU"
expect gpu0/capacity_bytes $((80 << 30))
expect gpu0/peak_bytes 5300
expect gpu0/total_count 2
[ "$(readlink "$mnt/by-uuid/GPU-5eed000000000000")" = ../gpu0 ] || fail "by-uuid"

# Without the library there is one line, and nothing to see.
if RMM_DRIVER=hip LD_LIBRARY_PATH=${RMM_HIP_STANDIN%/*/*}/broken "$RMM_REPLAY" "$work/log.csv" \
    >"$work/out" 2>&1; then
    fail "rmm-replay ran without HIP"
fi
[ "$(grep -c 'no usable AMD GPU' "$work/out")" = 1 ] || fail "rmm-replay says $(cat "$work/out")"
stop_daemon
