# SPDX-License-Identifier: Apache-2.0
"""The rows of logs: whatever ends a process, and wherever its folder is."""
import errno
import os
import pathlib
import subprocess
import sys
import time

import pytest

import rmm_c as rmm
from rmm_c import mr
from rmm_c.allocators import torch

ROWS = 100


def rows_of(path):
    """Those of allocations and frees."""
    lines = pathlib.Path(path).read_text().splitlines()
    return [line for line in lines if line.split(",")[2] in ("allocate", "free")]


def run(program, folder, **environment):
    """A program in a process of its own, in a folder."""
    path = folder / "program.py"
    path.write_text("import os, sys\nimport rmm_c as rmm\nfrom rmm_c import mr\n" + program)
    return subprocess.run(
        [sys.executable, str(path)],
        cwd=folder,
        env=dict(os.environ, **environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )


def work(ending=""):
    return f"""
def work(path="log.csv"):
    if path:
        rmm.enable_logging(path)
    for _ in range({ROWS // 2}):
        rmm.DeviceBuffer(size=1000)
    {ending or "pass"}
"""


ENDS = {
    "the end": "",
    "sys.exit": "sys.exit(3)",
    "an exception": "raise RuntimeError",
    "os._exit": "os._exit(0)",
    "SIGTERM": "os.kill(os.getpid(), 15)",
    "SIGKILL": "os.kill(os.getpid(), 9)",
    "os.abort": "os.abort()",
    "exec": "os.execv('/bin/true', ['true'])",
    "a thread": "import threading; os_exit = threading.Thread(target=os._exit, args=(0,)); "
    "os_exit.start(); os_exit.join()",
}


@pytest.mark.parametrize("ending", ENDS)
def test_no_row_is_lost_at_the_end_of_a_process(ending, tmp_path):
    run(work(ENDS[ending]) + "work()\n", tmp_path)
    assert len(rows_of(tmp_path / "log.dev0.csv")) == ROWS


@pytest.mark.parametrize("ending", ["the end", "sys.exit", "an exception", "os._exit", "SIGTERM"])
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_no_row_is_lost_at_the_end_of_a_worker(method, ending, tmp_path):
    program = f"""
import multiprocessing
if __name__ == "__main__":
    process = multiprocessing.get_context("{method}").Process(target=work)
    process.start()
    process.join()
"""
    run(work(ENDS[ending]) + program, tmp_path)
    assert len(rows_of(tmp_path / "log.dev0.csv")) == ROWS


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
@pytest.mark.parametrize(
    "pool",
    [
        "concurrent.futures.ProcessPoolExecutor(2, context)",
        "context.Pool(2)",  # whose end terminates the workers
    ],
)
def test_no_row_is_lost_in_a_pool_of_workers(pool, method, tmp_path):
    program = f"""
import concurrent.futures, multiprocessing
def task(i):
    work()
    return i
if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    with {pool} as pool:
        print(sum(pool.map(task, range(4))))
"""
    result = run(work() + program, tmp_path)
    assert result.stdout == "6\n"
    assert len(rows_of(tmp_path / "log.dev0.csv")) == 4 * ROWS


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_a_worker_writes_the_log_that_the_environment_asked_for(method, tmp_path):
    program = f"""
import multiprocessing
if __name__ == "__main__":
    process = multiprocessing.get_context("{method}").Process(target=work, args=(None,))
    process.start()
    process.join()
"""
    log = tmp_path / "rows.csv"
    run(work() + program, tmp_path, RMM_RESOURCE="statistics+logging+cuda", RMM_LOG_FILE=str(log))
    assert len(rows_of(log)) == ROWS


def test_a_child_of_a_fork_writes_its_own_rows_and_none_of_its_parents(tmp_path):
    """The parent has not used the GPU yet: afterwards its child cannot."""
    program = """
child = os.fork()
if child == 0:
    work("child.csv")
    os._exit(0)
os.waitpid(child, 0)
work("parent.csv")
"""
    run(work() + program, tmp_path)
    assert len(rows_of(tmp_path / "child.dev0.csv")) == ROWS
    assert len(rows_of(tmp_path / "parent.dev0.csv")) == ROWS


def test_rows_may_be_buffered(tmp_path):
    path = tmp_path / "log.csv"
    for make in (
        lambda: mr.LoggingResourceAdaptor(mr.CudaMemoryResource(), path, auto_flush=False),
        lambda: rmm.enable_logging(path, auto_flush=False),
        lambda: rmm.reinitialize(logging=True, log_file_name=path, auto_flush=False),
    ):
        made = make() or mr.get_current_device_resource()
        before = len(rows_of(made.get_file_name()))
        address = made.allocate(10)
        assert len(rows_of(made.get_file_name())) == before
        made.deallocate(address, 10)
        made.flush()
        assert len(rows_of(made.get_file_name())) == before + 2
        rmm.disable_logging()


@pytest.mark.parametrize("folder", ["plain", "100% done", "50%p", "x%d", "a%%b", "%", "%z/%d"])
def test_the_folder_of_a_log_is_taken_literally(folder, tmp_path, monkeypatch):
    inside = tmp_path / folder
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    base = mr.CudaMemoryResource()
    names = ["log.csv", "./log.csv", inside / "log.csv", os.fspath(inside / "log.csv").encode()]
    for name in names:
        made = mr.LoggingResourceAdaptor(base, name)
        assert made.get_file_name() == str(inside / "log.dev0.csv")
    monkeypatch.setenv("RMM_LOG_FILE", str(inside / "log.csv"))
    assert mr.LoggingResourceAdaptor(base).get_file_name() == str(inside / "log.dev0.csv")
    pattern = mr.LoggingResourceAdaptor(base, inside / "log.%p.%d.csv")
    assert pattern.get_file_name() == str(inside / f"log.{os.getpid()}.0.csv")
    monkeypatch.chdir(tmp_path)
    made.deallocate(made.allocate(10), 10)
    assert len(rows_of(inside / "log.dev0.csv")) == 2
    assert list(tmp_path.iterdir()) == [tmp_path / pathlib.Path(folder).parts[0]]


def test_a_folder_that_is_not_there_may_be_a_pattern(tmp_path):
    (tmp_path / "gpu0").mkdir()
    made = mr.LoggingResourceAdaptor(mr.CudaMemoryResource(), tmp_path / "gpu%d" / "log.csv")
    assert made.get_file_name() == str(tmp_path / "gpu0" / "log.csv")


def test_an_error_of_a_file_has_its_number(tmp_path):
    (tmp_path / "other.dev0.csv").write_text("not a log\n")
    for name, number in (
        (tmp_path / "missing" / "log.csv", errno.ENOENT),
        (tmp_path / "other.dev0.csv" / "log.csv", errno.ENOTDIR),
        (tmp_path / "other.csv", errno.EIO),
    ):
        with pytest.raises(OSError) as caught:
            mr.LoggingResourceAdaptor(mr.CudaMemoryResource(), name)
        assert isinstance(caught.value, rmm.errors.FileError)
        assert caught.value.errno == number
        assert str(name.parent) in str(caught.value)
    with pytest.raises(rmm.errors.FileError) as caught:
        rmm.pylibrmm.logger.log_to_file(tmp_path)
    assert caught.value.errno == errno.EISDIR


def test_logging_of_several_devices_begins_for_all_or_none(tmp_path):
    mr.get_per_device_resource(0)
    mr.get_per_device_resource(1)
    (tmp_path / "log.dev1.csv").write_text("not a log\n")
    with pytest.raises(OSError):
        rmm.enable_logging(tmp_path / "log.csv")
    assert rmm.get_log_filenames() == {0: None, 1: None}


def test_rows_wait_no_longer_than_the_interval(tmp_path):
    path = tmp_path / "log.%d.csv"
    log = mr.LoggingResourceAdaptor(
        mr.CudaMemoryResource(), path, auto_flush=False, flush_interval_ms=1
    )
    log.deallocate(log.allocate(1000), 1000)
    time.sleep(0.05)
    log.deallocate(log.allocate(1000), 1000)
    assert len(rows_of(log.get_file_name())) >= 3


def test_rows_have_the_size_of_the_pool_on_request(tmp_path):
    mr.set_current_device_resource(mr.PoolMemoryResource(mr.CudaMemoryResource(), 4 << 20, 4 << 20))
    rmm.enable_logging(tmp_path / "log.csv", pool_size=True)
    kept = rmm.DeviceBuffer(size=1000)
    rmm.DeviceBuffer(size=3000)
    log = tmp_path / "log.dev0.csv"
    assert log.read_text().splitlines()[0].endswith(",Size,Stream,PoolBytes,UsedBytes")
    figures = [tuple(map(int, row.split(",")[6:])) for row in rows_of(log)]
    assert figures == [(4 << 20, used) for used in (1000, 4000, 4000)]
    live = torch.snapshot(log)["segments"]
    assert sum(segment["allocated_size"] for segment in live) == kept.size
