# SPDX-License-Identifier: Apache-2.0
"""The parts of the package under the names that they have in RMM."""
from rmm_c.pylibrmm import memory_resource
from rmm_c.pylibrmm.cuda_stream import CudaStreamFlags
from rmm_c.pylibrmm.cuda_stream_pool import CudaStreamPool
from rmm_c.pylibrmm.device_buffer import DeviceBuffer

__all__ = ["CudaStreamFlags", "CudaStreamPool", "DeviceBuffer", "memory_resource"]
