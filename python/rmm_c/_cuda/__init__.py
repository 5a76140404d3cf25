# SPDX-License-Identifier: Apache-2.0
"""Questions about devices, and streams where RMM had them until 25.10."""
from rmm_c._cuda import gpu, stream

__all__ = ["gpu", "stream"]
