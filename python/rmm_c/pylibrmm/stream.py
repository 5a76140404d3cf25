# SPDX-License-Identifier: Apache-2.0
"""CUDA streams: new ones, the default ones, and those of other libraries."""
import sys
from enum import IntEnum
from typing import Any, Optional, Tuple

from rmm_c import _core


class CudaStreamFlags(IntEnum):
    """How a new stream is ordered with the legacy default stream."""

    SYNC_DEFAULT = 0
    NON_BLOCKING = _core.STREAM_NON_BLOCKING


class Stream(_core.Stream):
    """A CUDA stream.

    Without ``obj`` a new stream is created, and destroyed with this object. Else this is the
    stream of ``obj``, which is kept alive: a ``Stream``, any object with
    ``__cuda_stream__`` (CuPy, cuda.core, Numba and PyTorch of recent versions), a stream of
    CuPy, Numba or PyTorch, or the number of a cudaStream_t.

    >>> stream = Stream()
    >>> stream.synchronize()
    >>> Stream(stream) == stream
    True
    """

    __slots__ = ()

    def __init__(self, obj: Optional[Any] = None, flags: Optional[CudaStreamFlags] = None) -> None:
        if obj is None:
            chosen = CudaStreamFlags.SYNC_DEFAULT if flags is None else CudaStreamFlags(flags)
            _core.stream_create(self, int(chosen))
            return
        if flags is not None:
            raise ValueError("flags may only be specified when obj is None: for a new stream")
        _core.stream_wrap(self, handle_of(obj), obj)

    def __cuda_stream__(self) -> Tuple[int, int]:
        return 0, self.handle


def handle_of(obj: Any) -> int:
    """The cudaStream_t of a stream of this package or of another library."""
    if isinstance(obj, _core.Stream):
        return obj.handle
    if hasattr(obj, "__cuda_stream__"):
        protocol = obj.__cuda_stream__
        version, handle = protocol() if callable(protocol) else protocol
        if version != 0:
            raise NotImplementedError(f"CUDA stream protocol of another version: '{version}'")
        return int(handle)
    if isinstance(obj, int) and not isinstance(obj, bool):
        return obj
    of_framework = _handle_of_framework(obj)
    if of_framework is None:
        raise TypeError(f"a stream is needed, not {type(obj).__name__!r}")
    return of_framework


def _handle_of_framework(obj: Any) -> Optional[int]:
    """Streams from before the protocol. Their modules are loaded if there is one of them."""
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(
        obj, (cupy.cuda.stream.Stream, cupy.cuda.stream.ExternalStream)
    ):
        return int(obj.ptr)
    numba_cuda = sys.modules.get("numba.cuda")
    if numba_cuda is not None and isinstance(obj, numba_cuda.cudadrv.driver.Stream):
        return int(obj)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(obj, torch.cuda.Stream):
        return int(obj.cuda_stream)
    return None


def _default(handle: int) -> Stream:
    stream = Stream.__new__(Stream)
    _core.stream_wrap(stream, handle)
    return stream


LEGACY_DEFAULT_STREAM = _default(_core.STREAM_LEGACY)
PER_THREAD_DEFAULT_STREAM = _default(_core.STREAM_PER_THREAD)
DEFAULT_STREAM = LEGACY_DEFAULT_STREAM


def as_stream(obj: Any) -> Stream:
    """``obj`` if it is a Stream, else the Stream of it; None is no stream."""
    if obj is None:
        raise TypeError("stream argument cannot be None")
    return obj if isinstance(obj, Stream) else Stream(obj)
