#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: torch_watched.py

PyTorch with its own allocator, as rmm_c.frameworks shows it: a training must have in /rmm what
PyTorch says of itself, to 1 %. Prints a line with the figures, and what a step costs more while the
thread looks ten times a second. Needs PYTHONPATH with rmm_c, and no mount.
"""
import statistics
import sys
import time

import torch

import rmm_c
from rmm_c import frameworks

STEPS, ROUNDS = 200, 5


def make_step():
    network = torch.nn.Sequential(
        *(layer for _ in range(8) for layer in (torch.nn.Linear(2048, 2048), torch.nn.ReLU()))
    ).cuda()
    optimiser = torch.optim.SGD(network.parameters(), lr=0.01)
    inputs = torch.randn(1024, 2048, device="cuda")

    def step():
        optimiser.zero_grad()
        network(inputs).square().mean().backward()
        optimiser.step()

    return step


def step_time(step):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / STEPS


def cost(step):
    """The time of a step, in ms, and the ratio with the thread to without, the median of rounds."""
    ratios, plain = [], []
    for _ in range(ROUNDS):
        plain.append(step_time(step))
        frameworks.start()
        ratios.append(step_time(step) / plain[-1])
        frameworks.stop()
    return statistics.median(plain) * 1000, statistics.median(ratios)


def shown():
    for device in rmm_c.open_tree().process().devices:
        for resource in device.resources:
            if resource.type == "observed":
                return device, resource
    raise AssertionError("PyTorch is not shown")


def near(seen, said):
    assert abs(seen - said) <= 0.01 * said, (seen, said)


def main():
    step = make_step()
    for _ in range(20):
        step()
    milliseconds, ratio = cost(step)
    held = [torch.ones(1 << 20, device="cuda") for _ in range(50)]
    del held[::2]
    frameworks.start()
    time.sleep(0.5)
    device, pool = shown()
    near(pool.current_bytes, torch.cuda.memory_allocated())
    near(pool.reserved_bytes, torch.cuda.memory_reserved())
    near(pool.peak_bytes, torch.cuda.max_memory_allocated())
    near(device.current_bytes, torch.cuda.memory_allocated())
    print(
        f"{pool.current_bytes} of {pool.reserved_bytes} bytes in use, as PyTorch says; a step of "
        f"{milliseconds:.2f} ms takes {100 * (ratio - 1):+.2f} %"
    )


if __name__ == "__main__":
    sys.exit(main())
