# SPDX-License-Identifier: Apache-2.0
"""Allocators for other packages. A module loads, with its package, at its first use."""
from types import ModuleType

from rmm_c._eras import module_of


def __getattr__(name: str) -> ModuleType:
    return module_of(__name__, name, ("cuda_core", "cupy", "numba", "torch"))
