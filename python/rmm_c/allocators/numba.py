# SPDX-License-Identifier: Apache-2.0
"""
An external memory manager for Numba. Importing this module imports Numba.

::

    from numba import cuda
    from rmm_c.allocators.numba import RMMNumbaManager

    cuda.set_memory_manager(RMMNumbaManager)

or NUMBA_CUDA_MEMORY_MANAGER=rmm_c.allocators.numba in the environment. A device whose default
resource nobody chose gets AutoMemoryResource, whose memory has no CUDA IPC handle if it is mapped:
RMM_RESOURCE=pool for that.
"""
import ctypes
from typing import Any, Callable, Dict

from numba import config, cuda
from numba.cuda import (
    GetIpcHandleMixin,
    HostOnlyCUDAMemoryManager,
    MemoryInfo,
    MemoryPointer,
)

from rmm_c import _core, mr
from rmm_c.pylibrmm.device_buffer import DeviceBuffer
from rmm_c.pylibrmm.stream import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Stream

_core.default_resource_prefer_auto()


def _finalizer(buffer: DeviceBuffer, allocations: Dict[int, Any]) -> Callable[[], None]:
    """Holds the buffer as long as its array lives. A reset of the context empties the table before,
    so the entry of the address may be another array's."""
    address = buffer.ptr

    def finalize() -> None:
        if allocations.get(address) is buffer:
            del allocations[address]

    return finalize


def _default_stream() -> Stream:
    per_thread = getattr(config, "CUDA_PER_THREAD_DEFAULT_STREAM", 0)
    return PER_THREAD_DEFAULT_STREAM if per_thread else LEGACY_DEFAULT_STREAM


def _pointer(address: int) -> Any:
    """An address as the Numba that is there represents it."""
    driver = cuda.cudadrv.driver
    if getattr(driver, "USE_NV_BINDING", True):
        return driver.binding.CUdeviceptr(address)
    return ctypes.c_uint64(address)


class RMMNumbaManager(GetIpcHandleMixin, HostOnlyCUDAMemoryManager):
    """Allocates device memory from the current device's default resource."""

    def initialize(self) -> None:
        """Nothing to do for a new context."""

    def memalloc(self, size: int) -> MemoryPointer:
        """Allocate device memory for an array."""
        buffer = DeviceBuffer(size=size, stream=_default_stream())
        self.allocations[buffer.ptr] = buffer
        finalizer = _finalizer(buffer, self.allocations)
        return MemoryPointer(self.context, _pointer(buffer.ptr), size, finalizer=finalizer)

    def get_memory_info(self) -> MemoryInfo:
        """The free and all bytes of the device; a pool's own free memory does not count."""
        free, total = mr.available_device_memory()
        return MemoryInfo(free=free, total=total)

    @property
    def interface_version(self) -> int:
        """Of Numba's interface."""
        return 1


_numba_memory_manager = RMMNumbaManager
