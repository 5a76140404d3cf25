#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: torch_faults_table.py [--seconds N] [--jobs N] [--only GLOB] RMM_RUN FILE

Runs each fault of torch_faults.py and its correct twin under four tools, several processes at a
time on one GPU, and writes a table to FILE: what found the fault, or had a finding in the twin.

  own       RMM_RUN (rmm-run), PyTorch's own allocator
  ours      RMM_RUN, the library's allocator (PYTHONPATH leads to rmm_c)
  csan      PyTorch's sanitizer (TORCH_CUDA_SANITIZER=1)
  memcheck  compute-sanitizer, one cudaMalloc() for each tensor; for faults that it may see

A cell is "found" or "missed" and the classes of findings; "FALSE" if the twin has a finding;
"failed" or "hung" with the run that did; "-" if the tool is not for the fault, or there was no
time. Exit status 1: rmm-run has a finding in a twin, or a twin did not end well.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from torch_faults import FAULTS

PROGRAM = pathlib.Path(__file__).with_name("torch_faults.py")
TOOLS = ("own", "ours", "csan", "memcheck")
PATIENCE_S = {"own": 60, "ours": 60, "csan": 60, "memcheck": 120}
MODES = {"own": "usage,bounds,order,driver", "ours": "usage,bounds,order"}


class Result:
    """state: clean, finding, failed, hung, absent (a package) or none (no time)."""

    def __init__(self, state, text="", seconds=0.0):
        self.state, self.text, self.seconds = state, text, seconds


def sanitizer():
    return shutil.which("compute-sanitizer") or shutil.which(
        "/usr/local/cuda/bin/compute-sanitizer"
    )


def command_of(tool, rmm_run, report, program):
    """The command of a run, and what it adds to the environment."""
    if tool in MODES:
        ours = {"RMM_FAULTS_ALLOCATOR": "rmm"} if tool == "ours" else {}
        options = ["--no-summary", "--report", str(report), "--diag", MODES[tool]]
        return [rmm_run, *options, "--", *program], ours
    if tool == "csan":
        return program, {"TORCH_CUDA_SANITIZER": "1"}
    options = ["--tool", "memcheck", "--show-backtrace", "no", "--log-file", str(report)]
    return [sanitizer(), *options, *program], {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}


def finish(process, patience_s):
    """The output of a process; None: it hangs, and was killed with all that it started."""
    try:
        return process.communicate(timeout=patience_s)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None


def findings(tool, report, output):
    """The classes of what the tool found; None: it does not say."""
    if tool == "csan":
        return ["data race"] if "CSAN detected" in output else []
    try:
        text = report.read_text()
    except FileNotFoundError:
        return None
    if tool == "memcheck":
        if "ERROR SUMMARY" not in text:
            return None
        return [] if "ERROR SUMMARY: 0 errors" in text else ["memcheck"]
    told = json.loads(text)
    if told.get("findings_total") is None:
        return None
    return sorted({finding["class"] for finding in told["findings"]})


def last_line(output):
    return (output.strip().splitlines() or ["it said nothing"])[-1][:160]


def run(tool, name, kind, rmm_run, deadline):
    if time.monotonic() > deadline:
        return Result("none")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report")
        program = [sys.executable, str(PROGRAM), name, kind]
        command, more = command_of(tool, rmm_run, report, program)
        process = subprocess.Popen(
            command,
            env=dict(os.environ, **more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        output = finish(process, PATIENCE_S[tool])
        seconds = time.monotonic() - begin
        if output is None:
            return Result("hung", f"{PATIENCE_S[tool]} s", seconds)
        if process.returncode == 77:
            return Result("absent", last_line(output), seconds)
        found = findings(tool, report, output)
    if found:
        return Result("finding", ",".join(found), seconds)
    if process.returncode != 0 or found is None:
        return Result("failed", f"{process.returncode}: {last_line(output)}", seconds)
    return Result("clean", "", seconds)


def cell(bad, good):
    """What a tool says of a fault and its twin, in words."""
    for result, kind in ((bad, "bad"), (good, "good")):
        if result is None or result.state == "none":
            return "-"
        if result.state == "absent":
            return result.text
    words = "missed"
    if bad.state == "finding":
        words = f"found {bad.text}"
    elif bad.state in ("failed", "hung"):
        words = f"{bad.state} ({bad.text})"
    if good.state == "finding":
        words += f"; FALSE {good.text}"
    elif good.state in ("failed", "hung"):
        words += f"; twin {good.state} ({good.text})"
    return words


def is_wrong(tool, good):
    """What must not be: of the tools, a finding in a twin counts against rmm-run only."""
    if good is None:
        return False
    return good.state in ("failed", "hung") or (good.state == "finding" and tool in MODES)


def table(results, names):
    """Lines of the table: a row for each fault, then sums."""
    yield "\t".join(("fault", *TOOLS, "seconds"))
    for name in names:
        pairs = [(results.get((t, name, "bad")), results.get((t, name, "good"))) for t in TOOLS]
        seconds = sum(result.seconds for pair in pairs for result in pair if result)
        yield "\t".join((name, *(cell(*pair) for pair in pairs), f"{seconds:.0f}"))
    for tool in TOOLS:
        mine = [result for key, result in results.items() if key[0] == tool]
        ran = [result for result in mine if result.state not in ("none", "absent")]

        def count(kind, *states):
            keys = [(tool, name, kind) for name in names]
            return sum(key in results and results[key].state in states for key in keys)

        yield (
            f"# {tool}: {count('bad', 'finding')} of {count('bad', 'finding', 'clean')} found, "
            f"{count('good', 'finding')} false, {count('bad', 'failed', 'hung')} failed, "
            f"{count('good', 'failed', 'hung')} twins failed, {len(ran)} runs"
        )


def jobs(names):
    """By fault, so that what is left out for want of time is whole rows."""
    for name in names:
        for tool in TOOLS:
            if tool == "memcheck" and not (FAULTS[name].memcheck and sanitizer()):
                continue
            for kind in ("bad", "good"):
                yield tool, name, kind


def main():
    parser = argparse.ArgumentParser(usage=__doc__.strip().splitlines()[0][7:])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--jobs", type=int, default=max(1, min(8, (os.cpu_count() or 2) // 2)))
    parser.add_argument("--only", default="*")
    parser.add_argument("rmm_run")
    parser.add_argument("file")
    options = parser.parse_args()
    names = [name for name in FAULTS if fnmatch.fnmatch(name, options.only)]
    deadline = time.monotonic() + options.seconds
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        started = {
            job: pool.submit(run, *job, options.rmm_run, deadline) for job in jobs(names)
        }
        results = {job: future.result() for job, future in started.items()}
    lines = list(table(results, names))
    pathlib.Path(options.file).write_text("".join(line + "\n" for line in lines))
    print("\n".join(lines))
    return any(
        is_wrong(tool, result) for (tool, _, kind), result in results.items() if kind == "good"
    )


if __name__ == "__main__":
    sys.exit(main())
