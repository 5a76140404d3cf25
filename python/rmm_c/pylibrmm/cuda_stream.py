# SPDX-License-Identifier: Apache-2.0
"""Streams under the name of RMM's module; programs use rmm_c.pylibrmm.stream."""
from rmm_c.pylibrmm.stream import CudaStreamFlags
from rmm_c.pylibrmm.stream import Stream as CudaStream

__all__ = ["CudaStream", "CudaStreamFlags"]
