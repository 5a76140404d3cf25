#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: test_run_forges.py RMM-RUN PROGRAM

The files of rmm-run that CI servers and forges read, of real runs on the simulated GPU: JUnit's XML
has only what both schemas in use allow, and SARIF what its schema and GitHub demand. PROGRAM is
rmm_diag_program.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

RUN, PROGRAM = sys.argv[1:]
SUITE = ["name", "package", "id", "tests", "failures", "errors", "skipped", "time", "timestamp",
         "hostname"]
BOUNDS = ["diagnosed", "out_of_bounds", "use_after_free", "double_free", "wrong_size_free",
          "invalid_free", "leaked"]
LEVELS = ("error", "warning", "note")
HOSTILE = b"a]]>b<&\"'\x01\x1b\xff\xc3\xed\xa0\x80\n\t\x7f\xef\xbf\xbe\xf0\x9f\x98\x80"


def fail(text):
    sys.exit(f"{text}\n{run.last}")


def check(is_good, text):
    if not is_good:
        fail(text)


def equal(found, expected, what):
    check(found == expected, f"{what}: {found!r} instead of {expected!r}")


# --- JUnit -------------------------------------------------------------------------------------

def check_case(case):
    """Its outcome; None: passed."""
    equal(list(case.attrib), ["classname", "name", "time"], "attributes of a case")
    check(re.fullmatch(r"\d+\.\d{3}", case.get("time")), "a time")
    check(case.get("classname").count(".") == 1, "one dot in the class, which Jenkins splits there")
    check(len(case) <= 1, "one outcome")
    for outcome in case:
        check(outcome.tag in ("failure", "error", "skipped"), outcome.tag)
        wanted = ["message"] if outcome.tag == "skipped" else ["type", "message"]
        equal(list(outcome.attrib), wanted, "attributes of an outcome")
        check(outcome.get("message") and "\n" not in outcome.get("message"), "one line")
        return outcome.tag
    return None


def check_suite(suite, number):
    equal(suite.tag, "testsuite", "an element")
    equal(list(suite.attrib), SUITE, "attributes of a suite")
    equal(suite.get("id"), str(number), "a number")
    check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp")), "a timestamp")
    check(suite.get("name") and suite.get("hostname"), "names")
    tags = [child.tag for child in suite]
    equal(tags[0], "properties", "the first child")
    equal(tags[-2:], ["system-out", "system-err"], "the last ones")
    equal(set(tags[1:-2]), {"testcase"}, "those between")
    for entry in suite[0]:
        equal((entry.tag, list(entry.attrib)), ("property", ["name", "value"]), "a property")
    outcomes = [check_case(case) for case in suite.iter("testcase")]
    counted = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    for attribute, outcome in counted.items():
        equal(int(suite.get(attribute)), outcomes.count(outcome), attribute)
    equal(int(suite.get("tests")), len(outcomes), "tests")


def read_junit(path):
    """[{name of a case: its outcome, None: passed}] of each suite, and the suites."""
    root = xml.etree.ElementTree.parse(path).getroot()
    equal((root.tag, root.attrib), ("testsuites", {}), "the root")
    for number, suite in enumerate(root):
        check_suite(suite, number)
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    equal(len(set(names)), len(names), "servers take one of each name")
    return [{case.get("name"): check_case(case) for case in suite.iter("testcase")}
            for suite in root], list(root)


# --- SARIF -------------------------------------------------------------------------------------

def check_artifact(artifact, bases):
    check(set(artifact) <= {"uri", "uriBaseId"}, "an artifact")
    uri = artifact["uri"]
    check(re.fullmatch(r"(file:///)?[A-Za-z0-9._~%/-]+", uri), f"a URI: {uri}")
    if "uriBaseId" in artifact:
        check(artifact["uriBaseId"] in bases and not uri.startswith(("/", "file:", "..")), uri)


def check_location(location, bases, is_of_result):
    place = location["physicalLocation"]
    check(set(location) <= {"physicalLocation", "logicalLocations"}, "a location")
    check(set(place) <= {"artifactLocation", "region", "address"}, "a place")
    check("artifactLocation" in place or "address" in place, "an empty place")
    if "artifactLocation" in place:
        check_artifact(place["artifactLocation"], bases)
    if is_of_result:  # GitHub demands both
        check(place["artifactLocation"]["uri"] and place["region"]["startLine"] >= 1, "GitHub")
    for function in location.get("logicalLocations", []):
        check(function["fullyQualifiedName"] and function["kind"] == "function", "a function")


def check_result(result, rules, bases):
    equal(rules[result["ruleIndex"]]["id"], result["ruleId"], "the rule")
    check(result["level"] in LEVELS and result["message"]["text"], "level and message")
    equal(len(result["locations"]), 1, "locations")
    check_location(result["locations"][0], bases, True)
    for stack in result["stacks"]:
        check(stack["message"]["text"] and stack["frames"], "a stack")
        for frame in stack["frames"]:
            check_location(frame["location"], bases, False)
    check(re.fullmatch("[0-9a-f]{16}", result["partialFingerprints"]["rmmFinding/v1"]), "a hash")
    check(result["occurrenceCount"] >= 1, "a count")


def read_sarif(path):
    """Its run, whose parts have been checked."""
    log = json.loads(path.read_bytes().decode("utf-8"))
    equal(set(log), {"$schema", "version", "runs"}, "the log")
    equal((log["version"], len(log["runs"])), ("2.1.0", 1), "version and runs")
    only = log["runs"][0]
    driver = only["tool"]["driver"]
    equal(driver["name"], "rmm-run", "the tool")
    for rule in driver["rules"]:
        check(all(rule[key]["text"] for key in ("shortDescription", "fullDescription", "help")),
              rule["id"])
    for base in only["originalUriBaseIds"].values():
        check(base["uri"].startswith("file:///") and base["uri"].endswith("/"), "a base")
    for result in only["results"]:
        check_result(result, driver["rules"], only["originalUriBaseIds"])
    equal(len(only["invocations"]), 1, "invocations")
    check(isinstance(only["invocations"][0]["executionSuccessful"], bool), "demanded")
    return only


# --- runs --------------------------------------------------------------------------------------

def run(folder, options, *command):
    """The status, and what the three files say."""
    paths = [folder / name for name in ("report.json", "junit.xml", "log.sarif")]
    for path in paths:
        path.unlink(missing_ok=True)
    line = [RUN, *options, "--report", paths[0], "--junit", paths[1], "--sarif", paths[2], "--",
            *command]
    done = subprocess.run(line, capture_output=True, cwd=folder, timeout=120)
    run.last = f"{line}: status {done.returncode}\n{done.stderr.decode(errors='replace')}"
    run.err = done.stderr.decode(errors="replace")
    json.loads(paths[0].read_bytes())
    cases, suites = read_junit(paths[1])
    return done.returncode, cases, suites, read_sarif(paths[2])


def count_rules(log):
    counts = {}
    for result in log["results"]:
        counts[result["ruleId"]] = counts.get(result["ruleId"], 0) + result["occurrenceCount"]
    return counts


def a_clean_run_has_cases_that_passed(folder):
    status, cases, suites, log = run(folder, ["--quick"], PROGRAM, "freed")
    equal(status, 0, "status")
    equal(cases, [dict.fromkeys(BOUNDS)], "cases")
    check(float(suites[0].get("time")) > 0, "the time of the program")
    equal(log["results"], [], "results")
    invocation = log["invocations"][0]
    equal((invocation["exitCode"], invocation["executionSuccessful"]), (0, True), "invocation")
    line = r"rmm-run: .* \(pid \d+\): no findings, no leaks \(modes bounds\)\n"
    check(re.fullmatch(line, run.err), "one line")


def findings_and_leaks_fail(folder):
    status, cases, _, log = run(folder, ["--quick"], PROGRAM, "overrun", "3")
    equal(status, 86, "status")
    failures = {"out_of_bounds": "failure", "leaked": "failure"}
    equal(cases, [{**dict.fromkeys(BOUNDS), **failures}], "cases")
    equal(count_rules(log), {"out_of_bounds": 3, "leaked": 3}, "results")
    equal(log["invocations"][0]["exitCode"], 86, "that of rmm-run")
    equal({result["level"] for result in log["results"]}, {"error"}, "levels")
    check(" out_of_bounds: memset_async writes 1001 bytes, 3 times\n" in run.err, "a paragraph")
    check("  3 blocks of 69.3 KiB not freed\n" in run.err, "the leaks")
    check("peak of" not in run.err and "never used" not in run.err, "what nobody looked for")
    again = run(folder, ["--quick"], PROGRAM, "overrun", "3")[3]
    equal([result["partialFingerprints"] for result in again["results"] if
           result["ruleId"] != "leaked"],
          [result["partialFingerprints"] for result in log["results"] if
           result["ruleId"] != "leaked"], "fingerprints of two runs")


def what_does_not_count_is_skipped(folder):
    status, cases, _, log = run(folder, ["--diag", "order"], PROGRAM, "under_graph")
    equal(status, 0, "status")
    equal(cases, [{"diagnosed": None, "use_unordered": None, "free_unordered": None,
                   "free_under_graph": "skipped", "leaked": "skipped"}], "cases")
    levels = {result["ruleId"]: result["level"] for result in log["results"]}
    equal(levels, {"free_under_graph": "note", "leaked": "warning"}, "levels")
    status, _, _, log = run(folder, [], PROGRAM, "overrun", "3")
    equal((status, log["invocations"][0]["exitCode"]), (3, 3), "those of the program")


def a_killed_program_has_its_signal(folder):
    status, cases, suites, log = run(folder, [], PROGRAM, "overrun", "kill")
    equal(status, -signal.SIGKILL, "status")
    equal(cases[0]["out_of_bounds"], "failure", "cases")
    properties = {entry.get("name"): entry.get("value") for entry in suites[0][0]}
    equal(properties["signal"], "9", "properties")
    check("exit_status" not in properties, "properties")
    invocation = log["invocations"][0]
    equal((invocation["exitSignalNumber"], "exitCode" in invocation), (9, False), "invocation")


def a_program_without_a_gpu_passes_nothing(folder):
    for options, wanted, outcome in ((["--quick"], 125, "error"), ([], 0, "skipped")):
        status, cases, _, log = run(folder, options, "/bin/true")
        equal(status, wanted, "status")
        equal(cases, [{"anything_diagnosed": outcome}], "cases")
        invocation = log["invocations"][0]
        equal(invocation["executionSuccessful"], False, "invocation")
        notes = invocation["toolExecutionNotifications"]
        check(len(notes) == 1 and "left no segment" in notes[0]["message"]["text"], "why")


def each_process_of_a_job_has_a_suite(folder):
    script = (f"RANK=1 {PROGRAM}; RANK=0 {PROGRAM} overrun; RANK=2 {PROGRAM} overrun kill;"
              f"{PROGRAM} freed; {PROGRAM} freed; true")
    status, cases, suites, log = run(folder, ["--quick"], "sh", "-c", f"exec >/dev/null; {script}")
    equal(status, 86, "status")
    equal([suite.get("name") for suite in suites],
          ["rmm_diag_progra rank 0", "rmm_diag_progra", "rmm_diag_progra (2)",
           "rmm_diag_progra rank 1", "rmm_diag_progra rank 2"], "suites")
    outcomes = [case.get(f"{suite.get('name')}: out_of_bounds")
                for case, suite in zip(cases, suites)]
    equal(outcomes, ["failure", None, None, None, "failure"], "cases")
    overruns = [result for result in log["results"] if result["ruleId"] == "out_of_bounds"]
    equal([(result["occurrenceCount"], result["properties"]["processes"]) for result in overruns],
          [(6, 2)], "one result of two ranks")
    check(run.err.endswith(": 5 processes were diagnosed: 6 findings, 9 leaks\n"), "the sum")
    equal(run.err.count("rmm-run: rmm_diag_progra"), 3, "clean processes have no line")


def what_others_named_stays_text(folder):
    hostile = os.path.join(os.fsencode(folder), HOSTILE)
    os.symlink(PROGRAM, hostile)
    status, cases, suites, log = run(folder, ["--quick"], hostile, b"overrun", HOSTILE, b"x" * 4096)
    equal(status, 86, "status")
    equal(cases[0]["out_of_bounds"], "failure", "cases")
    check(suites[0].get("name").startswith("a]]>b<&\"'????"), suites[0].get("name"))
    check(log["invocations"][0]["commandLine"].startswith("rmm-run -- a]]>b<&\"'????"), "SARIF")
    os.unlink(hostile)


def known_findings_are_left_out(folder):
    (folder / "known").write_text("out_of_bounds:*\nleaked:*\n")
    status, cases, _, log = run(folder, ["--quick", "--suppressions", "known"], PROGRAM, "overrun")
    equal((status, cases, log["results"]), (0, [dict.fromkeys(BOUNDS)], []), "nothing")


def options_say_otherwise(folder):
    status, cases, _, _ = run(folder, ["--quick", "--diag", "usage,order"], PROGRAM, "freed")
    equal((status, list(cases[0])[1:]),
          (0, ["use_unordered", "free_unordered", "free_under_graph", "leaked"]), "other modes")
    run(folder, ["--quick", "--summary"], PROGRAM, "overrun")
    check("  peak of device 0: " in run.err, "the whole summary")
    run(folder, ["--quick", "--no-summary"], PROGRAM, "overrun")
    equal(run.err, "", "no summary")


def files_are_apart(folder):
    done = subprocess.run([RUN, "--junit", "file", "--sarif", "file", "--", PROGRAM],
                          capture_output=True, text=True, cwd=folder)
    equal((done.returncode, done.stderr),
          (2, "rmm-run: --report, --junit, --sarif, --timeline, --trace and --suppressions must "
              "name different files\n"), "one file for two")
    for option in ("--junit", "--sarif"):
        done = subprocess.run([RUN, option, "/proc/nowhere/file", "--", "touch", "ran"],
                              capture_output=True, text=True, cwd=folder)
        equal((done.returncode, done.stderr),
              (125, f"rmm-run: {option}: cannot write /proc/nowhere/file: "
                    "No such file or directory\n"), option)
        check(not (folder / "ran").exists(), "the program has run in vain")


# --- a folder ----------------------------------------------------------------------------------

def run_into(folder, path, *command, options=()):
    """The status, the names in the folder, and its summary."""
    line = [RUN, *options, "--report", path, "--", *command]
    done = subprocess.run(line, capture_output=True, cwd=folder, timeout=120)
    run.err = done.stderr.decode(errors="replace")
    run.last = f"{line}: status {done.returncode}\n{run.err}"
    inside = folder / path
    names = sorted(os.listdir(inside)) if os.path.isdir(inside) else []
    has_summary = "summary.json" in names
    summary = json.loads((inside / "summary.json").read_bytes()) if has_summary else None
    return done.returncode, names, summary


def check_folder(folder, names, summary):
    """Each process that was diagnosed has its file, which says the same."""
    files = [process["file"] for process in summary["processes"] if process["file"] is not None]
    equal(sorted([*files, "summary.json"]), names, "files")
    for process in summary["processes"]:
        if process["file"] is None:
            check(process["missing"] and process["findings_total"] is None, "no file")
            continue
        report = json.loads((folder / process["file"]).read_bytes())
        check("processes" not in report, "a file has one process")
        for key in ("program", "pid", "rank", "ended", "findings_total", "leaked_count"):
            equal(process[key], report[key], key)
    for key in ("findings_total", "leaked_count", "leaked_bytes"):
        equal(summary[key], sum(process[key] or 0 for process in summary["processes"]), key)


def a_folder_has_a_file_for_each_process(folder):
    script = (f"RANK=1 {PROGRAM}; RANK=0 {PROGRAM} overrun; RANK=0 {PROGRAM} freed;"
              f"{PROGRAM} freed; exit 3")
    for path in ("new/", "new"):  # made, and there already: the ranks have the same names again
        status, names, summary = run_into(folder, path, "sh", "-c", f"exec >/dev/null; {script}")
        equal(status, 3, "status")
        names = [name for name in names if not name.startswith("pid")]
        equal(names, ["rank0-rmm_diag_progra-2.json", "rank0-rmm_diag_progra.json",
                      "rank1-rmm_diag_progra.json", "summary.json"], "names")
        equal((summary["processes_diagnosed"], summary["findings_total"], summary["exit_status"]),
              (4, 3, 3), "sums")
        files = [process["file"] for process in summary["processes"]]
        equal(sum(name is not None and name.startswith("pid") for name in files), 1, "a pid")
    for name in os.listdir(folder / "new"):  # of the first run
        if name.startswith("pid") and name not in files:
            (folder / "new" / name).unlink()
    check_folder(folder / "new", sorted(os.listdir(folder / "new")), summary)


def names_of_files_are_plain(folder):
    hostile = os.path.join(os.fsencode(folder), HOSTILE)
    os.symlink(PROGRAM, hostile)
    status, names, summary = run_into(folder, "out/", hostile, "overrun", "kill")
    equal((status, summary["signal"], summary["exit_status"]), (-9, 9, None), "its end")
    check(re.fullmatch(r"pid\d+-a__[A-Za-z0-9._-]+\.json", names[0]), names)
    check_folder(folder / "out", names, summary)


def a_folder_is_left_as_it_was(folder):
    for path, error in (("nowhere/new/", "No such file or directory"),
                        ("file/", "Not a directory"), ("x" * 300 + "/", "File name too long")):
        (folder / "file").touch()
        status, _, _ = run_into(folder, path, "touch", "ran")
        equal(status, 125, "status")
        check(run.err.startswith("rmm-run: --report: cannot write ") and
              run.err.endswith(f": {error}\n") and run.err.count("\n") == 1, "one line")
        check(not (folder / "ran").exists(), "the program has run in vain")
    equal(run_into(folder, "new/", "/proc/nowhere")[0], 127, "status")
    check(not (folder / "new").exists(), "a folder without files")
    (folder / "there").mkdir()
    (folder / "there" / "own").touch()
    equal(run_into(folder, "there", "/proc/nowhere")[1], ["own"], "names")
    status, names, summary = run_into(folder, "there", "/bin/true", options=["--quick"])
    equal((status, names, summary["processes_diagnosed"]), (125, ["own", "summary.json"], 0),
          "nothing was diagnosed")


CASES = [a_clean_run_has_cases_that_passed, findings_and_leaks_fail, what_does_not_count_is_skipped,
         a_killed_program_has_its_signal, a_program_without_a_gpu_passes_nothing,
         each_process_of_a_job_has_a_suite, what_others_named_stays_text,
         known_findings_are_left_out, options_say_otherwise, files_are_apart,
         a_folder_has_a_file_for_each_process, names_of_files_are_plain,
         a_folder_is_left_as_it_was]
run.last = ""
with tempfile.TemporaryDirectory() as work:
    runtime = pathlib.Path(work) / "run"
    runtime.mkdir(0o700)
    os.environ["RMM_RUNTIME_DIR"] = str(runtime)
    for case in CASES:
        inside = pathlib.Path(work) / case.__name__
        inside.mkdir()
        case(inside)
        print(f"ok {case.__name__}")
