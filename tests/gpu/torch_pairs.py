#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: torch_pairs.py SECONDS FOLDER

Runs torch_models.py for each model and allocator, in turns: a process each, two rounds of all, and
as many of them as begin within SECONDS. One process at a time uses the GPU; the next ones load
PyTorch meanwhile. The results go to FOLDER/models.jsonl, the samples beside them.

Prints a line for each row of the table, its name and its figures with a tab between: the time of a
step over that of PyTorch's default allocator in the same round (the median of the rounds), and the
most reserved bytes over the peak of live bytes. That peak is the least that a run of the model
counted, since not every allocator knows what was requested. Exit status 1: a process failed.
"""
import json
import os
import statistics
import subprocess
import sys
import time

MODELS = ("transformer", "convolution", "graph")
ALLOCATORS = ("default", "expandable", "async", "pool", "pool_virtual")
RECOMMENDED = "pool_virtual"
MOST_TIME, MOST_RESERVED = 1.02, 1.05
PREPARED = 3
ROUNDS = 2


def jobs():
    """Neighbours in time are those that are compared; every second round goes backwards."""
    for number in range(ROUNDS):
        for model in MODELS:
            for allocator in ALLOCATORS[:: -1 if number % 2 else 1]:
                yield model, allocator, str(number)


def begin(job, folder):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_models.py")
    with open(os.path.join(folder, "-".join(job) + ".log"), "w", encoding="utf-8") as log:
        return subprocess.Popen(
            [sys.executable, program, *job, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )


def finish(job, process, folder):
    """The result of a process, which uses the GPU from now on; None: it failed."""
    try:
        text, _ = process.communicate("go\n", timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        text, _ = process.communicate()
    if process.returncode == 0:
        return json.loads(text)
    with open(os.path.join(folder, "-".join(job) + ".log"), encoding="utf-8") as log:
        print(f"{' '.join(job)}: exit {process.returncode}", log.read(), file=sys.stderr)
    return None


def measure(seconds, folder):
    """All results, and whether a process failed."""
    deadline = time.monotonic() + seconds
    waiting = list(jobs())
    prepared, results, has_failed = [], [], False
    while waiting or prepared:
        while waiting and len(prepared) < PREPARED:
            prepared.append((waiting[0], begin(waiting.pop(0), folder)))
        job, process = prepared.pop(0)
        if time.monotonic() > deadline:
            process.kill()
            process.communicate()
            waiting.clear()
            continue
        result = finish(job, process, folder)
        has_failed |= result is None
        if result is not None:
            results.append(result)
    return results, has_failed


def over_default(results, model, allocator, phase):
    """The median of the rounds that have both; None: there is none."""
    times = {
        (r["allocator"], r["round"]): r[phase]["us"] for r in results if r["model"] == model
    }
    ratios = [
        times[allocator, number] / times["default", number]
        for number in range(ROUNDS)
        if (allocator, number) in times and ("default", number) in times
    ]
    return statistics.median(ratios) if ratios else None


def over_peak(results, model, allocator, phase):
    peak = min(r[phase]["live_peak"] for r in results if r["model"] == model)
    reserved = [
        r[phase]["reserved_peak"] / peak
        for r in results
        if (r["model"], r["allocator"]) == (model, allocator)
    ]
    return max(reserved) if reserved else None


def listed(ratio, results, model, phase, most):
    """All allocators' ratios, and whether the recommended one's is at most `most`."""
    ratios = {a: ratio(results, model, a, phase) for a in ALLOCATORS}
    text = ", ".join(f"{a} {r:.3f}" for a, r in ratios.items() if r is not None)
    ours = ratios[RECOMMENDED]
    if ours is not None:
        text += f"; <= {most}: {'met' if ours <= most else 'NOT met'}"
    return text


def table(results):
    for model in MODELS:
        of_model = [r for r in results if r["model"] == model]
        if not of_model:
            continue
        for phase in ("inference", "training"):
            plain = [r[phase]["us"] for r in of_model if r["allocator"] == "default"]
            milliseconds = f"{min(plain) / 1000:.1f} ms" if plain else "not measured"
            print(
                f"{model}, {phase}: time\tdefault takes {milliseconds}; "
                + listed(over_default, results, model, phase, MOST_TIME)
            )
            peak = min(r[phase]["live_peak"] for r in of_model)
            print(
                f"{model}, {phase}: bytes\tpeak {peak / 2**20:.0f} MiB; reserved over it "
                + listed(over_peak, results, model, phase, MOST_RESERVED)
            )


def main(seconds, folder):
    os.makedirs(folder, exist_ok=True)
    results, has_failed = measure(float(seconds), folder)
    with open(os.path.join(folder, "models.jsonl"), "w", encoding="utf-8") as file:
        for result in results:
            file.write(json.dumps(result) + "\n")
    table(results)
    return has_failed or not results


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__.strip().splitlines()[0], file=sys.stderr)
        sys.exit(2)
    sys.exit(main(*sys.argv[1:]))
