#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: python_frameworks.py core|torch|torch_mempool|jax|cupy|numba|cuda_core|
                            example_torch|example_cupy

A program of each framework on a real GPU that allocates through rmm_c: the results are right, the
bytes are those of our resource, and all are freed. PYTHONPATH leads to a built package. Prints one
line. Exit status 77: the framework is not there.
"""
import gc
import os
import pathlib
import runpy
import sys

import numpy


def counted(spec="pool:256MiB"):
    """A resource with statistics as the default resource."""
    import rmm_c as rmm

    resource = rmm.mr.from_spec("statistics+" + spec)
    rmm.mr.set_current_device_resource(resource)
    return resource


def finish(resource, least_bytes):
    gc.collect()
    figures = resource.allocation_counts
    assert figures.total_bytes >= least_bytes, figures
    assert figures.current_bytes == 0, figures
    assert resource.stats().invalid_free_count == 0
    print(f"{figures.total_count} allocations, peak {figures.peak_bytes} bytes")


def run_core():
    import rmm_c as rmm
    from rmm_c.pylibrmm.stream import Stream

    resource = counted()
    stream = Stream()
    data = numpy.random.default_rng(1).bytes(1 << 20)
    first = rmm.DeviceBuffer.to_device(data, stream)
    second = rmm.DeviceBuffer(size=len(data), stream=stream)
    second.copy_from_device(first, stream)
    second.resize(2 << 20, stream)
    assert second.tobytes(stream)[: len(data)] == data
    pinned = rmm.DeviceBuffer.to_device(data, mr=rmm.mr.PinnedHostMemoryResource())
    assert bytes(memoryview(pinned)) == data
    managed = rmm.DeviceBuffer.to_device(data, mr=rmm.mr.ManagedMemoryResource())
    managed.prefetch()
    assert managed.tobytes() == data
    check_order(data)
    del first, second
    finish(resource, 4 << 20)


def check_order(data):
    """Reads come after work on non-blocking streams, of other threads and of a second device."""
    import rmm_c as rmm
    from rmm_c.pylibrmm.memory_resource._defaults import current_device
    from rmm_c.pylibrmm.stream import PER_THREAD_DEFAULT_STREAM, CudaStreamFlags, Stream

    devices = range(min(2, rmm._core.device_count()))
    for _ in range(50):
        for device in devices:
            with current_device(device):
                fast = Stream(flags=CudaStreamFlags.NON_BLOCKING)
                for stream in (fast, PER_THREAD_DEFAULT_STREAM):
                    source = rmm.DeviceBuffer.to_device(data, stream)
                    copied = source.copy()
                    with current_device(0):
                        target = rmm.DeviceBuffer(size=len(data))
                        target.copy_from_device(copied)
                    assert bytes(source.copy()) == data
                    del source, copied
                    assert target.tobytes() == data


def torch_with_a_gpu():
    import torch

    if not torch.cuda.is_available():
        raise ImportError("PyTorch sees no GPU")
    return torch


def run_torch():
    torch = torch_with_a_gpu()
    from rmm_c.allocators.torch import rmm_torch_allocator

    torch.cuda.memory.change_current_allocator(rmm_torch_allocator)
    resource = counted()
    side = torch.cuda.Stream()
    numbers = torch.arange(1 << 20, dtype=torch.float64, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        total = (numbers * 2).sum()
    torch.cuda.current_stream().wait_stream(side)
    assert total.item() == float((1 << 20) * ((1 << 20) - 1))
    import rmm_c as rmm

    buffer = rmm.DeviceBuffer.to_device(bytes(range(256)))
    assert torch.from_dlpack(buffer).sum().item() == sum(range(256))
    for i in range(50):  # a tensor names no stream
        with torch.cuda.stream(side):
            bytes_ = torch.full((1 << 24,), i, dtype=torch.uint8, device="cuda")[:256]
            buffer.copy_from_device(bytes_)
        assert buffer.tobytes() == bytes([i]) * 256
    del numbers, total, buffer, bytes_
    torch.cuda.synchronize()
    finish(resource, 8 << 20)


def run_torch_mempool():
    """PyTorch's own allocator, with one MemPool whose segments come from our resource."""
    torch = torch_with_a_gpu()
    from rmm_c.allocators.torch import rmm_torch_allocator

    resource = counted("managed")
    pool = torch.cuda.MemPool(rmm_torch_allocator.allocator())
    outside = torch.ones(1 << 20, device="cuda")
    assert resource.stats().current_bytes == 0
    with torch.cuda.use_mem_pool(pool):
        inside = torch.ones(1 << 22, device="cuda")
    assert resource.stats().current_bytes >= inside.nbytes
    assert (inside.sum() + outside.sum()).item() == (1 << 22) + (1 << 20)
    del inside, pool
    finish(resource, 16 << 20)


def run_jax():
    """JAX allocates for itself; buffers go to and fro without its allocator."""
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax

    if jax.default_backend() != "gpu":
        raise ImportError("JAX has no GPU")
    import rmm_c as rmm

    resource = counted()
    buffer = rmm.DeviceBuffer.to_device(bytes(range(256)))
    array = jax.dlpack.from_dlpack(buffer)
    assert array.unsafe_buffer_pointer() == buffer.ptr, "copied"
    assert int(array.astype("int32").sum()) == sum(range(256))
    following = (array + 1).block_until_ready()
    back = rmm.DeviceBuffer(size=256)
    back.copy_from_device(following)
    assert back.tobytes() == bytes(range(1, 256)) + bytes(1)
    del array, buffer, back
    finish(resource, 512)


def run_cupy():
    import cupy

    from rmm_c.allocators.cupy import rmm_cupy_allocator

    resource = counted()
    cupy.cuda.set_allocator(rmm_cupy_allocator)
    import rmm_c as rmm

    with cupy.cuda.Stream(non_blocking=True) as stream:
        numbers = cupy.arange(1 << 20, dtype=cupy.float64)
        total = float((numbers * 2).sum())
        stream.synchronize()
    assert total == float((1 << 20) * ((1 << 20) - 1))
    buffer = rmm.DeviceBuffer.to_device(bytes(range(256)))
    assert int(cupy.asarray(buffer).sum()) == sum(range(256))
    buffer.copy_from_device(cupy.zeros(256, dtype=cupy.uint8))
    assert buffer.tobytes() == bytes(256)
    with cupy.cuda.Stream(non_blocking=True):
        for i in range(50):
            buffer.copy_from_device(cupy.full(1 << 24, i, dtype=cupy.uint8)[:256])
            assert buffer.tobytes() == bytes([i]) * 256
    del numbers, buffer
    cupy.cuda.set_allocator(None)
    finish(resource, 8 << 20)


def run_numba():
    if not hasattr(numpy, "row_stack"):  # Numba 0.61 and older look for it
        numpy.row_stack = numpy.vstack
    from numba import cuda

    from rmm_c.allocators.numba import RMMNumbaManager

    cuda.set_memory_manager(RMMNumbaManager)
    resource = counted()
    array = cuda.to_device(numpy.arange(1 << 18, dtype=numpy.float64))
    assert array.copy_to_host().sum() == float((1 << 18) * ((1 << 18) - 1) // 2)
    free, total = cuda.current_context().get_memory_info()
    assert 0 < free <= total
    cuda.current_context().memory_manager.reset()
    other = cuda.to_device(numpy.ones(1 << 18))
    del array  # of before the reset: it frees its own memory
    third = cuda.to_device(numpy.zeros(1 << 18))
    assert other.copy_to_host().sum() == 1 << 18 and third.copy_to_host().sum() == 0
    del other, third
    cuda.current_context().deallocations.clear()
    finish(resource, 2 << 20)


def run_cuda_core():
    try:
        from cuda.core import Device
    except ImportError:
        from cuda.core.experimental import Device

    from rmm_c.allocators.cuda_core import RMMMemoryResource

    device = Device()
    device.set_current()
    resource = counted()
    memory = RMMMemoryResource(resource)
    stream = device.create_stream()
    buffer = memory.allocate(1 << 20, stream=stream)
    assert buffer.size == 1 << 20
    buffer.close(stream)
    dropped = memory.allocate(1 << 20, stream=stream)
    del dropped
    finish(resource, 1 << 20)


def run_example(name):
    """A file of examples/ as it stands; the names that it leaves."""
    path = pathlib.Path(__file__).resolve().parents[2] / "examples" / name
    return runpy.run_path(str(path), run_name="__main__")


def run_example_torch():
    torch_with_a_gpu()
    assert run_example("pytorch.py")["stats"].peak_bytes > 4 << 20


def run_example_torch_sleep():
    torch_with_a_gpu()
    run_example("pytorch_sleep.py")


def run_example_cupy():
    import cupy

    cupy.cuda.runtime.getDeviceCount()
    left = run_example("cupy_arrays.py")
    assert float(left["more"].sum()) == 1_000_000
    assert left["pool"].stats().current_bytes >= 16_000_000


def main():
    programs = {name[4:]: run for name, run in globals().items() if name.startswith("run_")}
    del programs["example"]
    if len(sys.argv) != 2 or sys.argv[1] not in programs:
        print(f"usage: python_frameworks.py {'|'.join(programs)}", file=sys.stderr)
        return 2
    try:
        programs[sys.argv[1]]()
    except ImportError as error:
        print(f"{sys.argv[1]}: {error}", file=sys.stderr)
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
