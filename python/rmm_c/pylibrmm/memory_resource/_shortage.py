# SPDX-License-Identifier: Apache-2.0
"""Adaptors for when memory is short: allocate elsewhere, try again, wait until a thread frees."""
from rmm_c import _core
from rmm_c.pylibrmm.memory_resource._base import (
    DeviceMemoryResource,
    UpstreamResourceAdaptor,
    wrap_address,
)


class FallbackResourceAdaptor(UpstreamResourceAdaptor):
    """Allocates from ``alternate_mr`` what ``upstream_mr`` refuses because memory is short.

    >>> pool = PoolMemoryResource(CudaMemoryResource(), "1MiB", "1MiB")
    >>> resource = FallbackResourceAdaptor(pool, ManagedMemoryResource())
    >>> address = resource.allocate(2 << 20)
    >>> resource.alternate_mr.stats().current_bytes, resource.alternate_count()
    (2097152, 1)
    >>> resource.deallocate(address, 2 << 20)
    """

    _kind = "fallback"

    def __init__(
        self, upstream_mr: DeviceMemoryResource, alternate_mr: DeviceMemoryResource
    ) -> None:
        _core.create(self, "fallback", upstream_mr, alternate=alternate_mr)
        self._alternate = alternate_mr
        self._created()

    @property
    def alternate_mr(self) -> DeviceMemoryResource:
        """The resource for what upstream refuses."""
        return wrap_address(_core.fallback_alternate(self))

    def alternate_count(self) -> int:
        """The blocks of the alternate that are live now."""
        return _core.query(self, "fallback_alternate_count")


class RetryResourceAdaptor(UpstreamResourceAdaptor):
    """Tries again, after a synchronise, before a request fails because memory is short.

    Parameters
    ----------
    upstream_mr
        Where the memory comes from.
    timeout_ms
        For how long to try again and again; 0: once.
    """

    _kind = "retry"

    def __init__(self, upstream_mr: DeviceMemoryResource, timeout_ms: int = 0) -> None:
        _core.create(self, "retry", upstream_mr, timeout_ms=timeout_ms)
        self._created()


class WaitResourceAdaptor(UpstreamResourceAdaptor):
    """Lets a request wait until another thread frees memory.

    It fails after ``timeout_ms``, or at once if all threads that hold memory from this adaptor wait
    in it: then one of them is refused, and can free some for the others. Ctrl-C takes effect behind
    the wait.

    Parameters
    ----------
    upstream_mr
        Where the memory comes from.
    timeout_ms
        For how long a request may wait; 0: 10 seconds.

    >>> resource = WaitResourceAdaptor(LimitingResourceAdaptor(CudaMemoryResource(), 1000))
    >>> address = resource.allocate(600)
    >>> resource.allocate(600)
    Traceback (most recent call last):
        ...
    rmm_c.errors.OutOfMemoryError: ... all threads that hold its memory wait for more; ...
    >>> resource.deallocate(address, 600)
    """

    _kind = "wait"

    def __init__(self, upstream_mr: DeviceMemoryResource, timeout_ms: int = 0) -> None:
        _core.create(self, "wait", upstream_mr, timeout_ms=timeout_ms)
        self._created()

    def waiting(self) -> int:
        """The requests that wait at this moment."""
        return _core.query(self, "wait_waiting")
