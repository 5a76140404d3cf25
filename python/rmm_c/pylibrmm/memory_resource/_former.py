# SPDX-License-Identifier: Apache-2.0
"""Names that RMM's modules of memory resources had once."""
from typing import List, Optional, Type, Union

from rmm_c.pylibrmm.helper import Path, Size
from rmm_c.pylibrmm.memory_resource._base import DeviceMemoryResource
from rmm_c.pylibrmm.memory_resource._defaults import (
    check_arguments,
    get_current_device_resource,
    get_per_device_resource,
    initialize,
)

MemoryResource = DeviceMemoryResource  # until 0.18


def get_per_device_resource_type(device: int) -> Type[DeviceMemoryResource]:
    """The class of the default resource of a device; RMM had this until 26.06."""
    return type(get_per_device_resource(device))


def get_current_device_resource_type() -> Type[DeviceMemoryResource]:
    """The class of the default resource of the current device; RMM had this until 26.06."""
    return type(get_current_device_resource())


def initialize_by_keywords(
    pool_allocator: bool = False,
    managed_memory: bool = False,
    initial_pool_size: Optional[Size] = None,
    maximum_pool_size: Optional[Size] = None,
    devices: Union[int, List[int], None] = 0,
    logging: bool = False,
    log_file_name: Optional[Path] = None,
) -> None:
    """reinitialize() without its hooks: ``mr._initialize()`` until 25.10."""
    sizes = (initial_pool_size, maximum_pool_size)
    log = (log_file_name, True) if logging else None
    initialize(check_arguments(devices, *sizes), pool_allocator, managed_memory, sizes, log)
