# SPDX-License-Identifier: Apache-2.0
"""RMM's declarations for Cython are in a package of this name. Python sees the log's levels."""
from rmm_c.librmm import _logger as _logger
