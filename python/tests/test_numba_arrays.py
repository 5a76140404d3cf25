# SPDX-License-Identifier: Apache-2.0
"""Numba's arrays as RMM made them until 0.16, and Numba's names at the top, with a stand-in."""
import sys
import types
import weakref

import numpy as np
import pytest

import rmm_c as rmm
from rmm_c import _core, mr

space = types.SimpleNamespace


class MemoryPointer:
    def __init__(self, context, pointer, size, owner=None, finalizer=None):
        self.address, self.size, self.owner = pointer.value, size, owner
        if finalizer is not None:
            weakref.finalize(self, finalizer)


class DeviceNDArray:
    """Enough of Numba's to hold memory and to copy to and from it."""

    def __init__(self, shape, strides, dtype, gpu_data):
        self.shape, self.strides, self.dtype, self.gpu_data = shape, strides, dtype, gpu_data
        self.ndim = len(shape)

    def copy_to_device(self, ary, stream=0):
        assert stream == 0  # a number, which Numba takes
        _core.copy_from_host(self.gpu_data.address, np.ascontiguousarray(ary).tobytes(), stream)

    def copy_to_host(self):
        data = bytearray(self.gpu_data.size)
        _core.copy_to_host(self.gpu_data.address, data, 0)
        return np.ndarray(self.shape, self.dtype, data, strides=self.strides)


@pytest.fixture(autouse=True)
def numba(monkeypatch):
    cuda = types.ModuleType("numba.cuda")
    cuda.__dict__.update(
        GetIpcHandleMixin=type("Mixin", (), {}),
        HostOnlyCUDAMemoryManager=type("Manager", (), {}),
        MemoryInfo=space,
        MemoryPointer=MemoryPointer,
        current_context=lambda: "context",
        cudadrv=space(
            driver=space(
                USE_NV_BINDING=False, MemoryPointer=MemoryPointer, Stream=type("Stream", (), {})
            ),
            devicearray=space(DeviceNDArray=DeviceNDArray),
        ),
    )
    monkeypatch.setitem(sys.modules, "numba", types.ModuleType("numba"))
    monkeypatch.setitem(sys.modules, "numba.cuda", cuda)
    sys.modules["numba"].__dict__.update(cuda=cuda, config=space())
    yield
    for name in ("numba", "_numba_arrays"):
        sys.modules.pop(f"rmm_c.allocators.{name}", None)


ARRAYS = [
    np.arange(7, dtype="float32"),
    np.arange(6, dtype="int64").reshape(2, 3),
    np.asfortranarray(np.arange(6, dtype="int64").reshape(2, 3)),
    np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]),
    np.array(5),
    np.zeros((0, 3)),
]


@pytest.mark.parametrize("number", range(len(ARRAYS)))
def test_an_array_goes_to_the_device_and_back(number, pool):
    mr.set_current_device_resource(pool)
    source = ARRAYS[number]
    array = rmm.to_device(source)
    assert isinstance(array.gpu_data.owner, rmm.DeviceBuffer)
    assert pool.stats().current_bytes == array.gpu_data.size == source.nbytes
    want = source.reshape(1) if source.ndim == 0 else source
    assert (array.shape, array.strides, array.dtype) == (want.shape, want.strides, want.dtype)
    if want.flags.c_contiguous:
        assert (array.copy_to_host() == want).all()
    del array
    assert pool.stats().current_bytes == 0


def test_bytes_go_to_a_buffer():
    for source in (b"abc", bytearray(b"abc"), memoryview(b"abc")):
        buffer = rmm.to_device(source)
        assert type(buffer) is rmm.DeviceBuffer and buffer.tobytes() == b"abc"


def test_to_device_can_copy_to_an_array_that_is_there(pool):
    array = rmm.device_array_like(np.zeros(4))
    assert rmm.to_device(np.arange(4.0), to=array) is array
    assert array.copy_to_host().tolist() == [0, 1, 2, 3]
    assert rmm.to_device(np.zeros(4), copy=False, to=array) is array
    assert array.copy_to_host().tolist() == [0, 1, 2, 3]


def test_arrays_have_the_shape_the_order_and_the_type_that_are_asked_for():
    array = rmm.device_array(10)
    assert (array.shape, array.strides, array.dtype) == ((10,), (8,), np.dtype("float64"))
    assert rmm.device_array((2, 3), np.int16).strides == (6, 2)
    assert rmm.device_array((2, 3), np.int16, order="F").strides == (2, 4)
    spread = rmm.device_array((3,), "u1", strides=(100,))
    assert (spread.strides, spread.gpu_data.size) == ((100,), 201)
    assert rmm.device_array((), "i4").gpu_data.size == 4
    stream = rmm.pylibrmm.stream.Stream()
    assert rmm.device_array(1, stream=stream).gpu_data.owner.stream is stream


def test_an_array_over_an_address_is_freed_by_its_finalizer():
    buffer = rmm.DeviceBuffer.to_device(np.arange(3, dtype="float64"))
    ended = []
    array = rmm.device_array_from_ptr(buffer.ptr, 3, finalizer=lambda: ended.append(1))
    assert array.gpu_data.owner is None and array.copy_to_host().tolist() == [0, 1, 2]
    del array
    assert ended == [1]
    dates = rmm.device_array_from_ptr(buffer.ptr, 3, dtype=np.datetime64)
    assert dates.dtype == np.dtype("datetime64[ms]") and dates.strides == (8,)


def test_numbas_names_are_at_the_top():
    """NUMBA_CUDA_MEMORY_MANAGER=rmm_c makes Numba import the module and take the second name."""
    import rmm_c.allocators.numba as own

    assert rmm.RMMNumbaManager is rmm._numba_memory_manager is own.RMMNumbaManager
    assert rmm.rmm.RMMNumbaManager is rmm.rmm._numba_memory_manager is own.RMMNumbaManager
    assert rmm.allocators.numba is own and rmm.rmm.device_array is rmm.device_array
