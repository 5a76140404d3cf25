#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests/capacity/run says of answers that are given here, and of its generator's logs.

usage: test_capacity_run.py SOURCE CAPACITY_MODEL
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = sys.argv.pop(1)
MODEL = sys.argv.pop(1)
CAPACITY = os.path.join(SOURCE, "tests", "capacity")

# Stands for both programs. Its answers are files "RESOURCE" or, for one log, "RESOURCE LOG".
PROGRAM = """#!/bin/sh
resource=model
[ "$1" = --capacity-curve ] && resource=$4
[ "$1" = --disturbed ] && resource=disturbed
for log; do :; done
log=${log##*/}
cd '@FOLDER@' || exit
[ -e "$resource ${log%.csv}" ] && resource="$resource ${log%.csv}"
read -r first <"$resource"
case "$first" in
{*) echo "$first" ;;
*) echo "$first" >&2; exit 1 ;;
esac
"""


class Runner(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = folder.name
        for path in ("tests/capacity/capacity_model", "tools/replay/rmm-replay"):
            path = os.path.join(self.build, path)
            os.makedirs(os.path.dirname(path))
            with open(path, "w", encoding="utf-8") as file:
                file.write(PROGRAM.replace("@FOLDER@", self.build))
            os.chmod(path, 0o755)

    def run_with(self, answers, *arguments, status=0):
        given = {"model": [1.10, 0], "pool": [1.10, 0], "pool_virtual": [1.03, 0], **answers}
        for entry in os.scandir(self.build):
            if entry.is_file():
                os.remove(entry)
        for name, answer in given.items():
            with open(os.path.join(self.build, name), "w", encoding="utf-8") as file:
                file.write((answer if isinstance(answer, str) else json.dumps({
                    "operations": 10, "log_peak_bytes": 1000, "pages_over_peak": 1.01,
                    "safe_over_peak": answer[0], "holes": answer[1]})) + "\n")
        done = subprocess.run(
            [os.path.join(CAPACITY, "run"), "--build", self.build, "--families", "etl",
             "--logs", "20", "--jobs", "2", *arguments],
            capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def not_met(self, answers, *arguments, status=1):
        done = self.run_with(answers, *arguments, status=status)
        return [line.split(":")[0] + ":" + line.split(" wanted ")[1]
                for line in done.stdout.splitlines() if line.startswith("NOT met")]

    def test_pools_no_worse_than_the_model_meet_all(self):
        done = self.run_with({"pool": [1.11, 0], "pool etl-3": [1.13, 0]})
        self.assertEqual(done.stdout.count("\nmet "), 6)
        self.assertIn("on 95.0 % of the logs, wanted 95 %", done.stdout)

    def test_two_of_twenty_logs_above_the_model_are_too_many(self):
        self.assertEqual(
            self.not_met({"pool etl-3": [1.12, 0], "pool etl-4": [1.12, 0]}),
            ["NOT met  pool:95 %"])

    def test_one_log_far_above_the_model_is_too_many(self):
        self.assertEqual(self.not_met({"pool etl-20": [1.14, 0]}), ["NOT met  pool:+0.03"])

    def test_a_pool_above_all_that_was_tried_is_too_many(self):
        answers = {"pool etl-2": [None, 0], "model etl-2": [1.37, 0]}
        self.assertEqual(self.not_met(answers), ["NOT met  pool:+0.03"])
        self.assertIn(" >1.40 ", self.run_with(answers, status=1).stdout)

    def test_where_the_model_needs_more_than_was_tried_the_pool_may(self):
        self.run_with({"pool etl-2": [None, 0], "model etl-2": [None, 0]})

    def test_one_hole_of_the_pool_is_too_many(self):
        self.assertEqual(self.not_met({"pool etl-2": [1.10, 1]}), ["NOT met  pool:none"])

    def test_a_virtual_pool_may_not_need_more_than_the_model(self):
        self.assertEqual(
            self.not_met({"model etl-2": [1.02, 0], "pool etl-2": [1.02, 0]}),
            ["NOT met  pool_virtual:99 %"])

    def test_a_virtual_pool_stays_below_a_limit_on_every_log_and_on_average(self):
        self.assertEqual(
            self.not_met({"pool_virtual etl-2": [1.09, 0]}),
            ["NOT met  pool_virtual:99 %", "NOT met  pool_virtual:1.08"])
        self.assertEqual(
            self.not_met({"pool_virtual": [1.05, 0]}), ["NOT met  pool_virtual:1.04"])

    def test_only_reports_when_told_so(self):
        self.assertEqual(
            self.not_met({"pool etl-2": [1.10, 1]}, "--report-only", status=0),
            ["NOT met  pool:none"])

    def test_judges_the_resources_that_are_named(self):
        done = self.run_with({"pool": [1.40, 7], "arena": [1.20, 2]},
                             "--resources", "arena,pool_virtual")
        self.assertEqual(done.stdout.count("\nmet "), 3)

    def test_says_how_far_the_model_is_from_itself(self):
        done = self.run_with({"disturbed": [1.11, 2], "disturbed etl-2": [1.13, 0],
                              "disturbed etl-9": [1.14, 0], "disturbed etl-10": [1.00, 0]},
                             "--disturbed")
        self.assertIn("or less on 90.0 % of the logs, at + 0.03 or less on 95.0 %", done.stdout)
        self.assertEqual(done.stdout.split("\n")[0].split()[4:6], ["pages", "model"])
        self.assertEqual(done.stdout.split("\n")[0].split()[7], "disturbed")

    def test_takes_the_seeds_and_families_that_are_named(self):
        done = self.run_with({}, "--families", "serve,etl", "--first-seed", "8", "--logs", "3")
        logs = [line.split()[:2] for line in done.stdout.splitlines()[1:4]]
        self.assertEqual(logs, [["serve", "8"], ["etl", "8"], ["serve", "9"]])

    def test_says_in_one_line_which_log_a_program_failed_on(self):
        done = self.run_with({"pool etl-2": "rmm-replay: out of luck"}, status=1)
        self.assertEqual(done.stderr, "tests/capacity/run: etl 2: rmm-replay: out of luck\n")

    def test_says_what_to_build(self):
        os.remove(os.path.join(self.build, "tools", "replay", "rmm-replay"))
        done = self.run_with({}, status=1)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("cmake --preset release", done.stderr)

    def test_refuses_what_it_does_not_know(self):
        done = self.run_with({}, "--families", "etl,nothing", status=2)
        self.assertIn("no family nothing; there are: etl, serve", done.stderr)
        self.run_with({}, "--logs", "0", status=2)


class Model(unittest.TestCase):
    """Twenty blocks of 256 bytes at once: the pool is full with them."""

    def safe(self, *options):
        rows = ["Thread,Time,Action,Pointer,Size,Stream"]
        rows += [f"1,00:00:00.000000,{action},{0x1000 + 256 * i:#x},256,0"
                 for action in ("allocate", "free") for i in range(20)]
        with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="ascii") as log:
            log.write("\n".join(rows) + "\n")
            log.flush()
            done = subprocess.run([MODEL, *options, log.name], capture_output=True, check=True)
        return json.loads(done.stdout)["safe_over_peak"]

    def test_needs_no_more_than_the_peak(self):
        self.assertEqual(self.safe(), 1.00)

    def test_needs_one_block_more_where_the_log_is_disturbed(self):
        self.assertEqual(self.safe("--disturbed"), 1.01)  # 5171.2 bytes: rounded up to 21 blocks
        self.assertEqual(self.safe("--disturbed", "--page", "256"), 1.01)


class Generator(unittest.TestCase):
    def log(self, *arguments, status=0, seed="0"):
        done = subprocess.run(
            [os.path.join(CAPACITY, "generate.py"), *arguments], capture_output=True,
            text=True, check=False, env={**os.environ, "PYTHONHASHSEED": seed})
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_gives_the_same_log_again_and_another_for_another_seed(self):
        for line in self.log("--list").stdout.splitlines():
            family = line.split()[0]
            first = self.log(family, "1", seed="1").stdout
            self.assertEqual(first, self.log(family, "1", seed="2").stdout)
            self.assertNotEqual(first, self.log(family, "2").stdout)

    def test_frees_each_block_once_and_with_its_size(self):
        live = {}
        for row in self.log("handover", "3").stdout.splitlines()[1:]:
            _, _, action, address, size, _ = row.split(",")
            if action == "allocate":
                self.assertNotIn(address, live)
                live[address] = size
            else:
                self.assertEqual(live.pop(address), size)

    def test_refuses_what_it_does_not_know(self):
        self.assertIn("no family nothing", self.log("nothing", "1", status=2).stderr)
        self.assertIn("usage", self.log("etl", status=2).stderr)
        self.assertIn("usage", self.log("etl", "-1", status=2).stderr)


if __name__ == "__main__":
    unittest.main()
