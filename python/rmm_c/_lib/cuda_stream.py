# SPDX-License-Identifier: Apache-2.0
"""Streams, where RMM had them from 0.18 to 24.12."""
from rmm_c.pylibrmm.stream import Stream as CudaStream

__all__ = ["CudaStream"]
