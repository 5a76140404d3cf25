# SPDX-License-Identifier: Apache-2.0
"""
The allocators for other packages, with stand-ins for the parts of those packages that they use.
The packages themselves need a GPU: tests/gpu/python_frameworks.py.
"""
import ctypes
import importlib
import sys
import types
import weakref

import pytest

import rmm_c as rmm
from rmm_c import mr
from rmm_c.pylibrmm.stream import (
    DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    CudaStreamFlags,
    Stream,
)

space = types.SimpleNamespace


@pytest.fixture
def install(monkeypatch):
    """Installs stand-ins as modules, and forgets the allocators' modules afterwards."""

    def put(**modules):
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name.replace("__", "."), module)

    yield put
    for name in list(sys.modules):
        if name.startswith("rmm_c.allocators."):
            del sys.modules[name]


def module(name, **attributes):
    made = types.ModuleType(name)
    made.__dict__.update(attributes)
    return made


def test_a_missing_framework_is_named():
    for name in ("cupy", "numba"):
        if importlib.util.find_spec(name) is not None:
            continue
        with pytest.raises(ImportError, match=name):
            allocator = importlib.import_module(f"rmm_c.allocators.{name}")
            getattr(allocator, f"rmm_{name}_allocator")(1)
    import rmm_c.allocators.torch

    if importlib.util.find_spec("torch") is None:  # as in RMM
        assert rmm_c.allocators.torch.rmm_torch_allocator is None
    with pytest.raises(AttributeError):
        rmm_c.allocators.torch.nonsense


def test_cupy_allocates_on_its_stream_and_frees_with_its_array(install, pool):
    stream = Stream()

    class UnownedMemory:
        def __init__(self, ptr, size, owner, device_id):
            self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id

    class MemoryPointer:
        def __init__(self, memory, offset):
            self.mem, self.ptr = memory, memory.ptr + offset

    cuda = space(
        get_current_stream=lambda: stream,
        UnownedMemory=UnownedMemory,
        memory=space(MemoryPointer=MemoryPointer),
        device=space(get_device_id=lambda: 5),
    )
    install(cupy=module("cupy", cuda=cuda))
    from rmm_c.allocators.cupy import rmm_cupy_allocator

    mr.set_current_device_resource(pool)
    pointer = rmm_cupy_allocator(1000)
    assert pointer.ptr == pointer.mem.owner.ptr
    assert (pointer.mem.size, pointer.mem.device_id) == (1000, -1)
    assert pointer.mem.owner.stream == stream
    assert pool.stats().current_bytes == 1000
    del pointer
    assert pool.stats().current_bytes == 0
    empty = rmm_cupy_allocator(0)
    assert (empty.ptr, empty.mem.device_id) == (0, 5)


class FakeNumba:
    """The parts of Numba's interface for memory managers that are used here."""

    class MemoryInfo:
        def __init__(self, free, total):
            self.free, self.total = free, total

    class MemoryPointer:
        def __init__(self, context, pointer, size, finalizer):
            self.context, self.pointer, self.size = context, pointer, size
            weakref.finalize(self, finalizer)

    class Manager:
        def __init__(self, context):
            self.context, self.allocations = context, {}

    class Mixin:
        pass


def numba_modules(per_thread, uses_binding):
    driver = space(USE_NV_BINDING=uses_binding)
    if uses_binding:
        driver.binding = space(CUdeviceptr=lambda address: ("CUdeviceptr", address))
    cuda = module(
        "numba.cuda",
        GetIpcHandleMixin=FakeNumba.Mixin,
        HostOnlyCUDAMemoryManager=FakeNumba.Manager,
        MemoryInfo=FakeNumba.MemoryInfo,
        MemoryPointer=FakeNumba.MemoryPointer,
        cudadrv=space(driver=driver),
    )
    config = space(CUDA_PER_THREAD_DEFAULT_STREAM=per_thread)
    return {"numba": module("numba", cuda=cuda, config=config), "numba__cuda": cuda}


@pytest.mark.parametrize("uses_binding", [False, True])
def test_numba_allocates_and_frees_with_its_pointer(install, pool, uses_binding):
    install(**numba_modules(per_thread=0, uses_binding=uses_binding))
    numba = importlib.import_module("rmm_c.allocators.numba")
    mr.set_current_device_resource(pool)
    manager = numba._numba_memory_manager(context="context")
    manager.initialize()
    pointer = manager.memalloc(1000)
    (address,) = manager.allocations
    assert (pointer.context, pointer.size, pointer.context) == ("context", 1000, "context")
    if uses_binding:
        assert pointer.pointer == ("CUdeviceptr", address)
    else:
        assert isinstance(pointer.pointer, ctypes.c_uint64) and pointer.pointer.value == address
    assert pool.stats().current_bytes == 1000
    del pointer
    assert pool.stats().current_bytes == 0 and manager.allocations == {}
    late = manager.memalloc(10)
    manager.allocations.clear()
    del late
    info = manager.get_memory_info()
    assert 0 < info.free <= info.total
    assert manager.interface_version == 1


def test_numba_arrays_of_before_a_reset_keep_their_memory_and_leave_others_alone(install, pool):
    """Numba's reset() clears the table, and an address that was freed is another array's."""
    install(**numba_modules(per_thread=0, uses_binding=False))
    numba = importlib.import_module("rmm_c.allocators.numba")
    mr.set_current_device_resource(pool)
    manager = numba.RMMNumbaManager("context")
    for _ in range(3):
        old = manager.memalloc(1000)
        manager.allocations.clear()
        new = manager.memalloc(1000)
        assert new.pointer.value != old.pointer.value and pool.stats().current_bytes == 2000
        del old
        assert pool.stats().current_bytes == 1000
        assert rmm.DeviceBuffer(size=1000).ptr != new.pointer.value
        assert list(manager.allocations) == [new.pointer.value]
        del new
        assert pool.stats().current_bytes == 0


def test_numba_frees_only_its_own_entry_of_an_address(install, pool):
    install(**numba_modules(per_thread=0, uses_binding=False))
    numba = importlib.import_module("rmm_c.allocators.numba")
    mr.set_current_device_resource(pool)
    manager = numba.RMMNumbaManager("context")
    array = manager.memalloc(1000)
    (address,) = manager.allocations
    other = manager.allocations[address] = object()
    del array
    assert manager.allocations == {address: other}


def test_numba_on_per_thread_streams(install):
    install(**numba_modules(per_thread=1, uses_binding=False))
    numba = importlib.import_module("rmm_c.allocators.numba")
    manager = numba.RMMNumbaManager(None)
    manager.memalloc(1000)
    assert numba._default_stream() is PER_THREAD_DEFAULT_STREAM


def test_torch_gets_the_functions_of_the_library(install, pool):
    class Pluggable:
        made = []

        def __init__(self, *names):
            self.made.append(self)
            self.names = names

        def allocator(self):
            return self

        def set_record_stream_fn(self, address):
            self.record_stream = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)

    memory = module("torch.cuda.memory", CUDAPluggableAllocator=Pluggable)
    install(torch=module("torch"), torch__cuda=module("torch.cuda"), torch__cuda__memory=memory)
    from rmm_c.allocators.torch import rmm_torch_allocator

    import rmm_c.allocators.torch as again

    assert [again.rmm_torch_allocator] == [rmm_torch_allocator] == Pluggable.made
    path, allocate, free = rmm_torch_allocator.names
    library = ctypes.CDLL(path)
    allocate, free = getattr(library, allocate), getattr(library, free)
    allocate.restype = ctypes.c_void_p
    allocate.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
    free.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
    mr.set_current_device_resource(pool)
    address = allocate(1000, 0, None)
    assert pool.stats().current_bytes == 1000
    mr.set_current_device_resource(None)
    side = Stream()
    rmm_torch_allocator.record_stream(address, side.handle)
    free(address, 1000, 0, None)
    assert pool.stats().current_bytes == 0


@pytest.mark.parametrize("place", ["cuda.core", "cuda.core.experimental"])
def test_cuda_core_allocates_through_a_resource(install, pool, place):
    class Buffer:
        @staticmethod
        def from_handle(ptr, size, mr):
            return space(handle=ptr, size=size, memory_resource=mr)

    core = module("cuda.core")
    experimental = module("cuda.core.experimental")
    where = core if place == "cuda.core" else experimental
    where.Buffer, where.MemoryResource = Buffer, object
    install(cuda=module("cuda"), cuda__core=core, cuda__core__experimental=experimental)
    from rmm_c.allocators.cuda_core import RMMMemoryResource

    resource = RMMMemoryResource(pool)
    stream = Stream(flags=CudaStreamFlags.NON_BLOCKING)
    buffer = resource.allocate(1000, stream=stream)
    assert pool.stats().current_bytes == 1000
    assert (resource.device_id, resource.is_device_accessible) == (0, True)
    assert not resource.is_host_accessible
    resource.deallocate(buffer.handle, buffer.size, stream)
    assert pool.stats().current_bytes == 0
    resource.deallocate(resource.allocate(10).handle, 10)
    assert [resource.allocate(0).handle for _ in range(2)] == [0, 0]
    resource.deallocate(0, 0)
    assert RMMMemoryResource().mr is mr.get_current_device_resource()
    assert rmm.DeviceBuffer(size=1).mr is not pool


@pytest.mark.parametrize("tells", [False, True])
@pytest.mark.parametrize("at_end", [{}, {"stream": DEFAULT_STREAM}])
def test_memory_of_cuda_core_is_freed_behind_its_stream(install, pool, tells, at_end):
    """A buffer that is only dropped ends on the default stream, or on none that is named."""

    class Buffer:
        @staticmethod
        def from_handle(ptr, size, mr, **options):
            if options and not tells:
                raise TypeError("from_handle() got an unexpected keyword argument 'stream'")
            return space(handle=ptr, size=size, options=options)

    core = module("cuda.core", Buffer=Buffer, MemoryResource=object)
    install(cuda=module("cuda"), cuda__core=core)
    from rmm_c.allocators.cuda_core import RMMMemoryResource

    resource = RMMMemoryResource(pool)
    stream = Stream(flags=CudaStreamFlags.NON_BLOCKING)
    source = rmm.DeviceBuffer.to_device(b"x" * 4096, stream, pool)
    for _ in range(40):
        buffer = resource.allocate(4096, stream=stream)
        assert buffer.options == ({"stream": stream} if tells else {})
        rmm._core.copy_device(source.ptr, buffer.handle, 4096, stream)
        resource.deallocate(buffer.handle, 4096, **at_end)
        others = [rmm.DeviceBuffer.to_device(bytes(4096), mr=pool) for _ in range(3)]
        stream.synchronize()
        assert all(other.tobytes() == bytes(4096) for other in others)
