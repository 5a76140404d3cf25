# SPDX-License-Identifier: Apache-2.0
"""
An allocator for PyTorch.

::

    import torch
    from rmm_c.allocators.torch import rmm_torch_allocator

    torch.cuda.memory.change_current_allocator(rmm_torch_allocator)

PyTorch then allocates from the default resource of the device, as it is at the time. PyTorch
loads only at the first use of the name.
"""
from typing import Any

from rmm_c import _core

_made: Any = None


def _make() -> Any:
    from torch.cuda.memory import CUDAPluggableAllocator

    return CUDAPluggableAllocator(_core.library_path(), "rmm_torch_malloc", "rmm_torch_free")


def __getattr__(name: str) -> Any:
    global _made
    if name != "rmm_torch_allocator":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _made is None:
        _made = _make()
    return _made
