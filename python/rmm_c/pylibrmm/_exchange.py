# SPDX-License-Identifier: Apache-2.0
"""What a DeviceBuffer knows of other packages: the numbers of DLPack, and foreign arrays."""
import re
import sys
from typing import Any, Dict, List, Tuple

from rmm_c import _core
from rmm_c.pylibrmm.stream import Stream, as_stream

# DLDeviceType of DLPack: of memory of a device, and of others by the kind of the resource at the
# bottom. AMD has numbers of its own, and none for managed memory.
DLPACK_CPU = 1
_CUDA = (
    2,
    {"pinned": 3, "async_pinned": 3, "managed": 13, "async_managed": 13, "host": DLPACK_CPU},
)
_HIP = (10, {"pinned": 11, "async_pinned": 11, "host": DLPACK_CPU})


def dlpack_types() -> Tuple[int, Dict[str, int]]:
    """The number of device memory, and those of other kinds."""
    return _HIP if _core.driver_name() == "hip" else _CUDA


def interface_of(cuda_ary: Any) -> Dict[str, Any]:
    """Its ``__cuda_array_interface__``, of what can be copied byte by byte."""
    if not hasattr(cuda_ary, "__cuda_array_interface__"):
        raise ValueError("the object has no __cuda_array_interface__")
    interface: Dict[str, Any] = cuda_ary.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise ValueError("an array with a mask cannot be copied")
    return interface


_TYPESTR = re.compile(r"[<>|=]?([a-zA-Z])([0-9]+)(\[.*\])?")


def _item_size(typestr: str) -> int:
    """Of an element: the number in "<f4" is bytes, but of "U" characters of 4 bytes."""
    match = _TYPESTR.fullmatch(typestr)
    if match is None or match.group(1) == "t":  # t: bits
        raise ValueError(f"an array of the type {typestr!r} cannot be copied")
    return int(match.group(2)) * (4 if match.group(1) == "U" else 1)


def contiguous(interface: Dict[str, Any]) -> Tuple[int, int]:
    """The address and the bytes of an array of one dimension."""
    shape, strides = interface["shape"], interface.get("strides")
    item = _item_size(interface["typestr"])
    if len(shape) > 1:
        raise ValueError(f"only arrays of one dimension can be copied, not of {len(shape)}")
    count = shape[0] if shape else 1
    if strides and count > 1 and strides[0] != item:
        raise ValueError("only contiguous arrays can be copied")
    return interface["data"][0], count * item


def wait_for(array: Any, interface: Dict[str, Any], device: int, stream: Any) -> None:
    """Wait for the work that fills a foreign array, unless a copy on ``stream`` of ``device`` is
    behind it. None: its producer says that there is none. No stream at all, as before version 3
    of the interface, and 0, which is not allowed, may mean either default stream."""
    named = interface.get("stream", 0)
    if named is None:
        return
    if "stream" not in interface:
        _wait_for_torch(array)
    defaults = [_core.STREAM_LEGACY, _core.STREAM_PER_THREAD]
    own = as_stream(stream).handle or _core.STREAM_LEGACY
    for handle in [named] if named else defaults:
        # A default stream has the same handle on each device.
        for of in _devices_of(array, device) if handle in defaults else [device]:
            if (handle, of) != (own, device):
                _core.stream_wait(Stream(handle), of)


def _wait_for_torch(array: Any) -> None:
    """A tensor names no stream: its work is on PyTorch's current one."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        torch.cuda.current_stream(array.device).synchronize()


def _devices_of(array: Any, device: int) -> List[int]:
    """The device of a foreign array, or those that may be it: the current one and ``device``."""
    if hasattr(array, "__dlpack_device__"):
        kind, number = array.__dlpack_device__()
        if kind == dlpack_types()[0]:
            return [int(number)]
    number = getattr(getattr(array, "device", None), "id", None)  # CuPy
    if isinstance(number, int):
        return [number]
    return sorted({device, _core.device_current()})
