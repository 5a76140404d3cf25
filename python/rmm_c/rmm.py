# SPDX-License-Identifier: Apache-2.0
"""The functions of the package that set all up anew."""
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

from rmm_c import _core, _eras
from rmm_c.alias import as_rmm
from rmm_c.errors import RMMError
from rmm_c.pylibrmm import device_buffer
from rmm_c.pylibrmm.helper import Path, Size
from rmm_c.pylibrmm.memory_resource import (
    LoggingResourceAdaptor,
    get_current_device_resource,
    is_initialized,
)
from rmm_c.pylibrmm.memory_resource._defaults import check_arguments, initialize

__all__ = [
    "RMMError",
    "as_rmm",
    "csv_log",
    "get_info",
    "is_initialized",
    "register_reinitialize_hook",
    "reinitialize",
    "to_device",
    "unregister_reinitialize_hook",
]

_hooks: List[Tuple[Callable[..., Any], Tuple[Any, ...], Dict[str, Any]]] = []


def reinitialize(
    pool_allocator: bool = False,
    managed_memory: bool = False,
    initial_pool_size: Optional[Size] = None,
    maximum_pool_size: Optional[Size] = None,
    devices: Union[int, List[int], None] = 0,
    logging: bool = False,
    log_file_name: Optional[Path] = None,
    auto_flush: bool = True,
) -> None:
    """Give the devices new default resources. Memory of the former ones stays valid. In a failure
    the defaults are what they were.

    The sizes are of the pool of each device, in bytes or as text ("1GiB"); by default it begins
    with half of the free memory and has no limit. With ``logging``, ``log_file_name`` and
    ``auto_flush`` are those of LoggingResourceAdaptor.

    >>> reinitialize(pool_allocator=True, initial_pool_size="1MiB")
    >>> from rmm_c import mr
    >>> mr.get_current_device_resource().pool_size()
    1048576
    >>> reinitialize()
    """
    chosen = check_arguments(devices, initial_pool_size, maximum_pool_size)
    for function, args, kwargs in reversed(_hooks):
        function(*args, **kwargs)
    initialize(
        chosen,
        pool_allocator,
        managed_memory,
        (initial_pool_size, maximum_pool_size),
        (log_file_name, auto_flush) if logging else None,
    )


def register_reinitialize_hook(
    func: Callable[..., Any], *args: Any, **kwargs: Any
) -> Callable[..., Any]:
    """Call ``func`` before each reinitialize(), the last registered first."""
    _hooks.append((func, args, kwargs))
    return func


def unregister_reinitialize_hook(func: Callable[..., Any]) -> None:
    """Call ``func`` no more."""
    _hooks[:] = [hook for hook in _hooks if hook[0] != func]


class MemoryInfo(NamedTuple):
    """What get_info() returns."""

    free: int
    total: int


def get_info(stream: Any = 0) -> MemoryInfo:
    """The free and all bytes of the current device; RMM had this until 0.14.

    >>> get_info().free <= get_info().total
    True
    """
    return MemoryInfo(*_core.available_device_memory())


def csv_log() -> str:
    """The rows that the log of the current device has in its file; RMM had this until 0.14.

    >>> csv_log()  # nothing is logged
    ''
    """
    resource = get_current_device_resource()
    if not isinstance(resource, LoggingResourceAdaptor):
        return ""
    resource.flush()
    with open(resource.get_file_name(), encoding="utf-8") as file:
        return file.read()


def to_device(ary: Any, stream: Any = 0, copy: bool = True, to: Any = None) -> Any:
    """Copy bytes of the host to a new DeviceBuffer. A NumPy array becomes one of Numba, as in RMM
    until 0.16: there ``to`` is an array to copy to, unless ``copy`` is False.

    >>> to_device(b"abc").tobytes()
    b'abc'
    """
    if not hasattr(ary, "dtype"):
        return device_buffer.to_device(ary, stream)
    from rmm_c.allocators import _numba_arrays

    return _numba_arrays.to_device(ary, stream, copy, to)


def __getattr__(name: str) -> Any:
    """Names of RMM until 23.02."""
    return _eras.of_rmm_module(__name__, name)
