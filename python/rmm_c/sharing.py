# SPDX-License-Identifier: Apache-2.0
"""Memory that processes share: blocks of a pool or an async resource, mapped by another process.

The exporter, with a socket that the importer has the other end of:

    pool = rmm_c.mr.VirtualPoolMemoryResource(exportable=True)
    buffer = rmm_c.DeviceBuffer(size=1 << 20, mr=pool)
    buffer.stream.synchronize()  # what wrote it is done
    with rmm_c.sharing.export(pool, buffer) as exported:
        exported.send(socket)

The importer:

    with rmm_c.sharing.Exported.receive(socket) as exported:
        memory = exported.open()
    array = cupy.asarray(memory)  # or memory.ptr, memory.size

docs/sharing.md says what happens when either process frees, ends or is killed.
"""
import os
import select
import socket as sockets
import weakref
from typing import Any, Dict, List, Optional, Tuple

from rmm_c import _core
from rmm_c.mr import DeviceMemoryResource


def _close(descriptors: List[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())


def _wait_for_first_byte(socket: sockets.socket) -> None:
    """Python's wait, because that of the library obeys neither a timeout nor Ctrl-C."""
    seconds = socket.gettimeout() or None  # a socket that does not block waits, too
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    if not poll.poll(None if seconds is None else seconds * 1000):
        raise TimeoutError(f"no export has come over the socket for {seconds:g} s")


class Exported:
    """What another process needs to map a block: bytes, and file descriptors, which it owns.

    ``record`` and ``descriptors`` may be sent by other means than send(), for example with
    ``socket.send_fds()`` of Python, and put together again with ``Exported(record, descriptors)``.
    """

    def __init__(self, record: bytes, descriptors: List[int]) -> None:
        self.record = record
        self.descriptors = list(descriptors)
        self._close = weakref.finalize(self, _close, self.descriptors)

    def send(self, socket: sockets.socket) -> None:
        """Send it over a connected Unix socket."""
        _core.pool_export_send(self.record, self.descriptors, socket.fileno())

    @classmethod
    def receive(cls, socket: sockets.socket) -> "Exported":
        """What send() of the other process, or rmm_pool_export_send(), has sent.

        Waits for it, at most for the socket's timeout (TimeoutError).
        """
        _wait_for_first_byte(socket)
        return cls(*_core.pool_export_receive(socket.fileno()))

    def open(self) -> "Imported":
        """Map the memory into this process."""
        return Imported(self)

    def close(self) -> None:
        """Close the descriptors. What was sent or opened stays."""
        self._close()

    def __enter__(self) -> "Exported":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


class Imported:
    """Memory of another process: ``ptr``, ``size`` and ``device``.

    It is unmapped by close(), or with the object. CuPy, Numba and PyTorch take it as an array of
    bytes, which does not keep it: keep the object as long as the array.
    """

    def __init__(self, exported: Exported) -> None:
        found: Tuple[int, int, int, int] = _core.pool_import(
            exported.record, exported.descriptors
        )
        handle, self._ptr, self.size, self.device = found
        self._release = weakref.finalize(self, _core.pool_import_release, handle)
        self._release.atexit = False  # the process's end unmaps it

    @property
    def ptr(self) -> int:
        """Where the memory is; 0 when it is closed."""
        return self._ptr if self._release.alive else 0

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        return {
            "data": (self.ptr, False),
            "shape": (self.size if self.ptr else 0,),
            "strides": None,
            "typestr": "|u1",
            "version": 3,
        }

    def close(self) -> None:
        """Wait for the device, and unmap the memory. Nothing may use it any more."""
        self._release()

    def __enter__(self) -> "Imported":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def export(
    mr: DeviceMemoryResource, block: Any, size: Optional[int] = None, fabric: bool = False
) -> Exported:
    """Describe a block for another process.

    Parameters
    ----------
    mr
        Where it comes from: a VirtualPoolMemoryResource with ``exportable=True``, a
        CudaAsyncMemoryResource with ``enable_ipc=True``, or an adaptor on one.
    block
        A DeviceBuffer, or an address in the memory of ``mr``.
    size
        How many bytes; by default those of the buffer, or to the end of the block.
    fabric
        A fabric handle, which has no descriptors, where the system has them.
    """
    ptr = block if isinstance(block, int) else block.ptr
    if size is None:
        size = 0 if isinstance(block, int) else block.size
    flags = _core.POOL_EXPORT_FABRIC if fabric else 0
    return Exported(*_core.pool_export(mr, ptr, size, flags))
