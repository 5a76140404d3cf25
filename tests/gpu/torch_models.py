#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: torch_models.py MODEL ALLOCATOR ROUND FOLDER

Runs a model of torch_networks.py, first inference, then training, in steps of random size, with an
allocator: "default", "expandable" or "async" of PyTorch, else ours over what the text means in
RMM_RESOURCE (PYTHONPATH then leads to rmm_c). Loads PyTorch, waits for a line of the standard input
before it touches the GPU, and prints one line of JSON.

A phase has the same steps three times. The first time, from nothing, samples the bytes:

- live: what the program has asked for and not freed. PyTorch over cudaMallocAsync knows only the
  rounded sizes.
- reserved: what the allocator has taken from the driver, as the allocator counts it.
- driver: by how much the used memory of the GPU, as the driver counts it, has risen since the
  context was made; with code of kernels, which PyTorch loads at their first use.

The samples of the first round are left in FOLDER as timelines, for tools/bench/plot. The other two
times measure how long each step takes, between two synchronisations. Of each time the result has
how often the allocator took memory from the driver ("growths") and synchronised the device
("syncs").
"""
import json
import math
import os
import random
import statistics
import sys
import time

STEPS, REPEATS = 24, 2
SETTINGS = {
    "default": "expandable_segments:False",
    "expandable": "expandable_segments:True",
    "async": "backend:cudaMallocAsync",
}


class Theirs:
    """The figures of PyTorch's own allocators."""

    def __init__(self, torch):
        self.stats = torch.cuda.memory_stats

    def events(self):
        """Growths and synchronisations until now; PyTorch over cudaMallocAsync counts none."""
        stats = self.stats()
        return [stats.get(f"num_{name}", 0) for name in ("device_alloc", "sync_all_streams")]

    def read(self):
        """Live and reserved bytes now, and the peaks of both."""
        stats = self.stats()

        def live(moment):
            requested = stats.get(f"requested_bytes.all.{moment}", 0)
            return requested or stats[f"allocated_bytes.all.{moment}"]

        reserved = (stats[f"reserved_bytes.all.{m}"] for m in ("current", "peak"))
        return (live("current"), *reserved, live("peak"))


class Ours:
    """rmm_c as PyTorch's allocator, and the figures of its resource."""

    def __init__(self, torch, spec):
        import rmm_c
        from rmm_c.allocators.torch import rmm_torch_allocator

        self.resource = rmm_c.mr.from_spec(spec)
        rmm_c.mr.set_current_device_resource(self.resource)
        torch.cuda.memory.change_current_allocator(rmm_torch_allocator)
        self.process = lambda: rmm_c.open_tree().process()
        self.most = 0

    def events(self):
        figures = [r.figures for d in self.process().devices for r in d.resources]
        return [sum(f.get(f"{name}_count") or 0 for f in figures) for name in ("growth", "sync")]

    def read(self):
        stats = self.resource.stats()
        assert stats.invalid_free_count == 0, stats
        self.most = max(self.most, stats.reserved_bytes)
        return stats.current_bytes, stats.reserved_bytes, self.most, stats.peak_bytes


class Run:
    def __init__(self, torch, work, figures):
        self.torch, self.work, self.figures = torch, work, figures
        free, total = torch.cuda.mem_get_info()
        self.used_before = total - free
        self.samples = []
        self.losses = []

    def sample(self):
        live, reserved, _, _ = self.figures.read()
        free, total = self.torch.cuda.mem_get_info()
        self.samples.append((live, reserved, total - free - self.used_before))

    def infer(self, size, middle):
        with self.torch.no_grad():
            self.work.infer(size, middle)

    def train(self, size, middle):
        self.work.optimiser.zero_grad(set_to_none=True)
        loss = self.work.loss(size)
        middle()
        loss.backward()
        self.work.optimiser.step()
        self.losses.append(loss.detach())

    def phase(self, step, sizes):
        """Microseconds of the median step, and of all steps of the first time."""
        events = [self.figures.events()]
        begin = time.perf_counter()
        for size in sizes:
            step(size, self.sample)
            self.torch.cuda.synchronize()
            self.sample()
        first = time.perf_counter() - begin
        times = []
        for _ in range(REPEATS):
            events.append(self.figures.events())
            for size in sizes:
                begin = time.perf_counter()
                step(size, lambda: None)
                self.torch.cuda.synchronize()
                times.append(time.perf_counter() - begin)
        events.append(self.figures.events())
        _, _, reserved, live = self.figures.read()
        return {
            "us": statistics.median(times) * 1e6,
            "first_us": first * 1e6,
            "growths": differences(growths for growths, _ in events),
            "syncs": differences(syncs for _, syncs in events),
            "live_peak": live,
            "reserved_peak": reserved,
            "driver_peak": max(driver for _, _, driver in self.samples),
        }

    def last_loss(self):
        losses = [loss.item() for loss in self.losses]
        assert all(map(math.isfinite, losses)), losses
        return losses[-1]


def differences(counts):
    counts = list(counts)
    return [after - before for before, after in zip(counts, counts[1:])]


def write_timeline(path, model, allocator, samples):
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"# log {model} resource {allocator} driver cuda\n")
        file.write("step,live_bytes,reserved_bytes,driver_bytes\n")
        for i, sample in enumerate(samples):
            file.write(",".join(map(str, (i / 2, *sample))) + "\n")


def main(model, allocator, round_number, folder):
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = SETTINGS.get(allocator, SETTINGS["default"])
    import torch
    from torch_networks import MODELS

    sys.stdin.readline()
    figures = Theirs(torch) if allocator in SETTINGS else Ours(torch, allocator)
    torch.manual_seed(1)
    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans for a second at each new length
    torch.cuda.init()
    torch.cuda.synchronize()
    chosen = random.Random(model)
    work_class = MODELS[model]
    sizes = [chosen.choice(work_class.sizes) for _ in range(STEPS)]
    run = Run(torch, work_class("cuda"), figures)
    run.work.network.eval()
    result = {"model": model, "allocator": allocator, "round": int(round_number)}
    result["inference"] = run.phase(run.infer, sizes)
    run.work.network.train()
    result["training"] = run.phase(run.train, sizes)
    result["loss"] = run.last_loss()
    if round_number == "0":
        path = os.path.join(folder, f"{model}-{allocator}.csv")
        write_timeline(path, model, allocator, run.samples)
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        print(__doc__.strip().splitlines()[0], file=sys.stderr)
        sys.exit(2)
    main(*sys.argv[1:])
