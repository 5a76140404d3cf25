# SPDX-License-Identifier: Apache-2.0
"""DLPack, and the figures of processes."""
import gc
import os
import subprocess
import sys
import weakref

import numpy
import pytest

import rmm_c as rmm
from rmm_c import mr
from rmm_c.pylibrmm.device_buffer import copy_device_to_ptr
from rmm_c.pylibrmm.stream import Stream

KINDS = [
    (mr.CudaMemoryResource, (2, 0)),
    (mr.ManagedMemoryResource, (13, 0)),
    (mr.PinnedHostMemoryResource, (3, 0)),
    (mr.CudaAsyncPinnedMemoryResource, (3, 0)),
    (mr.HostMemoryResource, (1, 0)),
    (lambda: mr.StatisticsResourceAdaptor(mr.PinnedHostMemoryResource()), (3, 0)),
]


@pytest.mark.parametrize("make, device", KINDS)
def test_a_buffer_says_on_which_device_of_dlpack_it_is(make, device):
    assert rmm.DeviceBuffer(size=10, mr=make()).__dlpack_device__() == device


@pytest.mark.parametrize("make, device", KINDS)
def test_dlpack_has_other_numbers_for_amd(monkeypatch, make, device):
    numbers = {2: 10, 13: 10, 3: 11, 1: 1}
    monkeypatch.setattr(rmm._core, "driver_name", lambda: "hip")
    buffer = rmm.DeviceBuffer(size=10, mr=make())
    assert buffer.__dlpack_device__() == (numbers[device[0]], device[1])
    buffer.__dlpack__(stream=buffer.stream.handle, dl_device=(numbers[device[0]], device[1]))


@pytest.mark.parametrize("make", [kind[0] for kind in KINDS[1:4]])
def test_numpy_reads_memory_of_the_host_by_dlpack(make):
    buffer = rmm.DeviceBuffer.to_device(b"abcdef", mr=make())
    if buffer.__dlpack_device__()[0] not in (1, 3, 13):
        pytest.fail("not memory of the host")
    array = numpy.from_dlpack(buffer)
    assert array.dtype == numpy.uint8 and array.shape == (6,)
    assert array.ctypes.data == buffer.ptr and array.tobytes() == b"abcdef"
    end = weakref.ref(buffer)
    with pytest.raises(BufferError, match="view"):
        buffer.resize(1000)
    del buffer
    gc.collect()
    assert end() is not None and array[0] == ord("a")
    del array
    gc.collect()
    assert end() is None


def test_a_capsule_that_nobody_takes_ends_with_its_buffer():
    for version in (None, (1, 0), (1,), (0, 8), ()):
        buffer = rmm.DeviceBuffer(size=10)
        capsule = buffer.__dlpack__(max_version=version)
        name = "dltensor_versioned" if version in ((1, 0), (1,)) else "dltensor"
        assert f'"{name}"' in repr(capsule)
        del capsule
        buffer.resize(1000)


def test_dlpack_refuses_another_device_and_makes_copies():
    buffer = rmm.DeviceBuffer(size=10, stream=Stream())
    with pytest.raises(BufferError, match="device"):
        buffer.__dlpack__(dl_device=(1, 0))
    for stream in (None, -1, 1, 2, buffer.stream.handle):
        buffer.__dlpack__(stream=stream, dl_device=(2, 0), copy=True)
    buffer.resize(100)
    with pytest.raises(TypeError):
        rmm._core.to_dlpack(1, 2, 0, False)


def test_a_consumer_that_names_no_stream_gets_a_buffer_that_is_ready():
    staging = rmm.DeviceBuffer(size=3, mr=rmm.mr.PinnedHostMemoryResource())
    buffer = rmm.DeviceBuffer.to_device(b"abc")
    for stream in (None, 0):
        host = numpy.frombuffer(staging, dtype="u1")
        host[:] = 0
        copy_device_to_ptr(buffer.ptr, staging.ptr, 3, buffer.stream)
        buffer.__dlpack__(stream=stream)
        assert bytes(host) == b"abc"


def test_the_figures_of_this_process_are_read_from_its_segment(pool):
    buffer = rmm.DeviceBuffer(size=1000, mr=pool)
    tree = rmm.open_tree()
    assert tree.source == os.environ["RMM_RUNTIME_DIR"]
    process = tree.process()
    assert (process.pid, process.is_live, process.uid) == (os.getpid(), True, os.getuid())
    device = process.devices[0]
    assert device.name == "gpu0"
    found = [each for each in device.resources if each.name.endswith(".pool")]
    assert 1000 in [each.current_bytes for each in found]
    assert device.current_bytes >= 1000 and device.current_count >= 1
    assert tree.device(0).current_bytes == tree.device("gpu0").current_bytes >= 1000
    assert tree.device(0).free_bytes == sum(each.free_bytes for each in device.resources)
    assert tree.device(0).peak_bytes is None and device.peak_bytes >= 1000  # the daemon's
    assert "current_bytes" in dir(device)
    with pytest.raises(AttributeError, match="no figure"):
        device.nonsense
    with pytest.raises(KeyError):
        tree.device(7)
    with pytest.raises(KeyError):
        tree.process(1 << 30)
    rows = list(tree.rows())
    assert {"pid", "device", "resource", "type", "current_bytes"} <= set(rows[0])
    assert buffer.size == 1000


def test_a_table_needs_pandas():
    pandas = pytest.importorskip("pandas")
    rmm.DeviceBuffer(size=10)
    frame = rmm.open_tree().frame()
    assert isinstance(frame, pandas.DataFrame) and "current_bytes" in frame


def test_another_process_is_read_while_it_lives_and_after(tmp_path):
    program = """
import rmm_c as rmm, sys
buffer = rmm.DeviceBuffer(size=12345)
print("ready", flush=True)
sys.stdin.read()
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        env=dict(os.environ, RMM_RUNTIME_DIR=str(tmp_path)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout.readline() == b"ready\n"
    process = rmm.open_tree(tmp_path).process(child.pid)
    assert (process.state, process.devices[0].current_bytes) == ("live", 12345)
    child.kill()
    child.communicate()
    (process,) = rmm.open_tree(tmp_path).processes
    assert not process.is_live and process.devices[0].total_bytes == 12345
    assert rmm.open_tree(tmp_path).devices == []


def test_what_is_no_segment_is_left_out(tmp_path):
    (tmp_path / "0.0123456789abcdef").write_bytes(b"not a segment")
    (tmp_path / "README").write_bytes(b"text")
    assert rmm.open_tree(tmp_path).processes == []
    with pytest.raises(OSError):
        rmm.open_tree(tmp_path / "missing")


def test_a_mount_of_the_daemon_is_read(tmp_path):
    """The shape of /rmm/json, as docs/filesystem.md describes it."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "json").write_text(
        """{"schema_version": 1, "levels_not_shown": 0,
        "devices": [{"device": "gpu0", "current_bytes": 7, "peak_bytes": null}],
        "processes": [{"pid": "12.2", "state": "live", "uid": 5, "comm": "python3",
            "devices": [{"device": "gpu0", "current_bytes": 7, "resources": [
                {"resource": "1.cuda", "type": "cuda", "current_bytes": 7}]}]}]}"""
    )
    tree = rmm.open_tree(tmp_path)
    assert tree.source == str(tmp_path)
    assert (tree.device(0).current_bytes, tree.device(0).peak_bytes) == (7, None)
    process = tree.process(12)
    assert process.devices[0].resources[0].type == "cuda"
    assert [row["current_bytes"] for row in tree.rows()] == [7]
