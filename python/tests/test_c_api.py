# SPDX-License-Identifier: Apache-2.0
"""Buffers and resources of an extension module's own, by rmm/python.h."""
import gc
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import pytest

import rmm_c
from rmm_c import _core
from rmm_c.pylibrmm.stream import Stream

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"


def compile_module(folder, library):
    path = folder / "exchange_module.so"
    command = [os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra"]
    command += ["-Werror", "-fPIC", "-shared", f"-I{INCLUDE}", f"-I{sysconfig.get_path('include')}"]
    command += [str(HERE / "exchange_module.c"), "-o", str(path), str(library)]
    subprocess.run(command, check=True)
    return path


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    path = compile_module(tmp_path_factory.mktemp("c"), _core.library_path())
    spec = importlib.util.spec_from_file_location("exchange_module", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_a_buffer_of_c_becomes_a_device_buffer_without_a_copy(module, pool):
    stream = Stream()
    buffer = module.make(1000, pool, stream.handle, stream)
    assert type(buffer) is rmm_c.DeviceBuffer and buffer.size == 1000
    assert buffer.mr is pool and buffer.stream is stream
    assert pool.stats().total_count == 1
    buffer.copy_from_host(b"abc")
    buffer.resize(5000, stream)
    assert buffer.tobytes()[:3] == b"abc"
    assert _core.copy_device(buffer.ptr, buffer.ptr, 0, stream) is None  # it is in the list
    del buffer
    gc.collect()
    assert pool.stats().current_count == 0


def test_a_buffer_of_c_may_be_of_a_default_stream_and_resource(module):
    buffer = module.make(10, None, 0, None)
    assert buffer.mr is rmm_c.mr.get_current_device_resource()
    assert buffer.stream.handle == 0 and buffer.size == 10
    stream = Stream()
    assert module.make(10, None, stream.handle, None).stream.handle == stream.handle
    assert module.make(0, None, 0, None).ptr == 0


def test_a_buffer_without_resource_or_of_another_stream_is_refused(module, pool):
    with pytest.raises(ValueError, match="no resource"):
        module.make(-1, pool, 0, None)
    with pytest.raises(ValueError, match="another stream"):
        module.make(10, pool, 0, Stream())
    with pytest.raises(TypeError):
        module.make(10, pool, 0, "a stream")
    assert pool.stats().current_count == 0


def test_c_takes_the_memory_of_a_device_buffer(module, pool):
    stream, other = Stream(), Stream()
    buffer = rmm_c.DeviceBuffer(size=1000, stream=stream, mr=pool)
    buffer.copy_from_device(rmm_c.DeviceBuffer.to_device(b"x" * 1000), other)  # queued elsewhere
    address = buffer.ptr
    assert module.take(buffer) == (address, 1000, stream.handle)
    assert (buffer.size, buffer.ptr, buffer.capacity(), buffer.mr) == (0, 0, 0, pool)
    assert pool.stats().current_count == 1
    buffer.resize(10)
    del buffer
    assert pool.stats().current_count == 1
    module.free()
    assert pool.stats().current_count == 0
    with pytest.raises(TypeError):
        module.take("no buffer")


def test_memory_that_is_in_use_is_not_taken(module):
    buffer = rmm_c.DeviceBuffer(size=10, mr=rmm_c.mr.PinnedHostMemoryResource())
    view = memoryview(buffer)
    with pytest.raises(BufferError):
        module.take(buffer)
    view.release()
    module.take(buffer)
    module.free()


def test_borrowed_memory_does_not_move(module, pool):
    buffer = rmm_c.DeviceBuffer(size=10, mr=pool)
    assert module.borrow(buffer) == buffer.ptr
    with pytest.raises(BufferError):
        buffer.resize(1 << 20)
    with pytest.raises(BufferError):
        module.take(buffer)
    module.give_back(buffer)
    buffer.resize(1 << 20)
    with pytest.raises(TypeError):
        module.borrow(None)


def test_resources_go_both_ways(module, pool):
    assert module.through(pool) is pool
    fresh = module.fresh_pool()
    assert type(fresh) is rmm_c.mr.PoolMemoryResource
    fresh.deallocate(fresh.allocate(100), 100)
    with pytest.raises(TypeError):
        module.through("no resource")


def test_another_copy_of_the_library_is_refused(tmp_path):
    """The module's own copy has another ABI name, so the loader takes both."""
    patched = tmp_path / "libother.so"
    data = pathlib.Path(_core.library_path()).read_bytes()
    name = b"librmm-c.so.%s" % rmm_c.__version__.rpartition(".")[0].encode()
    assert name in data
    patched.write_bytes(data.replace(name, b"librmm-x.so.%s" % name.rpartition(b".so.")[2]))
    shutil.copyfile(patched, tmp_path / name.decode().replace("rmm-c", "rmm-x"))
    path = compile_module(tmp_path, patched)
    program = (
        "import importlib.util, rmm_c\n"
        f"spec = importlib.util.spec_from_file_location('exchange_module', {str(path)!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "try: module.make(1, None, 0, None)\n"
        "except ImportError as error: print(error)\n"
    )
    # a sanitizer would report the second copy
    asan = os.environ.get("ASAN_OPTIONS", "") + ":detect_odr_violation=0"
    environment = dict(os.environ, LD_LIBRARY_PATH=str(tmp_path), ASAN_OPTIONS=asan)
    output = subprocess.run(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        check=True,
    ).stdout
    assert output == "rmm_c and this module use two copies of librmm-c\n"
