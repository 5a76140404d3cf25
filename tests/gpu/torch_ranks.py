#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: torchrun --nproc-per-node 2 torch_ranks.py good|bad

Each rank uses a tensor on a second stream and drops it; with "bad" rank 1 does so without
record_stream(), which rmm-run's mode order must find there and nowhere else. One GPU for each rank,
or one for all.
"""
import os
import sys

import torch
import torch.distributed

from rmm_c.allocators.torch import rmm_torch_allocator

ELEMENTS = 1 << 22


def use_on_another_stream(is_recorded):
    main, side = torch.cuda.current_stream(), torch.cuda.Stream()
    used = torch.ones(ELEMENTS, device="cuda")
    total = torch.zeros(ELEMENTS, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        for _ in range(50):
            total.add_(used)
    if is_recorded:
        used.record_stream(side)
    del used
    main.wait_stream(side)
    torch.cuda.synchronize()


def main():
    rank, is_good = int(os.environ["RANK"]), sys.argv[1] == "good"
    torch.cuda.memory.change_current_allocator(rmm_torch_allocator)
    gpus = torch.cuda.device_count()
    torch.cuda.set_device(rank % gpus)
    torch.distributed.init_process_group("nccl" if gpus > 1 else "gloo")
    torch.distributed.all_reduce(torch.ones(1 << 20, device="cuda"))
    use_on_another_stream(is_good or rank != 1)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
