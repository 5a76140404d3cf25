# SPDX-License-Identifier: Apache-2.0
"""Each resource and adaptor: allocates, frees, counts, names what it is, and refuses."""
import gc
import weakref

import numpy
import pytest

import rmm_c as rmm
from rmm_c import mr
from rmm_c.pylibrmm.stream import DEFAULT_STREAM, Stream

MIB = 1 << 20


def cuda():
    return mr.CudaMemoryResource()


def allocate_on_device(nbytes, stream):
    return cuda().allocate(nbytes, stream)


MAKERS = {
    "cuda": mr.CudaMemoryResource,
    "managed": mr.ManagedMemoryResource,
    "pinned": mr.PinnedHostMemoryResource,
    "host": mr.HostMemoryResource,
    "system": mr.SystemMemoryResource,
    "sam_headroom": lambda: mr.SamHeadroomMemoryResource(MIB),
    "async": mr.CudaAsyncMemoryResource,
    "async_managed": mr.CudaAsyncManagedMemoryResource,
    "async_pinned": mr.CudaAsyncPinnedMemoryResource,
    "pool": lambda: mr.PoolMemoryResource(cuda(), MIB),
    "auto": lambda: mr.AutoMemoryResource(),
    "pool_virtual": lambda: mr.VirtualPoolMemoryResource(),
    "arena": lambda: mr.ArenaMemoryResource(cuda(), "64MiB"),
    "fixed_size": lambda: mr.FixedSizeMemoryResource(cuda(), 4096, 16),
    "binning": lambda: mr.BinningMemoryResource(cuda(), 10, 14),
    "custom": lambda: mr.CallbackMemoryResource(allocate_on_device, cuda().deallocate),
    "aligned": lambda: mr.AlignedResourceAdaptor(cuda(), 4096),
    "failure_callback": lambda: mr.FailureCallbackResourceAdaptor(cuda(), lambda nbytes: False),
    "fallback": lambda: mr.FallbackResourceAdaptor(cuda(), mr.ManagedMemoryResource()),
    "limiting": lambda: mr.LimitingResourceAdaptor(cuda(), MIB),
    "logging": None,
    "prefetch": lambda: mr.PrefetchResourceAdaptor(mr.ManagedMemoryResource()),
    "retry": lambda: mr.RetryResourceAdaptor(cuda(), 20),
    "statistics": lambda: mr.StatisticsResourceAdaptor(cuda()),
    "thread_safe": lambda: mr.ThreadSafeResourceAdaptor(cuda()),
    "tracking": lambda: mr.TrackingResourceAdaptor(cuda(), capture_stacks=True),
    "wait": lambda: mr.WaitResourceAdaptor(cuda(), 20),
}


@pytest.fixture(params=sorted(MAKERS))
def make(request, tmp_path):
    """A function that makes a resource of each kind."""
    if request.param == "logging":
        return lambda: mr.LoggingResourceAdaptor(cuda(), str(tmp_path / "log.csv"))
    return MAKERS[request.param]


def view_of_a_pool():
    view_of_a_pool.pool = mr.CudaAsyncMemoryResource()
    return mr.CudaAsyncViewMemoryResource(view_of_a_pool.pool.pool_handle())


MAKERS["async_view"] = view_of_a_pool


def test_a_resource_says_what_it_is(make, request):
    resource = make()
    kind = request.node.callspec.params["make"]
    assert resource.kind == {"pool_virtual": "pool", "auto": "pool"}.get(kind, kind)
    assert resource.name in (resource.kind, "callback") or kind == "auto"
    assert resource.is_host_accessible or resource.is_device_accessible
    assert resource.device in (0, -1)
    assert resource.handle != 0
    assert resource.is_equal(resource)


def test_a_resource_allocates_frees_and_counts(make):
    resource = make()
    before = resource.stats()  # resources that exist once for each device have a past
    for stream in (DEFAULT_STREAM, Stream()):
        address = resource.allocate(1000, stream)
        assert address % 256 == 0
        assert resource.stats().current_bytes == before.current_bytes + 1000
        resource.deallocate(address, 1000, stream)
        assert resource.stats().current_bytes == before.current_bytes
    aligned = resource.allocate(nbytes=100, alignment=256)
    resource.deallocate(ptr=aligned, nbytes=100, alignment=256)
    assert resource.allocate(0) == 0
    resource.deallocate(0, 0)
    assert resource.stats().total_count == before.total_count + 4
    assert resource.stats().invalid_free_count == before.invalid_free_count


def test_a_buffer_lives_on_every_resource(make):
    resource = make()
    before = resource.stats().current_count
    buffer = rmm.DeviceBuffer.to_device(bytes(range(256)), mr=resource)
    buffer.resize(300)
    assert buffer.tobytes()[:256] == bytes(range(256))
    del buffer
    assert resource.stats().current_count == before


def test_a_resource_ends_with_its_python_object(make):
    resource = make()
    end = weakref.ref(resource)
    upstream = resource.get_upstream()
    del resource
    gc.collect()
    assert end() is None
    if upstream is not None:
        upstream.deallocate(upstream.allocate(10), 10)


def test_a_wrong_free_is_counted_and_changes_nothing(pool):
    address = pool.allocate(1000)
    pool.deallocate(address + 256, 1000)
    pool.deallocate(address, 1000)
    pool.deallocate(address, 1000)
    assert pool.stats().invalid_free_count == 2


def test_wrong_arguments_of_an_allocation_are_refused(pool):
    for arguments in ((), (-1,), ("1",), (1, "stream"), (1, None, 0, 0)):
        with pytest.raises((TypeError, OverflowError)):
            pool.allocate(*arguments)
    with pytest.raises(TypeError, match="size"):
        pool.allocate(size=1)
    with pytest.raises(TypeError, match="nbytes"):
        pool.deallocate(1)
    with pytest.raises(rmm.errors.InvalidAlignmentError):
        pool.allocate(1, alignment=3)


def test_an_uninitialised_resource_is_refused():
    class Forgetful(mr.CudaMemoryResource):
        def __init__(self):
            pass

    with pytest.raises(RuntimeError, match="__init__"):
        Forgetful().allocate(1)
    with pytest.raises(TypeError, match="memory resource"):
        mr.StatisticsResourceAdaptor(None)
    resource = cuda()
    with pytest.raises(RuntimeError, match="already"):
        resource.__init__()


def test_a_pool_has_a_size_a_limit_and_can_be_trimmed():
    pool = mr.PoolMemoryResource(cuda(), initial_pool_size=0, maximum_pool_size="8 MiB")
    assert (pool.pool_size(), pool.get_maximum_pool_size()) == (0, 8 * MIB)
    pool.deallocate(pool.allocate(MIB), MIB)
    assert pool.pool_size() >= MIB
    pool.trim()
    assert pool.pool_size() == 0
    with pytest.raises(MemoryError):
        pool.allocate(9 * MIB)
    assert pool.stats().oom_count == 1
    numbers = mr.PoolMemoryResource(cuda(), numpy.int64(MIB), numpy.uint32(2 * MIB))
    assert (numbers.pool_size(), numbers.get_maximum_pool_size()) == (MIB, 2 * MIB)
    free, _ = mr.available_device_memory()
    half = mr.PoolMemoryResource(cuda())
    assert abs(half.pool_size() - free // 2) <= 256
    with pytest.raises(ValueError):
        mr.PoolMemoryResource(cuda(), 2 * MIB, MIB)
    with pytest.raises(ValueError, match="parse"):
        mr.PoolMemoryResource(cuda(), "much")
    with pytest.raises(TypeError, match="not float"):
        mr.PoolMemoryResource(cuda(), 1.5)
    with pytest.raises(TypeError):
        mr.PoolMemoryResource(None)


def test_options_reach_their_resource():
    assert mr.FixedSizeMemoryResource(cuda(), 1000, 7).get_block_size() == 1024
    assert mr.FixedSizeMemoryResource(cuda(), 1000, 7).get_blocks_per_chunk() == 7
    assert mr.SamHeadroomMemoryResource(4096).get_headroom() == 4096
    aligned = mr.AlignedResourceAdaptor(cuda(), 4096, 100)
    assert (aligned.get_alignment(), aligned.get_alignment_threshold()) == (4096, 100)
    assert aligned.allocate(100) % 4096 == 0
    limiting = mr.LimitingResourceAdaptor(cuda(), 1024)
    address = limiting.allocate(1000)
    assert (limiting.get_allocated_bytes(), limiting.get_allocation_limit()) == (1024, 1024)
    with pytest.raises(rmm.errors.OutOfMemoryError):
        limiting.allocate(1)
    limiting.deallocate(address, 1000)
    assert mr.CudaAsyncMemoryResource().get_release_threshold() == (1 << 64) - 1
    assert mr.CudaAsyncMemoryResource(release_threshold=0).get_release_threshold() == 0
    assert mr.CudaAsyncMemoryResource(release_threshold=MIB).get_release_threshold() == MIB
    assert mr.CudaAsyncMemoryResource(initial_pool_size="2MiB").stats().reserved_bytes >= 2 * MIB
    mr.CudaAsyncMemoryResource(enable_ipc=True)
    waits = mr.CudaAsyncMemoryResource(wait_before_refusal=True)
    size = mr.available_device_memory()[0] // 4 * 3
    for bytes_ in (size // 2, size):  # the second one needs what the first one freed
        waits.deallocate(waits.allocate(bytes_), bytes_)
    with pytest.raises(ValueError):
        mr.ArenaMemoryResource(cuda(), 1000)
    with pytest.raises(rmm.errors.UnsupportedError):
        cuda().trim()


def test_a_size_is_a_number_or_a_text():
    with pytest.raises(TypeError, match="not float"):
        mr.PoolMemoryResource(cuda(), initial_pool_size=1.5)


def test_bins_serve_their_sizes():
    binning = mr.BinningMemoryResource(cuda())
    bin_pool = mr.PoolMemoryResource(cuda(), MIB)
    binning.add_bin(4096, bin_pool)
    binning.add_bin(allocation_size=8192)
    assert binning.bin_mrs == [bin_pool]
    address = binning.allocate(4000)
    assert bin_pool.stats().current_bytes == 4000
    binning.deallocate(address, 4000)
    with pytest.raises(ValueError):
        binning.add_bin(0)


def test_an_arena_dumps_where_it_was_asked_to(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arena = mr.ArenaMemoryResource(cuda(), MIB, dump_log_on_failure=True)
    with pytest.raises(MemoryError):
        arena.allocate(2 * MIB)
    assert (tmp_path / "rmm_arena_memory_dump.log").stat().st_size > 0


def test_live_blocks_are_listed():
    tracking = mr.TrackingResourceAdaptor(cuda(), capture_stacks=True)
    assert tracking.get_outstanding_allocations_str() == ""
    blocks = sorted((tracking.allocate(n), n) for n in (100, 200))
    assert tracking.get_outstanding_allocations() == blocks
    assert tracking.get_allocated_bytes() == 300
    report = tracking.get_outstanding_allocations_str()
    assert f"{blocks[0][0]:#x}: {blocks[0][1]} B" in report
    assert "#0 in" in report
    tracking.log_outstanding_allocations()
    for block in blocks:
        tracking.deallocate(*block)
    assert tracking.get_outstanding_allocations() == []
    with pytest.raises(ValueError):
        rmm._core.tracking_report(cuda())


def test_texts_make_resources():
    resource = mr.from_spec("statistics+limiting:4MiB+pool:1MiB:2MiB")
    kinds = []
    while resource is not None:
        kinds.append(type(resource))
        resource = resource.get_upstream()
    assert kinds == [
        mr.StatisticsResourceAdaptor,
        mr.LimitingResourceAdaptor,
        mr.PoolMemoryResource,
        mr.CudaMemoryResource,
    ]
    mr.check_spec("pool:50%")
    for wrong in ("pol", "pool:", "limiting+cuda", ""):
        with pytest.raises(ValueError):
            mr.from_spec(wrong)
        with pytest.raises(rmm.errors.InvalidArgumentError):
            mr.check_spec(wrong)


def test_the_upstream_is_the_object_that_was_given(pool):
    adaptor = mr.StatisticsResourceAdaptor(upstream_mr=pool)
    assert adaptor.get_upstream() is adaptor.upstream_mr is pool
    assert mr.VirtualPoolMemoryResource().get_upstream() is None


def test_auto_says_what_it_chose():
    mapped = mr.AutoMemoryResource("2MiB", maximum_pool_size="8MiB")
    assert (mapped.kind, mapped.name, mapped.get_upstream()) == ("pool", "pool_virtual", None)
    assert (mapped.pool_size(), mapped.get_maximum_pool_size()) == (2 * MIB, 8 * MIB)
    assert mr.from_spec("auto").name == "pool_virtual"


def test_memory_may_be_kept_from_peers():
    for resource in (
        mr.AutoMemoryResource(peer_access=False),
        mr.VirtualPoolMemoryResource(peer_access=False),
        mr.CudaAsyncMemoryResource(peer_access=False),
        mr.from_spec("pool_virtual:no_peer_access"),
        mr.from_spec("async:no_peer_access:1MiB"),
    ):
        resource.deallocate(resource.allocate(1000), 1000)
    with pytest.raises(ValueError, match="has no option"):
        mr.check_spec("pool:no_peer_access")
