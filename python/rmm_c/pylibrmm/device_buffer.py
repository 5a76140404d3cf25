# SPDX-License-Identifier: Apache-2.0
"""A buffer of device memory, and copies between raw addresses and the host."""
import copy
import pickle
from typing import Any, Callable, Dict, Optional, Tuple, Type

from rmm_c import _core
from rmm_c.pylibrmm.stream import DEFAULT_STREAM, Stream, as_stream


# DLDeviceType of DLPack: of memory of a device, and of others by the kind of the resource at the
# bottom. AMD has numbers of its own, and none for managed memory.
_DLPACK_CPU = 1
_DLPACK_CUDA = (2, {"pinned": 3, "managed": 13, "async_managed": 13, "host": _DLPACK_CPU})
_DLPACK_HIP = (10, {"pinned": 11, "host": _DLPACK_CPU})


def _dlpack_types() -> Tuple[int, Dict[str, int]]:
    return _DLPACK_HIP if _core.driver_name() == "hip" else _DLPACK_CUDA


class DeviceBuffer(_core.Buffer):
    """Untyped memory, allocated and freed in the order of a stream.

    All arguments are keywords:

    ptr
        An address of host or device memory to copy from. The copy is queued on the stream, and
        the call waits for it only if that is the default stream.
    size
        The size in bytes.
    stream
        The stream of the allocation, and of the free; kept alive.
    mr
        The resource; by default that of the current device.

    Memory that the host can access (managed, pinned, host) can be viewed without a copy:
    ``memoryview(buffer)``, ``numpy.frombuffer(buffer)``.

    >>> buffer = DeviceBuffer(size=100)
    >>> buffer.size, buffer.ptr % 256
    (100, 0)
    """

    __slots__ = ()

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
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
        of_device, others = _dlpack_types()
        default = of_device if resource.properties & _core.DEVICE_ACCESSIBLE else _DLPACK_CPU
        kind = others.get(resource.kind, default)
        return kind, 0 if kind == _DLPACK_CPU else self.device

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Optional[Tuple[int, int]] = None,
        dl_device: Optional[Tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> Any:
        """The buffer as an array of bytes, for the from_dlpack() of other packages. While that
        array lives, the buffer cannot be resized. Waits for the buffer's stream, unless the
        array is for that stream or ``stream`` is -1. 0 may be either default stream: waits."""
        kind, device = self.__dlpack_device__()
        if dl_device is not None and tuple(dl_device) != (kind, device):
            raise BufferError(f"the memory is on device {(kind, device)} of DLPack")
        source = self.copy() if copy else self
        is_named = kind == _dlpack_types()[0] and stream not in (None, 0, -1)
        if stream != -1 and not (is_named and self.stream == Stream(stream)):
            source.stream.synchronize()
        versioned = max_version is not None and tuple(max_version) >= (1,)
        return _core.to_dlpack(source, kind, device, versioned)

    def __bytes__(self) -> bytes:
        return self.tobytes()

    def __sizeof__(self) -> int:
        return self.size

    def __copy__(self) -> "DeviceBuffer":
        made = self._copy_as(type(self))
        _attributes(made).update(_attributes(self))
        return made

    def __deepcopy__(self, memo: Dict[int, Any]) -> "DeviceBuffer":
        made = memo[id(self)] = self._copy_as(type(self))
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

    def _copy_as(self, kind: Type["DeviceBuffer"]) -> "DeviceBuffer":
        """Without the constructor of a subclass, whose arguments are not known."""
        return _core.Buffer.__new__(
            kind, ptr=self.ptr, size=self.size, stream=self.stream, mr=self.mr
        )

    def copy(self) -> "DeviceBuffer":
        """A deep copy, from the same resource and on the same stream; no subclass."""
        return self._copy_as(DeviceBuffer)

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
        """Copy a contiguous array of one dimension that has ``__cuda_array_interface__``. Waits
        for the stream that the array names, unless the copy is on that stream.

        >>> buffer = DeviceBuffer.to_device(b"abcdef")
        >>> buffer.copy_from_device(DeviceBuffer.to_device(b"12"))
        >>> buffer.tobytes()
        b'12cdef'
        """
        address, size = _contiguous(cuda_ary)
        if size > self.size:
            raise ValueError(f"the array is too large: {size} bytes, the buffer has {self.size}")
        producer = cuda_ary.__cuda_array_interface__.get("stream")
        if producer is not None and Stream(producer) != as_stream(stream):
            Stream(producer).synchronize()
        copy_device_to_ptr(address, self.ptr, size, stream)

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


def _contiguous(cuda_ary: Any) -> Tuple[int, int]:
    """The address and the bytes of an array of one dimension."""
    if not hasattr(cuda_ary, "__cuda_array_interface__"):
        raise ValueError("the object has no __cuda_array_interface__")
    import numpy  # knows the sizes of all types: a "U4" has 16 bytes

    interface = cuda_ary.__cuda_array_interface__
    shape, strides = interface["shape"], interface.get("strides")
    item = numpy.dtype(interface["typestr"]).itemsize
    if len(shape) > 1:
        raise ValueError(f"only arrays of one dimension can be copied, not of {len(shape)}")
    count = shape[0] if shape else 1
    if strides and count > 1 and strides[0] != item:
        raise ValueError("only contiguous arrays can be copied")
    return interface["data"][0], count * item


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
    """Queue a copy between two device addresses on a stream. Does not wait."""
    _core.copy_device(d_src, d_dst, count, stream)
