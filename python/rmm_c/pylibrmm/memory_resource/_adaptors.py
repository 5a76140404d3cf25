# SPDX-License-Identifier: Apache-2.0
"""Adaptors: resources that pass requests on to another one and add something."""
import os
from typing import Callable, List, Optional, Tuple, Union

from rmm_c import _core
from rmm_c.errors import also_saying
from rmm_c.pylibrmm.helper import Path
from rmm_c.pylibrmm.memory_resource._base import (
    DeviceMemoryResource,
    UpstreamResourceAdaptor,
    one_upstream,
)
from rmm_c._figures import Statistics


class AlignedResourceAdaptor(UpstreamResourceAdaptor):
    """Aligns requests of ``alignment_threshold`` bytes and more to ``alignment``."""

    _kind = "aligned"

    def __init__(
        self,
        upstream_mr: DeviceMemoryResource,
        alignment: int = 256,
        alignment_threshold: int = 0,
    ) -> None:
        _core.create(
            self,
            "aligned",
            upstream_mr,
            alignment_bytes=alignment,
            threshold_bytes=alignment_threshold,
        )
        self._created()

    def get_alignment(self) -> int:
        """The alignment in force."""
        return _core.query(self, "aligned_alignment")

    def get_alignment_threshold(self) -> int:
        """The size from which it applies."""
        return _core.query(self, "aligned_threshold")


class FailureCallbackResourceAdaptor(UpstreamResourceAdaptor):
    """Calls ``callback(nbytes)`` when memory is short; True: try again.

    An exception in the callback comes out of the allocation. The callback lives as long as this
    object.

    >>> def free_something(nbytes):
    ...     print("no room for", nbytes)
    ...     return False
    >>> base = LimitingResourceAdaptor(CudaMemoryResource(), 1000)
    >>> resource = FailureCallbackResourceAdaptor(base, free_something)
    >>> resource.allocate(2000)
    Traceback (most recent call last):
        ...
    rmm_c.errors.OutOfMemoryError: ...
    """

    _kind = "failure_callback"

    def __init__(
        self, upstream_mr: DeviceMemoryResource, callback: Callable[[int], bool]
    ) -> None:
        _core.create_failure_callback(self, upstream_mr, callback)
        self._created()


class LimitingResourceAdaptor(UpstreamResourceAdaptor):
    """Refuses what would raise the live bytes above ``allocation_limit``."""

    _kind = "limiting"

    def __init__(self, upstream_mr: DeviceMemoryResource, allocation_limit: int) -> None:
        _core.create(self, "limiting", upstream_mr, limit_bytes=allocation_limit)
        self._created()

    def get_allocated_bytes(self) -> int:
        """The bytes that count against the limit now."""
        return _core.query(self, "limiting_allocated")

    def get_allocation_limit(self) -> int:
        """The limit."""
        return _core.query(self, "limiting_limit")


class LoggingResourceAdaptor(UpstreamResourceAdaptor):
    """Writes a row of CSV for each allocation and free.

    Parameters
    ----------
    upstream_mr, upstream
        Where the memory comes from; the second is the name of RMM until 0.18.
    log_file_name
        The file, else RMM_LOG_FILE, with ".dev" and the device's number before its extension, as
        RMM names it. In a name with ``%d`` (device) or ``%p`` (process) these are replaced, and
        nothing is added. A folder that exists is taken literally. Rows are appended.
    auto_flush
        Write each row at once. Then a process loses none that ends by ``os._exit()``, as a worker
        of multiprocessing does, by a signal, or by ``os.exec*()``. Without it rows are buffered: a
        row costs a fraction, and the rows before such an end are lost.
    flush_interval_ms
        Without auto_flush: buffered rows that are older are written with the next row. 0: after
        a second.
    pool_size
        Two columns behind RMM's: ``PoolBytes``, what the pool below holds, and ``UsedBytes``, what
        of it is in use, after an allocation and before a free.
    """

    _kind = "logging"

    def __init__(
        self,
        upstream_mr: Optional[DeviceMemoryResource] = None,
        log_file_name: Union[Path, bytes, None] = None,
        auto_flush: bool = True,
        flush_interval_ms: int = 0,
        pool_size: bool = False,
        *,
        upstream: Optional[DeviceMemoryResource] = None,
    ) -> None:
        given = one_upstream(upstream_mr, upstream)
        name = log_file_name or os.environ.get("RMM_LOG_FILE")
        if not name:
            raise ValueError("no file for the log: neither log_file_name nor RMM_LOG_FILE is set")
        path = _log_path(os.fsdecode(name))
        _core.create(
            self,
            "logging",
            given,
            path=path,
            auto_flush=auto_flush,
            flush_interval_ms=flush_interval_ms,
            format=_core.LOGGING_FORMAT_POOL_SIZE if pool_size else 0,
        )
        self._created()

    def flush(self) -> None:
        """Write all buffered rows."""
        _core.logging_flush(self)

    def get_file_name(self) -> str:
        """The path of the file."""
        return _core.logging_path(self)


def _log_path(name: str) -> str:
    """The absolute path for the library, in which a % is of a replacement or doubled."""
    folder, file = os.path.split(name)
    if os.path.isdir(folder):
        folder = folder.replace("%", "%%")
        has_pattern = "%" in file
    else:
        has_pattern = "%" in name
    if not has_pattern:
        stem, extension = os.path.splitext(file)
        file = f"{stem}.dev%d{extension}"
    return os.path.normpath(os.path.join(os.getcwd().replace("%", "%%"), folder, file))


class PrefetchResourceAdaptor(UpstreamResourceAdaptor):
    """Brings managed memory to the device as soon as it is allocated."""

    _kind = "prefetch"

    def __init__(self, upstream_mr: DeviceMemoryResource) -> None:
        _core.create(self, "prefetch", upstream_mr)
        self._created()


class StatisticsResourceAdaptor(UpstreamResourceAdaptor):
    """Counts what passes through it, in scopes.

    >>> resource = StatisticsResourceAdaptor(CudaMemoryResource())
    >>> address = resource.allocate(100)
    >>> before = resource.push_counters()
    >>> resource.deallocate(address, 100)
    >>> before.current_bytes, resource.pop_counters().current_bytes
    (100, -100)
    """

    _kind = "statistics"

    def __init__(self, upstream_mr: DeviceMemoryResource) -> None:
        _core.create(self, "statistics", upstream_mr)
        self._created()

    @property
    def allocation_counts(self) -> Statistics:
        """The figures of the innermost scope."""
        return Statistics(*_core.statistics(self, "get"))

    def push_counters(self) -> Statistics:
        """Begin a scope; returns the figures of the one around it."""
        return Statistics(*_core.statistics(self, "push"))

    def pop_counters(self) -> Statistics:
        """End the innermost scope and return its figures."""
        with also_saying("cannot pop the last counter pair"):
            return Statistics(*_core.statistics(self, "pop"))

    def push_thread_counters(self) -> Statistics:
        """Begin a scope that counts the calls of this thread only."""
        return Statistics(*_core.statistics(self, "thread_push"))

    def pop_thread_counters(self) -> Statistics:
        """End this thread's innermost scope."""
        return Statistics(*_core.statistics(self, "thread_pop"))


class ThreadSafeResourceAdaptor(UpstreamResourceAdaptor):
    """Makes one call to its upstream at a time, for functions that are not thread-safe."""

    _kind = "thread_safe"

    def __init__(self, upstream_mr: DeviceMemoryResource) -> None:
        _core.create(self, "thread_safe", upstream_mr)
        self._created()


class TrackingResourceAdaptor(UpstreamResourceAdaptor):
    """Remembers every live block, on request with its call stack (of C functions).

    >>> resource = TrackingResourceAdaptor(CudaMemoryResource())
    >>> address = resource.allocate(100)
    >>> resource.get_outstanding_allocations() == [(address, 100)]
    True
    >>> resource.deallocate(address, 100)
    """

    _kind = "tracking"

    def __init__(self, upstream_mr: DeviceMemoryResource, capture_stacks: bool = False) -> None:
        _core.create(self, "tracking", upstream_mr, capture_stacks=capture_stacks)
        self._created()

    def get_allocated_bytes(self) -> int:
        """The live bytes."""
        return self.stats().current_bytes

    def get_outstanding_allocations(self) -> List[Tuple[int, int]]:
        """The address and the size of each live block."""
        return _core.tracking_outstanding(self)

    def get_outstanding_allocations_str(self) -> str:
        """The live blocks as text, with their stacks if these were captured."""
        return _core.tracking_report(self)

    def log_outstanding_allocations(self) -> None:
        """Write that text to the debug log."""
        _core.tracking_log(self)
