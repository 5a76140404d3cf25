# SPDX-License-Identifier: Apache-2.0
"""Resources that take their memory from the driver, from the host or from Python functions."""
from typing import Any, Callable, Optional

from rmm_c import _core
from rmm_c.pylibrmm.helper import Size, parse_optional_bytes
from rmm_c.pylibrmm.memory_resource._base import DeviceMemoryResource
from rmm_c.pylibrmm.stream import Stream


class CudaMemoryResource(DeviceMemoryResource):
    """cudaMalloc and cudaFree. Slow: the usual upstream of a pool."""

    _kind = "cuda"

    def __init__(self) -> None:
        _core.create_plain(self, "cuda")
        self._created()


class ManagedMemoryResource(DeviceMemoryResource):
    """cudaMallocManaged: memory that migrates between host and device."""

    _kind = "managed"

    def __init__(self) -> None:
        _core.create_plain(self, "managed")
        self._created()


class PinnedHostMemoryResource(DeviceMemoryResource):
    """Page-locked memory of the host, which devices can access.

    >>> import rmm_c, numpy
    >>> staging = rmm_c.DeviceBuffer(size=4, mr=PinnedHostMemoryResource())
    >>> view = numpy.frombuffer(staging, dtype="u1")
    >>> view[:] = 7
    >>> staging.tobytes()
    b'\\x07\\x07\\x07\\x07'
    """

    _kind = "pinned"

    def __init__(self) -> None:
        _core.create_plain(self, "pinned")
        self._created()


class HostMemoryResource(DeviceMemoryResource):
    """Aligned memory of the host's heap; needs no GPU."""

    _kind = "host"

    def __init__(self) -> None:
        _core.create_plain(self, "host")
        self._created()


class SystemMemoryResource(DeviceMemoryResource):
    """The host's heap, for devices that can access pageable memory (HMM, ATS)."""

    _kind = "system"

    def __init__(self) -> None:
        _core.create_plain(self, "system")
        self._created()


class SamHeadroomMemoryResource(DeviceMemoryResource):
    """System memory that leaves ``headroom`` bytes of the device free."""

    _kind = "sam_headroom"

    def __init__(self, headroom: int) -> None:
        _core.create_sam_headroom(self, headroom)
        self._created()

    def get_headroom(self) -> int:
        """The bytes that stay free."""
        return _core.query(self, "sam_headroom")


class _AsyncPool(DeviceMemoryResource):
    """What the resources over a CUDA memory pool have in common."""

    def pool_handle(self) -> int:
        """The cudaMemPool_t as a number."""
        return _core.async_pool_handle(self)

    def get_release_threshold(self) -> int:
        """The bytes that the CUDA pool keeps at a synchronise; 2**64 - 1: all."""
        return _core.query(self, "async_release_threshold")


class CudaAsyncMemoryResource(_AsyncPool):
    """cudaMallocAsync, with a CUDA memory pool of its own.

    Parameters
    ----------
    initial_pool_size
        Reserved at once; by default nothing.
    release_threshold
        A synchronise returns unused memory above it; by default the pool keeps all.
    enable_ipc, enable_fabric
        Allow file descriptors or fabric handles of the memory.
    peer_access
        By default other GPUs of the process that can access the memory of its device may use it.
    wait_before_refusal
        Synchronise once, and try again, before a request is refused.
    """

    _kind = "async"

    def __init__(
        self,
        initial_pool_size: Optional[Size] = None,
        release_threshold: Optional[int] = None,
        enable_ipc: bool = False,
        enable_fabric: bool = False,
        peer_access: bool = True,
        wait_before_refusal: bool = False,
    ) -> None:
        handles = _core.ASYNC_HANDLE_POSIX_FD if enable_ipc else 0
        handles |= _core.ASYNC_HANDLE_FABRIC if enable_fabric else 0
        _core.create_async(
            self,
            initial_pool_bytes=parse_optional_bytes(initial_pool_size),
            release_threshold_bytes=release_threshold or 0,
            handle_types=handles,
            release_unused=release_threshold == 0,
            peer_access=peer_access,
            wait_before_refusal=wait_before_refusal,
        )
        self._created()


class CudaAsyncViewMemoryResource(_AsyncPool):
    """Memory of an existing CUDA memory pool, which must outlive the resource."""

    _kind = "async_view"

    def __init__(self, pool_handle: Any) -> None:
        _core.create_async_view(self, int(pool_handle))
        self._created()


class CudaAsyncManagedMemoryResource(_AsyncPool):
    """The device's default pool of managed memory (CUDA 13)."""

    _kind = "async_managed"

    def __init__(self) -> None:
        _core.create_plain(self, "async_managed")
        self._created()


class CallbackMemoryResource(DeviceMemoryResource):
    """Memory from two Python functions.

    ``allocate_func(nbytes, stream)`` returns an address, aligned to 256 bytes, or raises;
    ``deallocate_func(ptr, nbytes, stream)`` frees it. They run on the thread that allocates or
    frees. An exception comes out of the call that made them run.

    >>> base = CudaMemoryResource()
    >>> def allocate(nbytes, stream):
    ...     print("allocate", nbytes)
    ...     return base.allocate(nbytes, stream)
    >>> resource = CallbackMemoryResource(allocate, base.deallocate)
    >>> address = resource.allocate(256)
    allocate 256
    >>> resource.deallocate(address, 256)
    """

    _kind = "custom"

    def __init__(
        self,
        allocate_func: Callable[[int, Stream], int],
        deallocate_func: Callable[[int, int, Stream], None],
    ) -> None:
        _core.create_callback(self, allocate_func, deallocate_func, name="callback")
        self._created()
