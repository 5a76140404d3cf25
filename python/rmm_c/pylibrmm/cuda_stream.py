# SPDX-License-Identifier: Apache-2.0
"""Streams, where RMM had them from 24.12 to 26.04; now rmm_c.pylibrmm.stream."""
from rmm_c.pylibrmm.stream import CudaStreamFlags
from rmm_c.pylibrmm.stream import Stream as CudaStream

__all__ = ["CudaStream", "CudaStreamFlags"]
