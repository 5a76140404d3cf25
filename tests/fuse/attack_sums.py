#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what makes sums and searches over segments long, until the input ends. Prints "ready".
With ATTACK_UID it becomes that user first.

  attack_sums.py slots KIND DIR COUNT TEMPLATE  live segments with 250 resources each. KIND: full;
                                                torn: each is being written for ever; together:
                                                full, and all of one process
  attack_sums.py locks FILE COUNT               so many locks on a file
"""
import fcntl
import os
import resource
import struct
import sys

PID_AT, TICKS_AT, MADE_AT, SLOTS_AT = 40, 24, 32, 80
RESOURCES = 250


def words(segment, at, *values):
    struct.pack_into("<%dI" % len(values), segment, at, *values)


def start_ticks():
    with open("/proc/self/stat", "rb") as file:
        return int(file.read().rsplit(b")", 1)[1].split()[19])


def fill(segment, generation):
    slots, stride, count, _ = struct.unpack_from("<4I", segment, SLOTS_AT)
    words(segment, SLOTS_AT + 12, RESOURCES)
    first = bytes(segment[slots:slots + stride])
    for i in range(min(RESOURCES, count)):
        at = slots + i * stride
        segment[at:at + stride] = first
        words(segment, at, generation, 1)
        words(segment, at + 16, i + 1)


def slots(kind, directory, count, template):
    with open(template, "rb") as file:
        segment = bytearray(file.read())
    fill(segment, 3 if kind == "torn" else 2)
    # Another start than this process's: each is a process of its own, whose pid cannot be told.
    ticks = start_ticks() if kind == "together" else 1
    new = os.path.join(directory, "new.%d" % os.getpid())  # no name of a segment: never swept
    files = []
    for i in range(int(count)):
        struct.pack_into("<QQ", segment, TICKS_AT, ticks, 1 << 60 | i)
        words(segment, PID_AT, os.getpid())
        number = 0x50715 << 40 | len(kind) << 32 | i
        path = os.path.join(directory, "%d.%016x" % (os.getuid(), number))
        file = open(new, "w+b", buffering=0)
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(segment)
        os.rename(new, path)
        files.append(file)
    return files


def locks(path, count):
    files = []
    for _ in range(int(count)):
        file = open(path, "rb", buffering=0)
        fcntl.flock(file, fcntl.LOCK_SH)
        files.append(file)
    return files


def main():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if "ATTACK_UID" in os.environ:
        os.setgroups([])
        os.setresgid(*[int(os.environ["ATTACK_UID"])] * 3)
        os.setresuid(*[int(os.environ["ATTACK_UID"])] * 3)
    held = globals()[sys.argv[1]](*sys.argv[2:])
    print("ready", flush=True)
    sys.stdin.read()
    del held


main()
