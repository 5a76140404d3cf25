# SPDX-License-Identifier: Apache-2.0
"""Memory resources, where RMM had them until 24.12: the names of rmm_c.pylibrmm.memory_resource."""
from typing import Any

from rmm_c.pylibrmm import memory_resource
from rmm_c.pylibrmm.memory_resource import set_per_device_resource
from rmm_c.pylibrmm.memory_resource._former import MemoryResource

__all__ = ["MemoryResource", *memory_resource.__all__]

_set_per_device_resource = set_per_device_resource  # the name until 0.18


def __getattr__(name: str) -> Any:
    return getattr(memory_resource, name)
