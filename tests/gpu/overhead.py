#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: overhead.py [--turns N] [--library LIBRMM_C] MODE=COMMAND...

What each mode of the diagnosis adds to a step of a training. One process per mode trains the
networks of torch_steps.py; COMMAND is put before the program, and the first mode is the one that
the others are compared with. All processes are started first, then they take turns: in each turn
every process trains one round while the others wait, in another order each time. So a change of
the machine's speed, which between two processes is far larger than what is measured, meets all
modes alike.

Prints for each network one line: the median step of the first mode, then for each other mode the
median over the turns of its step against the first mode's of the same turn, and the interval that
contains the true median with at least 95 % confidence (by the ranks of the sorted turns).
"""
import argparse
import math
import random
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

STEPS = Path(__file__).with_name("torch_steps.py")
NETWORKS = ("small", "large")


class Worker:
    """One training process; it trains a round whenever it reads the name of a network."""

    def __init__(self, command, library):
        program = [sys.executable, str(STEPS)] + ([library] if library else [])
        self.process = subprocess.Popen(
            shlex.split(command) + program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def answer(self, question):
        try:
            self.process.stdin.write(question + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            sys.exit(f"overhead.py: {self.process.args[0]} ended early, with {self.process.wait()}")
        return float(line)

    def end(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            sys.exit(f"overhead.py: {self.process.args[0]} ended with {self.process.returncode}")


def rank_below_median(count):
    """The largest rank k for which [k-th least, k-th greatest] holds the median with 95 %."""
    tail, rank = 0.0, 0
    while rank < count // 2:
        tail += math.comb(count, rank) / 2**count
        if 2 * tail > 0.05:
            break
        rank += 1
    return rank


def interval(values):
    rank = rank_below_median(len(values))
    ordered = sorted(values)
    return ordered[rank - 1], ordered[-rank]


def line_of(network, steps):
    """STEPS: mode -> microseconds of a step, one figure a turn; the first mode is the plain one."""
    (plain, plain_steps), *others = steps.items()
    words = [f"{network} {plain} {statistics.median(plain_steps):.0f} us"]
    for mode, mode_steps in others:
        added = [(one / base - 1) * 100 for one, base in zip(mode_steps, plain_steps)]
        low, high = interval(added)
        words.append(f"{mode} {statistics.median(added):+.1f} % ({low:+.1f} to {high:+.1f})")
    return "; ".join(words)


def main():
    parser = argparse.ArgumentParser(
        description="what each mode of the diagnosis adds to a step of a training",
        allow_abbrev=False,
    )
    parser.add_argument("--turns", type=int, default=25)
    parser.add_argument("--library", default="")
    parser.add_argument("modes", nargs="+", metavar="MODE=COMMAND")
    options = parser.parse_args()
    if options.turns < 6:
        parser.error("--turns: at least 6, or there is no interval of 95 %")
    # a mode's name has no "=", its command may
    workers = {
        name: Worker(command, options.library)
        for name, _, command in (mode.partition("=") for mode in options.modes)
    }
    shuffle = random.Random(1)
    for network in NETWORKS:
        steps = {mode: [] for mode in workers}
        for worker in workers.values():
            worker.answer(network)  # a round that warms up
        for _ in range(options.turns):
            for mode in shuffle.sample(list(workers), len(workers)):
                steps[mode].append(workers[mode].answer(network))
        print(line_of(network, steps), flush=True)
    for worker in workers.values():
        worker.end()


if __name__ == "__main__":
    main()
