# SPDX-License-Identifier: Apache-2.0
"""The modules of RMM until 24.12, now those of rmm_c.pylibrmm."""
from rmm_c._lib import cuda_stream, cuda_stream_view, device_buffer, logger, memory_resource
from rmm_c.pylibrmm import DeviceBuffer

__all__ = [
    "DeviceBuffer",
    "cuda_stream",
    "cuda_stream_view",
    "device_buffer",
    "logger",
    "memory_resource",
]
