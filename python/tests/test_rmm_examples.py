# SPDX-License-Identifier: Apache-2.0
"""
What RMM's README and user guide show, step by step, with this package as rmm. The text is ours.
"""
import numpy as np
import pytest

import rmm_c as rmm
import rmm_c.statistics


def test_a_buffer_of_100_bytes():
    buf = rmm.DeviceBuffer(size=100)
    assert buf.size == 100
    assert isinstance(buf.ptr, int) and buf.ptr != 0


def test_three_numbers_to_the_device_and_back():
    a = np.array([1, 2, 3], dtype="float64")
    for source in (a.tobytes(), a.view("uint8"), a):
        buf = rmm.DeviceBuffer.to_device(source)
        assert buf.size == 24
        assert np.frombuffer(buf.tobytes()).tolist() == [1.0, 2.0, 3.0]
    assert rmm.to_device(a.tobytes()).size == 24


def test_prefetching_managed_memory():
    rmm.reinitialize(managed_memory=True)
    buf = rmm.DeviceBuffer(size=100)
    buf.prefetch()
    from rmm_c.pylibrmm.stream import Stream

    stream = Stream()
    buf = rmm.DeviceBuffer(size=100, stream=stream)
    buf.prefetch(device=1, stream=stream)


def test_managed_memory_as_the_default():
    rmm.mr.set_current_device_resource(rmm.mr.ManagedMemoryResource())
    assert isinstance(rmm.DeviceBuffer(size=10).mr, rmm.mr.ManagedMemoryResource)


@pytest.mark.parametrize("upstream", ["CudaMemoryResource", "ManagedMemoryResource"])
def test_a_pool_of_one_to_four_gibibytes(upstream):
    pool = rmm.mr.PoolMemoryResource(
        getattr(rmm.mr, upstream)(), initial_pool_size="1GiB", maximum_pool_size="4GiB"
    )
    rmm.mr.set_current_device_resource(pool)
    assert pool.pool_size() == 2**30
    same = rmm.mr.PoolMemoryResource(
        rmm.mr.CudaMemoryResource(), initial_pool_size=2**30, maximum_pool_size=2**32
    )
    assert same.get_maximum_pool_size() == pool.get_maximum_pool_size()


def test_statistics_with_a_context_and_for_good():
    assert isinstance(rmm.mr.get_current_device_resource(), rmm.mr.CudaMemoryResource)
    with rmm.statistics.statistics():
        resource = rmm.mr.get_current_device_resource()
        assert isinstance(resource, rmm.mr.StatisticsResourceAdaptor)
    rmm.statistics.enable_statistics()
    buf = rmm.DeviceBuffer(size=10)
    # RMM's guide shows 16, which it rounds to; here sizes are as requested.
    assert repr(rmm.statistics.get_statistics()) == (
        "Statistics(current_bytes=10, current_count=1, peak_bytes=10, peak_count=1, "
        "total_bytes=10, total_count=1)"
    )
    assert buf.size == 10


def test_the_profiler_of_the_guide():
    rmm.statistics.enable_statistics()
    records = rmm.statistics.ProfilerRecords()

    @rmm.statistics.profiler(records=records, name="f")
    def f(size):
        rmm.DeviceBuffer(size=size)

    f(1000)
    with rmm.statistics.profiler(records=records, name="my code block"):
        rmm.DeviceBuffer(size=20)
    with rmm.statistics.profiler(records=records, name="outer"):
        buf1 = rmm.DeviceBuffer(size=10)
        with rmm.statistics.profiler(records=records, name="inner"):
            buf2 = rmm.DeviceBuffer(size=10)
    assert records.report().splitlines()[-5:] == [
        "ncalls     memory_peak    memory_total  filename:lineno(function)",
        "     1           1,000           1,000  f",
        "     1              20              20  my code block",
        "     1              20              20  outer",
        "     1              10              10  inner",
    ]
    assert buf1.size == buf2.size


def test_the_statistics_of_what_another_package_allocates():
    mr = rmm.mr.StatisticsResourceAdaptor(rmm.mr.ManagedMemoryResource())
    rmm.mr.set_current_device_resource(mr)
    address = mr.allocate(16)
    assert mr.allocation_counts.current_bytes == 16
    mr.deallocate(address, 16)


def test_every_public_name_of_rmm_is_there():
    """The names of RMM 26.08, in the modules where it has them."""
    names = {
        rmm: "DeviceBuffer disable_logging RMMError enable_logging flush_logger get_flush_level "
        "get_log_filenames get_logging_level is_initialized level_enum mr "
        "register_reinitialize_hook reinitialize set_flush_level set_logging_level should_log "
        "unregister_reinitialize_hook",
        rmm.mr: "ArenaMemoryResource BinningMemoryResource CallbackMemoryResource "
        "CudaAsyncMemoryResource CudaAsyncViewMemoryResource CudaMemoryResource "
        "DeviceMemoryResource FailureCallbackResourceAdaptor FixedSizeMemoryResource "
        "LimitingResourceAdaptor LoggingResourceAdaptor ManagedMemoryResource "
        "PinnedHostMemoryResource PoolMemoryResource PrefetchResourceAdaptor "
        "SamHeadroomMemoryResource StatisticsResourceAdaptor SystemMemoryResource "
        "TrackingResourceAdaptor UpstreamResourceAdaptor available_device_memory "
        "disable_logging enable_logging experimental get_current_device_resource "
        "get_log_filenames get_per_device_resource is_initialized "
        "set_current_device_resource set_per_device_resource",
        rmm.pylibrmm: "CudaStreamFlags CudaStreamPool DeviceBuffer memory_resource",
        rmm.pylibrmm.stream: "CudaStreamFlags Stream DEFAULT_STREAM LEGACY_DEFAULT_STREAM "
        "PER_THREAD_DEFAULT_STREAM",
        rmm.pylibrmm.cuda_stream: "CudaStream CudaStreamFlags",
        rmm.pylibrmm.cuda_stream_pool: "CudaStreamPool",
        rmm.pylibrmm.device_buffer: "DeviceBuffer to_device copy_ptr_to_host "
        "copy_host_to_ptr copy_device_to_ptr",
        rmm.pylibrmm.helper: "parse_bytes",
        rmm.pylibrmm.utils: "as_stream",
        rmm.mr.experimental: "CudaAsyncManagedMemoryResource",
        rmm.statistics: "Statistics enable_statistics get_statistics push_statistics "
        "pop_statistics statistics ProfilerRecords ProfilerContext profiler "
        "default_profiler_records",
    }
    missing = [
        f"{module.__name__}.{name}"
        for module, listed in names.items()
        for name in listed.split()
        if not hasattr(module, name)
    ]
    assert missing == []
