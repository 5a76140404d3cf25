#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: frameworks.py torch|expandable|async|graph|cupy|jax|numba

A correct program of each framework, with its own allocator, that prints its result to the last
bit: under rmm-run it must print the same, with any mode, and have no finding. Exit status 77: the
framework is not there.
"""
import hashlib
import os
import sys


def digest(*arrays):
    state = hashlib.sha256()
    for array in arrays:
        state.update(array.tobytes())
    return state.hexdigest()


def with_torch(settings, uses_graph):
    if settings:
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = settings
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    import torch

    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    network = torch.nn.Sequential(
        torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 16)
    ).cuda()
    inputs = torch.randn(256, 512).pin_memory().cuda(non_blocking=True)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    if not uses_graph:
        optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
        for size in range(16, 257, 16):
            optimiser.zero_grad()
            with torch.cuda.stream(side):
                noise = torch.ones(size, 512, device="cuda") * 0.5
            torch.cuda.current_stream().wait_stream(side)
            noise.record_stream(torch.cuda.current_stream())
            network(inputs[:size] + noise).square().mean().backward()
            optimiser.step()
        return digest(*(p.detach().cpu().numpy() for p in network.parameters()))
    with torch.no_grad():
        with torch.cuda.stream(side):
            for _ in range(3):
                network(inputs)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = network(inputs)
        for _ in range(10):
            graph.replay()
            inputs.copy_(inputs * 0.9)
    return digest(outputs.cpu().numpy())


def with_cupy():
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    values = cupy.arange(1 << 20, dtype=cupy.float32)
    cupy.cuda.get_current_stream().synchronize()
    with stream:
        for _ in range(50):
            values = cupy.sqrt(values * values + 1)
        total = cupy.sort(values)[::1000]
    stream.synchronize()
    return digest(cupy.asnumpy(total))


def with_jax():
    os.environ["XLA_FLAGS"] = "--xla_gpu_deterministic_ops=true"
    import jax

    if jax.default_backend() != "gpu":
        raise ImportError("JAX has no GPU")
    import numpy

    step = jax.jit(lambda w, x: w - 0.01 * jax.grad(lambda w: ((x @ w) ** 2).mean())(w))
    weights, inputs = (
        jax.random.normal(jax.random.PRNGKey(i), (256, 256)) for i in range(2)
    )
    for _ in range(50):
        weights = step(weights, inputs)
    return digest(numpy.asarray(weights))


def with_numba():
    import numpy

    if not hasattr(numpy, "row_stack"):
        numpy.row_stack = numpy.vstack  # Numba 0.62 asks for it at its import
    from numba import cuda

    @cuda.jit
    def add_one(values):
        i = cuda.grid(1)
        if i < values.size:
            values[i] += 1

    stream = cuda.stream()
    values = cuda.to_device(numpy.zeros(100000, dtype=numpy.float32), stream=stream)
    for _ in range(50):
        add_one[400, 256, stream](values)
    result = values.copy_to_host(stream=stream)
    stream.synchronize()
    return digest(result)


FRAMEWORKS = {
    "torch": lambda: with_torch("", False),
    "expandable": lambda: with_torch("expandable_segments:True", False),
    "async": lambda: with_torch("backend:cudaMallocAsync", False),
    "graph": lambda: with_torch("", True),
    "cupy": with_cupy,
    "jax": with_jax,
    "numba": with_numba,
}

if __name__ == "__main__":
    try:
        print(FRAMEWORKS[sys.argv[1]]())
    except ImportError as error:
        print(error, file=sys.stderr)
        sys.exit(77)
