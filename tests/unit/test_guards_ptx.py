#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""guards.ptx without a GPU: an interpreter for the instructions that it has.

The cases are those of tests/unit/test_diag_guard_races.c, which has the same work in C. The
threads of a block take turns at random, from a printed seed. What comes between is done when
the guard's bytes are touched first. Where ptxas is installed, it must accept the text too.

usage: test_guards_ptx.py PTX
"""

import os
import random
import re
import shutil
import struct
import subprocess
import sys
import unittest

PTX = sys.argv.pop(1)
FILL, CHECK, CLOSE = 1, 2, 3
BROKEN = 0x80000000
PATTERN = 0xB7
THREADS = 4
STATES, RESULTS, BYTES = 0x1000, 0x2000, 0x3000
SLOT, NUMBER, TAG, ROOM = 3, 77, 0x80000005, 11
SEED = int(os.environ.get("RMM_TEST_SEED", "20261123"))


def parse(text):
    text = re.sub(r"//[^\n]*", "", text)
    body = text[text.index("{") + 1 : text.rindex("}")]
    code, labels = [], {}
    for statement in re.split(r"(?<=[;:])\s", body):
        for word in statement.strip().splitlines():
            word = word.strip().rstrip(";")
            if word.endswith(":"):
                labels[word[:-1]] = len(code)
            elif word and not word.startswith("."):
                code.append(word)
    return code, labels


CODE, LABELS = parse(open(PTX).read())
SIZES = {"u8": 1, "u32": 4, "b32": 4, "u64": 8, "b64": 8}


class Gpu:
    """Its memory, and a block of threads that runs."""

    def __init__(self):
        self.memory = bytearray(0x4000)
        self.random = random.Random(SEED)
        self.between = None

    def get(self, address, size):
        return int.from_bytes(self.memory[address : address + size], "little")

    def put(self, address, size, value):
        data = (value % (1 << 8 * size)).to_bytes(size, "little")
        self.memory[address : address + size] = data

    def touch(self, address):
        if BYTES <= address and self.between:
            self.between, between = None, self.between
            between(self)

    def run(self, action):
        guard = struct.pack("<QIIII", BYTES, ROOM, SLOT, NUMBER, 0)
        self.job = struct.pack("<QQIIII", STATES, RESULTS, action, 1, TAG, 0) + guard
        self.shared = {"seen": None, "lowest": None}
        threads = [Thread(self, number) for number in range(THREADS)]
        while any(not thread.is_done for thread in threads):
            ready = [t for t in threads if not t.is_done and not t.waits]
            if not ready:
                for thread in threads:
                    thread.waits = False
                continue
            self.random.choice(ready).step()


class Thread:
    def __init__(self, gpu, number):
        self.gpu, self.at = gpu, 0
        self.is_done = self.waits = False
        special = {"%tid.x": number, "%ntid.x": THREADS, "%ctaid.x": 0, "job": 0}
        self.registers = special

    def value(self, word):
        word = word.strip()
        return self.registers[word] if word[0] in "%j" else int(word, 0)

    def address(self, word):
        base, _, plus = word.strip("[] ").partition("+")
        return base.strip(), int(plus or "0")

    def set(self, word, value, kind="u64"):
        self.registers[word.strip()] = value % (1 << 8 * SIZES[kind])

    def step(self):
        text = CODE[self.at]
        self.at += 1
        guard = re.match(r"@(%\w+)\s+(.*)", text)
        if guard:
            if not self.registers[guard[1]]:
                return
            text = guard[2]
        name, _, rest = text.partition(" ")
        parts = name.split(".")
        operands = re.findall(r"\{[^}]*\}|\[[^]]*\]|[^,\s]+", rest)
        getattr(self, "do_" + parts[0])(parts[1:], operands)

    def do_mov(self, kind, operands):
        if operands[1].startswith("{"):
            low, high = (self.value(w) for w in operands[1].strip("{}").split(","))
            self.set(operands[0], low | high << 32)
        else:
            self.set(operands[0], self.value(operands[1]))

    do_cvt = do_mov

    def do_mul(self, kind, operands):
        self.set(operands[0], self.value(operands[1]) * self.value(operands[2]))

    def do_add(self, kind, operands):
        self.set(operands[0], self.value(operands[1]) + self.value(operands[2]), kind[-1])

    def do_or(self, kind, operands):
        self.set(operands[0], self.value(operands[1]) | self.value(operands[2]))

    def do_selp(self, kind, operands):
        chosen = operands[1] if self.registers[operands[3]] else operands[2]
        self.set(operands[0], self.value(chosen))

    def do_setp(self, kind, operands):
        a, b = self.value(operands[1]), self.value(operands[2])
        result = {"eq": a == b, "ne": a != b, "ge": a >= b}[kind[0]]
        if kind[1] == "and":
            result = result and self.registers[operands[3]]
        elif kind[1] == "or":
            result = result or self.registers[operands[3]]
        self.registers[operands[0]] = result

    def do_ld(self, kind, operands):
        base, plus = self.address(operands[1])
        size = SIZES[kind[-1]]
        if base in self.gpu.shared:
            value = self.gpu.shared[base]
            self.set(operands[0], self.random_garbage() if value is None else value)
        elif "param" in kind:
            offset = self.value(base) + plus
            data = self.gpu.job[offset : offset + size]
            self.set(operands[0], int.from_bytes(data, "little"))
        else:
            at = self.value(base) + plus
            self.gpu.touch(at)
            for word in operands[0].strip("{}").split(","):
                self.set(word, self.gpu.get(at, size))
                at += size

    def random_garbage(self):
        return self.gpu.random.getrandbits(32)

    def do_st(self, kind, operands):
        base, plus = self.address(operands[0])
        value = self.value(operands[1])
        if base in self.gpu.shared:
            self.gpu.shared[base] = value
            return
        self.gpu.touch(self.value(base) + plus)
        self.gpu.put(self.value(base) + plus, SIZES[kind[-1]], value)

    def do_red(self, kind, operands):
        base, _ = self.address(operands[0])
        self.gpu.shared[base] = min(self.gpu.shared[base], self.value(operands[1]))

    def do_bra(self, kind, operands):
        self.at = LABELS[operands[0]]

    def do_bar(self, kind, operands):
        self.waits = True

    def do_membar(self, kind, operands):
        pass

    def do_ret(self, kind, operands):
        self.is_done = True


OPEN, FILLED, OVER = 0, 4, 8


def word_of(name):
    return STATES + 16 * SLOT + name


def drop(gpu):
    gpu.put(word_of(OPEN), 4, 0)


def end(gpu):
    gpu.put(word_of(OVER), 4, NUMBER)


class Guards(unittest.TestCase):
    def setUp(self):
        self.gpu = Gpu()
        self.gpu.put(word_of(OPEN), 4, NUMBER)

    def fill(self):
        self.gpu.run(FILL)
        self.assertEqual(self.gpu.get(word_of(FILLED), 4), NUMBER)

    def write(self, offset):
        self.gpu.memory[BYTES + offset] = 0

    def result_of(self, action, between=None):
        self.gpu.between = between
        self.gpu.run(action)
        self.assertIsNone(self.gpu.between)
        result = self.gpu.get(RESULTS, 8)
        self.assertEqual(result >> 32, TAG)
        return result & 0xFFFFFFFF

    def test_fills_its_bytes_and_no_other(self):
        self.fill()
        expected = bytes([PATTERN] * ROOM + [0])
        self.assertEqual(self.gpu.memory[BYTES : BYTES + ROOM + 1], expected)
        self.assertEqual(self.result_of(CHECK), 0)

    def test_finds_the_first_byte_that_differs_once(self):
        for offset in range(ROOM):
            with self.subTest(offset):
                self.setUp()
                self.fill()
                self.write(offset)
                self.write(ROOM - 1)
                self.assertEqual(self.result_of(CHECK), BROKEN | offset)
                self.assertEqual(self.result_of(CHECK), 0)

    def test_nothing_is_found_before_the_fill(self):
        self.assertEqual(self.result_of(CHECK), 0)

    def test_a_close_looks_once_more(self):
        self.fill()
        self.write(2)
        self.assertEqual(self.result_of(CLOSE), BROKEN | 2)

    def test_a_closed_guard_is_neither_found_nor_filled(self):
        self.fill()
        self.assertEqual(self.result_of(CLOSE), 0)
        self.write(2)
        self.assertEqual(self.result_of(CHECK), 0)
        self.gpu.run(FILL)
        self.assertEqual(self.gpu.memory[BYTES + 2], 0)

    def test_a_guard_closed_before_its_fill_is_not_filled(self):
        self.assertEqual(self.result_of(CLOSE), 0)
        self.gpu.run(FILL)
        self.assertEqual(self.gpu.memory[BYTES], 0)

    def test_a_guard_that_ends_while_it_is_filled_stays_closed(self):
        for between in drop, end:
            self.setUp()
            self.gpu.between = between
            self.fill()
            self.write(2)
            self.assertEqual(self.result_of(CHECK), 0)
            self.assertEqual(self.result_of(CLOSE), 0)

    def test_a_guard_that_ends_while_it_is_read_is_not_broken(self):
        for between in drop, end:
            self.setUp()
            self.fill()
            self.write(2)
            self.assertEqual(self.result_of(CHECK, between), 0)

    def test_the_next_owner_of_the_slot_is_left_alone(self):
        self.fill()
        self.write(2)
        for word in OPEN, FILLED:
            self.gpu.put(word_of(word), 4, NUMBER + 1)
        for action in FILL, CHECK, CLOSE:
            self.gpu.run(action)
        self.assertEqual(self.gpu.get(word_of(FILLED), 4), NUMBER + 1)
        self.assertEqual(self.gpu.get(word_of(OVER), 4), 0)

    def test_the_assembler_accepts_it(self):
        ptxas = shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")
        if ptxas is None:
            self.skipTest("no ptxas")
        command = [ptxas, "--warning-as-error", "-arch=sm_90", PTX, "-o", os.devnull]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    print(f"RMM_TEST_SEED={SEED}")
    unittest.main()
