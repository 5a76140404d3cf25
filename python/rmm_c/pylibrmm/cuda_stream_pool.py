# SPDX-License-Identifier: Apache-2.0
"""A fixed number of streams, used in turn."""
from typing import Optional

from rmm_c import _core
from rmm_c.pylibrmm.stream import CudaStreamFlags, Stream


class CudaStreamPool:
    """Streams for independent work. A stream keeps its pool alive.

    >>> pool = CudaStreamPool(pool_size=2)
    >>> pool.get_stream(0) == pool.get_stream(2)
    True
    """

    def __init__(
        self, pool_size: int = 16, flags: CudaStreamFlags = CudaStreamFlags.SYNC_DEFAULT
    ) -> None:
        self._pool = _core.stream_pool_create(pool_size, int(flags))
        self._size = pool_size

    def get_stream(self, stream_id: Optional[int] = None) -> Stream:
        """The next stream in turn, or the one with this number, modulo the size."""
        stream = Stream.__new__(Stream)
        _core.stream_wrap(stream, _core.stream_pool_get(self._pool, stream_id), self._pool)
        return stream

    def get_pool_size(self) -> int:
        """The number of streams."""
        return self._size
