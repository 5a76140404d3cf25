#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpuN: the driver's list in PCI order, then what the state file knows, then newcomers;
# never renumbered while the daemon runs, whatever a program calls device 0.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

driver_gpu() { # BUS UUID
    mkdir -p "$RMM_NVIDIA_PROC/$1"
    printf 'Model: \t\t NVIDIA Test\nIRQ:   \t\t 1\nGPU UUID: \t %s\nBus Location: \t %s\n' \
        "$2" "$1" >"$RMM_NVIDIA_PROC/$1/information"
}
driver_gpu 0000:af:00.0 GPU-cccc
driver_gpu 0000:3b:00.0 GPU-aaaa
driver_gpu 0000:5e:00.0 'GPU-????????-????-????-????-????????????'
driver_gpu 10000:01:00.0 GPU-dddd
driver_gpu 10000:02:00.0 'GPU-????????-????-????-????-????????????'
mkdir "$RMM_NVIDIA_PROC/junk"

start_daemon
expect gpu0/uuid GPU-aaaa
expect gpu1/uuid -1
expect gpu2/uuid GPU-cccc
expect gpu3/uuid GPU-dddd
expect gpu0/name "NVIDIA Test"
expect gpu0/capacity_bytes -1
expect gpu0/pci_bus_id 0000:3b:00.0
expect gpu0/current_bytes 0
[ "$(readlink "$mnt/by-uuid/GPU-cccc")" = ../gpu2 ] || fail "by-uuid/GPU-cccc"

start_program a
tell a location 0 SIM-0 - 1000 Simulated
tell a location 1 GPU-cccc 0000:AF:00.0 2000 H200
tell a location 2 GPU-bbbb 00000000:5E:00.0 3000 H200
tell a location 3 MIG-1 0000:3B:00.0 500 slice
tell a location 4 MIG-2 00010000:02:00.0 500 slice # of a GPU whose uuid is not known
tell a alloc 0 1
tell a alloc 1 2
tell a alloc 2 3
tell a alloc 3 4
expect gpu2/current_bytes 2
expect gpu2/capacity_bytes 2000
expect gpu2/name "NVIDIA Test"
expect gpu1/uuid GPU-bbbb
expect gpu1/current_bytes 3
expect gpu4/uuid -1
expect gpu5/uuid SIM-0
expect gpu5/current_bytes 1
expect gpu6/uuid MIG-1
expect gpu6/current_bytes 4
expect gpu7/uuid MIG-2
expect by-uuid/SIM-0/current_bytes 1
expect "proc/${program_pid[a]}/gpu2/current_bytes" 2
[ "$(grep -c ^gpu "$mnt/devices")" = 8 ] || fail "devices: $(cat "$mnt/devices")"
end_program a
expect gpu5/peak_bytes 1
cp "$mnt/devices" "$work/gpus"
stop_daemon

start_daemon
diff "$work/gpus" "$mnt/devices" || fail "numbers changed over a restart"
expect gpu6/peak_bytes 4
stop_daemon
