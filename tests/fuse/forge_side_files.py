# SPDX-License-Identifier: Apache-2.0
"""Writes side files as long as readers allow, full of rows that render long, beside SEGMENT.

usage: forge_side_files.py SEGMENT leaks|diag
"""
import os
import struct
import sys

import diag_header

FRAMES = 16
MODULES = 4096
KERNELS = 4096
LEAKS_BYTES = 16 << 20
DIAG_BYTES = 64 << 20


def leaks():
    modules_at, rows_at = 128, 128 + 256 * MODULES
    rows = (LEAKS_BYTES - rows_at) // 192
    modules = b"".join(
        struct.pack("<QQQ232s", 0x10000 * (i + 1), 0x10000 * (i + 2), 0, b"x" * 226 + b"%05d" % i)
        for i in range(MODULES)
    )
    frames = [0x10000 * (i + 1) + 0x8000 for i in range(FRAMES)]
    row = struct.pack(
        "<IIQQQQIiII16QQ", 2, 1, 4096, 2**63, 1, 2**64 - 1, 7, 0, FRAMES, 0, *frames, 0)
    header = struct.pack(
        "<QHHIQIIIIIIQIIII56x", 0x314B41454C4D4D52, 1, 0, 128, LEAKS_BYTES, rows_at, 192, rows, 1,
        rows, 0, 0, modules_at, 256, MODULES, MODULES)
    return header + modules + row * rows, LEAKS_BYTES, rows


def diag():
    kernels_at = diag_header.BYTES
    rows_at = kernels_at + diag_header.KERNEL_BYTES * KERNELS
    rows = (DIAG_BYTES - rows_at) // diag_header.ROW_BYTES
    kernels = struct.pack("<Q248s", 2**63, b"k" * 247) * KERNELS
    row = struct.pack("<IIQQQIiIIQQQQ56x", 2, 1, 4096, 2**63, 1, 1, 0, 5, 6, 7, 1, 2, 3)
    header = diag_header.pack(
        DIAG_BYTES, b"usage",
        {"kernels": (kernels_at, diag_header.KERNEL_BYTES, KERNELS, KERNELS),
         "rows": (rows_at, diag_header.ROW_BYTES, rows, rows)}, {})
    return header + kernels + row * rows, DIAG_BYTES, rows


def main():
    segment, kind = sys.argv[1:]
    content, size, rows = leaks() if kind == "leaks" else diag()
    with open("%s.%s" % (segment, kind), "wb") as file:
        file.write(content)
        file.truncate(size)
    print(rows)


main()
