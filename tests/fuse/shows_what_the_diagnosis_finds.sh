#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# diag/: off without a diagnosis library; with one, which kernels used which block.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

start_daemon
start_program a
gpu a 0
diag=proc/${program_pid[a]}/diag
expect "$diag/cupti" off
expect "$diag/mode" off
expect "$diag/findings_total" -1
[ "$(wc -l <"$mnt/$diag/findings")" = 1 ] || fail "findings without a library"
[ "$(stat -c %a "$mnt/$diag/findings")" = 400 ] || fail "mode of findings"
[ "$(wc -l <"$mnt/$diag/usage")" = 1 ] || fail "usage without a library"
[ "$(wc -l <"$mnt/$diag/peak")" = 1 ] || fail "peak without a library"
[ "$(wc -l <"$mnt/$diag/verdicts")" = 1 ] || fail "verdicts without a library"
[ "$(head -c 1 "$mnt/$diag/kernels")" = "#" ] || fail "kernels has no header"
[ "$(stat -c %a "$mnt/$diag/usage")" = 400 ] || fail "mode of usage"

segment=$(segments)
PYTHONPATH=$(dirname "$0") PYTHONDONTWRITEBYTECODE=1 python3 - "$segment.diag" <<'END'
import os, struct, sys
import diag_header
kernels = [b"void fill<float, 4>(float*)", b"scale"]
rows = [(0x7000, 4096, 7, 1, 0, 0, 1, 12), (0x9000, 16, 7, 2, 0, 0xffffffff, 0xffffffff, 0)]
kernels_at = diag_header.BYTES
rows_at = kernels_at + diag_header.KERNEL_BYTES * len(kernels)
size = rows_at + diag_header.ROW_BYTES * 8
header = diag_header.pack(
    size, b"usage", {"kernels": (kernels_at, diag_header.KERNEL_BYTES, len(kernels), len(kernels)),
                     "rows": (rows_at, diag_header.ROW_BYTES, 8, 3)},
    {"launches": 20, "launches_unnamed": 1, "blocks_dropped": 2, "parameter_failures": 3})
text = header
for launches, name in zip((12, 8), kernels):
    text += struct.pack("<Q248s", launches, name)
for address, size_, stream, resource, device, first, last, uses in rows:
    text += struct.pack("<IIQQQIiIIQQQQ56s", 2, 1, address, size_, stream, resource, device,
                        first, last, uses, 1000, 2000 if uses else 0, 3000 if uses else 0, b"")
text += struct.pack("<II128s", 3, 1, b"")  # being changed for ever
with open(sys.argv[1] + ".new", "wb") as file:
    file.write(text.ljust(size, b"\0"))
os.rename(sys.argv[1] + ".new", sys.argv[1])
END
expect "$diag/cupti" active
expect "$diag/mode" usage
expect "$diag/findings_total" 0 # of a library that knows none
expect_key "$diag/stat" launches 20
expect_key "$diag/stat" blocks_dropped 2
expect_key "$diag/stat" parameter_failures 3
[ "$(awk -F '\t' '$1 == 0 { print $2, $3 }' "$mnt/$diag/kernels")" = "12 void fill<float, 4>(float*)" ] ||
    fail "kernels: $(cat "$mnt/$diag/kernels")"
[ "$(awk -F '\t' '$1 == "0x7000" { print $2, $3, $4, $5, $8, $9, $12, $13 }' "$mnt/$diag/usage")" = \
    "4096 7 1 0 12 0 void fill<float, 4>(float*) scale" ] || fail "usage: $(cat "$mnt/$diag/usage")"
[ "$(awk -F '\t' '$1 == "0x9000" { print $8, $12, $13 }' "$mnt/$diag/usage")" = "0 - -" ] ||
    fail "usage of a block that was never used: $(cat "$mnt/$diag/usage")"
tail -n 1 "$mnt/$diag/usage" | grep -q "^# 1 more were being changed" || fail "the third row is passed over silently"

# Not the owner's, cut, noise: as if there were none.
head -c 300 /dev/urandom >"$segment.diag"
expect "$diag/cupti" off
cat "$mnt/$diag/usage" >/dev/null
stop_daemon
