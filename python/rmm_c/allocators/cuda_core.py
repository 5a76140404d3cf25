# SPDX-License-Identifier: Apache-2.0
"""
Resources for cuda.core. Importing this module imports cuda.core.

::

    from cuda.core import Device
    from rmm_c.allocators.cuda_core import RMMMemoryResource

    device = Device()
    device.set_current()
    device.memory_resource = RMMMemoryResource()
"""
from typing import Any, Optional

try:
    from cuda.core import Buffer, MemoryResource
except ImportError:
    from cuda.core.experimental import Buffer, MemoryResource

from rmm_c import mr as resources
from rmm_c.pylibrmm.stream import DEFAULT_STREAM


class RMMMemoryResource(MemoryResource):
    """A resource of this package, by default the current device's, as one of cuda.core."""

    def __init__(self, mr: Optional[resources.DeviceMemoryResource] = None) -> None:
        self.mr = resources.get_current_device_resource() if mr is None else mr

    def allocate(self, size: int, stream: Any = None) -> Buffer:
        """Memory in the order of a stream; None: the default one."""
        address = self.mr.allocate(size, DEFAULT_STREAM if stream is None else stream)
        return Buffer.from_handle(address, size, mr=self)

    def deallocate(self, ptr: Any, size: int, stream: Any = None) -> None:
        """Called at the end of a buffer."""
        self.mr.deallocate(int(ptr), size, DEFAULT_STREAM if stream is None else stream)

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
