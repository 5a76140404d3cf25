# SPDX-License-Identifier: Apache-2.0
"""
Resources for cuda.core. Importing this module imports cuda.core. A device whose default resource
nobody chose gets AutoMemoryResource.

::

    from cuda.core import Device
    from rmm_c.allocators.cuda_core import RMMMemoryResource

    device = Device()
    device.set_current()
    device.memory_resource = RMMMemoryResource()
"""
from typing import Any, Dict, Optional

try:
    from cuda.core import Buffer, MemoryResource
except ImportError:
    from cuda.core.experimental import Buffer, MemoryResource

from rmm_c import _core, mr as resources
from rmm_c.pylibrmm.device_buffer import DeviceBuffer
from rmm_c.pylibrmm.stream import DEFAULT_STREAM

_core.default_resource_prefer_auto()


def _buffer(address: int, size: int, mr: MemoryResource, stream: Any) -> Buffer:
    """A buffer that ends on the stream, if this cuda.core can be told; else on the default one."""
    if stream is not None:
        try:
            return Buffer.from_handle(address, size, mr=mr, stream=stream)
        except TypeError:  # an older cuda.core
            pass
    return Buffer.from_handle(address, size, mr=mr)


class RMMMemoryResource(MemoryResource):
    """A resource of this package, by default the current device's, as one of cuda.core."""

    def __init__(self, mr: Optional[resources.DeviceMemoryResource] = None) -> None:
        self.mr = resources.get_current_device_resource() if mr is None else mr
        self._live: Dict[int, DeviceBuffer] = {}  # by address, which is unique while it lives

    def allocate(self, size: int, stream: Any = None) -> Buffer:
        """Memory in the order of a stream; None: the default one."""
        on = DEFAULT_STREAM if stream is None else stream
        memory = DeviceBuffer(size=size, stream=on, mr=self.mr)
        if size != 0:
            self._live[memory.ptr] = memory
        try:
            return _buffer(memory.ptr, size, self, stream)
        except BaseException:
            self._live.pop(memory.ptr, None)
            raise

    def deallocate(self, ptr: Any, size: int, stream: Any = None) -> None:
        """Called at the end of a buffer, often with the default stream. The free is behind the work
        of the stream of the allocation, too. What allocate() has not returned is left alone."""
        memory = self._live.pop(int(ptr), None)  # then freed: the address may be another's at once
        if memory is not None and stream is not None:
            memory.stream = stream

    @property
    def is_device_accessible(self) -> bool:
        """True if a device can use the memory."""
        return self.mr.is_device_accessible

    @property
    def is_host_accessible(self) -> bool:
        """True if the host can."""
        return self.mr.is_host_accessible

    @property
    def device_id(self) -> int:
        """The device of the memory."""
        return self.mr.device
