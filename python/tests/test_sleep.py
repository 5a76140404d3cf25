# SPDX-License-Identifier: Apache-2.0
"""Pools that sleep: their contents come back, and allocations meanwhile are refused."""
import threading

import pytest

import rmm_c as rmm
from rmm_c import mr

MIB = 1024 * 1024


@pytest.fixture
def pool():
    return mr.VirtualPoolMemoryResource(8 * MIB)


def test_what_a_pool_held_is_back_after_it_slept(pool):
    buffer = rmm.DeviceBuffer.to_device(bytes(range(256)) * 4096, mr=pool)
    address = buffer.ptr
    with pool.asleep():
        assert pool.state == "asleep"
        assert pool.stats().reserved_bytes == 0
        assert pool.stats().asleep_bytes == 8 * MIB
    assert pool.state == "awake"
    assert buffer.ptr == address
    assert buffer.tobytes() == bytes(range(256)) * 4096


def test_an_allocation_is_refused_or_waits(pool):
    pool.sleep()
    with pytest.raises(rmm.errors.AsleepError):
        pool.allocate(100)
    with pytest.raises(rmm.errors.AsleepError):
        pool.sleep()
    pool.wake()
    pool.sleep(wait=True)
    got = []
    thread = threading.Thread(target=lambda: got.append(pool.allocate(100)))
    thread.start()
    assert not got
    pool.wake()
    thread.join()
    pool.deallocate(got[0], 100)


def test_contents_can_be_discarded(pool):
    kept = rmm.DeviceBuffer.to_device(b"kept" * 1000, mr=pool)
    dropped = rmm.DeviceBuffer.to_device(b"dropped" * 1000, mr=pool)
    with pytest.raises(rmm.errors.InvalidArgumentError):
        pool.sleep(discard=[kept.ptr + 256 * 1000])
    with pool.asleep(discard=[dropped], keep_host=True):
        pass
    assert kept.tobytes() == b"kept" * 1000
    pool.sleep(discard=True, host=mr.PinnedHostMemoryResource())
    pool.wake()
    pool.wake()


def test_only_a_virtual_pool_sleeps():
    pool = mr.PoolMemoryResource(mr.CudaMemoryResource(), initial_pool_size=0)
    with pytest.raises(rmm.errors.UnsupportedError):
        pool.sleep()


def test_a_pool_wakes_also_after_an_exception(pool):
    with pytest.raises(KeyError):
        with pool.asleep():
            raise KeyError
    assert pool.state == "awake"
