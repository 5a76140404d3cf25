# SPDX-License-Identifier: Apache-2.0
"""
An allocator for CuPy. A device whose default resource nobody chose gets AutoMemoryResource.
"""
from typing import Any

from rmm_c import _core
from rmm_c.pylibrmm.device_buffer import DeviceBuffer
from rmm_c.pylibrmm.stream import Stream

_core.default_resource_prefer_auto()


def rmm_cupy_allocator(nbytes: int) -> Any:
    """Allocates from the current device's default resource, on CuPy's current stream.

    ::

        import cupy
        from rmm_c.allocators.cupy import rmm_cupy_allocator

        cupy.cuda.set_allocator(rmm_cupy_allocator)
    """
    import cupy

    buffer = DeviceBuffer(size=nbytes, stream=Stream(cupy.cuda.get_current_stream()))
    device = -1 if buffer.ptr else cupy.cuda.device.get_device_id()
    memory = cupy.cuda.UnownedMemory(
        ptr=buffer.ptr, size=buffer.size, owner=buffer, device_id=device
    )
    return cupy.cuda.memory.MemoryPointer(memory, 0)
