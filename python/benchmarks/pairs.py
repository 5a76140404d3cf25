#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: pairs.py [--rounds N] [--count N]

What a pair of an allocation and a free costs from Python beside the same from C: nanoseconds, and
the difference. Each round measures all subjects, one after the other, and each figure is the
median of the rounds, so a machine that changes its speed changes both sides. Without a GPU:
RMM_DRIVER=sim.
"""
import argparse
import ctypes
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import rmm_c
from rmm_c.pylibrmm.stream import DEFAULT_STREAM, Stream

HERE = pathlib.Path(__file__).resolve().parent
SIZE = 1024


def compiled_loops():
    """The functions of pairs.c, linked with the library that Python uses."""
    library = rmm_c._core.library_path()
    include = os.environ.get("RMM_C_INCLUDE", str(HERE.parent.parent / "include"))
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "pairs.so")
        source = str(HERE / "pairs.c")
        compiler = os.environ.get("CC", "cc")
        command = [compiler, "-O2", "-D_GNU_SOURCE", "-shared", "-fPIC", "-I", include, source]
        subprocess.run(command + [library, "-o", target], check=True)
        loops = ctypes.CDLL(target)
    for function in (loops.resource_pairs, loops.buffer_pairs):
        function.restype = ctypes.c_int64
        function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t]
    return loops


def python_resource(resource, stream, count):
    allocate, deallocate = resource.allocate, resource.deallocate
    start = time.perf_counter_ns()
    for _ in range(count):
        deallocate(allocate(SIZE, stream), SIZE, stream)
    return time.perf_counter_ns() - start


def python_buffer(resource, stream, count):
    make = rmm_c.DeviceBuffer
    start = time.perf_counter_ns()
    for _ in range(count):
        make(size=SIZE, stream=stream, mr=resource)
    return time.perf_counter_ns() - start


def python_default_buffer(resource, stream, count):
    make = rmm_c.DeviceBuffer
    rmm_c.mr.set_current_device_resource(resource)
    start = time.perf_counter_ns()
    for _ in range(count):
        make(size=SIZE)
    elapsed = time.perf_counter_ns() - start
    rmm_c.mr.set_current_device_resource(None)
    return elapsed


def empty_loop(resource, stream, count):
    start = time.perf_counter_ns()
    for _ in range(count):
        pass
    return time.perf_counter_ns() - start


def subjects(loops, pool, stream):
    def of_c(function):
        return lambda resource, on, count: function(resource.handle, SIZE, on.handle, count)

    return {
        "C: rmm_resource_alloc, _dealloc": (of_c(loops.resource_pairs), pool, stream),
        "C: rmm_device_buffer_init, _fini": (of_c(loops.buffer_pairs), pool, stream),
        "Python: an empty loop": (empty_loop, pool, stream),
        "Python: allocate(), deallocate()": (python_resource, pool, stream),
        "Python: DeviceBuffer(size, stream, mr)": (python_buffer, pool, stream),
        "Python: DeviceBuffer(size)": (python_default_buffer, pool, stream),
    }


def measure(table, rounds, count):
    """The median nanoseconds of a pair, by subject."""
    figures = {name: [] for name in table}
    for _ in range(rounds):
        for name, (function, resource, stream) in table.items():
            figures[name].append(function(resource, stream, count) / count)
    return {name: statistics.median(values) for name, values in figures.items()}


def show(title, medians):
    names = list(medians)
    print(title)
    for name in names:
        against = names[1] if "Buffer" in name else names[0]
        line = f"  {name:42} {medians[name]:8.0f} ns"
        if name.startswith("Python: ") and "(" in name:
            over = (medians[name] - medians[against]) / 2
            line += f"  {over:6.0f} ns a call over C, ratio {medians[name] / medians[against]:.2f}"
        print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[3])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--count", type=int, default=20000)
    options = parser.parse_args()
    loops = compiled_loops()
    for title, stream in (("default stream", DEFAULT_STREAM), ("a stream of its own", Stream())):
        pool = rmm_c.mr.PoolMemoryResource(rmm_c.mr.CudaMemoryResource(), "64MiB")
        table = subjects(loops, pool, stream)
        show(title, measure(table, options.rounds, options.count))


if __name__ == "__main__":
    main()
