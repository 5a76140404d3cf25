# SPDX-License-Identifier: Apache-2.0
"""
What the planted faults of torch_faults.py share: streams, tensors, a kernel that delays a stream,
and the list of faults.

Each fault is a function of a Scene and whether it is the faulty one; its correct twin differs by
one call, or by the place of one. To make the order certain, a stream is delayed by DELAY_CYCLES
(some 0.2 s) before the access that has to come first, while the host queues the rest within
milliseconds. So nothing after the delay may wait for the device: kernels are loaded by the warm-up,
and a tensor has the size of a segment of PyTorch's allocator, so that one which is freed leaves the
only free block of that size on its stream, and the next one takes it.
"""
import ctypes
import os

ELEMENTS = 6 << 20
BYTES = 4 * ELEMENTS
DELAY_CYCLES = 400_000_000
SMALL = 100_000  # elements
BEYOND = 1000  # elements behind the end of one

FAULTS = {}


def fault(*needs, memcheck=False):
    """A fault by its function's name. needs: packages; memcheck: compute-sanitizer may see it."""

    def add(function):
        function.needs, function.memcheck = needs, memcheck
        FAULTS[function.__name__] = function
        return function

    return add


def load_torch():
    """PyTorch, with the library's allocator if RMM_FAULTS_ALLOCATOR=rmm."""
    import torch

    if os.environ.get("RMM_FAULTS_ALLOCATOR") == "rmm":
        from rmm_c.allocators.torch import rmm_torch_allocator

        torch.cuda.memory.change_current_allocator(rmm_torch_allocator)
    return torch


class Scene:
    """Streams "main" (the current one), "side" and "other", and a sink for reads on each."""

    def __init__(self):
        self.torch = load_torch()
        self.main = self.torch.cuda.current_stream()
        self.side, self.other = self.torch.cuda.Stream(), self.torch.cuda.Stream()
        self.streams = (self.main, self.side, self.other)
        self.sinks = {stream.cuda_stream: self.make(0.0) for stream in self.streams}
        self.kept, self.graphs = [], []
        self.torch.cuda.synchronize()
        self._warm_up()

    def _warm_up(self):
        host = self.torch.ones(ELEMENTS).pin_memory()
        for stream in self.streams:
            with self.on(stream):
                tensor = self.make()
                tensor.copy_(host, non_blocking=True)
                host.copy_(tensor, non_blocking=True)
                other = self.torch.empty_like(tensor)
                other.copy_(tensor)
                other.fill_(2.0)
                self.read(other)
                self.read(other[ELEMENTS // 2 :])
                self.torch.cuda._sleep(1000)
                self.kept += [tensor, other]  # none is free
        self.kept.append(host)
        self.torch.cuda.synchronize()

    def on(self, stream):
        """The current stream of a block."""
        return self.torch.cuda.stream(stream)

    def make(self, value=1.0):
        """A tensor, written on the current stream."""
        return self.torch.full((ELEMENTS,), value, device="cuda")

    def make_small(self, elements=SMALL):
        """A tensor in a segment with others: a few KiB behind its end are still in the segment."""
        return self.torch.ones(elements, device="cuda")

    def pinned(self, value=1.0):
        """A tensor of the host that copies can read while the program goes on."""
        return self.torch.full((ELEMENTS,), value).pin_memory()

    def delay(self):
        """The current stream goes on later."""
        self.torch.cuda._sleep(DELAY_CYCLES)

    def read(self, tensor):
        """A kernel on the current stream reads a contiguous tensor."""
        sink = self.sinks[self.torch.cuda.current_stream().cuda_stream]
        sink[: tensor.numel()].add_(tensor.reshape(-1))

    def take_again(self):
        """A tensor that gets the block which was freed last on the current stream."""
        self.kept.append(self.make(7.0))

    def end(self):
        """All work is over, and no graph can be launched, before the tensors of the caller go."""
        for stream in self.streams[1:]:
            self.main.wait_stream(stream)
        self.torch.cuda.synchronize()
        for graph in self.graphs:
            graph.reset()


_runtime = []


def runtime():
    """The CUDA runtime that PyTorch uses, for calls that PyTorch knows nothing of."""
    if not _runtime:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            paths = [line.split(None, 5)[5].strip() for line in maps if "libcudart" in line]
        if not paths:
            raise ImportError("no shared libcudart in this process")
        _runtime.append(ctypes.CDLL(paths[0]))
    return _runtime[0]


def must(status):
    """The status of a call of the runtime."""
    if status != 0:
        raise RuntimeError(f"cudart: error {status}")


def copy_async(to, source, count, stream):
    """cudaMemcpyAsync() of addresses."""
    must(
        runtime().cudaMemcpyAsync(
            ctypes.c_void_p(to),
            ctypes.c_void_p(source),
            ctypes.c_size_t(count),
            ctypes.c_int(4),  # cudaMemcpyDefault
            ctypes.c_void_p(stream.cuda_stream),
        )
    )


def fill_async(to, count, stream):
    """cudaMemsetAsync() of an address."""
    must(
        runtime().cudaMemsetAsync(
            ctypes.c_void_p(to),
            ctypes.c_int(0),
            ctypes.c_size_t(count),
            ctypes.c_void_p(stream.cuda_stream),
        )
    )
