# SPDX-License-Identifier: Apache-2.0
"""rmm_c.rapids with the real RMM, over the simulated GPU: what RMM does without CUDA."""
import atexit
import gc
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading

_folder = tempfile.mkdtemp(prefix="rmm_c_")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
os.environ.update(
    RMM_DRIVER="sim", RMM_SIM_DEVICES="2", RMM_SIM_VIOLATION="abort", RMM_RUNTIME_DIR=_folder,
    RMM_LOG_LEVEL="critical", RMM_C_CACHE=os.environ.get("RMM_C_CACHE", _folder + "/cache"),
)

import pytest  # noqa: E402
import rmm  # noqa: E402
import rmm.statistics  # noqa: E402
from rmm.pylibrmm.stream import Stream as RmmStream  # noqa: E402

import rmm_c  # noqa: E402
from rmm_c import rapids  # noqa: E402
from rmm_c.pylibrmm.stream import Stream  # noqa: E402
from rmm_c.rapids import _bridge  # noqa: E402


@pytest.fixture
def pool():
    return rmm_c.mr.PoolMemoryResource(rmm_c.mr.CudaMemoryResource(), "1MiB", "8MiB")


@pytest.fixture(autouse=True)
def initial_default():
    yield
    rmm.mr.set_per_device_resource(0, rmm.mr.CudaMemoryResource())


def run(program, **environment):
    """The output of a Python program, which must end well and say nothing else."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore", "-c", program], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env={**os.environ, **environment},
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


# --- a resource of ours for RMM -------------------------------------------------------------


def test_buffers_of_rmm_are_of_our_pool(pool):
    rmm.mr.set_per_device_resource(0, rapids.as_rmm(pool))
    default = rmm.mr.get_per_device_resource(0)
    assert isinstance(default, rmm.mr.DeviceMemoryResource) and default.resource is pool
    buffer = rmm.DeviceBuffer(size=1000, mr=default)
    assert 1000 <= pool.stats().current_bytes <= 1024
    assert rmm_c.open_tree().process().devices[0].current_bytes >= 1000
    del buffer
    assert pool.stats().current_count == 0 and pool.stats().invalid_free_count == 0
    assert repr(default) == "<rmm_c pool resource 'pool' for RMM>"


def test_every_kind_of_resource_goes_over(pool):
    for mr in (
        rmm_c.mr.CudaMemoryResource(), rmm_c.mr.ManagedMemoryResource(),
        rmm_c.mr.PinnedHostMemoryResource(), rmm_c.mr.CudaAsyncMemoryResource(),
        rmm_c.mr.ArenaMemoryResource(rmm_c.mr.CudaMemoryResource(), 1 << 20),
        rmm_c.mr.StatisticsResourceAdaptor(pool), rmm_c.mr.TrackingResourceAdaptor(pool),
    ):
        before = mr.stats().current_count
        bridge = rapids.as_rmm(mr)
        address = bridge.allocate(100)
        assert mr.stats().current_count == before + 1
        bridge.deallocate(address, 100)
        assert mr.stats().current_count == before


def test_a_failure_is_what_rmm_raises(pool):
    with pytest.raises(MemoryError, match="std::bad_alloc: out_of_memory: pool 'pool': no room"):
        rapids.as_rmm(pool).allocate(1 << 30)
    with pytest.raises(MemoryError):
        rmm.DeviceBuffer(size=1 << 62, mr=rapids.as_rmm(pool))


def test_adaptors_of_rmm_work_over_it(pool, tmp_path):
    held = [rmm.DeviceBuffer(size=7 << 20, mr=rapids.as_rmm(pool))]

    def free_something(nbytes):
        again = bool(held)
        held.clear()
        return again

    catching = rmm.mr.FailureCallbackResourceAdaptor(rapids.as_rmm(pool), free_something)
    catching.deallocate(catching.allocate(6 << 20), 6 << 20)  # refused once, because it is held
    assert held == []
    limited = rmm.mr.LimitingResourceAdaptor(rapids.as_rmm(pool), 1000)
    with pytest.raises(MemoryError, match="[Ee]xceeded"):
        limited.allocate(2000)
    statistics = rmm.mr.StatisticsResourceAdaptor(rapids.as_rmm(pool))
    address = statistics.allocate(1000)
    assert statistics.allocation_counts.current_bytes == 1000
    statistics.deallocate(address, 1000)
    assert pool.stats().current_count == 0


def test_the_stream_is_passed_on():
    base, seen = rmm_c.mr.CudaMemoryResource(), []

    def allocate(nbytes, stream):
        seen.append(stream.handle)
        return base.allocate(nbytes, stream)

    def deallocate(ptr, nbytes, stream):
        seen.append(stream.handle)
        base.deallocate(ptr, nbytes, stream)

    bridge = rapids.as_rmm(rmm_c.mr.CallbackMemoryResource(allocate, deallocate))
    stream, before = Stream(), Stream()
    bridge.deallocate(bridge.allocate(100, RmmStream(before)), 100, RmmStream(stream))
    assert seen == [before.handle, stream.handle]


def test_the_pool_lives_while_rmm_uses_it(pool):
    buffer = rmm.DeviceBuffer(size=100, mr=rapids.as_rmm(pool))
    figures = pool.stats
    rmm.mr.set_per_device_resource(0, rapids.as_rmm(pool))
    del pool
    gc.collect()
    assert figures().current_count == 1
    del buffer
    assert figures().current_count == 0
    again = rmm.DeviceBuffer(size=100, mr=rmm.mr.get_per_device_resource(0))
    rmm.mr.set_per_device_resource(0, rmm.mr.CudaMemoryResource())
    gc.collect()
    assert again.size == 100 and figures().current_count == 1


def test_memory_that_only_native_code_holds_may_be_freed_later(pool):
    """Buffers of libcudf before 26.06 keep a pointer to RMM's resource, and nothing alive."""
    library = _bridge.bridge().library
    by_pointer = rmm.__version__ < "26.06"
    bridge = rapids.as_rmm(pool)
    address = bridge.allocate(1024)
    del bridge
    gc.collect()
    assert library.rmm_c_rapids_left_count() == by_pointer
    pool.deallocate(address, 1024)
    rapids.as_rmm(pool)
    gc.collect()
    assert library.rmm_c_rapids_left_count() == 0


def test_a_cycle_through_the_bridge_is_collected(pool):
    class Holder:
        pass

    holder = Holder()
    holder.bridge = rapids.as_rmm(pool)
    holder.bridge.holder = holder
    holder.buffer = rmm.DeviceBuffer(size=100, mr=holder.bridge)
    assert pool.stats().current_count == 1
    del holder
    gc.collect()
    assert pool.stats().current_count == 0 and pool.stats().invalid_free_count == 0


def test_threads_allocate_at_once(pool):
    bridge, errors = rapids.as_rmm(pool), []

    def work():
        try:
            for size in range(1, 1000):
                rmm.DeviceBuffer(size=size, mr=bridge)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and pool.stats().total_count == 4 * 999
    assert pool.stats().current_count == 0


def test_what_is_no_device_memory_is_refused():
    with pytest.raises(rmm_c.errors.InvalidArgumentError, match="accessible"):
        rapids.as_rmm(rmm_c.mr.HostMemoryResource())
    with pytest.raises(TypeError, match="memory resource of rmm_c"):
        rapids.as_rmm(rmm.mr.CudaMemoryResource())
    with pytest.raises(TypeError, match="memory resource of rmm "):
        rapids.from_rmm(rmm_c.mr.CudaMemoryResource())
    with pytest.raises(TypeError):
        rapids.from_rmm(None)
    with pytest.raises(rmm_c.errors.InvalidArgumentError, match="not initialised"):
        rapids.from_rmm(rmm.mr.DeviceMemoryResource())
    assert rapids.as_rmm(rmm_c.mr.CudaMemoryResource()).allocate(0) == 0


# --- a resource of RMM for us ---------------------------------------------------------------


def test_a_pool_of_ours_is_over_a_resource_of_rmm(pool):
    counted = rmm.mr.StatisticsResourceAdaptor(rapids.as_rmm(pool))
    upstream = rapids.from_rmm(counted)
    ours = rmm_c.mr.PoolMemoryResource(upstream, "64KiB")
    buffer = rmm_c.DeviceBuffer(size=1000, mr=ours)
    assert counted.allocation_counts.current_bytes == 64 << 10
    assert (upstream.name, upstream.kind, ours.get_upstream()) == ("rapids", "custom", upstream)
    del buffer, ours
    assert counted.allocation_counts.current_bytes == 0
    named = rapids.from_rmm(counted, name="theirs")
    assert named.name == "theirs" and named.is_equal(upstream)


def test_an_exception_of_rmm_is_raised_as_rmm_raises_it(pool):
    def refuse(nbytes, stream):
        raise error

    upstream = rapids.from_rmm(rmm.mr.CallbackMemoryResource(refuse, lambda *_: None))
    over_it = rmm_c.mr.PoolMemoryResource(upstream, 0)
    for error, kind in ((MemoryError("mine"), MemoryError), (ValueError("mine"), RuntimeError)):
        for mr in (upstream, over_it):
            with pytest.raises(kind, match="mine"):
                mr.allocate(100)
    limited = rapids.from_rmm(rmm.mr.LimitingResourceAdaptor(rapids.as_rmm(pool), 1000))
    with pytest.raises(MemoryError, match="[Ee]xceeded"):
        limited.allocate(2000)
    assert upstream.stats().oom_count > 0


def test_the_object_of_rmm_lives_while_the_library_uses_it():
    ended = []
    base = rapids.as_rmm(rmm_c.mr.CudaMemoryResource())

    class Functions:
        def allocate(self, nbytes, stream):
            return base.allocate(nbytes, stream)

        def deallocate(self, ptr, nbytes, stream):
            base.deallocate(ptr, nbytes, stream)

        def __del__(self):
            ended.append(True)

    def callback():
        functions = Functions()
        return rmm.mr.CallbackMemoryResource(functions.allocate, functions.deallocate)

    mr = rmm_c.mr.PoolMemoryResource(rapids.from_rmm(callback()), "1MiB")
    gc.collect()
    assert ended == []
    mr.deallocate(mr.allocate(100), 100)
    del mr
    gc.collect()
    assert ended == [True]
    for _ in range(100):
        rapids.from_rmm(callback())
    gc.collect()
    assert len(ended) == 101


def test_there_and_back_is_the_same_object(pool):
    bridge = rapids.as_rmm(pool)
    assert rapids.from_rmm(bridge) is pool
    theirs = rmm.mr.StatisticsResourceAdaptor(bridge)
    assert rapids.as_rmm(rapids.from_rmm(theirs)) is theirs


# --- buffers --------------------------------------------------------------------------------


def test_a_buffer_moves_to_rmm_without_a_copy(pool):
    stream = Stream()
    buffer = rmm_c.DeviceBuffer(size=1000, stream=stream, mr=pool)
    buffer.resize(600)
    address, before = buffer.ptr, pool.stats().total_count
    moved = rapids.as_rmm_buffer(buffer)
    assert (moved.ptr, moved.size, moved.capacity()) == (address, 600, 1000)
    assert (buffer.ptr, buffer.size, buffer.mr) == (0, 0, pool)
    assert pool.stats().total_count == before and pool.stats().current_count == 1
    buffer.resize(10)  # goes on as an empty one of the pool
    assert pool.stats().current_count == 2
    del moved, buffer
    assert pool.stats().current_count == 0 and pool.stats().invalid_free_count == 0
    empty = rapids.as_rmm_buffer(rmm_c.DeviceBuffer(size=0, mr=pool))
    assert (empty.ptr, empty.size) == (0, 0)
    with pytest.raises(TypeError, match="DeviceBuffer of rmm_c"):
        rapids.as_rmm_buffer(empty)
    with pytest.raises(BufferError):
        pinned = rmm_c.DeviceBuffer(size=10, mr=rmm_c.mr.PinnedHostMemoryResource())
        with memoryview(pinned):
            rapids.as_rmm_buffer(pinned)


# --- the end of the interpreter -------------------------------------------------------------

ENDS = """
import rmm, rmm_c
from rmm_c import rapids
pool = rmm_c.mr.PoolMemoryResource(rmm_c.mr.CudaMemoryResource(), "1MiB")
bridge = rapids.as_rmm(pool)
rmm.mr.set_per_device_resource(0, bridge)
buffer = rmm.DeviceBuffer(size=100, mr=bridge)
counted = rmm.mr.StatisticsResourceAdaptor(bridge)
callback = rmm.mr.CallbackMemoryResource(bridge.allocate, bridge.deallocate)
pools = [rmm_c.mr.PoolMemoryResource(rapids.from_rmm(mr), "4KiB") for mr in (counted, callback)]
buffers = [rmm_c.DeviceBuffer(size=100, mr=mr) for mr in pools]
"""


@pytest.mark.parametrize(
    "end",
    [
        "",
        "rmm_c.mr.set_current_device_resource(pools[0])",
        "rmm_c.mr.set_current_device_resource(pools[1]); del pools, buffers, callback",
        "del pool, bridge",
        "cycle = []; cycle += [cycle, buffers]",
        "import sys; sys.exit(0)",
        "import os; pid = os.fork(); pid and os.waitpid(pid, 0); pid or buffers.clear()",
    ],
)
def test_the_interpreter_ends_with_everything_alive(end):
    assert run(ENDS + "print('done', flush=True)\n" + end) == "done\n"


# --- what it is built of --------------------------------------------------------------------


def test_the_module_is_compiled_once(tmp_path):
    program = "from rmm_c import rapids; print(rapids.build())"
    environment = {**os.environ, "RMM_C_CACHE": str(tmp_path / "new" / "cache")}
    running = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment)
        for _ in range(2)
    ]
    paths = {process.communicate()[0].decode().strip() for process in running}
    assert len(paths) == 1 and [process.returncode for process in running] == [0, 0]
    (path,) = paths
    folder = os.path.dirname(path)
    assert os.listdir(folder) == [os.path.basename(path)]
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    before = os.stat(path)
    assert run(program, RMM_C_CACHE=folder).strip() == path
    assert os.stat(path).st_mtime_ns == before.st_mtime_ns


FAILS = """
import sys
from rmm_c import rapids
try:
    {how}
    rapids.as_rmm(__import__("rmm_c").mr.CudaMemoryResource())
except ImportError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    "how, variables, message",
    [
        ("pass", {"CXX": "no-such-compiler"}, "there is no C++ compiler (no-such-compiler)"),
        ("pass", {"CXX": "false"}, "the bridge to RMM does not compile: no output (the command: "),
        ("sys.modules['rmm'] = None", {}, "RAPIDS RMM cannot be imported"),
        ("import rmm_c; rmm_c.as_rmm()", {}, "the package rmm in this process is rmm_c"),
        ("import rmm; rmm.__version__ = '25.04.00'", {}, "RMM 25.04.00 is too old"),
        ("import rmm; rmm.__version__ = '27.02.00'", {}, "but the package rmm is 27.02.00"),
        ("sys.modules['librmm'] = None", {"CONDA_PREFIX": ""}, "librmm"),
        ("rapids._bridge._check_layout = lambda *_: False", {}, "has another layout"),
        ("pass", {"RMM_C_CACHE": "/proc/no"}, "the cache /proc/no cannot be made"),
        ("pass", {"RMM_C_CACHE": "/tmp"}, "the cache /tmp can be written by others"),
    ],
)
def test_what_is_missing_is_said_in_one_line(how, variables, message, tmp_path):
    environment = {"RMM_C_CACHE": str(tmp_path), **variables}
    if "layout" in message:
        environment.pop("RMM_C_CACHE")
    output = run(FAILS.format(how=how), **environment)
    assert output.startswith("RapidsError ") and message in output and output.count("\n") == 1


def test_a_cache_that_others_can_write_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    output = run(FAILS.format(how="pass"), RMM_C_CACHE=str(tmp_path))
    assert "can be written by others" in output
    assert os.listdir(tmp_path) == []


def test_the_class_has_the_layout_that_was_declared():
    found = _bridge.bridge()
    cuda, managed = rmm.mr.CudaMemoryResource(), rmm.mr.ManagedMemoryResource()
    assert found.library.rmm_c_rapids_check(found.slot_of(cuda)) == 1
    assert found.library.rmm_c_rapids_check(found.slot_of(managed)) == 0
