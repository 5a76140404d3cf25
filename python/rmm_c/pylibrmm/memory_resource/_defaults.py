# SPDX-License-Identifier: Apache-2.0
"""
The default resource of each device, and what acts on the defaults.

The library keeps the defaults; the table here only keeps their Python objects alive. A default
that C, the environment or another package has set is found by asking the library.
"""
import os
import sys
from typing import Dict, Iterator, List, Optional, Tuple, Union

from rmm_c import _core
from rmm_c.errors import RMMError
from rmm_c.pylibrmm.helper import Path, Size, parse_optional_bytes
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
    _flush_at_worker_end()
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


def enable_logging(
    log_file_name: Optional[Path] = None, auto_flush: bool = True, pool_size: bool = False
) -> None:
    """Log the allocations of all devices whose default was set or used, else of device 0.

    The arguments are those of LoggingResourceAdaptor. Raises ValueError if neither
    ``log_file_name`` nor RMM_LOG_FILE is there.
    """
    made: Dict[int, DeviceMemoryResource] = {}  # before any of them is set: all or nothing
    for device in list(_per_device) or [0]:
        resource = get_per_device_resource(device)
        if not isinstance(resource, LoggingResourceAdaptor):
            with current_device(device):
                made[device] = LoggingResourceAdaptor(
                    resource, log_file_name, auto_flush, pool_size=pool_size
                )
    for device, logged in made.items():
        set_per_device_resource(device, logged)


def disable_logging() -> None:
    """End the logging that reinitialize() or enable_logging() began."""
    for device, resource in list(_per_device.items()):
        if isinstance(resource, LoggingResourceAdaptor):
            set_per_device_resource(device, resource.get_upstream())
            resource.flush()


def _logs() -> Iterator[LoggingResourceAdaptor]:
    """The logs of all defaults, at any depth."""
    for resource in list(_per_device.values()):
        at: Optional[DeviceMemoryResource] = resource
        while at is not None:
            if isinstance(at, LoggingResourceAdaptor):
                yield at
            at = at.get_upstream()


def flush_logs() -> None:
    """Write the buffered rows of all defaults that log."""
    for log in _logs():
        try:
            log.flush()
        except RMMError:
            pass  # the parent's, in a forked child; or rows are lost already, which was reported


_flushing_process = 0


def _flush_at_worker_end() -> None:
    """A worker of multiprocessing ends by os._exit(), without the library's exit handler, but after
    multiprocessing's own ones. So rows of a log that RMM_RESOURCE asked for are written by one."""
    global _flushing_process
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None or _flushing_process == os.getpid():
        return
    _flushing_process = os.getpid()
    from multiprocessing.util import Finalize

    Finalize(None, flush_logs, exitpriority=0)


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


def check_arguments(
    devices: Union[int, List[int], None], *sizes: Optional[Size]
) -> List[int]:
    """Raise an exception for a device that is not there, and for what is no size. The devices."""
    chosen = [devices or 0] if isinstance(devices, int) or devices is None else list(devices)
    for device in chosen:
        with current_device(device):
            pass
    for size in sizes:
        parse_optional_bytes(size)
    return chosen


def initialize(
    devices: List[int],
    pool_allocator: bool,
    managed_memory: bool,
    sizes: Tuple[Optional[Size], Optional[Size]],
    log: Optional[Tuple[Optional[Path], bool]],
) -> None:
    """What reinitialize() does after its hooks: all of it, or an exception and nothing."""
    former = dict(_per_device)
    for resource in former.values():
        _trim(resource)  # what it does not use is for the new ones
    made: Dict[int, Optional[DeviceMemoryResource]] = dict.fromkeys(former)
    for device in devices:
        with current_device(device):
            resource = ManagedMemoryResource() if managed_memory else CudaMemoryResource()
            if pool_allocator:
                resource = PoolMemoryResource(resource, *sizes)
            made[device] = resource if log is None else LoggingResourceAdaptor(resource, *log)
    for device, mr in made.items():
        set_per_device_resource(device, mr)


def _trim(resource: DeviceMemoryResource) -> None:
    try:
        resource.trim()
    except RMMError:
        pass  # one that keeps nothing
