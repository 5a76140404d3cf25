#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch model that sleeps while another program uses the GPU.

Needs a GPU, PyTorch, and the package rmm_c (docs/sleep.md). The other program is this one with the
argument `other`: it takes 80 % of the GPU's memory, which it could not if the model were awake.
"""
import subprocess
import sys
import time

import torch

import rmm_c as rmm
from rmm_c.allocators.torch import rmm_torch_allocator


def other() -> None:
    free, total = torch.cuda.mem_get_info()
    rows = torch.ones(int(total * 0.8) // 4, device="cuda")
    print(f"other program: {free >> 20} MiB were free, its rows add up to {rows.sum().item():.0f}")


def main() -> None:
    pool = rmm.mr.VirtualPoolMemoryResource()
    rmm.mr.set_current_device_resource(pool)
    torch.cuda.memory.change_current_allocator(rmm_torch_allocator)

    total = torch.cuda.mem_get_info()[1]
    width = 8192
    count = int(total * 0.3) // (width * width * 4)  # 30 % of the GPU
    model = torch.nn.Sequential(
        *(torch.nn.Linear(width, width, bias=False, device="cuda") for _ in range(count))
    )
    rows = torch.randn(16, width, device="cuda")
    cache = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    with torch.no_grad():
        before = model(rows).clone()
    torch.cuda.synchronize()

    begun = time.perf_counter()
    with pool.asleep(discard=[cache], keep_host=True):
        slept = time.perf_counter()
        print(f"asleep after {slept - begun:.2f} s: {pool.stats().asleep_bytes >> 20} MiB less")
        subprocess.run([sys.executable, __file__, "other"], check=True)
        woken = time.perf_counter()
    print(f"awake after {time.perf_counter() - woken:.2f} s")
    with torch.no_grad():
        print("the model says the same:", torch.equal(before, model(rows)))


if __name__ == "__main__":
    other() if sys.argv[1:] == ["other"] else main()
