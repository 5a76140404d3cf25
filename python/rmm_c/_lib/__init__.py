# SPDX-License-Identifier: Apache-2.0
"""
The modules of RMM until 24.12, now those of rmm_c.pylibrmm. Each loads at its first use: a package
whose import imports its modules deadlocks with a thread that imports one of them at that moment.
"""
from types import ModuleType

from rmm_c._eras import module_of
from rmm_c.pylibrmm import DeviceBuffer

__all__ = [
    "DeviceBuffer",
    "cuda_stream",
    "cuda_stream_view",
    "device_buffer",
    "logger",
    "memory_resource",
]


def __getattr__(name: str) -> ModuleType:
    return module_of(__name__, name, tuple(__all__[1:]))
