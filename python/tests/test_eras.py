# SPDX-License-Identifier: Apache-2.0
"""What programs for RMM 0.14 to 26.10 use, with this package as rmm. No name warns."""
import dataclasses
import functools
import json
import os
import pickle

import pytest
from test_names import run

import rmm_c as rmm
from rmm_c import mr


@pytest.mark.parametrize(
    "cls", ["PoolMemoryResource", "FixedSizeMemoryResource", "LoggingResourceAdaptor"]
)
def test_upstream_is_a_keyword_as_well(cls, tmp_path):
    base = mr.CudaMemoryResource()
    name = {"log_file_name": tmp_path / "log.csv"} if cls.startswith("Logging") else {}
    for given in ({"upstream": base}, {"upstream_mr": base}):
        assert getattr(mr, cls)(**given, **name).get_upstream() is base
    assert getattr(mr, cls)(base, **name).get_upstream() is base
    with pytest.raises(TypeError, match="must be a resource"):
        getattr(mr, cls)(**name)
    with pytest.raises(TypeError, match="same parameter"):
        getattr(mr, cls)(base, upstream=base, **name)


def test_the_cuda_resource_of_a_device():
    assert [mr.CudaMemoryResource(device=device).device for device in (1, 0, None)] == [1, 0, 0]
    assert mr.CudaMemoryResource(1).device == 1 and rmm._cuda.gpu.getDevice() == 0
    with pytest.raises(RuntimeError, match="101"):
        mr.CudaMemoryResource(device=7)
    assert rmm._cuda.gpu.getDevice() == 0


def test_a_log_named_by_bytes_and_its_rows_as_text(tmp_path):
    name = os.fsencode(tmp_path / "log.csv")
    mr.set_current_device_resource(mr.LoggingResourceAdaptor(mr.CudaMemoryResource(), name))
    buffer = rmm.DeviceBuffer(size=1000)
    mr._flush_logs()
    rows = (tmp_path / "log.dev0.csv").read_text()
    assert rmm.csv_log() == rows and f"allocate,{hex(buffer.ptr)},1000" in rows
    assert rmm.get_log_filenames()[0] == str(tmp_path / "log.dev0.csv")
    rmm.disable_logging()
    assert rmm.csv_log() == "" and rmm.get_info().free < rmm.get_info().total


def test_figures_are_attributes_and_a_dictionary():
    resource = mr.StatisticsResourceAdaptor(mr.CudaMemoryResource())
    address = resource.allocate(1000)
    figures = resource.allocation_counts
    want = {
        "current_bytes": 1000,
        "current_count": 1,
        "peak_bytes": 1000,
        "peak_count": 1,
        "total_bytes": 1000,
        "total_count": 1,
    }
    assert figures == want and want == figures and json.loads(json.dumps(figures)) == want
    assert figures["peak_bytes"] == figures.peak_bytes == 1000
    assert figures == resource.allocation_counts != rmm.statistics.Statistics(0, 0, 0, 0, 0, 0)
    assert dataclasses.asdict(figures) == want and list(figures) == list(want)
    same = pickle.loads(pickle.dumps(figures))
    assert type(same) is rmm.statistics.Statistics and same == figures
    changed = dataclasses.replace(figures, peak_bytes=7)
    assert changed["peak_bytes"] == 7 and figures.peak_bytes == 1000
    figures.peak_bytes = 8
    assert figures["peak_bytes"] == 8
    with pytest.raises(AttributeError, match="nonsense"):
        figures.nonsense
    resource.deallocate(address, 1000)


class WithoutStream:
    """Callbacks of RMM until 24.02 in each form of a function."""

    def __init__(self):
        self.base = mr.CudaMemoryResource()

    def allocate(self, nbytes):
        return self.base.allocate(nbytes)

    def deallocate(self, ptr, nbytes):
        self.base.deallocate(ptr, nbytes)

    def forms(self):
        yield self.allocate, self.deallocate
        yield lambda nbytes: self.allocate(nbytes), lambda ptr, nbytes: self.deallocate(ptr, nbytes)
        yield functools.partial(self.allocate), functools.partial(self.deallocate)
        yield Allocates(self), functools.partial(WithoutStream.deallocate, self)


class Allocates:
    def __init__(self, functions):
        self.functions = functions

    def __call__(self, nbytes):
        return self.functions.allocate(nbytes)


def test_callbacks_without_a_stream_are_called_without_one():
    functions = WithoutStream()
    for allocate, deallocate in functions.forms():
        resource = mr.CallbackMemoryResource(allocate, deallocate)
        resource.deallocate(resource.allocate(1000), 1000)
        buffer = rmm.DeviceBuffer(size=1000, mr=resource)
        assert buffer.mr is resource


def test_callbacks_that_can_take_a_stream_get_it(functions):
    streams = []

    def allocate(nbytes, stream=None):
        streams.append(stream)
        return functions.base.allocate(nbytes)

    def deallocate(*arguments, **options):
        streams.append(arguments[2])
        functions.base.deallocate(*arguments[:2])

    resource = mr.CallbackMemoryResource(allocate, deallocate)
    resource.deallocate(resource.allocate(1000), 1000)
    assert streams == [rmm.pylibrmm.stream.DEFAULT_STREAM] * 2
    with pytest.raises(TypeError, match="positional argument"):
        mr.CallbackMemoryResource(lambda: 0, deallocate).allocate(1)


@pytest.mark.parametrize("level", ["trace", "INFO", 3, None, 1.5, [1]])
def test_a_level_is_a_member_of_an_enumeration(level):
    for function in (rmm.set_logging_level, rmm.set_flush_level, rmm.should_log):
        with pytest.raises(TypeError, match="level must be a member of level_enum"):
            function(level)


def test_levels_have_the_names_of_each_era():
    assert [level.name for level in rmm.logging_level] == (
        "TRACE DEBUG INFO WARN ERR CRITICAL OFF".split()
    )
    assert list(rmm.logging_level) == list(rmm.level_enum)
    before = rmm.get_logging_level()
    rmm.set_logging_level(rmm.logging_level.ERR)
    assert rmm.get_logging_level() is rmm.logging_level.ERR and rmm.should_log(rmm.level_enum.error)
    rmm.set_flush_level(rmm.logging_level.WARN)
    assert rmm.get_flush_level() is rmm.logging_level.WARN
    rmm.set_flush_level(rmm.level_enum.trace)
    rmm.set_logging_level(before)


def test_no_stream_is_not_the_default_stream():
    buffer = rmm.DeviceBuffer.to_device(b"abc")
    calls = [
        lambda: rmm.DeviceBuffer(size=1, stream=None),
        lambda: rmm.DeviceBuffer.to_device(b"abc", None),
        lambda: buffer.copy_to_host(stream=None),
        lambda: buffer.copy_from_host(b"abc", None),
        lambda: buffer.copy_from_device(buffer, None),
        lambda: buffer.tobytes(None),
        lambda: buffer.resize(10, None),
        lambda: buffer.reserve(10, None),
        lambda: buffer.copy_from_device(rmm.pylibrmm.utils.as_stream(None)),
        lambda: mr.CudaMemoryResource().allocate(1, None),
        lambda: rmm._lib.device_buffer.copy_ptr_to_host(buffer.ptr, bytearray(3), None),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="stream argument cannot be None"):
            call()


def test_refusals_say_what_programs_look_for():
    with pytest.raises(RuntimeError, match="Initial pool size exceeds the maximum pool size"):
        rmm.reinitialize(pool_allocator=True, initial_pool_size=2048, maximum_pool_size=1024)
    with pytest.raises(ValueError, match="Could not parse"):
        rmm.reinitialize(pool_allocator=True, initial_pool_size="2k", maximum_pool_size="8k")
    with pytest.raises(IndexError, match="cannot pop the last counter pair"):
        mr.StatisticsResourceAdaptor(mr.CudaMemoryResource()).pop_counters()
    refused = "try:\n    rmm_c.mr.CudaAsyncMemoryResource(enable_ipc=True)\n"
    refused += "except RuntimeError as error:\n    print(str(error)[-46:])"
    output = run("import rmm_c\n" + refused, RMM_SIM_ATTRIBUTES="memory_pool_handle_types=0")
    assert output == "Requested IPC memory handle type not supported"


def test_the_classes_of_the_defaults():
    assert mr.get_per_device_resource_type(0) is mr.get_current_device_resource_type()
    assert mr.get_current_device_resource_type() is mr.CudaMemoryResource
    mr._initialize(pool_allocator=True, initial_pool_size="1MiB")
    assert isinstance(mr.get_current_device_resource(), mr.PoolMemoryResource)
    assert mr.MemoryResource is mr.DeviceMemoryResource


def test_devices_as_rmm_asks_about_them():
    gpu = rmm._cuda.gpu
    assert (gpu.getDeviceCount(), gpu.getDevice(), gpu.deviceGetName(1)) == (2, 0, "sim 1")
    gpu.setDevice(1)
    assert gpu.getDevice() == 1
    gpu.setDevice(0)
    assert gpu.driverGetVersion() == gpu.runtimeGetVersion() == 13000
    managed, pageable, pools, integrated = 83, 88, 115, 18
    assert [gpu.getDeviceAttribute(name, 0) for name in (managed, pools, integrated)] == [1, 1, 0]
    without = "import rmm_c; print(rmm_c._cuda.gpu.getDeviceAttribute({}, 0))"
    assert run(without.format(pageable), RMM_SIM_ATTRIBUTES="pageable_memory_access=0") == "0"
    for call in (gpu.setDevice, gpu.deviceGetName, functools.partial(gpu.getDeviceAttribute, 83)):
        with pytest.raises(gpu.CUDARuntimeError) as caught:
            call(7)
        assert caught.value.status == 101 and "101" in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), again.status) == (gpu.CUDARuntimeError, 101)
    assert isinstance(gpu.CUDADriverError(1), RuntimeError)


def test_a_stream_view_is_a_stream():
    view = rmm._lib.cuda_stream_view.CudaStreamView()
    assert view.is_default() and not view.is_per_thread_default()
    assert rmm._lib.cuda_stream_view.CudaStreamView(2).is_per_thread_default()
    assert rmm.DeviceBuffer(size=10, stream=view).stream is view
