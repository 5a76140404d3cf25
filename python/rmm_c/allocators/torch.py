# SPDX-License-Identifier: Apache-2.0
"""
An allocator for PyTorch.

::

    import torch
    from rmm_c.allocators.torch import rmm_torch_allocator

    torch.cuda.memory.change_current_allocator(rmm_torch_allocator)

PyTorch then allocates from the default resource of the device, as it is at the time; a device
whose default resource nobody chose gets AutoMemoryResource. A free waits for the streams that
Tensor.record_stream() has named. PyTorch loads only at the first use of the name, which is None
where there is no PyTorch, or one older than 2.0.

snapshot() makes a file for PyTorch's memory viewer (pytorch.org/memory_viz) of a log of
allocations.
"""
import ctypes
import threading
from typing import Any

from rmm_c import _core
from rmm_c.allocators._snapshot import snapshot

__all__ = ["rmm_torch_allocator", "snapshot"]

_made: Any = None
_making = threading.Lock()


def _make() -> Any:
    try:
        from torch.cuda.memory import CUDAPluggableAllocator
    except ImportError:
        return None
    _core.default_resource_prefer_auto()
    path = _core.library_path()
    made = CUDAPluggableAllocator(path, "rmm_torch_malloc", "rmm_torch_free")
    record = ctypes.cast(ctypes.CDLL(path).rmm_torch_record_stream, ctypes.c_void_p)
    made.allocator().set_record_stream_fn(record.value)
    return made


def __getattr__(name: str) -> Any:
    global _made
    if name != "rmm_torch_allocator":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _making:  # one for all: PyTorch refuses a second
        if _made is None:
            _made = _make()
    return _made
