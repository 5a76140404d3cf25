# SPDX-License-Identifier: Apache-2.0
"""What is exchanged with the host and with other packages is ordered behind the work before."""
import ctypes
import gc
import sys
import types

import numpy
import pytest
from late import BYTES, contents, non_blocking, queued

import rmm_c as rmm
from rmm_c import mr
from rmm_c.pylibrmm.device_buffer import copy_device_to_ptr, copy_host_to_ptr
from rmm_c.pylibrmm.memory_resource._defaults import current_device
from rmm_c.pylibrmm.stream import (
    DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    CudaStreamFlags,
    Stream,
)

ROUNDS = 40
DEFAULTS = [DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM]


@pytest.mark.parametrize(
    "resource",
    [mr.PinnedHostMemoryResource, mr.ManagedMemoryResource, mr.HostMemoryResource],
)
def test_a_view_shows_what_was_queued_before_it(resource, pools):
    own, other = non_blocking(), non_blocking()
    for i in range(ROUNDS):
        want = contents(i)
        buffer = rmm.DeviceBuffer(size=BYTES, stream=own, mr=resource())
        buffer.copy_from_device(queued(want, other), other)
        assert bytes(memoryview(buffer)) == want
        buffer.copy_from_device(queued(want[::-1], own), own)
        assert numpy.from_dlpack(buffer).tobytes() == want[::-1]


def test_a_copy_of_memory_that_the_host_views_is_done_at_once(pools):
    stream = non_blocking()
    staging = rmm.DeviceBuffer(size=BYTES, stream=stream, mr=mr.PinnedHostMemoryResource())
    target = rmm.DeviceBuffer(size=BYTES, stream=stream)
    view = numpy.frombuffer(staging, dtype="u1")
    for i in range(ROUNDS):
        view[:] = i
        target.copy_from_device(staging, stream)
        view[:] = 255
        assert target.tobytes() == bytes([i]) * BYTES
        staging.copy_from_device(target, stream)
        assert view.tobytes() == bytes([i]) * BYTES


class Array:
    """What another package shows of a buffer: nothing but the interface."""

    def __init__(self, buffer, **changes):
        interface = buffer.__cuda_array_interface__
        self.__cuda_array_interface__ = dict(interface, **changes)
        if "stream" in changes and changes["stream"] == "none at all":
            del self.__cuda_array_interface__["stream"]


def foreign(want, on, named):
    """An array of memory that no DeviceBuffer has, written late on a stream."""
    source = rmm.DeviceBuffer.to_device(want, on)
    resource = mr.get_current_device_resource()
    address = resource.allocate(len(want), on)
    copy_device_to_ptr(source.ptr, address, len(want), on)
    array = Array(source, data=(address, False), stream=named)
    array.end = lambda: resource.deallocate(address, len(want), on)
    array.source = source
    return array


NAMED = [
    (DEFAULT_STREAM, 1),
    (DEFAULT_STREAM, 0),
    (DEFAULT_STREAM, "none at all"),
    (PER_THREAD_DEFAULT_STREAM, 2),
    (PER_THREAD_DEFAULT_STREAM, 0),
    (PER_THREAD_DEFAULT_STREAM, "none at all"),
    (non_blocking(), "its handle"),
]


@pytest.mark.parametrize("device", [0, 1])
@pytest.mark.parametrize("on, named", NAMED)
def test_a_foreign_array_is_read_after_the_stream_that_it_names(on, named, device, pools):
    """The current device is the array's; on another one the array has to say its own."""
    target = rmm.DeviceBuffer(size=BYTES, stream=non_blocking())
    for i in range(ROUNDS):
        want = contents(i)
        with current_device(device):
            array = foreign(want, on, on.handle if named == "its handle" else named)
            if i % 2 == 0:
                target.copy_from_device(array, target.stream)
        if i % 2 == 1:
            array.__dlpack_device__ = lambda: (2, device)
            target.copy_from_device(array, target.stream)
        with current_device(device):
            copy_host_to_ptr(bytes(BYTES), array.__cuda_array_interface__["data"][0], on)
            array.end()
        assert target.tobytes() == want


def test_the_device_of_a_foreign_array_is_asked_for(pools):
    with current_device(1):
        array = foreign(contents(1), DEFAULT_STREAM, 1)
    array.device = types.SimpleNamespace(id=1)  # as CuPy's
    target = rmm.DeviceBuffer(size=BYTES)
    target.copy_from_device(array)
    assert target.tobytes() == contents(1)
    array.end()


def test_an_array_whose_producer_needs_no_wait_is_not_waited_for():
    """The stream that None stands for may be one that captures."""
    waits = []
    source = rmm.DeviceBuffer.to_device(b"abc")
    array = Array(source, stream=None)
    target = rmm.DeviceBuffer(size=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rmm._core, "stream_wait", lambda *args: waits.append(args))
        target.copy_from_device(array)
    assert waits == [] and target.tobytes() == b"abc"


def test_a_tensor_is_read_after_pytorchs_current_stream(monkeypatch):
    """Its interface names no stream."""
    waits = []

    class Tensor(Array):
        device = types.SimpleNamespace(index=0)

    stream = types.SimpleNamespace(synchronize=lambda: waits.append("waited"))
    cuda = types.SimpleNamespace(current_stream=lambda device: stream, Stream=int)
    monkeypatch.setitem(
        sys.modules, "torch", types.SimpleNamespace(Tensor=Tensor, cuda=cuda)
    )
    source = rmm.DeviceBuffer.to_device(b"abc")
    target = rmm.DeviceBuffer(size=3)
    target.copy_from_device(Tensor(source, stream="none at all"))
    assert waits == ["waited"] and target.tobytes() == b"abc"


def test_an_array_of_a_buffers_memory_is_ordered_as_the_buffer(pools):
    """Whatever its interface says: a consumer may have written it on a stream of its own."""
    own, other = non_blocking(), non_blocking()
    for i in range(ROUNDS):
        want = contents(i)
        buffer = rmm.DeviceBuffer(size=BYTES, stream=own)
        array = Array(buffer, stream=None)
        buffer.copy_from_device(queued(want, other), other)
        target = rmm.DeviceBuffer(size=BYTES, stream=own)
        target.copy_from_device(array, own)
        assert target.tobytes() == want


def read_interface(buffer, device):
    """As a consumer on another device reads: it orders itself behind the stream that it is told of,
    as that is called on its own device."""
    interface = buffer.__cuda_array_interface__
    assert interface["version"] == 3 and interface["stream"] not in (None, 0)
    Stream(interface["stream"]).synchronize()
    return interface["data"][0]


def read_dlpack(buffer, device):
    buffer.__dlpack__(stream=1)
    return buffer.ptr


@pytest.mark.parametrize("read", [read_interface, read_dlpack])
@pytest.mark.parametrize("stream", DEFAULTS, ids=["legacy", "per-thread"])
def test_a_consumer_on_another_device_finds_the_contents(read, stream, pools):
    staging = mr.PinnedHostMemoryResource()
    for i in range(ROUNDS):
        want = contents(i)
        source = rmm.DeviceBuffer.to_device(want)
        buffer = rmm.DeviceBuffer(size=BYTES, stream=stream, mr=staging)
        view = numpy.frombuffer(buffer, dtype="u1")
        del view
        address = buffer.ptr
        buffer.copy_from_device(source, stream)
        with current_device(1):
            assert read(buffer, 1) == address
            host = (ctypes.c_char * BYTES).from_address(address)
            assert host.raw == want


def test_a_consumer_is_told_one_stream_that_is_enough(pools):
    own, other = non_blocking(), non_blocking()
    for i in range(ROUNDS):
        want = contents(i)
        buffer = rmm.DeviceBuffer(size=BYTES, stream=own, mr=mr.PinnedHostMemoryResource())
        buffer.copy_from_device(queued(want, other), other)
        assert Stream(buffer.__cuda_array_interface__["stream"]) == own
        own.synchronize()
        host = (ctypes.c_char * BYTES).from_address(buffer.ptr)
        assert host.raw == want


def test_a_copy_for_a_consumer_that_does_not_want_to_wait_is_done(pools):
    stream = non_blocking()
    for i in range(ROUNDS):
        buffer = rmm.DeviceBuffer(size=BYTES, stream=stream, mr=mr.PinnedHostMemoryResource())
        buffer.copy_from_host(contents(i), stream)
        array = numpy.from_dlpack(_Copied(buffer))
        assert array.tobytes() == contents(i)


class _Copied:
    """A producer that copies and lets its consumer wait."""

    def __init__(self, buffer):
        self.buffer = buffer

    def __dlpack_device__(self):
        return self.buffer.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.buffer.__dlpack__(stream=-1, copy=True)


@pytest.mark.parametrize("flags", CudaStreamFlags)
def test_a_copy_on_a_stream_that_captures_becomes_part_of_the_graph(flags, pools, simulated):
    """The work before the capture is the program's to order, and is not looked at."""
    stream, graph = Stream(flags=flags), ctypes.c_void_p()
    handle = ctypes.c_void_p(stream.handle)
    source = rmm.DeviceBuffer.to_device(contents(1))
    target = rmm.DeviceBuffer(size=BYTES)
    assert simulated.rmm_sim_begin_capture(handle, 0) == 0
    target.copy_from_device(source, stream)
    assert simulated.rmm_sim_end_capture(handle, ctypes.byref(graph)) == 0
    source.copy_from_host(contents(2))
    assert simulated.rmm_sim_graph_launch(graph, handle) == 0
    assert target.tobytes(stream) == contents(2)
    assert simulated.rmm_sim_graph_destroy(graph) == 0


def test_the_stream_of_a_buffer_may_have_ended_if_it_was_a_number(pools):
    for i in range(ROUNDS):
        own, other = non_blocking(), non_blocking()
        buffer = queued(contents(i), own.handle)
        del own
        gc.collect()
        assert bytes(buffer) == contents(i)
        buffer.stream = other  # before the free, which needs a stream
