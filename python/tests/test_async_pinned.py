# SPDX-License-Identifier: Apache-2.0
"""Pinned memory of CUDA memory pools."""
import pytest

import rmm_c as rmm
from rmm_c import mr


def test_pinned_memory_of_a_cuda_pool_is_on_the_node_of_ones_choice():
    for resource in (
        mr.CudaAsyncPinnedMemoryResource(),
        mr.CudaAsyncPinnedMemoryResource("1MiB", numa_node=1, wait_before_refusal=True),
        mr.CudaAsyncPinnedMemoryResource(release_threshold=0, numa_node="nearest"),
        mr.from_spec("async_pinned:numa"),
        mr.from_spec("pool_pinned"),
    ):
        assert resource.is_host_accessible and resource.is_device_accessible
        buffer = rmm.DeviceBuffer(size=4, mr=resource)
        buffer.stream.synchronize()
        memoryview(buffer)[:] = b"abcd"
        assert buffer.tobytes() == b"abcd"
        buffer.copy_from_host(b"efgh")
        assert bytes(buffer) == b"efgh"
    assert mr.CudaAsyncPinnedMemoryResource("1MiB").stats().reserved_bytes >= 1 << 20
    with pytest.raises(ValueError, match="NUMA node 2"):
        mr.CudaAsyncPinnedMemoryResource(numa_node=2)
    with pytest.raises(TypeError):
        mr.CudaAsyncPinnedMemoryResource(numa_node="near")
    with pytest.raises(OverflowError):
        mr.CudaAsyncPinnedMemoryResource(numa_node=-1)
