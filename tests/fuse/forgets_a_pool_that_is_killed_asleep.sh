#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A pool that sleeps holds nothing of the GPU, and says what it will take to wake. Who is killed
# meanwhile leaves the sums at once; its last figures stay readable for a while.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

expect_asleep() { # BYTES STATE
    expect "$process/gpu0/mr/$pool/state" "$2"
    for place in gpu0 "$process/gpu0" "$process/gpu0/mr/$pool"; do
        expect "$place/asleep_bytes" "$1"
        expect "$place/reserved_bytes" $((2097152 - $1))
        expect "$place/current_bytes" 1000
    done
}

start_daemon
start_program a env RMM_DRIVER=sim
tell a auto 0
tell a borrow 0 1000 1
process=proc/${program_pid[a]}
pool=$(basename "$mnt/$process"/gpu0/mr/*.pool_virtual)
expect_asleep 0 awake
tell a sleep 0
expect_asleep 2097152 asleep
tell a wake 0
expect_asleep 0 awake
tell a sleep 0
expect_asleep 2097152 asleep
expect "$process/gpu0/mr/$pool/sleep_count" 2
expect "$process/gpu0/mr/$pool/wake_count" 1

kill_program a
for figure in asleep_bytes reserved_bytes current_bytes current_count; do
    expect "gpu0/$figure" 0
done
expect "$process/state" exited
expect "$process/gpu0/mr/$pool/state" asleep
expect "$process/gpu0/asleep_bytes" 2097152
stop_daemon
