#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Writing to peak_bytes of a GPU, a process, a resource: that mark becomes the current
# value, at once in what is read, and the other levels' marks stay.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

start_daemon
start_program a
gpu a 0
tell a resource 7 pool pool 0 0
tell a alloc 0 1000
tell a take 7 1000
tell a free 0 900
tell a give 7 900
process=proc/${program_pid[a]}/gpu0
resource=$process/mr/7.pool
marks() { # GPU PROCESS RESOURCE
    expect gpu0/peak_bytes "$1"
    expect "$process/peak_bytes" "$2"
    expect "$resource/peak_bytes" "$3"
}

marks 1000 1000 1000
echo reset >"$mnt/$resource/peak_bytes"
marks 1000 1000 100
echo >"$mnt/$process/peak_bytes"
marks 1000 100 100
printf 0 >>"$mnt/gpu0/peak_bytes"
marks 100 100 100
expect gpu0/peak_upper_bytes 100
expect gpu0/peak_count 0
expect_key gpu0/stat lifetime_peak_bytes 1000
expect_key "$process/stat" lifetime_peak_bytes 1000
expect_key "$resource/stat" lifetime_peak_bytes 1000

# Higher than before the reset, and then lower: the mark is that of since the reset.
tell a alloc 0 300
tell a take 7 300
tell a free 0 350
tell a give 7 350
marks 400 400 400
expect gpu0/current_bytes 50
truncate -s 0 "$mnt/gpu0/peak_bytes"
marks 400 400 400
dd if=/dev/zero of="$mnt/gpu0/peak_bytes" bs=1 count=1 status=none
marks 50 400 400

# A reset that the program has yet to obey when it ends.
tell a alloc 0 600
marks 650 650 400
tell a free 0 640
echo >"$mnt/gpu0/peak_bytes"
end_program a
expect gpu0/peak_bytes 10
expect gpu0/current_bytes 0
echo >"$mnt/gpu0/peak_bytes"
expect gpu0/peak_bytes 0
if echo >"$mnt/$process/peak_bytes"; then
    fail "the mark of an exited process was reset"
fi 2>/dev/null
stop_daemon
