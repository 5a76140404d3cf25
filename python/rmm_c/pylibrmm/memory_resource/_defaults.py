# SPDX-License-Identifier: Apache-2.0
"""
The default resource of each device, and what acts on the defaults.

The library keeps the defaults; the table here only keeps their Python objects alive. A default
that C, the environment or another package has set is found by asking the library.
"""
from typing import Dict, List, Optional, Tuple, Union

from rmm_c import _core
from rmm_c.pylibrmm.helper import Path, Size
from rmm_c.pylibrmm.memory_resource._adaptors import LoggingResourceAdaptor
from rmm_c.pylibrmm.memory_resource._base import DeviceMemoryResource, wrap_address, wrap_shared
from rmm_c.pylibrmm.memory_resource._pools import PoolMemoryResource
from rmm_c.pylibrmm.memory_resource._resources import CudaMemoryResource, ManagedMemoryResource

_per_device: Dict[int, DeviceMemoryResource] = {}


def get_per_device_resource(device: int) -> DeviceMemoryResource:
    """The default resource of a device."""
    known = _per_device.get(device)
    found = _core.get_per_device_resource(device, known)
    if found is known:
        return known
    resource = wrap_shared(found)
    _per_device[device] = resource
    return resource


def set_per_device_resource(device: int, mr: Optional[DeviceMemoryResource]) -> None:
    """Set the default resource of a device; None: the initial one again."""
    _core.set_per_device_resource(device, mr)
    if mr is None:
        _per_device.pop(device, None)
    else:
        _per_device[device] = mr


def get_current_device_resource() -> DeviceMemoryResource:
    """The default resource of the current device."""
    return get_per_device_resource(_core.device_current())


def set_current_device_resource(mr: Optional[DeviceMemoryResource]) -> None:
    """Set the default resource of the current device; None: the initial one again.

    >>> from rmm_c import mr
    >>> mr.set_current_device_resource(mr.ManagedMemoryResource())
    >>> mr.get_current_device_resource().kind
    'managed'
    >>> mr.set_current_device_resource(None)
    """
    set_per_device_resource(_core.device_current(), mr)


def wrap_for_buffer(address: int) -> DeviceMemoryResource:
    """The Python object of the resource that a buffer got by default."""
    device = _core.device_current()
    default = get_per_device_resource(device)
    return default if default.handle == address else wrap_address(address)


def is_initialized() -> bool:
    """True: each device has a default resource at any time."""
    return all(resource.handle != 0 for resource in _per_device.values())


def available_device_memory() -> Tuple[int, int]:
    """The free and all bytes of the current device.

    >>> free, total = available_device_memory()
    >>> 0 < free <= total
    True
    """
    return _core.available_device_memory()


def enable_logging(log_file_name: Optional[Path] = None) -> None:
    """Log the allocations of all devices whose default was set or used, else of device 0.

    Raises ValueError if neither ``log_file_name`` nor RMM_LOG_FILE is there.
    """
    for device in list(_per_device) or [0]:
        resource = get_per_device_resource(device)
        if not isinstance(resource, LoggingResourceAdaptor):
            with current_device(device):
                logged = LoggingResourceAdaptor(resource, log_file_name)
            set_per_device_resource(device, logged)


def disable_logging() -> None:
    """End the logging that reinitialize() or enable_logging() began."""
    for device, resource in list(_per_device.items()):
        if isinstance(resource, LoggingResourceAdaptor):
            resource.flush()
            set_per_device_resource(device, resource.get_upstream())


def flush_logs() -> None:
    """Write the buffered rows of all defaults that log."""
    for resource in list(_per_device.values()):
        if isinstance(resource, LoggingResourceAdaptor):
            resource.flush()


def get_log_filenames() -> Dict[int, Optional[str]]:
    """The log file of each device, None where there is none."""
    return {
        device: resource.get_file_name() if isinstance(resource, LoggingResourceAdaptor) else None
        for device, resource in _per_device.items()
    }


class current_device:
    """A device is the current one within the block.

    >>> with current_device(0):
    ...     available = available_device_memory()
    """

    def __init__(self, device: int) -> None:
        self._device = device
        self._previous = 0

    def __enter__(self) -> "current_device":
        self._previous = _core.device_current()
        _core.device_set(self._device)
        return self

    def __exit__(self, *exc: object) -> None:
        _core.device_set(self._previous)


def initialize(
    pool_allocator: bool = False,
    managed_memory: bool = False,
    initial_pool_size: Optional[Size] = None,
    maximum_pool_size: Optional[Size] = None,
    devices: Union[int, List[int], None] = 0,
    logging: bool = False,
    log_file_name: Optional[Path] = None,
) -> None:
    """What reinitialize() does after its hooks."""
    chosen = [devices or 0] if isinstance(devices, int) or devices is None else devices
    for device in list(_per_device):
        set_per_device_resource(device, None)
    for device in chosen:
        with current_device(device):
            resource: DeviceMemoryResource
            resource = ManagedMemoryResource() if managed_memory else CudaMemoryResource()
            if pool_allocator:
                resource = PoolMemoryResource(resource, initial_pool_size, maximum_pool_size)
            if logging:
                resource = LoggingResourceAdaptor(resource, log_file_name)
        set_per_device_resource(device, resource)
