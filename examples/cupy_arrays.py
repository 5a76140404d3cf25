#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CuPy over a pool of rmm-c. Needs a GPU, CuPy, and the package rmm_c (docs/python.md)."""
import cupy
import rmm_c as rmm
from rmm_c.allocators.cupy import rmm_cupy_allocator

pool = rmm.mr.AutoMemoryResource(initial_pool_size="256MiB") # maps memory where the device can
rmm.mr.set_current_device_resource(pool)
cupy.cuda.set_allocator(rmm_cupy_allocator)

numbers = cupy.arange(1_000_000, dtype=cupy.float64)
print("the sum of the squares is", float((numbers * numbers).sum()))

# CuPy allocates and frees on its current stream, and the pool keeps the order.
with cupy.cuda.Stream(non_blocking=True) as stream:
    more = cupy.ones(1_000_000)
    print("the sum of ones is", float(more.sum()))
    stream.synchronize()

print(f"{pool.stats().current_bytes} bytes are in use, of {pool.stats().reserved_bytes}")
