# SPDX-License-Identifier: Apache-2.0
"""When memory is short: the room left, and the adaptors that fall back, try again, and wait."""
import threading
import time

import pytest

import rmm_c as rmm
from rmm_c import mr

MIB = 1 << 20


def cuda():
    return mr.CudaMemoryResource()


def test_statistics_tell_the_room_left():
    pool = mr.PoolMemoryResource(cuda(), 8 * MIB, 16 * MIB)
    address = pool.allocate(3 * MIB)
    stats = pool.stats()
    assert stats.free_bytes == stats.largest_free_bytes == 5 * MIB
    assert stats.maximum_bytes - stats.reserved_bytes == 8 * MIB
    pool.deallocate(address, 3 * MIB)
    assert pool.stats().largest_free_bytes == 8 * MIB


def test_a_fallback_frees_to_where_it_allocated():
    pool = mr.PoolMemoryResource(cuda(), MIB, MIB)
    managed = mr.ManagedMemoryResource()
    resource = mr.FallbackResourceAdaptor(pool, managed)
    blocks = [resource.allocate(MIB), resource.allocate(2 * MIB)]
    assert resource.alternate_mr is managed
    assert resource.alternate_count() == 1
    assert pool.stats().current_bytes == MIB
    assert managed.stats().current_bytes == 2 * MIB
    for block, size in zip(blocks, (MIB, 2 * MIB)):
        resource.deallocate(block, size)
    assert resource.alternate_count() == 0
    assert pool.stats().current_bytes == managed.stats().current_bytes == 0
    with pytest.raises(TypeError):
        mr.FallbackResourceAdaptor(pool, None)
    chain = mr.from_spec("retry:5ms+pool:0:1MiB/managed")
    assert type(chain) is mr.RetryResourceAdaptor
    assert type(chain.get_upstream()) is mr.FallbackResourceAdaptor
    assert type(chain.get_upstream().alternate_mr) is mr.ManagedMemoryResource


def test_a_request_waits_for_another_thread():
    resource = mr.WaitResourceAdaptor(mr.LimitingResourceAdaptor(cuda(), 4 * MIB), 60000)
    held = resource.allocate(3 * MIB)
    got = []
    thread = threading.Thread(target=lambda: got.append(resource.allocate(2 * MIB)))
    thread.start()
    while resource.waiting() == 0:
        time.sleep(0.001)  # no lock of Python is held by who waits
    resource.deallocate(held, 3 * MIB)
    thread.join()
    resource.deallocate(got[0], 2 * MIB)
    assert resource.stats().current_bytes == 0


def test_threads_short_of_memory_get_through_with_buffers():
    resource = mr.WaitResourceAdaptor(mr.PoolMemoryResource(cuda(), 8 * MIB, 8 * MIB), 60000)
    failures = []

    def work(seed):
        for step in range(200):
            try:
                first = rmm.DeviceBuffer(size=MIB // 2 + seed * 1000 + step, mr=resource)
                second = rmm.DeviceBuffer(size=MIB, mr=resource)
            except rmm.errors.OutOfMemoryError as error:
                if "all threads that hold its memory" not in str(error):
                    failures.append(str(error))
            first = second = None  # noqa: F841: frees them

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert resource.stats().current_bytes == 0
