# SPDX-License-Identifier: Apache-2.0
"""Writes what a diagnosis found, FILE, or changes it in place.

usage: forge_findings.py FILE TOTAL COUNT:KIND...
Entries as given; TOTAL is findings_total, whatever the entries say.
"""
import os
import struct
import sys

import diag_header

ENTRIES = 512
FINDINGS_AT = diag_header.BYTES
SIZE = FINDINGS_AT + diag_header.FINDING_BYTES * ENTRIES


def main():
    path, total = sys.argv[1], int(sys.argv[2])
    found = [tuple(map(int, entry.split(":"))) for entry in sys.argv[3:]]
    text = diag_header.pack(
        SIZE, b"bounds",
        {"findings": (FINDINGS_AT, diag_header.FINDING_BYTES, ENTRIES, len(found))},
        {"findings_total": total})
    for count, kind in found:
        text += struct.pack("<IIIIQQQQQQIiQQ40sQQIIII", 2, kind, 3, 2, count, 1, 1, 0x7000, 1000, 0,
                            1, 0, 0x7000, 1001, b"cuMemsetD8Async", 2**64 - 1, 2**64 - 1,
                            0xffffffff, 0xffffffff, 0, 0)
    text = text.ljust(SIZE, b"\0")
    if os.path.exists(path):
        with open(path, "r+b") as file:  # entries first, as the writer does
            file.seek(FINDINGS_AT)
            file.write(text[FINDINGS_AT:])
            file.seek(0)
            file.write(text[:FINDINGS_AT])
        return
    with open(path + ".new", "wb") as file:
        file.write(text)
    os.chown(path + ".new", os.stat(path[:-5]).st_uid, -1)
    os.rename(path + ".new", path)


main()
