# SPDX-License-Identifier: Apache-2.0
"""Python functions that the library calls: sizes, results, exceptions."""
import sys
from contextlib import contextmanager

import pytest

import rmm_c as rmm
from rmm_c import mr
from rmm_c.pylibrmm.stream import LEGACY_DEFAULT_STREAM, Stream

MIB = 1 << 20


@contextmanager
def unraisable_errors():
    """What goes to sys.unraisablehook."""
    caught = []
    previous = sys.unraisablehook
    sys.unraisablehook = lambda info: caught.append(info.exc_value)
    try:
        yield caught
    finally:
        sys.unraisablehook = previous


def test_the_functions_get_size_and_stream(functions, callback):
    stream = Stream()
    buffer = rmm.DeviceBuffer(size=100, stream=stream, mr=callback)
    del buffer
    rmm.DeviceBuffer(size=200, mr=callback)
    assert functions.calls == [
        ("allocate", 100, stream),
        ("deallocate", 100, stream),
        ("allocate", 200, LEGACY_DEFAULT_STREAM),
        ("deallocate", 200, LEGACY_DEFAULT_STREAM),
    ]
    assert isinstance(functions.calls[0][2], Stream)


@pytest.mark.parametrize("error", [KeyError("k"), MemoryError("m"), KeyboardInterrupt()])
def test_an_exception_comes_out_at_the_caller(functions, callback, error):
    functions.error = error
    for allocate in (
        lambda: callback.allocate(10),
        lambda: rmm.DeviceBuffer(size=10, mr=callback),
        lambda: mr.StatisticsResourceAdaptor(callback).allocate(10),
        lambda: mr.PoolMemoryResource(callback, MIB),
    ):
        with pytest.raises(type(error)) as caught:
            allocate()
        assert caught.value is error
    functions.error = None
    rmm.DeviceBuffer(size=10, mr=callback)
    assert callback.stats().current_count == 0


def test_an_exception_in_a_free_comes_out_at_the_caller():
    base = mr.CudaMemoryResource()

    def deallocate(ptr, nbytes, stream):
        base.deallocate(ptr, nbytes, stream)
        raise LookupError("freed, but angry")

    resource = mr.CallbackMemoryResource(base.allocate, deallocate)
    address = resource.allocate(10)
    with pytest.raises(LookupError, match="angry"):
        resource.deallocate(address, 10)
    with unraisable_errors() as unraisable:
        rmm.DeviceBuffer(size=10, mr=resource)
    assert [type(error) for error in unraisable] == [LookupError]


def test_an_exception_that_fails_nothing_is_reported(functions):
    def allocate(nbytes, stream):
        if nbytes > 2 * MIB:
            raise MemoryError("not that much")
        return functions.allocate(nbytes, stream)

    base = mr.CallbackMemoryResource(allocate, functions.deallocate)
    fallback = mr.FailureCallbackResourceAdaptor(base, lambda nbytes: False)
    with pytest.raises(MemoryError, match="not that much"):
        fallback.allocate(3 * MIB)
    attempts = []

    def free_up(nbytes):
        attempts.append(nbytes)
        functions.error = None
        return True

    functions.error = MemoryError("at first")
    again = mr.FailureCallbackResourceAdaptor(base, free_up)
    with unraisable_errors() as unraisable:
        again.deallocate(again.allocate(MIB), MIB)
    assert attempts == [MIB]
    assert [str(error) for error in unraisable] == ["at first"]


def test_a_result_that_is_no_address_is_refused(functions):
    for result, error in (("x", TypeError), (None, TypeError), (-1, OverflowError)):
        resource = mr.CallbackMemoryResource(lambda n, s: result, functions.deallocate)
        with pytest.raises(error):
            resource.allocate(10)
    unaligned = mr.CallbackMemoryResource(
        lambda n, s: functions.allocate(n + 256, s) + 1, lambda p, n, s: None
    )
    with pytest.raises(rmm.errors.BadAllocError):
        unaligned.allocate(10)
    with pytest.raises(TypeError, match="callable"):
        mr.CallbackMemoryResource(1, functions.deallocate)
    with pytest.raises(TypeError, match="callable"):
        mr.FailureCallbackResourceAdaptor(functions.base, None)


def test_a_failure_callback_frees_and_lets_it_try_again():
    limiting = mr.LimitingResourceAdaptor(mr.CudaMemoryResource(), MIB)
    cache = [rmm.DeviceBuffer(size=MIB, mr=limiting)]
    wanted = []

    def drop_cache(nbytes):
        wanted.append(nbytes)
        had = bool(cache)
        cache.clear()
        return had

    resource = mr.FailureCallbackResourceAdaptor(limiting, drop_cache)
    buffer = rmm.DeviceBuffer(size=MIB // 2, mr=resource)
    assert wanted == [MIB // 2]
    with pytest.raises(MemoryError):
        resource.allocate(MIB)
    assert wanted == [MIB // 2, MIB]
    assert buffer.size == MIB // 2


def test_an_exception_of_a_failure_callback_comes_out_at_the_caller():
    def fail(nbytes):
        raise ZeroDivisionError(nbytes)

    limiting = mr.LimitingResourceAdaptor(mr.CudaMemoryResource(), 0)
    resource = mr.FailureCallbackResourceAdaptor(limiting, fail)
    with pytest.raises(ZeroDivisionError):
        rmm.DeviceBuffer(size=10, mr=resource)


def test_a_callback_may_allocate_from_its_own_resource():
    base = mr.CudaMemoryResource()
    depths = []

    def allocate(nbytes, stream):
        depths.append(nbytes)
        if nbytes > 1000:
            resource.deallocate(resource.allocate(nbytes // 2), nbytes // 2)
        return base.allocate(nbytes, stream)

    resource = mr.CallbackMemoryResource(allocate, base.deallocate)
    resource.deallocate(resource.allocate(4000), 4000)
    assert depths == [4000, 2000, 1000]


def test_an_exception_waits_while_a_callback_allocates(functions, callback):
    error = ValueError("the outer one")

    def allocate(nbytes, stream):
        rmm.DeviceBuffer(size=10, mr=callback)
        raise error

    outer = mr.CallbackMemoryResource(allocate, functions.deallocate)
    with pytest.raises(ValueError) as caught:
        outer.allocate(10)
    assert caught.value is error
