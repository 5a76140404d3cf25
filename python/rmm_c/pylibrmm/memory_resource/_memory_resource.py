# SPDX-License-Identifier: Apache-2.0
"""Memory resources, where RMM has them as of 25.12: the names of the package around this module."""
from typing import Any

from rmm_c.pylibrmm import memory_resource

__all__ = memory_resource.__all__


def __getattr__(name: str) -> Any:
    return getattr(memory_resource, name)
