# SPDX-License-Identifier: Apache-2.0
"""Resources that take their memory from the driver, from the host or from Python functions."""
import inspect
import operator
from typing import Any, Callable, Optional, TypeVar, Union

from rmm_c import _core
from rmm_c.errors import also_saying
from rmm_c.pylibrmm.helper import Size, parse_optional_bytes
from rmm_c.pylibrmm.memory_resource._base import DeviceMemoryResource

T = TypeVar("T")


class CudaMemoryResource(DeviceMemoryResource):
    """cudaMalloc and cudaFree. Slow: the usual upstream of a pool.

    Of ``device``, as in RMM until 0.19; by default of the current one.
    """

    _kind = "cuda"

    def __init__(self, device: Optional[int] = None) -> None:
        current = _core.device_current() if device is not None else 0
        if device is not None:
            _core.device_set(device)
        try:
            _core.create(self, "cuda")
        finally:
            if device is not None:
                _core.device_set(current)
        self._created()


class ManagedMemoryResource(DeviceMemoryResource):
    """cudaMallocManaged: memory that migrates between host and device."""

    _kind = "managed"

    def __init__(self) -> None:
        _core.create(self, "managed")
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
        _core.create(self, "pinned")
        self._created()


class HostMemoryResource(DeviceMemoryResource):
    """Aligned memory of the host's heap; needs no GPU."""

    _kind = "host"

    def __init__(self) -> None:
        _core.create(self, "host")
        self._created()


class SystemMemoryResource(DeviceMemoryResource):
    """The host's heap, for devices that can access pageable memory (HMM, ATS)."""

    _kind = "system"

    def __init__(self) -> None:
        _core.create(self, "system")
        self._created()


class SamHeadroomMemoryResource(DeviceMemoryResource):
    """System memory that leaves ``headroom`` bytes of the device free."""

    _kind = "sam_headroom"

    def __init__(self, headroom: int) -> None:
        _core.create(self, "sam_headroom", headroom_bytes=headroom)
        self._created()

    def get_headroom(self) -> int:
        """The bytes that stay free."""
        return _core.query(self, "sam_headroom")


def _async_flags(
    release_threshold: Optional[int], peer_access: bool, wait_before_refusal: bool
) -> int:
    flags = _core.ASYNC_RELEASE_UNUSED if release_threshold == 0 else 0
    flags |= 0 if peer_access else _core.ASYNC_NO_PEER_ACCESS
    return flags | (_core.ASYNC_WAIT_BEFORE_REFUSAL if wait_before_refusal else 0)


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
        with also_saying("Requested IPC memory handle type not supported", handles != 0):
            _core.create(
                self,
                "async",
                initial_pool_bytes=parse_optional_bytes(initial_pool_size),
                release_threshold_bytes=release_threshold or 0,
                handle_types=handles,
                flags=_async_flags(release_threshold, peer_access, wait_before_refusal),
            )
        self._created()


class CudaAsyncPinnedMemoryResource(_AsyncPool):
    """Pinned memory of the host in the order of streams, with a CUDA memory pool of its own.

    Parameters
    ----------
    initial_pool_size, release_threshold, peer_access, wait_before_refusal
        As of CudaAsyncMemoryResource.
    numa_node
        Where the memory is: the number of a NUMA node, or "nearest" for the one near the device
        (CUDA 12.6); by default on any node (CUDA 13).

    >>> import rmm_c, numpy
    >>> staging = rmm_c.DeviceBuffer(size=4, mr=CudaAsyncPinnedMemoryResource())
    >>> staging.stream.synchronize()
    >>> view = numpy.frombuffer(staging, dtype="u1")
    >>> view[:] = 7
    >>> staging.tobytes()
    b'\\x07\\x07\\x07\\x07'
    """

    _kind = "async_pinned"

    def __init__(
        self,
        initial_pool_size: Optional[Size] = None,
        release_threshold: Optional[int] = None,
        numa_node: Union[int, str, None] = None,
        peer_access: bool = True,
        wait_before_refusal: bool = False,
    ) -> None:
        location, node = _core.ASYNC_ON_HOST, 0
        if numa_node == "nearest":
            location = _core.ASYNC_ON_NEAREST_NODE
        elif numa_node is not None:
            location = _core.ASYNC_ON_NODE
            node = operator.index(numa_node)  # type: ignore[arg-type]
        _core.create(
            self,
            "async",
            initial_pool_bytes=parse_optional_bytes(initial_pool_size),
            release_threshold_bytes=release_threshold or 0,
            flags=_async_flags(release_threshold, peer_access, wait_before_refusal),
            location=location,
            numa_node=node,
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
        _core.create(self, "async_managed")
        self._created()


def _with_stream(function: Callable[..., T], count: int) -> Callable[..., T]:
    """The function itself, or one that leaves out the stream, which is behind ``count`` others."""
    if inspect.isbuiltin(function):  # of another resource, or as the library calls it
        return function
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # no function: the library says so
        return function
    others = (0,) * count
    try:
        signature.bind(*others, None)
        return function
    except TypeError:
        pass
    try:
        signature.bind(*others)
    except TypeError:
        return function  # which is called as it should be, and says what it lacks
    return lambda *arguments: function(*arguments[:count])


class CallbackMemoryResource(DeviceMemoryResource):
    """Memory from two Python functions.

    ``allocate_func(nbytes, stream)`` returns an address, aligned to 256 bytes, or raises;
    ``deallocate_func(ptr, nbytes, stream)`` frees it. A function that cannot take the stream is
    called without it, as in RMM until 24.02. They run on the thread that allocates or frees. An
    exception comes out of the call that made them run.

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
        allocate_func: Callable[..., int],
        deallocate_func: Callable[..., None],
    ) -> None:
        _core.create_callback(
            self,
            _with_stream(allocate_func, 1),
            _with_stream(deallocate_func, 2),
            name="callback",
        )
        self._created()
