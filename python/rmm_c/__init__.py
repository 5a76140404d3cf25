# SPDX-License-Identifier: Apache-2.0
"""
GPU memory pools: the Python package of rmm-c, with the names of RAPIDS RMM.

>>> import rmm_c as rmm
>>> pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size="1MiB")
>>> buffer = rmm.DeviceBuffer(size=1000, mr=pool)
>>> pool.stats().current_bytes
1000
"""
from rmm_c._library import load_core

from typing import Any

load_core()

from rmm_c import _core, _eras, errors, mr, request_thread, sharing, statistics  # noqa: E402
from rmm_c.errors import RMMError  # noqa: E402
from rmm_c.pylibrmm.device_buffer import DeviceBuffer  # noqa: E402
from rmm_c.pylibrmm.logger import (  # noqa: E402
    flush_logger,
    get_flush_level,
    get_logging_level,
    level_enum,
    logging_level,
    set_flush_level,
    set_logging_level,
    should_log,
)
from rmm_c.pylibrmm.memory_resource import (  # noqa: E402
    disable_logging,
    enable_logging,
    get_log_filenames,
)
from rmm_c.pylibrmm.memory_resource._defaults import wrap_for_buffer  # noqa: E402
from rmm_c.pylibrmm.stream import DEFAULT_STREAM, as_stream  # noqa: E402
from rmm_c.rmm import (  # noqa: E402
    as_rmm,
    csv_log,
    get_info,
    is_initialized,
    register_reinitialize_hook,
    reinitialize,
    to_device,
    unregister_reinitialize_hook,
)
from rmm_c.tree import open_tree  # noqa: E402

_core.set_hooks(
    error_types=errors.by_status(_core.status_map()),
    default_stream=DEFAULT_STREAM,
    as_stream=as_stream,
    wrap=wrap_for_buffer,
)

__version__ = _core.version()


def __getattr__(name: str) -> Any:
    """Modules that load at their first use, and names that RMM's package had once."""
    return _eras.of_package(name)


__all__ = [
    "DeviceBuffer",
    "RMMError",
    "as_rmm",
    "csv_log",
    "disable_logging",
    "enable_logging",
    "errors",
    "flush_logger",
    "get_flush_level",
    "get_info",
    "get_log_filenames",
    "get_logging_level",
    "is_initialized",
    "level_enum",
    "logging_level",
    "mr",
    "open_tree",
    "register_reinitialize_hook",
    "reinitialize",
    "request_thread",
    "set_flush_level",
    "set_logging_level",
    "sharing",
    "should_log",
    "statistics",
    "to_device",
    "unregister_reinitialize_hook",
]
