# SPDX-License-Identifier: Apache-2.0
"""
A bridge into the RMM of RAPIDS that is installed beside this package.

::

    import rmm, rmm_c
    from rmm_c import rapids

    pool = rmm_c.mr.PoolMemoryResource(rmm_c.mr.CudaMemoryResource(), "8GiB")
    rmm.mr.set_current_device_resource(rapids.as_rmm(pool))

From then on cuDF, cuML and whatever else allocates by RMM use the pool. from_rmm() is the way
back: a resource over one of RMM.

The first use compiles a small C++ module against the installed RMM and keeps it in a cache
(build()). Without a compiler, without RMM or with one that is not supported, a RapidsError says
in one line what is missing.
"""
import ctypes
from typing import Any, Optional

from rmm_c import _core, errors
from rmm_c.pylibrmm.device_buffer import DeviceBuffer
from rmm_c.pylibrmm.memory_resource._base import DeviceMemoryResource
from rmm_c.rapids._bridge import Bridge, RapidsError, bridge, build

__all__ = [
    "RapidsError",
    "RapidsMemoryResource",
    "as_rmm",
    "as_rmm_buffer",
    "build",
    "from_rmm",
]


class _Owned:
    """What an object of RMM's class refers to but does not own."""

    def __init__(self, library: Any, handle: Optional[int]) -> None:
        self._library, self._handle = library, handle

    def __del__(self) -> None:
        if self._handle:
            self._library.rmm_c_rapids_end(self._handle)
            self._handle = None


def _filled(mr: DeviceMemoryResource, hands_over: bool) -> Any:
    found = bridge()
    made = found.kind.__new__(found.kind)
    owned = ctypes.c_void_p()
    status = found.library.rmm_c_rapids_fill(
        found.slot_of(made), mr.handle, hands_over, ctypes.byref(owned)
    )
    _check(found, status)
    made.resource = mr
    made._owned = _Owned(found.library, owned.value)
    return made


def _check(found: Bridge, status: int) -> None:
    if status != 0:
        message = found.library.rmm_c_rapids_message().decode(errors="replace")
        raise errors.by_status(_core.status_map())[status](status, message)


def as_rmm(mr: DeviceMemoryResource) -> Any:
    """The resource as one of RMM: a subclass of ``rmm.mr.DeviceMemoryResource``.

    ``rmm.mr.set_current_device_resource()`` takes it, and every adaptor and buffer of RMM. Its
    attribute ``resource`` is ``mr``, which it keeps alive. A failure raises MemoryError, as those
    of RMM's own resources do.
    """
    if isinstance(mr, RapidsMemoryResource):
        return mr.rmm_mr
    if not isinstance(mr, DeviceMemoryResource):
        raise TypeError(f"a memory resource of rmm_c is needed, not {type(mr).__name__!r}")
    return _filled(mr, False)


class RapidsMemoryResource(DeviceMemoryResource):
    """A resource over one of RMM, which is ``rmm_mr``: what from_rmm() makes."""

    def __init__(self, rmm_mr: Any, name: str = "rapids") -> None:
        found = bridge()
        if not isinstance(rmm_mr, found.base):
            raise TypeError(f"a memory resource of rmm is needed, not {type(rmm_mr).__name__!r}")
        made = ctypes.c_void_p()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(rmm_mr))  # of the C resource
        status = found.library.rmm_c_rapids_import(
            found.slot_of(rmm_mr), id(rmm_mr), name.encode(), ctypes.byref(made)
        )
        _check(found, status)
        found.adopt(self, made.value)
        self.rmm_mr = rmm_mr
        self._created()


def from_rmm(mr: Any, name: str = "rapids") -> DeviceMemoryResource:
    """A resource over one of RMM, for example as the upstream of a pool.

    It keeps ``mr`` alive as long as the library uses it. Streams are passed on. An exception of
    RMM comes out of the call as RMM raises it in Python, as MemoryError for example. ``/rmm``
    shows ``name``.
    """
    resource = getattr(mr, "resource", None)
    if isinstance(resource, DeviceMemoryResource):
        return resource  # as_rmm() made it
    return RapidsMemoryResource(mr, name)


def as_rmm_buffer(buffer: DeviceBuffer) -> Any:
    """Move the memory of a buffer into a new ``rmm.DeviceBuffer``, without a copy.

    ``buffer`` is empty afterwards. The new one is on the same stream, and frees to the resource
    that the memory came from. Raises BufferError if a view of the memory exists, and ValueError
    if the buffer was made by C with an alignment of its own.
    """
    if not isinstance(buffer, DeviceBuffer):
        raise TypeError(f"a DeviceBuffer of rmm_c is needed, not {type(buffer).__name__!r}")
    rmm = bridge().rmm
    stream = rmm.pylibrmm.stream.Stream(buffer.stream)
    made_by, size = _filled(buffer.mr, True), buffer.size
    ptr, capacity = _core.take_block(buffer)
    bridge().library.rmm_c_rapids_hand_over(ptr)
    try:
        made = rmm.DeviceBuffer(size=capacity, stream=stream, mr=made_by)
    except BaseException:
        bridge().library.rmm_c_rapids_hand_over(None)
        buffer.mr.deallocate(ptr, capacity, buffer.stream)
        raise
    if size != capacity:
        made.resize(size, stream)
    return made
