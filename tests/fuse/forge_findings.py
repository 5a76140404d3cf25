# SPDX-License-Identifier: Apache-2.0
"""Writes what a diagnosis found, FILE, or changes it in place.

usage: forge_findings.py FILE TOTAL COUNT:KIND...
Entries as given; TOTAL is findings_total, whatever the entries say.
"""
import os
import struct
import sys

ENTRIES = 512
KERNELS_AT, ROWS_AT = 256, 512
FINDINGS_AT = ROWS_AT + 96
SIZE = FINDINGS_AT + 128 * ENTRIES


def main():
    path, total = sys.argv[1], int(sys.argv[2])
    found = [tuple(map(int, entry.split(":"))) for entry in sys.argv[3:]]
    text = struct.pack(
        "<QHHIQIIIIIIIIIIQQQQ32s96sIIIIQQ", 0x314741494D4D5252, 1, 1, 256, SIZE, KERNELS_AT, 256, 1,
        ROWS_AT, 96, 1, 1, 0, 0, 0, 0, 0, 0, 0, b"bounds", b"active", FINDINGS_AT, 128, ENTRIES,
        len(found), total, 0)
    text = text.ljust(FINDINGS_AT, b"\0")
    for count, kind in found:
        text += struct.pack("<IIIIQQQQQQIiQQ40s", 2, kind, 3, 2, count, 1, 1, 0x7000, 1000, 0, 1, 0,
                            0x7000, 1001, b"cuMemsetD8Async")
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
