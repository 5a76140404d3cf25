#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./program; cat gpu0/peak_bytes: the GPU stays, gauges are 0, peak and totals are kept.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

start_daemon
start_program a
gpu a 0
tell a alloc 0 5000
tell a free 0 4000
tell a alloc 0 10
a=${program_pid[a]}
end_program a
expect gpu0/peak_bytes 5000
expect gpu0/peak_upper_bytes 5000
expect gpu0/current_bytes 0
expect gpu0/current_count 0
expect gpu0/reserved_bytes 0
expect gpu0/total_bytes 5010
expect gpu0/total_count 2
expect_key gpu0/stat lifetime_peak_bytes 5000
expect_key gpu0/stat freed_count 1
expect gpu0/uuid GPU-00000000
expect gpu0/device_free_bytes -1
expect "proc/$a/state" exited
expect "proc/$a/gpu0/current_bytes" 1010
expect "proc/$a/gpu0/peak_bytes" 5000
[ "$(wc -l <"$mnt/gpu0/processes")" = 1 ] || fail "an exited process is in gpu0/processes"

# A shorter one after it raises nothing, and marks of programs one after the other do not
# add up.
start_program b
gpu b 0
tell b alloc 0 300
kill_program b
expect gpu0/peak_bytes 5000
expect gpu0/peak_upper_bytes 5000
expect gpu0/total_bytes 5310
expect gpu0/total_count 3

# Peaks of programs that the daemon saw alive at the same time do add up to the upper bound,
# also if they use the GPU only afterwards and no reader looks before they end.
start_program c
start_program d
expect "proc/${program_pid[c]}/state" live
expect "proc/${program_pid[d]}/state" live
gpu c 1
gpu d 1
tell c alloc 1 100
tell c free 1 100
tell d alloc 1 50
end_program c
end_program d
expect gpu1/peak_upper_bytes 150
expect gpu1/peak_bytes 100
stop_daemon
