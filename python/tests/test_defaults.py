# SPDX-License-Identifier: Apache-2.0
"""The default resource of each device, reinitialize(), logging, the debug log."""
import os
import pathlib
import subprocess
import sys

import pytest
from program import run

import rmm_c as rmm
from rmm_c import mr
from rmm_c.pylibrmm.memory_resource._defaults import current_device

HEADER = "Thread,Time,Action,Pointer,Size,Stream"


def test_the_default_is_the_object_that_was_set(pool):
    assert isinstance(mr.get_current_device_resource(), mr.CudaMemoryResource)
    assert mr.get_current_device_resource() is mr.get_per_device_resource(0)
    mr.set_current_device_resource(pool)
    assert mr.get_current_device_resource() is pool
    assert isinstance(mr.get_per_device_resource(1), mr.CudaMemoryResource)
    mr.set_per_device_resource(0, None)
    assert isinstance(mr.get_current_device_resource(), mr.CudaMemoryResource)
    with pytest.raises(TypeError):
        mr.set_current_device_resource("pool")
    for device in (-1, 99):
        with pytest.raises(rmm.errors.RMMError):
            mr.get_per_device_resource(device)


def test_a_default_lives_while_it_is_set():
    mr.set_current_device_resource(
        mr.StatisticsResourceAdaptor(mr.PoolMemoryResource(mr.CudaMemoryResource(), "1MiB"))
    )
    buffer = rmm.DeviceBuffer(size=100)
    assert mr.get_current_device_resource().allocation_counts.current_bytes == 100
    mr.set_current_device_resource(None)
    assert buffer.mr.get_upstream().stats().current_bytes == 100


def test_the_environment_chooses_the_initial_default():
    program = """
resource = mr.get_current_device_resource()
print(type(resource).__name__, type(resource.get_upstream()).__name__)
assert mr.get_current_device_resource() is resource
print(rmm.DeviceBuffer(size=10).mr is resource)
"""
    output = run(program, RMM_RESOURCE="statistics+pool:1MiB")
    assert output == "StatisticsResourceAdaptor PoolMemoryResource\nTrue"


def test_the_package_names_what_is_missing_without_a_gpu():
    program = """
try:
    rmm.DeviceBuffer(size=1)
except rmm.errors.NoDeviceError as error:
    print(error)
from rmm_c.pylibrmm.device_buffer import copy_device_to_ptr
buffer = rmm.DeviceBuffer.to_device(b"abc", mr=mr.HostMemoryResource())
other = rmm.DeviceBuffer(size=3, mr=mr.HostMemoryResource())
copied = buffer.copy()
copy_device_to_ptr(copied.ptr, other.ptr, 3)
buffer.copy_from_device(other)
buffer.stream = rmm.pylibrmm.stream.PER_THREAD_DEFAULT_STREAM
print(bytes(memoryview(rmm.DeviceBuffer(ptr=buffer.ptr, size=3, mr=mr.HostMemoryResource()))))
"""
    output = run(program, RMM_DRIVER="cuda", CUDA_VISIBLE_DEVICES="")
    assert "RMM_DRIVER=sim" in output
    assert output.endswith("b'abc'")


def test_a_second_device_has_its_own_default(pool):
    with current_device(1):
        other = mr.PoolMemoryResource(mr.CudaMemoryResource(), "1MiB")
        assert other.device == 1
        mr.set_current_device_resource(other)
        buffer = rmm.DeviceBuffer.to_device(b"on the second")
        assert (buffer.mr, buffer.device) == (other, 1)
    assert buffer.tobytes() == b"on the second"
    assert mr.get_per_device_resource(1) is other
    assert rmm.DeviceBuffer(size=1).device == 0
    first = rmm.DeviceBuffer.to_device(b"on the first ")
    with current_device(1):
        first.resize(1000)
        assert (first.device, first.tobytes()[:13]) == (0, b"on the first ")
        del first, buffer
    assert other.stats().current_count == 0


def test_reinitialize_sets_the_defaults_of_the_devices():
    rmm.reinitialize(
        pool_allocator=True, initial_pool_size="1MiB", maximum_pool_size=1 << 21, devices=[0, 1]
    )
    for device in (0, 1):
        pool = mr.get_per_device_resource(device)
        assert (type(pool), pool.device, pool.pool_size()) == (
            mr.PoolMemoryResource,
            device,
            1 << 20,
        )
        assert pool.get_maximum_pool_size() == 1 << 21
    rmm.reinitialize(managed_memory=True, pool_allocator=True, initial_pool_size=0)
    assert mr.get_current_device_resource().get_upstream().kind == "managed"
    assert mr.get_per_device_resource(1).kind == "cuda"
    rmm.reinitialize(managed_memory=True, devices=1)
    assert mr.get_per_device_resource(1).kind == "managed"
    assert rmm.is_initialized()


@pytest.mark.parametrize(
    "wrong",
    [
        {"devices": [0, 5]},
        {"devices": [-1]},
        {"pool_allocator": True, "initial_pool_size": "1TB", "devices": [0, 1]},
        {"pool_allocator": True, "initial_pool_size": "2MiB", "maximum_pool_size": "1MiB"},
        {"initial_pool_size": "much"},
        {"logging": True},
        {"logging": True, "log_file_name": "/no/such/folder/log.csv"},
    ],
)
def test_a_reinitialize_that_fails_leaves_the_defaults(wrong):
    rmm.reinitialize(pool_allocator=True, initial_pool_size="1MiB", devices=[0, 1])
    before = [mr.get_per_device_resource(device) for device in (0, 1)]
    buffer = rmm.DeviceBuffer.to_device(b"from before")
    with pytest.raises((rmm.errors.RMMError, ValueError)):
        rmm.reinitialize(**wrong)
    assert [mr.get_per_device_resource(device) for device in (0, 1)] == before
    assert buffer.tobytes() == b"from before" and rmm.DeviceBuffer(size=10).mr is before[0]


def test_hooks_do_not_run_for_arguments_that_are_wrong():
    calls = []
    hook = rmm.register_reinitialize_hook(calls.append, 1)
    with pytest.raises(rmm.errors.RMMError):
        rmm.reinitialize(devices=[0, 5])
    rmm.unregister_reinitialize_hook(hook)
    assert calls == []


def test_the_memory_of_a_former_pool_is_there_for_the_next():
    """More than half of the device, again and again."""
    half = rmm.mr.available_device_memory()[1] // 2
    for _ in range(3):
        rmm.reinitialize(pool_allocator=True, initial_pool_size=half + (1 << 20))
        assert rmm.mr.get_current_device_resource().pool_size() > half


def test_a_resource_of_another_device_cannot_be_the_default(pool):
    for set_it in (mr.set_per_device_resource, lambda _, mr_: mr.set_current_device_resource(mr_)):
        with current_device(1):
            before = mr.get_current_device_resource()
            for resource in (pool, mr.StatisticsResourceAdaptor(pool)):
                with pytest.raises(rmm.errors.InvalidArgumentError, match="device 0"):
                    set_it(1, resource)
            assert mr.get_current_device_resource() is before
            assert rmm.DeviceBuffer(size=10).device == 1


def test_reinitialize_keeps_the_memory_of_before():
    rmm.reinitialize(pool_allocator=True, initial_pool_size="1MiB")
    buffer = rmm.DeviceBuffer.to_device(b"from before")
    rmm.reinitialize()
    assert buffer.tobytes() == b"from before"


def test_hooks_run_before_a_reinitialize_in_reverse():
    calls = []

    def hook(*args, **kwargs):
        calls.append((args, kwargs, mr.get_current_device_resource().kind))

    rmm.reinitialize(managed_memory=True)
    assert rmm.register_reinitialize_hook(hook, 1) is hook
    rmm.register_reinitialize_hook(hook, 2, key="value")
    rmm.reinitialize()
    assert calls == [((2,), {"key": "value"}, "managed"), ((1,), {}, "managed")]
    rmm.unregister_reinitialize_hook(hook)
    rmm.reinitialize()
    assert len(calls) == 2


def test_logging_writes_rows_of_each_device(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="RMM_LOG_FILE"):
        rmm.enable_logging()
    mr.get_per_device_resource(1)
    rmm.enable_logging(log_file_name=str(tmp_path / "rows.csv"))
    names = rmm.get_log_filenames()
    assert names == {0: str(tmp_path / "rows.dev0.csv"), 1: str(tmp_path / "rows.dev1.csv")}
    rmm.DeviceBuffer(size=1234)
    rmm.disable_logging()
    assert rmm.get_log_filenames() == {0: None, 1: None}
    rows = pathlib.Path(names[0]).read_text().splitlines()
    assert rows[0] == HEADER and len(rows) == 3
    assert [row.split(",")[2] for row in rows[1:]] == ["allocate", "free"]
    assert {row.split(",")[4] for row in rows[1:]} == {"1234"}
    monkeypatch.setenv("RMM_LOG_FILE", str(tmp_path / "by.environment"))
    rmm.reinitialize(logging=True)
    assert rmm.get_log_filenames()[0] == str(tmp_path / "by.dev0.environment")
    with pytest.raises(OSError):
        mr.LoggingResourceAdaptor(mr.CudaMemoryResource(), str(tmp_path / "no" / "folder"))


def test_the_names_of_a_log_may_be_patterns(tmp_path):
    adaptor = mr.LoggingResourceAdaptor(mr.CudaMemoryResource(), str(tmp_path / "%p.%d.csv"))
    adaptor.allocate(10)
    adaptor.flush()
    assert adaptor.get_file_name() == str(tmp_path / f"{os.getpid()}.0.csv")
    assert len(pathlib.Path(adaptor.get_file_name()).read_text().splitlines()) == 2


def test_the_debug_log_has_levels_and_a_file(tmp_path):
    levels = rmm.level_enum
    assert {level.name: level.value for level in levels} == {
        name: number for number, name in enumerate(rmm._core.log_levels())
    }
    before = rmm.get_logging_level()
    rmm.set_logging_level(levels.debug)
    assert rmm.get_logging_level() is levels.debug
    assert rmm.should_log(levels.warn) and not rmm.should_log(levels.trace)
    rmm.pylibrmm.logger.log_to_file(tmp_path / "debug.log")
    mr.LimitingResourceAdaptor(mr.CudaMemoryResource(), 1)
    with pytest.raises(MemoryError):
        mr.LimitingResourceAdaptor(mr.CudaMemoryResource(), 1).allocate(10)
    rmm.pylibrmm.logger.log_to_stderr()
    rmm.set_logging_level(before)
    assert "limit" in (tmp_path / "debug.log").read_text()
    rmm.flush_logger()
    rmm.set_flush_level(levels.info)
    assert rmm.get_flush_level() is levels.info
    rmm.set_flush_level(levels.trace)


def test_a_level_that_was_compiled_out_is_a_warning():
    """As in RMM: a program that asks for all messages runs on."""
    program = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    rmm.set_logging_level(rmm.level_enum.trace)
if rmm.should_log(rmm.level_enum.trace):
    print(caught == [], rmm.get_logging_level().name)
else:
    said = str(caught[0].message)
    print("RMM will not log level_enum.trace" in said, rmm.get_logging_level().name)
rmm._core.log_set_level(4)
assert rmm.get_logging_level().name == "error"
"""
    assert run(program) == "True trace"


def test_import_rmm_imports_this_package():
    program = """
rmm.as_rmm()
import rmm as other, rmm.statistics, rmm.mr.experimental
from rmm.pylibrmm.cuda_stream import CudaStreamFlags
assert CudaStreamFlags is rmm.pylibrmm.stream.CudaStreamFlags
from rmm.pylibrmm.stream import Stream
from rmm.allocators.cupy import rmm_cupy_allocator
assert other is rmm and Stream is rmm.pylibrmm.stream.Stream
print("one and the same")
"""
    assert run(program) == "one and the same"


def test_another_library_must_be_of_the_same_abi(tmp_path):
    missing = subprocess.run(
        [sys.executable, "-c", "import rmm_c"],
        env=dict(os.environ, RMM_C_LIBRARY=str(tmp_path / "none.so")),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert missing.returncode == 1
    assert "ImportError: RMM_C_LIBRARY names" in missing.stderr
    library = os.environ["RMM_TEST_LIBRARY"]
    assert run("print(rmm._core.library_path())", RMM_C_LIBRARY=library) == library


def test_every_status_of_the_library_has_its_exception():
    statuses = rmm._core.status_map()
    assert set(statuses) - {"RMM_OK"} == set(rmm.errors._BY_NAME)
    for number, error in rmm.errors.by_status(statuses).items():
        assert str(error(number, "why")) == "why" and error(number, "why").errcode == number
