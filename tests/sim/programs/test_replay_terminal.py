#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rmm-replay on a terminal: its progress, and how it ends by a signal in the middle.

usage: test_replay_terminal.py RMM_REPLAY DATA
DATA is the folder tests/data.
"""
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

DATA = sys.argv.pop()
REPLAY = sys.argv.pop()
SMALL = os.path.join(DATA, "replay", "small.csv")
LARGE = os.path.join(DATA, "resnet_train.csv.gz")


class Terminal(unittest.TestCase):
    def setUp(self):
        self.runtime = tempfile.mkdtemp(prefix="rmm-replay-")
        self.addCleanup(shutil.rmtree, self.runtime)
        self.environment = dict(os.environ, RMM_DRIVER="sim", RMM_RUNTIME_DIR=self.runtime)

    def start(self, *arguments):
        """Its standard error is the terminal."""
        self.terminal, theirs = pty.openpty()
        self.addCleanup(os.close, self.terminal)
        program = subprocess.Popen([REPLAY, *arguments], env=self.environment,
                                   stdout=subprocess.DEVNULL, stderr=theirs,
                                   preexec_fn=self.end_by_signals)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        os.close(theirs)
        return program

    @staticmethod
    def end_by_signals():
        """Where tests run in the background, SIGINT is ignored."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def shown(self):
        """All that the terminal gets."""
        text = b""
        while True:
            try:
                text += os.read(self.terminal, 65536)
            except OSError:  # nobody has the other end any more
                return text.decode()

    def test_trials_show_a_bar_that_is_gone_at_the_end(self):
        for option, least in (("--advise", 2), ("--capacity-curve", 41)):
            program = self.start(option, SMALL)
            shown = self.shown().split("\r")
            self.assertEqual(program.wait(), 0)
            bars = [line for line in shown if line.startswith("[")]
            self.assertGreaterEqual(len(bars), least)
            self.assertRegex(bars[0], r"^\[\.{24}\]   0% capacities on pool *$")
            self.assertRegex(bars[-1], r"^\[#+\.*\] +\d+% capacities on ")
            self.assertEqual(shown[-2].strip(), "")

    def test_nothing_is_shown_elsewhere(self):
        result = subprocess.run([REPLAY, "--advise", SMALL], env=self.environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
        self.assertEqual(result.stderr, b"")

    def test_an_advice_leaves_nothing_when_it_is_interrupted(self):
        program = self.start("--advise", LARGE)
        self.assertTrue(os.read(self.terminal, 1))
        self.assertEqual(os.listdir(self.runtime), [])
        program.send_signal(signal.SIGINT)
        self.assertEqual(program.wait(timeout=60), -signal.SIGINT)
        self.assertEqual(os.listdir(self.runtime), [])

    def test_a_signal_before_the_hold_ends_the_program(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            program = self.start("--speed", "0.0000001", "--hold", "600", SMALL)
            while not os.listdir(self.runtime):  # it does not block signals before
                self.assertIsNone(program.poll())
                time.sleep(0.01)
            program.send_signal(number)
            self.assertEqual(program.wait(timeout=60), -number)
            for name in os.listdir(self.runtime):
                os.remove(os.path.join(self.runtime, name))


if __name__ == "__main__":
    unittest.main()
