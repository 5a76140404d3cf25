#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Twenty readers at once, opening, reading kept descriptors and listing, while a program
# changes its figures: none sees anything but whole numbers, and the sum of what was read
# counts.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

start_daemon
start_program a
gpu a 0
tell a resource 1 pool pool 0 0
readers=()
for i in $(seq 20); do
    python3 - "$mnt" <<'END' &
import os, re, sys
mnt = sys.argv[1]
number = re.compile(rb"\d+\n\Z")
names = ["gpu0/current_bytes", "gpu0/peak_bytes", "gpu0/fragmentation", "gpu0/stat"]
kept = os.open(mnt + "/gpu0/current_bytes", os.O_RDONLY)
for _ in range(150):
    for name in names:
        with open(mnt + "/" + name, "rb") as file:
            text = file.read()
        assert text.endswith(b"\n"), (name, text)
    assert number.match(os.pread(kept, 100, 0)), "a kept descriptor"
    value = int(open(mnt + "/gpu0/current_bytes").read())
    peak = int(open(mnt + "/gpu0/peak_bytes").read())
    assert peak >= value, (peak, value)
    assert "gpu0" in os.listdir(mnt)
END
    readers+=($!)
done
for i in $(seq 200); do
    tell a alloc 0 "$i"
done
for reader in "${readers[@]}"; do
    wait "$reader" || fail "a reader failed"
done
expect gpu0/current_bytes 20100
[ "$(cat "$mnt/daemon/reads_total")" -ge $((20 * 150 * 7)) ] || fail "reads_total is $(cat "$mnt/daemon/reads_total")"
stop_daemon
