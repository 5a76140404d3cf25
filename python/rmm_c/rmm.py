# SPDX-License-Identifier: Apache-2.0
"""The functions of the package that set all up anew."""
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from rmm_c.errors import RMMError
from rmm_c.pylibrmm.helper import Path, Size
from rmm_c.pylibrmm.memory_resource import is_initialized
from rmm_c.pylibrmm.memory_resource._defaults import check_arguments, initialize

__all__ = [
    "RMMError",
    "as_rmm",
    "is_initialized",
    "register_reinitialize_hook",
    "reinitialize",
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


def as_rmm() -> None:
    """Make ``import rmm`` import this package, for programs that cannot be changed.

    >>> import subprocess, sys
    >>> program = "import rmm_c; rmm_c.as_rmm(); import rmm.statistics; print(rmm.__name__)"
    >>> subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE).stdout
    b'rmm_c\\n'
    """
    present = sys.modules.get("rmm")
    if present is not None and present.__name__ != "rmm_c":
        raise ImportError(f"rmm is imported already, from {present.__file__}")
    for name, module in list(sys.modules.items()):
        if name == "rmm_c" or name.startswith("rmm_c."):
            sys.modules["rmm" + name[len("rmm_c") :]] = module
