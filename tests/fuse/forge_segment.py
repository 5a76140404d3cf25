# SPDX-License-Identifier: Apache-2.0
"""Writes lies into a segment, in place, while its program runs.

usage: forge_segment.py SEGMENT set LOCATION STATISTIC VALUE
       forge_segment.py SEGMENT rename STATISTIC NEW_NAME      in the schema, of locations
       forge_segment.py SEGMENT add SCOPE NAME KIND STATISTIC   to the schema: in place of another
       forge_segment.py SEGMENT same_ids                       all resources get the first's id
"""
import mmap
import struct
import sys

MASK = 2**64 - 1


def u32(segment, at):
    return struct.unpack_from("<I", segment, at)[0]


def entries(segment):
    at, stride, count = (u32(segment, 56 + 4 * i) for i in range(3))
    return [at + stride * i for i in range(count)]


def find(segment, name, wanted=1):
    for at in entries(segment):
        scope = struct.unpack_from("<H", segment, at + 40)[0]
        if segment[at:at + 40].rstrip(b"\0") == name.encode() and scope == wanted:
            return at
    sys.exit("no statistic " + name)


def set_figure(segment, location, name, value):
    offset = u32(segment, find(segment, name) + 48)
    at = u32(segment, 68) + u32(segment, 72) * int(location) + offset
    segment[at:at + 8] = struct.pack("<Q", int(value) & MASK)


def rename(segment, name, new):
    at = find(segment, name)
    segment[at:at + 40] = new.encode().ljust(40, b"\0")


def add(segment, scope, name, kind, like):
    offset = u32(segment, find(segment, like, int(scope)) + 48)
    at, stride, count = (u32(segment, 56 + 4 * i) for i in range(3))
    no_stripe = 65535
    entry = struct.pack(
        "<40sHHHHIHH", name.encode(), int(scope), int(kind), 2, 0, offset, no_stripe, no_stripe)
    segment[at + stride * count:at + stride * count + len(entry)] = entry
    segment[64:68] = struct.pack("<I", count + 1)


def same_ids(segment):
    at, stride, count = (u32(segment, 80 + 4 * i) for i in range(3))
    slots = [at + stride * i for i in range(count) if u32(segment, at + stride * i + 4) == 1]
    for slot in slots[1:]:
        segment[slot + 16:slot + 20] = segment[slots[0] + 16:slots[0] + 20]
        segment[slot + 40:slot + 128] = segment[slots[0] + 40:slots[0] + 128]


def main():
    with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 0) as segment:
        actions = {"set": set_figure, "rename": rename, "add": add, "same_ids": same_ids}
        actions[sys.argv[2]](segment, *sys.argv[3:])


main()
