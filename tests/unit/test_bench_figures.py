#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/bench/targets and tools/bench/plot make of figures that are given here.

usage: test_bench_figures.py SOURCE
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SOURCE = sys.argv.pop(1)
SVG = "{http://www.w3.org/2000/svg}"
MACHINE = {"version": "9.9", "cpu": "a CPU", "cores": 16, "driver": "cuda", "gpu": "a GPU",
           "gpu_driver": "1.2", "clock_ns": 20.0, "quick": False, "seed": 1, "repetitions": 3}


def result(workload, resource, median, **more):
    return {"workload": workload, "resource": resource, "median": median, "cut": False,
            "p50_ns": 30, "p99_ns": 90, "p999_ns": 900, "p99_values": [90, 91, 92],
            "difference": None, **more}


def run_of(*results, **more):
    return {**MACHINE, **more, "results": list(results)}


def replay_of(resource, capacity=None, reserved=1100, log="some/gpt_train.csv.gz"):
    return {"log": log, "resource": resource, "log_peak_bytes": 1000,
            "reserved_bytes": reserved, "capacity_bytes": capacity,
            "best_ns_per_operation": 50.0}


class Figures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, *values):
        with open(self.path(name), "w", encoding="utf-8") as file:
            for value in values:
                file.write(value if isinstance(value, str) else json.dumps(value) + "\n")
        return self.path(name)

    def call(self, command, *arguments, status=0):
        done = subprocess.run([os.path.join(SOURCE, "tools", "bench", command), *arguments],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def lines(self, *runs):
        path = self.write("figures.json", *runs)
        return self.call("targets", path).stdout.splitlines()

    def line(self, begin, *runs):
        found = [line for line in self.lines(*runs) if line.startswith(begin)]
        self.assertEqual(len(found), 1, begin)
        return found[0]


class Targets(Figures):
    def test_a_line_is_met_when_both_pools_meet_it(self):
        figures = run_of(result("pair-legacy", "pool", 89.0),
                         result("pair-legacy", "pool_virtual", 90.0),
                         result("pair-legacy", "async", 800.0),
                         result("pair-legacy", "cuda", 50000.0, cut=True))
        self.assertEqual(
            self.line("| hot pair, legacy stream", figures),
            "| hot pair, legacy stream, ns | <= 90, 4x RMM | 89.0 (4.28x) | 90.0 (4.23x) "
            "| 800 | 50,000* | 381 | met |")
        self.assertIn("1 of ", "\n".join(self.lines(figures)))

    def test_a_line_that_one_pool_misses_says_which(self):
        figures = run_of(result("pair-never-captures", "pool", 60.0),
                         result("pair-never-captures", "pool_virtual", 61.0))
        self.assertTrue(self.line("| hot pair, created stream that never", figures).endswith(
            "| `pool` met, `pool_virtual` **NOT met** |"))

    def test_a_factor_counts_as_the_limit_does(self):
        figures = run_of(result("random-64", "pool", 217.0),
                         result("random-64", "pool_virtual", 199.0))
        self.assertTrue(self.line("| random mix to 64 MiB", figures).endswith(
            "| `pool` **NOT met**, `pool_virtual` met |"))

    def test_a_figure_that_is_missing_is_not_measured(self):
        self.assertTrue(self.line("| time to fail", run_of()).endswith("| not measured |"))
        half = run_of(result("full", "pool", 100.0))
        self.assertTrue(self.line("| time to fail", half).endswith(
            "| `pool` met, `pool_virtual` not measured |"))
        null = run_of(result("full", "pool", None), result("full", "pool_virtual", None))
        self.assertTrue(self.line("| time to fail", null).endswith("| not measured |"))

    def test_live_blocks_are_compared_with_few(self):
        figures = run_of(result("churn-100", "pool", 100.0),
                         result("churn-100000", "pool", 210.0),
                         result("churn-100", "pool_virtual", 100.0),
                         result("churn-100000", "pool_virtual", 150.0))
        line = self.line("| 100,000 live blocks", figures)
        self.assertIn("| 2.1 | 1.5 |", line)
        self.assertTrue(line.endswith("| `pool` **NOT met**, `pool_virtual` met |"))

    def test_threads_want_a_rate_and_not_a_time(self):
        figures = run_of(result("threads-own-16", "pool", 12.0),
                         result("threads-own-16", "pool_virtual", 10.0))
        line = self.line("| 16 threads, own streams", figures)
        self.assertIn("| 12.0 (120x) | 10.0 (100x) |", line)
        self.assertTrue(line.endswith("| met |"))

    def test_a_reader_moves_p99_by_what_repetitions_say(self):
        off = result("reader-off", "pool", 1.0, p99_values=[100, 200, 300])
        still = result("reader-on", "pool", 1.0, p99_values=[110, 190, 310])
        moves = result("reader-on", "pool", 1.0, p99_values=[120, 211, 290])
        self.assertTrue(self.line("| p99 of `pool`", run_of(off, still)).endswith("| met |"))
        self.assertIn("| 211 | 200 | 11.0 |", self.line("| p99 of `pool`", run_of(off, moves)))
        self.assertTrue(self.line("| p99 of `pool`", run_of(off, moves)).endswith(
            "| **NOT met** |"))

    def test_adaptors_are_judged_by_the_difference(self):
        figures = run_of(result("adaptor-none", "pool", 60.0),
                         result("adaptor-limiting", "pool", 76.0, difference=15.5))
        self.assertEqual(self.line("| limiting over", figures),
                         "| limiting over `pool` | <= 15 | 76.0 | 60.0 | 15.5 | 8 | **NOT met** |")

    def test_memory_wants_the_virtual_pool(self):
        runs = (run_of(), replay_of("pool", 1060, 1900), replay_of("pool_virtual", 1039, 1151))
        line = self.line("| gpt_train: smallest", *runs)
        self.assertIn("| <= 1.039 | 1.060 | 1.039 |", line)
        self.assertTrue(line.endswith("| 1.029 | 1.076 | met |"))
        line = self.line("| gpt_train: reserved", *runs)
        self.assertIn("| 1.900 | 1.151 |", line)
        self.assertTrue(line.endswith("| **NOT met** |"))

    def test_a_log_that_rmm_did_not_run_has_no_capacity_to_meet(self):
        line = self.line("| mine: smallest", run_of(), replay_of("pool_virtual", 1001, log="mine"))
        self.assertTrue(line.endswith("| not judged |"))

    def test_two_runs_of_one_log_are_put_together(self):
        again = {**replay_of("pool", None, 9999), "repeats": 5, "best_ns_per_operation": 40.0}
        runs = (run_of(), replay_of("pool", 1060, None), replay_of("pool", None, 1200), again)
        self.assertIn("| 1.060 |", self.line("| gpt_train: smallest", *runs))
        self.assertIn("| 1.200 |", self.line("| gpt_train: reserved", *runs))
        self.assertIn("| gpt_train | 40.0 |", self.line("| gpt_train |", *runs))

    def test_times_of_a_simulated_gpu_are_not_judged(self):
        lines = self.lines(run_of(result("pair-legacy", "pool", 1.0), driver="sim"),
                           replay_of("pool_virtual", 1001))
        self.assertIn("simulated GPU", lines[0])
        self.assertIn("2 of 3 targets are met", "\n".join(lines))
        self.assertTrue([line for line in lines if line.startswith("| hot pair, legacy")][0]
                        .endswith("| not judged |"))

    def test_puts_the_tables_between_the_marks_and_leaves_the_rest(self):
        page = self.write(
            "page.md", "before\n<!-- targets -->\nold\n<!-- end of targets -->\nafter\n")
        figures = self.write("figures.json", run_of(result("pair-legacy", "pool", 89.0)))
        for _ in range(2):
            self.call("targets", "--into", page, figures)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.assertTrue(text.startswith("before\n<!-- targets -->\nOn a GPU, driver 1.2;"))
        self.assertTrue(text.endswith("\n<!-- end of targets -->\nafter\n"))
        self.assertNotIn("old", text)
        self.assertEqual(text.count("### The pool"), 1)

    def test_says_in_one_line_what_is_wrong(self):
        empty, broken = self.write("empty", ""), self.write("broken", "{\n  no")
        other, page = self.write("other", {"a": 1}), self.write("page.md", "no marks\n")
        figures = self.write("figures.json", run_of())
        for arguments, problem in (
                ([self.path("none")],
                 f"cannot read {self.path('none')}: No such file or directory"),
                ([empty], f"{empty}: is empty"),
                ([broken],
                 f"{broken}:2: not JSON: Expecting property name enclosed in double quotes"),
                ([other], f"{other}: not of rmm-bench --json or rmm-replay --json"),
                ([figures, figures], f"{figures}: is a second run of rmm-bench"),
                ([self.write("r", replay_of("pool"))],
                 "none of the files is of rmm-bench --json"),
                (["--into", page, figures],
                 f"{page}: has no line <!-- targets --> and after it <!-- end of targets -->")):
            done = self.call("targets", *arguments, status=1)
            self.assertEqual(done.stderr, f"targets: {problem}\n")
            self.assertEqual(done.stdout, "")

    def test_ends_with_2_when_used_wrongly(self):
        for arguments in ([], ["--nonsense", "x"]):
            self.assertEqual(self.call("targets", *arguments, status=2).stderr,
                             "usage: targets [--into FILE] FIGURES.json...\n")
        self.assertIn("usage: targets", self.call("targets", "--help").stdout)


class Plot(Figures):
    def timeline(self, name, resource):
        return self.write(name, f"# log x/mine.csv.gz resource {resource} driver sim\n"
                          "operation,time_ns,live_bytes,reserved_bytes\n"
                          "1,0,1000,2000\n2,10,3000,4000\n")

    def text_of(self, name):
        """All words of a picture, which must be well-formed."""
        root = xml.etree.ElementTree.parse(self.path(name)).getroot()
        return ["".join(node.itertext()).strip() for node in root.iter(SVG + "text")]

    def test_draws_a_picture_of_each_kind_with_every_series(self):
        results = [result(workload, resource, 100.0)
                   for resource in ("cuda", "pool", "statistics+pool")
                   for workload in ("threads-own-1", "threads-own-2", "threads-one-1",
                                    "churn-100", "churn-1000", "pair-legacy", "random-1")]
        figures = self.write("figures.json", run_of(*results))
        self.call("plot", figures, self.timeline("a.csv", "pool"), self.timeline("b.csv", "async"),
                  self.path("out"))
        self.assertEqual(sorted(os.listdir(self.path("out"))),
                         ["held-mine.svg", "latency.svg", "live.svg", "threads.svg"])
        for name in ("latency.svg", "live.svg", "threads.svg"):
            words = self.text_of(os.path.join("out", name))
            for title in ("cudaMalloc", "pool", "statistics+pool", "a GPU; a CPU, 16 cores"):
                self.assertIn(title, words, name)
        words = self.text_of("out/held-mine.svg")
        for title in ("live", "pool", "cudaMallocAsync", "MiB", "simulated GPU"):
            self.assertIn(title, words)

    def test_one_resource_has_one_colour_everywhere(self):
        results = [result(workload, "arena", 100.0) for workload in ("threads-own-1", "churn-100")]
        figures = self.write("figures.json", run_of(*results))
        self.call("plot", figures, self.timeline("a.csv", "arena"), self.path("out"))
        for name in ("threads.svg", "live.svg", "held-mine.svg"):
            with open(self.path("out/" + name), encoding="utf-8") as file:
                self.assertIn("0, 158, 115", file.read(), name)

    def test_draws_only_what_there_are_figures_for(self):
        self.call("plot", self.write("f.json", run_of(result("churn-100", "pool", 5.0))),
                  self.path("out"))
        self.assertEqual(os.listdir(self.path("out")), ["live.svg"])
        self.call("plot", self.timeline("a.csv", "pool"), self.path("other"))
        self.assertEqual(os.listdir(self.path("other")), ["held-mine.svg"])

    def test_draws_the_steps_of_a_model(self):
        path = self.write("m.csv", "# log transformer resource expandable driver cuda\n"
                          "step,live_bytes,reserved_bytes,driver_bytes\n0.0,1,2,3\n0.5,2,3,4\n")
        self.call("plot", path, self.path("out"))
        words = self.text_of("out/held-transformer.svg")
        for title in ("PyTorch, expandable segments", "steps of inference, then of training"):
            self.assertIn(title, words)

    def test_says_in_one_line_what_is_wrong(self):
        broken = self.write("broken.csv", "operation,live\n1,2\n")
        done = self.call("plot", broken, self.path("out"), status=1)
        self.assertEqual(done.stderr, f"plot: {broken}: not a timeline of rmm-replay\n")
        done = self.call("plot", self.timeline("a.csv", "pool"), "/dev/null/x", status=1)
        self.assertEqual(done.stderr, "plot: cannot make /dev/null/x: Not a directory\n")
        self.assertEqual(self.call("plot", status=2).stderr,
                         "usage: plot [FIGURES.json] [TIMELINE.csv...] FOLDER\n")


if shutil.which("gnuplot") is None:
    print("gnuplot is not here")
    sys.exit(77)
unittest.main()
