# SPDX-License-Identifier: Apache-2.0
"""A buffer of device memory, and copies between raw addresses and the host."""
import copy
import pickle
from typing import Any, Callable, Dict, Optional, Tuple, Type

from rmm_c import _core
from rmm_c.pylibrmm._exchange import DLPACK_CPU, contiguous, dlpack_types, interface_of, wait_for
from rmm_c.pylibrmm.stream import DEFAULT_STREAM, Stream

class DeviceBuffer(_core.Buffer):
    """Untyped memory, allocated and freed in the order of a stream.

    All arguments are keywords:

    ptr
        An address of host or device memory to copy from. The call waits for the copy.
    size
        The size in bytes.
    stream
        The stream of the allocation, of the program's own work on the memory, and of the free;
        kept alive.
    mr
        The resource; by default that of the current device.

    Order: a method that works on another stream than the buffer's is behind the work of the
    buffer's one, and behind what a former method has queued elsewhere. So the program orders only
    its own work, and only if that is not on the buffer's stream.

    Memory that the host can access (managed, pinned, host) can be viewed without a copy:
    ``memoryview(buffer)``, ``numpy.frombuffer(buffer)``.

    >>> buffer = DeviceBuffer(size=100)
    >>> buffer.size, buffer.ptr % 256
    (100, 0)
    """

    __slots__ = ()

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        """The buffer as an array of bytes, for other packages. It names the buffer's stream,
        which is ordered behind what is not on it."""
        if not self.mr.is_device_accessible:
            raise AttributeError(
                "__cuda_array_interface__: this memory is the host's, and no device can access it"
            )
        self._settle_for(self.stream)
        return {
            "data": (self.ptr, False),
            "shape": (self.size,),
            "strides": None,
            "typestr": "|u1",
            "version": 3,
            "stream": self.stream.handle or _core.STREAM_LEGACY,
        }

    def __dlpack_device__(self) -> Tuple[int, int]:
        resource = self.mr
        while resource.upstream_mr is not None:
            resource = resource.upstream_mr
        of_device, others = dlpack_types()
        default = of_device if resource.properties & _core.DEVICE_ACCESSIBLE else DLPACK_CPU
        kind = others.get(resource.kind, default)
        return kind, 0 if kind == DLPACK_CPU else self.device

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Optional[Tuple[int, int]] = None,
        dl_device: Optional[Tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> Any:
        """The buffer as an array of bytes, for the from_dlpack() of other packages. While that
        array lives, the buffer cannot be resized. Waits for the buffer's work, unless the array
        is for the stream of it or ``stream`` is -1. 0 may be either default stream: waits."""
        kind, device = self.__dlpack_device__()
        if dl_device is not None and tuple(dl_device) != (kind, device):
            raise BufferError(f"the memory is on device {(kind, device)} of DLPack")
        source = self.copy() if copy else self
        if stream != -1:
            is_named = kind == dlpack_types()[0] and stream not in (None, 0)
            source._settle_for(Stream(stream) if is_named else None)
        elif copy:
            source.stream.synchronize()  # nobody else knows of the copy
        versioned = max_version is not None and tuple(max_version) >= (1,)
        return _core.to_dlpack(source, kind, device, versioned)

    def __bytes__(self) -> bytes:
        return self.tobytes()

    def __sizeof__(self) -> int:
        return self.size

    def __copy__(self) -> "DeviceBuffer":
        made: DeviceBuffer = self._copy_as(type(self))
        _attributes(made).update(_attributes(self))
        return made

    def __deepcopy__(self, memo: Dict[int, Any]) -> "DeviceBuffer":
        made: DeviceBuffer = self._copy_as(type(self))
        memo[id(self)] = made
        _attributes(made).update(copy.deepcopy(_attributes(self), memo))
        return made

    def __reduce__(self) -> Any:
        return self._reduced(bytes)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if type(self).__reduce__ is not DeviceBuffer.__reduce__:
            return self.__reduce__()  # that of a subclass counts, as with any class
        return self._reduced(pickle.PickleBuffer if protocol >= 5 else bytes)

    def _reduced(self, packed: Callable[[bytearray], Any]) -> Any:
        data = bytearray(self.size)
        self.copy_to_host(data, self.stream)
        return _from_pickle, (type(self), packed(data)), _attributes(self) or None

    def copy(self) -> "DeviceBuffer":
        """A deep copy, from the same resource and on the same stream; no subclass. Queued."""
        made: DeviceBuffer = self._copy_as(DeviceBuffer)
        return made

    @staticmethod
    def to_device(
        b: Any, stream: Any = DEFAULT_STREAM, mr: Any = None
    ) -> "DeviceBuffer":
        """A new buffer with a copy of bytes of the host.

        >>> DeviceBuffer.to_device(b"abc").tobytes()
        b'abc'
        """
        buffer = DeviceBuffer(size=memoryview(b).nbytes, stream=stream, mr=mr)
        buffer._write_from(b, 0, stream)
        return buffer

    def copy_to_host(self, ary: Any = None, stream: Any = DEFAULT_STREAM) -> Any:
        """Copy to a writable buffer of the host, by default a new NumPy array. Waits.

        >>> DeviceBuffer.to_device(b"abc").copy_to_host()
        array([97, 98, 99], dtype=uint8)
        """
        if ary is None:
            import numpy

            ary = numpy.empty((self.size,), dtype="u1")
        view = memoryview(ary).cast("B") if self.size else memoryview(b"")
        if len(view) < self.size:
            raise ValueError(f"ary is too small: {len(view)} bytes, {self.size} are needed")
        self._read_into(view[: self.size] if self.size else bytearray(), 0, stream)
        return ary

    def copy_from_host(self, ary: Any, stream: Any = DEFAULT_STREAM) -> None:
        """Copy bytes of the host to the beginning of the buffer. Waits.

        >>> buffer = DeviceBuffer.to_device(b"abcdef")
        >>> buffer.copy_from_host(b"xyz")
        >>> buffer.tobytes()
        b'xyzdef'
        """
        size = memoryview(ary).nbytes
        if size > self.size:
            raise ValueError(f"ary is too large: {size} bytes, the buffer has {self.size}")
        self._write_from(ary, 0, stream)

    def copy_from_device(self, cuda_ary: Any, stream: Any = DEFAULT_STREAM) -> None:
        """Copy a contiguous array of one dimension that has ``__cuda_array_interface__``.

        The copy is ordered behind the work of the stream that the array names (if it names none,
        of its device's default streams, and of PyTorch's current one). A copy of a DeviceBuffer's
        memory is queued; for others the call waits, because nothing else orders their end.

        >>> buffer = DeviceBuffer.to_device(b"abcdef")
        >>> buffer.copy_from_device(DeviceBuffer.to_device(b"12"))
        >>> buffer.tobytes()
        b'12cdef'
        """
        if isinstance(cuda_ary, DeviceBuffer):
            address, size = cuda_ary.ptr, cuda_ary.size
        else:
            interface = interface_of(cuda_ary)
            address, size = contiguous(interface)
        if size > self.size:
            raise ValueError(f"the array is too large: {size} bytes, the buffer has {self.size}")
        if not isinstance(cuda_ary, DeviceBuffer):
            wait_for(cuda_ary, interface, self.device, stream)
        self._copy_from(cuda_ary, address, size, stream)

    def tobytes(self, stream: Any = DEFAULT_STREAM) -> bytes:
        """The contents as bytes. Waits."""
        data = bytearray(self.size)
        self._read_into(data, 0, stream)
        return bytes(data)

    to_bytes = tobytes

    def prefetch(self, device: Optional[int] = None, stream: Any = None) -> None:
        """Bring managed memory to a device (-1: the host); by default to the current one, on
        the buffer's stream. Does nothing for other memory."""
        target = _core.device_current() if device is None else int(device)
        self._prefetch_to(target, self.stream if stream is None else stream)


def _attributes(buffer: DeviceBuffer) -> Dict[str, Any]:
    """Those of an object of a subclass; a DeviceBuffer has none."""
    return getattr(buffer, "__dict__", {})


def _from_pickle(kind: Type[DeviceBuffer], data: Any) -> DeviceBuffer:
    buffer = _core.Buffer.__new__(kind, size=memoryview(data).nbytes)
    buffer._write_from(data, 0, DEFAULT_STREAM)
    return buffer


def to_device(b: Any, stream: Any = DEFAULT_STREAM) -> DeviceBuffer:
    """A new buffer with a copy of bytes of the host."""
    return DeviceBuffer.to_device(b, stream)


def copy_ptr_to_host(db: int, hb: Any, stream: Any = DEFAULT_STREAM) -> None:
    """Fill a writable buffer of the host from a device address. Waits."""
    _core.copy_to_host(db, hb, stream)


def copy_host_to_ptr(hb: Any, db: int, stream: Any = DEFAULT_STREAM) -> None:
    """Copy all bytes of a buffer of the host to a device address. Waits."""
    _core.copy_from_host(db, hb, stream)


def copy_device_to_ptr(
    d_src: int, d_dst: int, count: int, stream: Any = DEFAULT_STREAM
) -> None:
    """Queue a copy between two device addresses on a stream of the current device.

    Addresses in the memory of a DeviceBuffer are ordered as by its own methods; others are the
    program's to order. Does not wait for the copy, unless the stream is given as a number, which
    keeps no stream alive.
    """
    _core.copy_device(d_src, d_dst, count, stream)
