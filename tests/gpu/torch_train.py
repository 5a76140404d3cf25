#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: torch_train.py RESULT [LIBRMM_C]

Trains a small network with PyTorch from a fixed seed, with its own allocator or with ours,
and saves the losses and the weights to RESULT. With ours it also asks for more memory than
there is, which must be a RuntimeError after which training goes on, and looks at the accounting
of the default resource. Tensors are alive when the interpreter ends.
"""
import ctypes
import sys

import torch


class Stats(ctypes.Structure):
    """rmm_stats_t"""

    _fields_ = [("struct_size", ctypes.c_size_t)] + [
        (name, ctypes.c_uint64)
        for name in (
            "current_bytes current_count peak_bytes peak_count total_bytes total_count "
            "reserved_bytes oom_count invalid_free_count"
        ).split()
    ]


def use_our_allocator(path):
    allocator = torch.cuda.memory.CUDAPluggableAllocator(
        path, "rmm_torch_malloc", "rmm_torch_free"
    )
    torch.cuda.memory.change_current_allocator(allocator)
    return ctypes.CDLL(path)


def accounting(library):
    """What the default resource of device 0 is, and its figures."""
    resource = ctypes.c_void_p()
    stats = Stats(struct_size=ctypes.sizeof(Stats))
    library.rmm_resource_type.restype = ctypes.c_char_p
    library.rmm_resource_type.argtypes = [ctypes.c_void_p]
    library.rmm_resource_release.argtypes = [ctypes.c_void_p]
    assert library.rmm_get_per_device_resource(0, ctypes.byref(resource)) == 0
    assert library.rmm_resource_get_stats(resource, ctypes.byref(stats)) == 0
    kind = library.rmm_resource_type(resource).decode()
    library.rmm_resource_release(resource)
    return kind, stats


def more_than_there_is():
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    except RuntimeError as error:
        assert "out of memory" in str(error), error
        return
    raise AssertionError("an allocation of 1 PiB did not fail")


def make_network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(32, 32, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(32 * 16 * 16, 256),
        torch.nn.ReLU(),
        torch.nn.Linear(256, 10),
    ).cuda()


def train(steps, after_half):
    torch.manual_seed(1)
    network = make_network()
    optimiser = torch.optim.Adam(network.parameters())
    side = torch.cuda.Stream()
    losses = []
    for step in range(steps):
        images = torch.randn(64, 3, 32, 32).cuda()
        labels = torch.randint(0, 10, (64,)).cuda()
        with torch.cuda.stream(side):  # another stream allocates and frees beside
            torch.randn(1000, 1000, device="cuda").sum()
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(images), labels)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        if step == steps // 2:
            after_half()
    torch.cuda.synchronize()
    return network, losses


def main():
    result = sys.argv[1]
    library = use_our_allocator(sys.argv[2]) if len(sys.argv) > 2 else None
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True)
    assert torch.empty(0, device="cuda").numel() == 0
    network, losses = train(40, more_than_there_is if library else lambda: None)
    torch.save(
        {"losses": losses, "weights": [p.detach().cpu() for p in network.parameters()]},
        result,
    )
    if library is None:
        return
    kind, stats = accounting(library)
    print(f"{kind}: peak {stats.peak_bytes} bytes, {stats.total_count} allocations")
    assert kind == "pool", kind
    assert stats.current_bytes > 0 and stats.peak_bytes > stats.current_bytes
    assert stats.oom_count >= 1 and stats.invalid_free_count == 0


if __name__ == "__main__":
    main()
