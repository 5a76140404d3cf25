#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lines of Python in what rmm-run finds, with each CPython from 3.9 to 3.14 that is here.

usage: test_python_lines.py RMM_RUN LIBRARY HELPER LIAR
HELPER and LIAR are built of python_helper.c, the second with PYTHON_VERSION.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LIAR = sys.argv.pop()
HELPER = sys.argv.pop()
LIBRARY = sys.argv.pop()
RUN = sys.argv.pop()
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_program.py")
VERSION = "import sys; print('%d.%d' % sys.version_info[:2], sys.implementation.name)"


def find_pythons():
    """Version and path of one of each version that is here, this one among them."""
    found = {"%d.%d" % sys.version_info[:2]: sys.executable}
    paths = [shutil.which("python3.%d" % minor) for minor in range(9, 15)]
    paths += glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))
    for path in filter(None, paths):
        said = subprocess.run([path, "-c", VERSION], capture_output=True, text=True)
        version, _, name = said.stdout.strip().partition(" ")
        if name == "cpython" and version in ["3.%d" % minor for minor in range(9, 15)]:
            found.setdefault(version, path)
    return sorted(found.items(), key=lambda item: int(item[0].split(".")[1]))


def runtimes():
    """Those of the sanitizers that the library is built with, which Python must preload."""
    said = subprocess.run(["ldd", LIBRARY], capture_output=True, text=True, check=True).stdout
    return re.findall(r"lib(?:asan|tsan|ubsan)\.so\S* => (\S+)", said)


def at(mark):
    """The number of the line that ends in this mark."""
    with open(PROGRAM, encoding="utf-8") as file:
        numbers = [number for number, line in enumerate(file, 1)
                   if line.endswith("# at %s\n" % mark)]
    assert len(numbers) == 1, mark
    return numbers[0]


class PythonLines(unittest.TestCase):
    pythons = find_pythons()

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.runtime = os.path.join(self.folder, "run")
        os.mkdir(self.runtime, 0o700)

    def run_program(self, python, scenario, *options, preload=(), **variables):
        """The report as JSON and as text, of a program that must end well."""
        report = os.path.join(self.folder, "report")
        preloaded = ":".join([*runtimes(), *preload])
        environment = dict(
            os.environ, RMM_TEST_LIBRARY=LIBRARY, RMM_TEST_HELPER=HELPER, RMM_DRIVER="sim",
            RMM_RUNTIME_DIR=self.runtime, PYTHONDONTWRITEBYTECODE="1", **variables)
        if preloaded:
            environment.update(LD_PRELOAD=preloaded, ASAN_OPTIONS="detect_leaks=0")
        done = subprocess.run(
            [RUN, "--report", report, "--summary", *options, "--", python, PROGRAM, scenario],
            env=environment, capture_output=True, text=True, timeout=120, errors="surrogateescape")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(report, encoding="utf-8") as file:
            return json.load(file), done.stderr

    def each(self, scenario, *options, **variables):
        for version, path in self.pythons:
            with self.subTest(version=version, scenario=scenario):
                yield version, *self.run_program(path, scenario, *options, **variables)

    def numbers(self, lines):
        return [line["line"] for line in lines]

    def called_at(self, report):
        """The innermost lines of the program itself that the findings were made from."""
        own = ("overrun", "allocate", "free")
        return [[line["line"] for line in finding["python"] if line["function"] not in own][0]
                for finding in report["findings"] if finding["python"]]

    def test_names_the_lines_of_use_allocation_and_free(self):
        for holds in ({}, {"RMM_TEST_HOLDS": "1"}):
            for version, report, text in self.each("lines", **holds):
                step = "step" if version in ("3.9", "3.10") else "Trainer.step"
                first, second, twice = report["findings"]
                self.assertEqual(
                    self.called_at(report), [at("first"), at("second"), at("second free")])
                self.assertEqual((first["count"], second["count"]), (3, 3))
                self.assertEqual(
                    first["python"][1],
                    {"file": PROGRAM, "line": at("first"), "function": step})
                self.assertEqual(first["python"][2]["line"], at("call"))
                self.assertIn(at("allocation"), self.numbers(twice["allocated_python"]))
                self.assertIn(at("free"), self.numbers(twice["freed"]["python"]))
                self.assertIn("      %s:%d in %s\n" % (PROGRAM, at("first"), step), text)
                leaked = [verdict for verdict in report["verdicts"]
                          if verdict["verdict"] == "leaked"]
                self.assertIn(at("other allocation"), self.numbers(leaked[0]["python"]))
                self.assertNotIn("missing", text)

    def test_forges_show_the_lines(self):
        path = os.path.join(self.folder, "log.sarif")
        for _ in self.each("lines", "--sarif", path):
            with open(path, encoding="utf-8") as file:
                results = json.load(file)["runs"][0]["results"]
            lines = []
            for result in results[:3]:
                frames = [frame["location"] for frame in result["stacks"][0]["frames"]]
                self.assertEqual(result["locations"], frames[:1])
                place = frames[1]["physicalLocation"]
                self.assertTrue(place["artifactLocation"]["uri"].endswith("/python_program.py"))
                lines.append(place["region"]["startLine"])
            self.assertEqual(lines, [at("first"), at("second"), at("second free")])

    def test_a_thread_without_the_gil_has_its_own_lines(self):
        for _, report, _ in self.each("thread"):
            self.assertEqual(self.called_at(report), [at("thread")])

    def test_deep_recursion_has_the_innermost_lines(self):
        for _, report, _ in self.each("deep"):
            self.assertEqual(
                self.numbers(report["findings"][0]["python"])[1:],
                [at("bottom")] + 6 * [at("recursion")])

    def test_generators_and_coroutines_have_the_lines_of_who_resumed_them(self):
        for _, report, _ in self.each("suspended"):
            generator, coroutine = (self.numbers(finding["python"][1:3])
                                    for finding in report["findings"])
            self.assertEqual(generator, [at("generator"), at("outer generator")])
            self.assertEqual(coroutine, [at("coroutine"), at("await")])

    def test_odd_names_are_shown_harmlessly(self):
        for _, report, text in self.each("names"):
            lines = [finding["python"][1] for finding in report["findings"]]
            self.assertEqual(self.numbers(lines), [3, 4, 5, 6, 7])
            files = [line["file"] for line in lines]
            self.assertEqual(files[0], "grün/\u65e5\u672c.py")
            self.assertRegex(files[1], "^(/x|x)(/x){40,}/end.py$")
            self.assertEqual(files[2:4], ["bell??[31m?new?tab.py", "?.py"])
            self.assertTrue(lines[0]["function"].endswith("é" * 30))
            self.assertIsNone(re.search("[\x00-\x09\x0b-\x1f]", text))

    def test_code_that_is_made_again_and_again_takes_no_room(self):
        for _, report, text in self.each("many"):
            self.assertEqual(self.called_at(report), [at("behind many")])
            self.assertEqual(report["sites_dropped"], 0)
            self.assertNotIn("missing", text)

    def test_the_end_of_the_interpreter_is_survived(self):
        for _, report, _ in self.each("end"):
            self.assertIn(at("atexit"), self.called_at(report))
            self.assertEqual(len(report["findings"]), 2)

    def test_a_thread_that_python_does_not_know_has_no_lines(self):
        for _, report, text in self.each("foreign"):
            self.assertEqual([finding["python"] for finding in report["findings"]], [[]])
            self.assertNotIn("missing", text)

    def test_a_fork_is_survived(self):
        for _, report, _ in self.each("fork"):
            self.assertEqual(self.called_at(report), [at("parent"), at("parent later")])

    def test_a_subinterpreter_is_survived(self):
        for _, report, _ in self.each("subinterpreter"):
            self.assertIn(at("main interpreter"), self.called_at(report))

    def test_an_exception_on_its_way_is_left_as_it_is(self):
        for holds in ({}, {"RMM_TEST_HOLDS": "1"}):
            for _, report, _ in self.each("broken", **holds):
                self.assertEqual(self.called_at(report), [at("unwinding")])

    def test_the_layout_of_another_version_is_refused(self):
        for version, path in self.pythons:
            said = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
            wrong = [other for other in ("3.9.1", "3.10.1", "3.11.1", "3.12.1", "3.15.0")
                     if "libpython" in said and not other.startswith(version + ".")]
            for other in wrong:
                with self.subTest(version=version, other=other):
                    report, text = self.run_program(
                        path, "lines", preload=[LIAR], RMM_TEST_VERSION=other)
                    self.assertEqual(self.called_at(report), [])
                    self.assertEqual(len(report["findings"]), 3)
                    self.assertRegex(
                        text, "  lines of Python %s are missing: (this version is not known|"
                        "its frames are not those of this version)\n" % other)

    def test_findings_are_suppressed_by_a_file_or_function(self):
        rules = os.path.join(self.folder, "rules")
        for glob_text in ("python_program.py", "*step"):
            with open(rules, "w", encoding="utf-8") as file:
                file.write("out_of_bounds:%s\n" % glob_text)
            for _, report, _ in self.each("lines", "--suppressions", rules):
                left = [finding["class"] for finding in report["findings"]]
                self.assertEqual(left, ["double_free"])


if __name__ == "__main__":
    print("with", ", ".join(version for version, _ in PythonLines.pythons))
    unittest.main()
