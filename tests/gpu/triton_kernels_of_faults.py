# SPDX-License-Identifier: Apache-2.0
"""The kernel of torch_faults_kernels.py: Triton reads its source from a file, and its names from
the module."""
import triton
import triton.language as tl


@triton.jit
def add_one(source, result, count, BLOCK: tl.constexpr, IS_MASKED: tl.constexpr):
    """result = source + 1; the store goes beyond `count` unless it is masked."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(source + i, mask=i < count, other=0.0)
    if IS_MASKED:
        tl.store(result + i, value + 1, mask=i < count)
    else:
        tl.store(result + i, value + 1)
