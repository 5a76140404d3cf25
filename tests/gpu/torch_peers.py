#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: torch_peers.py all [SPEC...]
       torch_peers.py PROGRAM SPEC

PyTorch on two GPUs whose memory comes from rmm_c: each PROGRAM with each SPEC of RMM_RESOURCE, a
process of its own (or one for each GPU), against the same program on PyTorch's allocator
("default"). PYTHONPATH leads to a built package. Prints a line for each; exit status 1: one failed
or has another result. 77: no PyTorch, or fewer than two GPUs that are peers.

    copies          between the GPUs: large, small, strided, of another type
    data_parallel   torch.nn.DataParallel
    nccl            collectives of one process
    ddp, fsdp, tensor_parallel
                    a process for each GPU, which sees both
"""
import os
import socket
import subprocess
import sys
import time

PROGRAMS = ("copies", "data_parallel", "nccl", "ddp", "fsdp", "tensor_parallel")
SPECS = ("pool", "pool_virtual", "async", "arena:4GiB")
MORE_SPECS = (  # where a program takes seconds
    "auto", "pool_virtual:exportable", "async:exportable", "cuda", "binning", "pool_managed")
DEVICES = (0, 1)


def allocate_from(spec, devices):
    """The resources, which the caller keeps; PyTorch's own allocator for "default"."""
    import torch

    if spec == "default":
        return []
    from rmm_c import mr
    from rmm_c.allocators.torch import rmm_torch_allocator

    torch.cuda.memory.change_current_allocator(rmm_torch_allocator)
    resources = []
    for device in devices:
        torch.cuda.set_device(device)
        resources.append(mr.from_spec(spec))
        mr.set_per_device_resource(device, resources[-1])
    torch.cuda.set_device(devices[0])
    return resources


def synchronize():
    import torch

    for device in DEVICES:
        torch.cuda.synchronize(device)


def run_copies(resources):
    """A checksum, and GB/s."""
    import torch

    torch.manual_seed(0)
    total, speed = 0.0, 0.0
    for turn in range(3):
        for source, target in ((0, 1), (1, 0)):
            for shape in ((1 << 26,), (1000, 1003), (7,), ()):
                here = torch.randn(shape, device=f"cuda:{source}")
                there = torch.empty(shape, device=f"cuda:{target}")
                there.copy_(here)
                assert torch.equal(there.cpu(), here.cpu()), (shape, source)
                wide = here.to(f"cuda:{target}", torch.float64)
                assert torch.equal(wide.cpu(), here.cpu().double())
                if len(shape) == 2:
                    strided = torch.empty(shape[::-1], device=f"cuda:{target}")
                    strided.copy_(here.t())  # a kernel that reads the other GPU's memory
                    assert torch.equal(strided.cpu(), here.t().cpu())
                total += there.double().sum().item()
            here = torch.randn(1 << 26, device=f"cuda:{source}")
            there = torch.empty_like(here, device=f"cuda:{target}")
            synchronize()
            start = time.perf_counter()
            for _ in range(20):
                there.copy_(here)
            synchronize()
            speed = 20 * here.numel() * 4 / (time.perf_counter() - start) / 1e9
        del here, there, strided
        synchronize()
        for resource in resources:
            resource.trim()
    return total, f"{speed:.0f} GB/s"


def model(width=1024):
    import torch

    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
    )


def run_data_parallel(resources):
    import torch

    net = torch.nn.DataParallel(model().cuda(), list(DEVICES))
    torch.manual_seed(2)
    total = 0.0
    for step in range(40):
        loss = net(torch.randn(256 + step, 1024, device="cuda:0")).pow(2).mean()
        loss.backward()
        total += loss.item()
    return total, ""


def run_nccl(resources):
    import torch
    from torch.cuda import comm, nccl

    torch.manual_seed(3)
    total = 0.0
    for elements in (1 << 24, 1000, 3):
        tensors = [torch.full((elements,), float(d + 1), device=f"cuda:{d}") for d in DEVICES]
        nccl.all_reduce(tensors)
        synchronize()
        assert all(bool((t == 3).all()) for t in tensors)
        copies = comm.broadcast_coalesced([tensors[0]] * 3, DEVICES)
        total += sum(t.double().sum().item() for group in copies for t in group)
        total += comm.reduce_add(tensors).double().sum().item()
    return total, ""


def train(net, rank, same_batches=False):
    """Steps per second besides."""
    import torch

    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    torch.manual_seed(4 + (0 if same_batches else rank))
    start = time.perf_counter()
    for step in range(40):
        if step == 10:
            torch.cuda.synchronize()
            start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = net(torch.randn(256 + 16 * (step % 7), 1024, device="cuda")).pow(2).mean()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    return loss.item(), f"{30 / (time.perf_counter() - start):.0f} steps/s"


def run_ddp(rank):
    import torch

    return train(torch.nn.parallel.DistributedDataParallel(model().cuda(), device_ids=[rank]), rank)


def run_fsdp(rank):
    from torch.distributed.fsdp import fully_shard

    net = model().cuda()
    for layer in (net[0], net[2]):
        fully_shard(layer)
    return train(fully_shard(net), rank)


def run_tensor_parallel(rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = init_device_mesh("cuda", (len(DEVICES),))
    net = parallelize_module(
        model().cuda(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()}
    )
    return train(net, rank, same_batches=True)


def with_process_group(program, spec):
    import torch
    import torch.distributed as dist

    rank = int(os.environ["RANK"])
    resources = allocate_from(spec, [rank])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    figures = program(rank)
    dist.destroy_process_group()
    del resources
    return figures if rank == 0 else None


def run_one(name, spec):
    import torch

    torch.use_deterministic_algorithms(False)
    program = globals()[f"run_{name}"]
    if name in PROGRAMS[:3]:
        figures = program(allocate_from(spec, DEVICES))
    else:
        figures = with_process_group(program, spec)
    if figures is not None:
        print("result", repr(figures[0]), figures[1], flush=True)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def start(name, spec):
    """The processes of one program; the first one prints the result."""
    ranks = ("0",) if name in PROGRAMS[:3] else tuple(str(d) for d in DEVICES)
    environment = dict(
        os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port(), WORLD_SIZE=str(len(ranks))
    )
    return [
        subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), name, spec],
            env=dict(environment, RANK=rank, LOCAL_RANK=rank),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in ranks
    ]


def result_of(name, spec):
    """(value, more), or (None, why)."""
    outputs = []
    processes = start(name, spec)
    for process in processes:
        try:
            outputs.append(process.communicate(timeout=100)[0])
        except subprocess.TimeoutExpired:
            for other in processes:
                other.kill()
            outputs.append(process.communicate()[0] + "\ntime limit")
    if any(process.returncode != 0 for process in processes):
        last = [text.strip().splitlines()[-3:] for text in outputs]
        return None, " | ".join(line for lines in last for line in lines)
    results = [line for line in outputs[0].splitlines() if line.startswith("result ")]
    words = results[-1].split(" ", 2)
    return float(words[1]), words[2] if len(words) > 2 else ""


def run_all(specs):
    failed = False
    for name in PROGRAMS:
        wanted, more = result_of(name, "default")
        print(f"{name} default: {wanted} {more}", flush=True)
        for spec in specs or SPECS + (MORE_SPECS if name in PROGRAMS[:2] else ()):
            value, more = result_of(name, spec)
            is_right = value is not None and wanted is not None and (
                abs(value - wanted) <= 1e-4 * abs(wanted) + 1e-6
            )
            failed |= not is_right
            print(f"{name} {spec}: {value} {more}{'' if is_right else ' FAILED'}", flush=True)
    return 1 if failed else 0


def main():
    try:
        import torch
    except ImportError:
        print("no PyTorch here", file=sys.stderr)
        return 77
    if len(sys.argv) < 2 or (sys.argv[1] != "all" and len(sys.argv) != 3):
        print(__doc__, file=sys.stderr)
        return 2
    if sys.argv[1] != "all":
        run_one(sys.argv[1], sys.argv[2])
        return 0
    if torch.cuda.device_count() < 2:  # asks NVML: no context
        print("fewer than two GPUs here", file=sys.stderr)
        return 77
    return run_all(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
