# SPDX-License-Identifier: Apache-2.0
"""What RMM has under ``experimental``."""
from rmm_c.pylibrmm.memory_resource._resources import CudaAsyncManagedMemoryResource

__all__ = ["CudaAsyncManagedMemoryResource"]
