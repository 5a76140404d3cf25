# SPDX-License-Identifier: Apache-2.0
"""The streams of RMM 0.17, which can be given wherever a stream is expected."""
from rmm_c import _core
from rmm_c.pylibrmm.stream import Stream


class CudaStreamView(Stream):
    """The stream with this number; 0 is the default one."""

    __slots__ = ()

    def __init__(self, stream: int = 0) -> None:
        super().__init__(stream)

    def is_per_thread_default(self) -> bool:
        """True if this is the per-thread default stream."""
        return self.handle == _core.STREAM_PER_THREAD
