# SPDX-License-Identifier: Apache-2.0
"""DeviceBuffer: contents, sizes, streams, views."""
import gc
import weakref

import numpy
import pytest

import rmm_c as rmm
from rmm_c import mr
from rmm_c.pylibrmm import device_buffer
from rmm_c.pylibrmm.stream import (
    DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    CudaStreamFlags,
    Stream,
)

SIZES = [0, 1, 255, 256, 257, 4096, 1 << 20]


@pytest.mark.parametrize("size", SIZES)
def test_bytes_come_back_as_they_went(size):
    data = numpy.random.default_rng(size).bytes(size)
    for stream in (DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Stream()):
        buffer = rmm.DeviceBuffer.to_device(data, stream)
        assert (buffer.size, buffer.nbytes, len(buffer)) == (size, size, size)
        assert buffer.tobytes(stream) == buffer.to_bytes(stream) == bytes(buffer) == data
        assert buffer.stream == stream
        assert (buffer.ptr == 0) == (size == 0)


@pytest.mark.parametrize("of", [lambda: DEFAULT_STREAM, Stream], ids=["default", "other"])
def test_a_copy_that_cannot_be_waited_for_does_not_come_later(of, pool, simulated):
    stream = of()
    source = rmm.DeviceBuffer.to_device(b"#" * 4096, stream)
    host = bytearray(4096)
    failing = [
        lambda: rmm.DeviceBuffer.to_device(bytes(host), stream, pool),
        lambda: source.copy_to_host(host, stream),
        lambda: device_buffer.copy_ptr_to_host(source.ptr, host, stream),
    ]
    for call in failing * 10:
        assert simulated.rmm_sim_fail(b"stream_synchronize:1")
        with pytest.raises(rmm.errors.CudaError):
            call()
        assert simulated.rmm_sim_fail(None)
        host[:] = bytes(4096)
        stream.synchronize()
        assert host == bytes(4096)
        assert pool.stats().current_bytes == 0


def test_a_buffer_keeps_its_size_address_and_resource(pool):
    buffer = rmm.DeviceBuffer(size=1000, mr=pool)
    assert buffer.mr is pool
    assert buffer.ptr % 256 == 0
    assert pool.stats().current_bytes == 1000
    del buffer
    assert pool.stats().current_bytes == 0


def test_a_buffer_of_the_default_resource_knows_it(pool):
    mr.set_current_device_resource(pool)
    buffer = rmm.DeviceBuffer(size=1000)
    assert buffer.mr is pool
    mr.set_current_device_resource(None)
    assert buffer.mr is pool
    assert rmm.DeviceBuffer(size=1).mr is mr.get_current_device_resource()
    assert rmm.DeviceBuffer(size=1).mr is not pool


def test_a_copy_from_an_address_is_a_copy():
    source = rmm.DeviceBuffer.to_device(b"some bytes")
    buffer = rmm.DeviceBuffer(ptr=source.ptr, size=source.size)
    source.copy_from_host(b"##########")
    assert buffer.tobytes() == b"some bytes"


def test_sizes_change_and_contents_stay():
    buffer = rmm.DeviceBuffer.to_device(b"abcdef")
    buffer.resize(3)
    assert (buffer.tobytes(), buffer.capacity()) == (b"abc", 6)
    buffer.reserve(new_capacity=100)
    assert (buffer.tobytes(), buffer.capacity()) == (b"abc", 100)
    buffer.resize(new_size=200, stream=Stream())
    assert (buffer.tobytes()[:3], buffer.size) == (b"abc", 200)
    buffer.resize(1)
    buffer.shrink_to_fit()
    assert (buffer.tobytes(), buffer.capacity()) == (b"a", 1)


def test_copies_to_the_host_fill_what_they_are_given():
    buffer = rmm.DeviceBuffer.to_device(b"abcdef")
    array = buffer.copy_to_host()
    assert array.dtype == numpy.uint8 and bytes(array) == b"abcdef"
    target = bytearray(8)
    assert buffer.copy_to_host(target) is target
    assert bytes(target) == b"abcdef\0\0"
    floats = numpy.zeros(1, dtype="f8")
    buffer.copy_to_host(floats)
    assert floats.tobytes()[:6] == b"abcdef"
    with pytest.raises(ValueError, match="too small"):
        buffer.copy_to_host(bytearray(5))
    with pytest.raises((TypeError, BufferError)):
        buffer.copy_to_host(b"read only")


def test_copies_from_the_host_keep_the_rest():
    buffer = rmm.DeviceBuffer.to_device(b"abcdef")
    buffer.copy_from_host(numpy.frombuffer(b"xy", dtype="u2"))
    assert buffer.tobytes() == b"xycdef"
    with pytest.raises(ValueError, match="too large"):
        buffer.copy_from_host(b"1234567")
    with pytest.raises(TypeError):
        buffer.copy_from_host(None)


def test_copies_from_the_device_take_contiguous_arrays_only():
    class Array:
        def __init__(self, buffer, **changes):
            self.__cuda_array_interface__ = dict(buffer.__cuda_array_interface__, **changes)

    buffer = rmm.DeviceBuffer.to_device(bytes(8))
    source = rmm.DeviceBuffer.to_device(b"abcd")
    buffer.copy_from_device(Array(source, shape=(2,), typestr="<u2"))
    assert buffer.tobytes() == b"abcd" + bytes(4)
    wide = rmm.DeviceBuffer.to_device(b"12345678" * 2)
    for typestr in ("<M8[ns]", "<U2"):  # of 8 bytes each
        buffer.copy_from_device(Array(wide, shape=(1,), typestr=typestr))
        assert buffer.tobytes() == b"12345678"
        with pytest.raises(ValueError, match="too large: 16 bytes"):
            buffer.copy_from_device(Array(wide, shape=(2,), typestr=typestr))
    with pytest.raises(ValueError, match="one dimension"):
        buffer.copy_from_device(Array(source, shape=(2, 2)))
    with pytest.raises(ValueError, match="contiguous"):
        buffer.copy_from_device(Array(source, shape=(2,), strides=(2,)))
    buffer.copy_from_device(Array(source, shape=(1,), strides=(16,)))  # of one element: contiguous
    with pytest.raises(ValueError, match="too large"):
        buffer.copy_from_device(Array(source, shape=(9,)))
    with pytest.raises(ValueError, match="__cuda_array_interface__"):
        buffer.copy_from_device(b"abc")


def test_a_copy_from_the_device_waits_for_the_stream_of_the_array():
    stream = Stream(flags=CudaStreamFlags.NON_BLOCKING)
    source = rmm.DeviceBuffer.to_device(b"x" * (64 << 20))
    between = rmm.DeviceBuffer(size=source.size, stream=stream)
    buffer = rmm.DeviceBuffer.to_device(bytes(source.size))
    device_buffer.copy_device_to_ptr(source.ptr, between.ptr, source.size, stream)
    buffer.copy_from_device(between)
    assert buffer.tobytes().count(b"x") == source.size


def test_raw_copies():
    first = rmm.DeviceBuffer.to_device(b"abcd")
    second = rmm.DeviceBuffer.to_device(b"1234")
    device_buffer.copy_device_to_ptr(first.ptr, second.ptr, 2)
    device_buffer.copy_host_to_ptr(b"z", second.ptr + 3)
    host = bytearray(4)
    device_buffer.copy_ptr_to_host(second.ptr, host)
    assert host == b"ab3z"


def test_the_cuda_array_interface_is_of_version_3():
    stream = Stream()
    buffer = rmm.DeviceBuffer(size=10, stream=stream)
    assert buffer.__cuda_array_interface__ == {
        "data": (buffer.ptr, False),
        "shape": (10,),
        "strides": None,
        "typestr": "|u1",
        "version": 3,
        "stream": stream.handle,
    }
    assert rmm.DeviceBuffer(size=1).__cuda_array_interface__["stream"] == 1


@pytest.mark.parametrize("resource", [mr.PinnedHostMemoryResource, mr.ManagedMemoryResource])
def test_memory_of_the_host_is_viewed_without_a_copy(resource):
    buffer = rmm.DeviceBuffer.to_device(b"abcdef", mr=resource())
    view = numpy.frombuffer(buffer, dtype="u1")
    assert view.ctypes.data == buffer.ptr
    view[0] = ord("x")
    assert buffer.tobytes() == b"xbcdef"
    with pytest.raises(BufferError, match="view"):
        buffer.resize(100)
    del view
    buffer.resize(100)


def test_a_view_in_a_cycle_is_of_memory_until_its_end():
    class Viewed(rmm.DeviceBuffer):
        pass

    class Reader:
        def __init__(self, view, seen):
            self.view, self.seen = view, seen

        def __del__(self):
            self.seen.append(bytes(self.view))

    seen = []
    counting = mr.StatisticsResourceAdaptor(mr.PinnedHostMemoryResource())
    buffer = Viewed(size=6, mr=counting)
    buffer.copy_from_host(b"abcdef")
    buffer.reader = Reader(memoryview(buffer), seen)
    del buffer
    gc.collect()
    assert seen == [b"abcdef"]
    assert counting.allocation_counts.current_bytes == 0


def test_memory_of_the_device_has_no_view():
    with pytest.raises(BufferError, match="host cannot access"):
        memoryview(rmm.DeviceBuffer(size=10))


def test_wrong_arguments_are_refused(pool):
    for arguments in (
        {"size": -1},
        {"size": 1.5},
        {"size": "1"},
        {"size": 1, "mr": 1},
        {"size": 1, "stream": "x"},
        {"length": 1},
    ):
        with pytest.raises((TypeError, OverflowError)):
            rmm.DeviceBuffer(**arguments)
    with pytest.raises(TypeError, match="keywords"):
        rmm.DeviceBuffer(10)
    assert pool.stats().current_count == 0


def test_without_memory_there_is_a_memory_error_and_no_buffer(pool):
    with pytest.raises(MemoryError) as caught:
        rmm.DeviceBuffer(size=1 << 60, mr=pool)
    assert isinstance(caught.value, rmm.errors.OutOfMemoryError)
    assert caught.value.errcode == -3
    assert pool.stats().current_count == 0


def test_prefetches_go_to_the_device_that_was_asked_for():
    buffer = rmm.DeviceBuffer(size=4096, mr=mr.ManagedMemoryResource())
    buffer.prefetch()
    buffer.prefetch(device=1, stream=Stream())
    buffer.prefetch(device=-1)
    rmm.DeviceBuffer(size=10).prefetch()
    with pytest.raises(RuntimeError):
        buffer.prefetch(device=-7)


def test_a_buffer_keeps_its_stream_and_resource_alive():
    stream = Stream()
    resource = mr.PoolMemoryResource(mr.CudaMemoryResource(), 1 << 20)
    of_stream, of_resource = weakref.ref(stream), weakref.ref(resource)
    buffer = rmm.DeviceBuffer(size=10, stream=stream, mr=resource)
    del stream, resource
    gc.collect()
    assert of_stream() is not None and of_resource() is not None
    del buffer
    assert of_stream() is None and of_resource() is None


def test_the_stream_of_a_buffer_can_be_set():
    buffer = rmm.DeviceBuffer(size=10)
    stream = Stream()
    buffer.stream = stream
    assert buffer.stream is stream
    with pytest.raises(AttributeError):
        del buffer.stream
