# SPDX-License-Identifier: Apache-2.0
"""Resources that take memory in large pieces and hand out blocks of it."""
from contextlib import contextmanager
from typing import Any, Iterable, Iterator, List, Optional, Union

from rmm_c import _core
from rmm_c.errors import also_saying
from rmm_c.pylibrmm.helper import Size, parse_bytes, parse_optional_bytes
from rmm_c.pylibrmm.memory_resource._base import (
    DeviceMemoryResource,
    UpstreamResourceAdaptor,
    one_upstream,
)


def _address(block: Any) -> int:
    """Where a block begins: an address, or that of a buffer, an array or a tensor."""
    if hasattr(block, "untyped_storage"):  # a tensor of PyTorch may begin behind its block
        return int(block.untyped_storage().data_ptr())
    if hasattr(block, "__cuda_array_interface__"):
        return int(block.__cuda_array_interface__["data"][0])
    return int(getattr(block, "ptr", block))


class PoolMemoryResource(UpstreamResourceAdaptor):
    """A pool over an upstream resource.

    Parameters
    ----------
    upstream_mr, upstream
        Where the memory comes from; the second is the name of RMM until 0.18.
    initial_pool_size
        Allocated at once. By default half of the free memory, as RMM has it; 0: nothing.
    maximum_pool_size
        The pool never holds more; by default it grows without a limit.

    >>> pool = PoolMemoryResource(CudaMemoryResource(), initial_pool_size="1MiB")
    >>> pool.pool_size()
    1048576
    """

    _kind = "pool"

    def __init__(
        self,
        upstream_mr: Optional[DeviceMemoryResource] = None,
        initial_pool_size: Optional[Size] = None,
        maximum_pool_size: Optional[Size] = None,
        *,
        upstream: Optional[DeviceMemoryResource] = None,
    ) -> None:
        given = one_upstream(upstream_mr, upstream)
        if initial_pool_size is None:
            initial = _core.percent_of_free_device_memory(50)
        else:
            initial = parse_bytes(initial_pool_size)
        maximum = parse_optional_bytes(maximum_pool_size)
        with also_saying("Initial pool size exceeds the maximum pool size", 0 < maximum < initial):
            _core.create(self, "pool", given, initial_bytes=initial, maximum_bytes=maximum)
        self._created()

    def pool_size(self) -> int:
        """The bytes that the pool holds."""
        return self.stats().reserved_bytes

    def get_maximum_pool_size(self) -> int:
        """The limit; 0: none."""
        return _core.query(self, "pool_maximum")

    def sleep(
        self,
        discard: Union[bool, Iterable[Any]] = False,
        *,
        wait: bool = False,
        keep_host: bool = False,
        host: Optional[DeviceMemoryResource] = None,
    ) -> None:
        """Copy what the blocks hold to host memory, and give all memory back to the GPU.

        Only a virtual pool can. Until wake() no work may use its blocks; then they are where they
        were, with their contents. docs/sleep.md says more.

        Parameters
        ----------
        discard
            True: contents are not kept. Or the blocks whose contents are not: addresses, buffers,
            arrays or tensors that begin with their block.
        wait
            Allocations wait until the pool wakes, and Ctrl-C does not end the wait. Else they
            raise AsleepError.
        keep_host
            Keep the host memory for the next sleep: to allocate it takes longer than the copy.
        host
            A resource of host memory for the contents; pinned memory by default.
        """
        flags = (
            (_core.POOL_SLEEP_DISCARD if discard is True else 0)
            | (_core.POOL_SLEEP_WAIT if wait else 0)
            | (_core.POOL_SLEEP_KEEP_HOST if keep_host else 0)
        )
        blocks = [] if isinstance(discard, bool) else [_address(block) for block in discard]
        _core.pool_sleep(self, flags, blocks, host)

    def wake(self) -> None:
        """Take the memory again, at the same addresses, with the contents.

        Raises OutOfMemoryError where the GPU has too little: the pool is still asleep.
        """
        _core.pool_wake(self)

    @contextmanager
    def asleep(self, *args: Any, **kwargs: Any) -> Iterator[None]:
        """Sleep, with the arguments of sleep(), to the end of the block.

        >>> pool = VirtualPoolMemoryResource("2MiB")
        >>> with pool.asleep():
        ...     pool.state, pool.pool_size()
        ('asleep', 0)
        """
        self.sleep(*args, **kwargs)
        try:
            yield
        finally:
            self.wake()

    @property
    def state(self) -> str:
        """'awake', 'falling asleep', 'asleep' or 'waking'."""
        return _core.pool_state(self)


class VirtualPoolMemoryResource(PoolMemoryResource):
    """A pool that grows in place by mapping memory; it has no upstream.

    All its free memory can merge, so it fragments less, and trim() returns free pieces.
    Other GPUs of the process that can access the memory of its device may use its memory.
    ``peer_access=False`` keeps them out, and makes growth cheaper. ``exportable=True`` lets other
    processes map its blocks (rmm_c.sharing).

    >>> pool = VirtualPoolMemoryResource(maximum_pool_size="1GiB")
    >>> pool.get_upstream() is None
    True
    """

    def __init__(
        self,
        initial_pool_size: Size = 0,
        maximum_pool_size: Optional[Size] = None,
        peer_access: bool = True,
        exportable: bool = False,
    ) -> None:
        flags = _core.POOL_VIRTUAL | (0 if peer_access else _core.POOL_NO_PEER_ACCESS)
        flags |= _core.POOL_EXPORTABLE if exportable else 0
        _core.create(
            self,
            "pool",
            initial_bytes=parse_bytes(initial_pool_size),
            maximum_bytes=parse_optional_bytes(maximum_pool_size),
            flags=flags,
        )
        self._created()


class AutoMemoryResource(PoolMemoryResource):
    """The pool for a program without special needs: one that maps memory where the device can, as
    VirtualPoolMemoryResource, else a pool over CudaMemoryResource.

    ``name`` says which: "pool_virtual" or "pool". Numba, CuPy, PyTorch and cuda.core get it as the
    initial default from their modules of ``rmm_c.allocators``, unless RMM_RESOURCE names another.

    >>> pool = AutoMemoryResource(maximum_pool_size="1GiB")
    >>> pool.name
    'pool_virtual'
    """

    def __init__(
        self,
        initial_pool_size: Size = 0,
        maximum_pool_size: Optional[Size] = None,
        peer_access: bool = True,
    ) -> None:
        _core.create(
            self,
            "auto",
            initial_bytes=parse_bytes(initial_pool_size),
            maximum_bytes=parse_optional_bytes(maximum_pool_size),
            flags=0 if peer_access else _core.POOL_NO_PEER_ACCESS,
        )
        self._created()


class ArenaMemoryResource(UpstreamResourceAdaptor):
    """One block of memory, divided among arenas: for many threads with small requests.

    ``arena_size`` is by default half of the free memory. With ``dump_log_on_failure`` a
    request without room writes rmm_arena_memory_dump.log.
    """

    _kind = "arena"

    def __init__(
        self,
        upstream_mr: DeviceMemoryResource,
        arena_size: Optional[Size] = None,
        dump_log_on_failure: bool = False,
    ) -> None:
        _core.create(
            self,
            "arena",
            upstream_mr,
            arena_bytes=parse_optional_bytes(arena_size),
            dump_on_failure=dump_log_on_failure,
        )
        self._created()


class FixedSizeMemoryResource(UpstreamResourceAdaptor):
    """Blocks of one size, in chunks of ``blocks_to_preallocate`` blocks.

    >>> FixedSizeMemoryResource(CudaMemoryResource(), block_size=1000).get_block_size()
    1024
    """

    _kind = "fixed_size"

    def __init__(
        self,
        upstream_mr: Optional[DeviceMemoryResource] = None,
        block_size: int = 1 << 20,
        blocks_to_preallocate: int = 128,
        *,
        upstream: Optional[DeviceMemoryResource] = None,
    ) -> None:
        given = one_upstream(upstream_mr, upstream)
        _core.create(
            self,
            "fixed_size",
            given,
            block_bytes=block_size,
            blocks_per_chunk=blocks_to_preallocate,
        )
        self._created()

    def get_block_size(self) -> int:
        """The size of a block, rounded up to 256."""
        return _core.query(self, "fixed_size_block_bytes")

    def get_blocks_per_chunk(self) -> int:
        """The number of blocks that are taken from upstream at a time."""
        return _core.query(self, "fixed_size_blocks_per_chunk")


class BinningMemoryResource(UpstreamResourceAdaptor):
    """Passes each request to the smallest bin that is large enough, else to upstream.

    With both exponents there is a bin for each power of two between them, inclusive.

    >>> binning = BinningMemoryResource(CudaMemoryResource())
    >>> binning.add_bin(4096)
    >>> len(binning.bin_mrs)
    0
    """

    _kind = "binning"
    _bins: List[DeviceMemoryResource]

    def __init__(
        self,
        upstream_mr: DeviceMemoryResource,
        min_size_exponent: int = -1,
        max_size_exponent: int = -1,
    ) -> None:
        if min_size_exponent == -1 or max_size_exponent == -1:
            _core.create(self, "binning", upstream_mr)
        else:
            _core.create(
                self,
                "binning",
                upstream_mr,
                min_exponent=min_size_exponent,
                max_exponent=max_size_exponent,
            )
        self._bins = []
        self._created()

    def add_bin(
        self, allocation_size: int, bin_resource: Optional[DeviceMemoryResource] = None
    ) -> None:
        """Serve requests of up to ``allocation_size`` bytes from ``bin_resource``, or from
        blocks of that size over upstream."""
        _core.binning_add_bin(self, allocation_size, bin_resource)
        if bin_resource is not None:
            self.bin_mrs.append(bin_resource)

    @property
    def bin_mrs(self) -> List[DeviceMemoryResource]:
        """The resources given to add_bin()."""
        if not hasattr(self, "_bins"):
            self._bins = []
        return self._bins
