# SPDX-License-Identifier: Apache-2.0
"""What rmm-bench --json and rmm-replay --json printed, for targets and plot.

A file holds one object or several, one after another. Unknown is None, never 0.
"""
import json
import os
import signal
import sys


BEST = "best_ns_per_operation"


class Problem(Exception):
    """Ends the command with one line."""


def run(program, documentation, main):
    """Ends the process: 0, 1 after a Problem, 2 when main() answers None, for a wrong use."""
    arguments = sys.argv[1:]
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if arguments and arguments[0] in ("-h", "--help"):
        print(documentation.strip())
        sys.exit(0)
    try:
        status = main(arguments)
    except Problem as problem:
        print(f"{program}: {problem}", file=sys.stderr)
        status = 1
    if status is None:
        print(documentation.strip().splitlines()[2], file=sys.stderr)
        status = 2
    sys.exit(status)


def load_objects(path):
    """All JSON objects of a file, in order."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Problem(f"cannot read {path}: {getattr(error, 'strerror', None) or error}")
    decoder, objects, at = json.JSONDecoder(), [], 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise Problem(f"{path}:{error.lineno}: not JSON: {error.msg}")
        objects.append(value)
    if not objects:
        raise Problem(f"{path}: is empty")
    return objects


class Bench:
    """One run of rmm-bench."""

    def __init__(self, run):
        self.run = run
        self.results = {(r["workload"], r["resource"]): r for r in run["results"]}

    def is_simulated(self):
        return self.run["driver"] == "sim"

    def resources(self):
        """In the order in which they were measured."""
        return list(dict.fromkeys(r["resource"] for r in self.run["results"]))

    def result(self, workload, resource):
        """None: not measured, or not possible."""
        found = self.results.get((workload, resource))
        return None if found is None or found["median"] is None else found

    def median(self, workload, resource):
        found = self.result(workload, resource)
        return None if found is None else found["median"]

    def field(self, workload, resource, name):
        found = self.result(workload, resource)
        return None if found is None else found.get(name)


class Replay:
    """Runs of rmm-replay, by name of the log and by resource."""

    def __init__(self):
        self.runs = {}

    def add(self, run):
        name = log_name(run["log"])
        known = self.runs.setdefault((name, run["resource"]), {})
        best = (known.get(BEST), run.get(BEST))
        if run.get("repeats", 1) > 1:  # then it did not grow from nothing
            run = {key: value for key, value in run.items() if key != "reserved_bytes"}
        known.update({key: value for key, value in run.items() if value is not None})
        known[BEST] = min((value for value in best if value), default=None)

    def logs(self):
        return sorted({log for log, _ in self.runs})

    def field(self, log, resource, name):
        return self.runs.get((log, resource), {}).get(name)

    def over_peak(self, log, resource, name):
        """A number of bytes over the peak of live bytes."""
        value = self.field(log, resource, name)
        peak = self.field(log, resource, "log_peak_bytes")
        return value / peak if value and peak else None


def log_name(path):
    """traces/gpt_train.csv.gz is gpt_train."""
    name = os.path.basename(path or "unknown")
    for ending in (".gz", ".csv"):
        name = name.removesuffix(ending)
    return name


def load(paths):
    """The run of rmm-bench (None: not given) and the replays."""
    bench, replay = None, Replay()
    for path in paths:
        for value in load_objects(path):
            if isinstance(value, dict) and "results" in value:
                if bench is not None:
                    raise Problem(f"{path}: is a second run of rmm-bench")
                bench = Bench(value)
            elif isinstance(value, dict) and "log_peak_bytes" in value:
                replay.add(value)
            else:
                raise Problem(f"{path}: not of rmm-bench --json or rmm-replay --json")
    return bench, replay
