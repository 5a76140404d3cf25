# SPDX-License-Identifier: Apache-2.0
"""What RMM has under ``rmm.mr.experimental``."""
from rmm_c.pylibrmm.memory_resource.experimental import CudaAsyncManagedMemoryResource

__all__ = ["CudaAsyncManagedMemoryResource"]
