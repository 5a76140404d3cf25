# SPDX-License-Identifier: Apache-2.0
"""Python functions that the library calls: threads, garbage, what outlives what."""
import gc
import sys
import threading
import weakref

import pytest

import rmm_c as rmm
from rmm_c import mr

MIB = 1 << 20


def test_threads_in_callbacks_do_not_wait_for_each_other_for_ever(functions, callback):
    """A thread in a callback waits for another one that needs the GIL and the pool."""
    pool = mr.PoolMemoryResource(mr.CudaMemoryResource(), 0)
    inside, done = threading.Event(), threading.Event()

    def allocate(nbytes, stream):
        inside.set()
        assert done.wait(60)
        return pool.allocate(nbytes, stream)

    def beside():
        assert inside.wait(60)
        for _ in range(100):
            rmm.DeviceBuffer(size=3 * MIB, mr=pool)
        done.set()

    resource = mr.CallbackMemoryResource(allocate, pool.deallocate)
    thread = threading.Thread(target=beside)
    thread.start()
    resource.deallocate(resource.allocate(100), 100)
    thread.join()


def test_many_threads_share_a_pool_over_callbacks(functions, threads):
    resource = mr.CallbackMemoryResource(functions.allocate, functions.deallocate)
    pool = mr.PoolMemoryResource(resource, 0)

    def work(seed):
        kept = []
        for i in range(300):
            kept.append(rmm.DeviceBuffer(size=(i * seed * 7919) % MIB, mr=pool))
            if len(kept) > 10:
                kept.pop(i % 10)

    with threads(work, range(1, 9)):
        pass
    assert pool.stats().current_count == 0
    assert resource.stats().current_count > 0
    del pool
    assert resource.stats().current_count == 0


def test_a_cycle_through_a_callback_is_collected():
    class Owner:
        def __init__(self):
            self.base = mr.CudaMemoryResource()
            self.resource = mr.CallbackMemoryResource(self.allocate, self.deallocate)
            self.catching = mr.FailureCallbackResourceAdaptor(self.resource, self.failed)
            self.buffer = rmm.DeviceBuffer(size=10, mr=self.catching)

        def allocate(self, nbytes, stream):
            return self.base.allocate(nbytes, stream)

        def deallocate(self, ptr, nbytes, stream):
            mr.CudaMemoryResource().deallocate(ptr, nbytes, stream)

        def failed(self, nbytes):
            return False

    owner = Owner()
    ends = [weakref.ref(part) for part in (owner, owner.resource, owner.catching, owner.buffer)]
    before = mr.CudaMemoryResource().stats().current_count
    del owner
    gc.collect()
    assert [end() for end in ends] == [None] * 4
    assert mr.CudaMemoryResource().stats().current_count == before - 1


def buffers_in_a_cycle(base, is_pool):
    """Garbage of which the functions are a part; what the collector clears first varies."""
    kept = []

    def deallocate(ptr, nbytes, stream):
        base.deallocate(ptr, nbytes, stream)
        assert kept is not None

    resource = mr.CallbackMemoryResource(lambda *args: base.allocate(*args), deallocate)
    if is_pool:
        resource = mr.PoolMemoryResource(resource, MIB)
    kept.append(rmm.DeviceBuffer(size=256, mr=resource))
    kept.append(type("Part", (), {"method": deallocate, "buffer": kept[0], "kept": kept})())


@pytest.mark.parametrize("is_pool", [False, True])
def test_functions_that_are_part_of_a_cycle_free_its_buffers(is_pool, monkeypatch):
    base, errors = mr.CudaMemoryResource(), []
    gc.collect()  # garbage of other tests
    before = base.stats().current_count  # of a resource that they use too
    monkeypatch.setattr(sys, "unraisablehook", errors.append)
    for _ in range(20):
        buffers_in_a_cycle(base, is_pool)
    gc.collect()
    left = base.stats().current_count - before
    if not is_pool:
        assert (left, errors) == (0, [])
    assert left == len([e for e in errors if e.exc_type is RuntimeError])


def test_a_resource_gets_its_functions_once(functions, callback):
    failing = mr.FailureCallbackResourceAdaptor(callback, lambda nbytes: False)
    address = failing.allocate(100)
    for resource, arguments in ((callback, (print, print)), (failing, (callback, print))):
        with pytest.raises(RuntimeError, match="already"):
            resource.__init__(*arguments)
    gc.collect()
    failing.deallocate(address, 100)
    failing.deallocate(failing.allocate(100), 100)
    assert len(functions.calls) == 4


def test_the_functions_live_as_long_as_the_c_resource(functions):
    """C code that holds the resource calls the functions after the Python object is gone."""
    functions = type(functions)()
    resource = mr.CallbackMemoryResource(functions.allocate, functions.deallocate)
    end = weakref.ref(functions)
    bare = rmm._core.Resource()
    rmm._core.share(bare, resource)
    address = resource.allocate(100)
    del resource, functions
    gc.collect()
    bare.deallocate(address, 100)
    assert end().calls[-1][:2] == ("deallocate", 100)
    del bare
    gc.collect()
    assert end() is None


def test_a_failure_callback_without_its_python_object_fails_as_without_callback():
    limiting = mr.LimitingResourceAdaptor(mr.CudaMemoryResource(), 0)
    resource = mr.FailureCallbackResourceAdaptor(limiting, lambda nbytes: True)
    bare = rmm._core.Resource()
    rmm._core.share(bare, resource)
    del resource
    with pytest.raises(rmm.errors.OutOfMemoryError):
        bare.allocate(10)
