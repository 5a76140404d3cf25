# SPDX-License-Identifier: Apache-2.0
"""The parts of the package under the names that they have in RMM."""
from rmm_c.pylibrmm import cuda_stream, memory_resource, utils
from rmm_c.pylibrmm.cuda_stream_pool import CudaStreamPool
from rmm_c.pylibrmm.device_buffer import DeviceBuffer
from rmm_c.pylibrmm.stream import CudaStreamFlags

__all__ = [
    "CudaStreamFlags",
    "CudaStreamPool",
    "DeviceBuffer",
    "cuda_stream",
    "memory_resource",
    "utils",
]
