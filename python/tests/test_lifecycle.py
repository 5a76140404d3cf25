# SPDX-License-Identifier: Apache-2.0
"""Threads, forks, the end of the interpreter, and large numbers."""
import gc
import os
import resource as limits
import subprocess
import sys
import threading
import time

import pytest

import rmm_c as rmm
from rmm_c import mr
from rmm_c.pylibrmm.stream import Stream

MIB = 1 << 20


def run(program, **environment):
    """The exit status and the output of a program in a process of its own."""
    start = "import rmm_c as rmm\nfrom rmm_c import mr\n"
    result = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", start + program],
        env=dict(os.environ, **environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    return result.returncode, result.stdout


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * limits.getpagesize()


def test_a_call_on_a_foreign_stream_ends_with_the_interpreters_lock():
    # The Stream that the call makes of it ends with the call. With debug hooks Python ends a
    # process that frees an object without the lock.
    status, output = run(
        """
from rmm_c.pylibrmm.stream import Stream
own = Stream()
class Foreign:
    def __cuda_stream__(self):
        return 0, own.handle
resource, buffer = mr.ManagedMemoryResource(), rmm.DeviceBuffer(size=1000)
managed = rmm.DeviceBuffer(size=1000, mr=resource)
for _ in range(100):
    resource.deallocate(resource.allocate(1000, Foreign()), 1000, Foreign())
    rmm.DeviceBuffer(size=1000, stream=Foreign())
    buffer.copy_from_host(b"abc", Foreign())
    assert buffer.tobytes(Foreign())[:3] == b"abc"
    buffer.copy_from_device(managed, Foreign())
    managed.prefetch(0, Foreign())
    buffer.resize(900, Foreign())
    buffer.resize(1000, Foreign())
""",
        PYTHONMALLOC="debug",
    )
    assert (status, output) == (0, "")


def test_a_hundred_thousand_buffers_live_at_once_and_end(pool):
    before = pool.stats()
    buffers = [rmm.DeviceBuffer(size=16, mr=pool) for _ in range(100_000)]
    assert pool.stats().current_count == 100_000
    assert len({buffer.ptr for buffer in buffers}) == 100_000
    del buffers
    assert pool.stats().current_count == before.current_count


def test_a_hundred_thousand_objects_leave_nothing_behind(pool):
    stream = Stream()
    limiting = mr.LimitingResourceAdaptor(pool, 0)

    def round_of_everything(count):
        for _ in range(count):
            buffer = rmm.DeviceBuffer(size=1000, mr=pool, stream=stream)
            buffer.resize(2000)
            memoryview(buffer.__cuda_array_interface__["typestr"].encode())
            Stream(stream)
            adaptor = mr.FailureCallbackResourceAdaptor(limiting, lambda nbytes: False)
            try:
                adaptor.allocate(1)
            except MemoryError:
                pass
            pool.deallocate(pool.allocate(10), 10)

    round_of_everything(20_000)  # until the simulated GPU's queues have their size
    gc.collect()
    before, blocks = resident(), sys.getallocatedblocks()
    round_of_everything(20_000)
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 500
    assert resident() - before < 8 * MIB
    assert pool.stats().current_count == 0


def test_resources_come_and_go_without_growth():
    def rounds(count):
        for _ in range(count):
            base = mr.CudaMemoryResource()
            functions = mr.CallbackMemoryResource(base.allocate, base.deallocate)
            rmm.DeviceBuffer(size=10, mr=mr.PoolMemoryResource(functions, 0))
            mr.set_current_device_resource(mr.StatisticsResourceAdaptor(base))

    rounds(100)
    gc.collect()
    before = sys.getallocatedblocks()
    rounds(1000)
    gc.collect()
    assert sys.getallocatedblocks() - before < 300


def test_threads_allocate_at_the_same_time(pool, threads):
    start = threading.Barrier(8)

    def work(seed):
        stream = Stream()
        start.wait()
        kept = []
        for i in range(2000):
            kept.append(rmm.DeviceBuffer(size=1 + (i * seed) % 3000, mr=pool, stream=stream))
            if len(kept) > 20:
                del kept[i % 20]
        data = os.urandom(1000)
        assert rmm.DeviceBuffer.to_device(data, stream, pool).tobytes(stream) == data

    with threads(work, range(1, 9)):
        pass
    assert pool.stats().current_count == 0


def test_other_threads_run_while_a_call_blocks():
    """The callback of one thread waits for a thread that only runs with the GIL."""
    ran = threading.Event()
    base = mr.CudaMemoryResource()

    def allocate(nbytes, stream):
        threading.Thread(target=ran.set).start()
        assert ran.wait(60)
        return base.allocate(nbytes, stream)

    rmm.DeviceBuffer(size=10, mr=mr.CallbackMemoryResource(allocate, base.deallocate))
    assert ran.is_set()


def test_a_default_can_be_replaced_while_threads_use_it(pool, threads):
    stop = threading.Event()

    def work(_):
        while not stop.is_set():
            assert rmm.DeviceBuffer(size=100).mr.stats().current_bytes >= 0
            mr.get_current_device_resource()

    with threads(work, range(4)):
        for _ in range(300):
            mr.set_current_device_resource(mr.StatisticsResourceAdaptor(pool))
            rmm.DeviceBuffer(size=10)
            mr.set_current_device_resource(None)
            time.sleep(0)
        stop.set()


def test_the_interpreter_ends_with_live_buffers_callbacks_and_threads():
    program = """
import threading, time, sys
base = mr.CudaMemoryResource()
def deallocate(ptr, nbytes, stream):
    base.deallocate(ptr, nbytes, stream)
resource = mr.CallbackMemoryResource(base.allocate, deallocate)
pool = mr.PoolMemoryResource(resource, "1MiB")
mr.set_current_device_resource(mr.FailureCallbackResourceAdaptor(pool, lambda n: False))
buffers = [rmm.DeviceBuffer(size=1000, stream=rmm.pylibrmm.stream.Stream()) for _ in range(100)]
cycle = [buffers]
cycle.append(cycle)
sys.keep = buffers[0]
class Late:
    def __del__(self):
        self.buffer = None
late = Late()
late.buffer = rmm.DeviceBuffer(size=10)
def work():
    while True:
        rmm.DeviceBuffer(size=100)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
print("end")
"""
    assert run(program) == (0, "end\n")


def test_a_forked_child_uses_only_memory_of_the_host():
    program = """
import os
pool = mr.PoolMemoryResource(mr.CudaMemoryResource(), "1MiB")
buffer = rmm.DeviceBuffer.to_device(b"abc", mr=pool)
child = os.fork()
if child == 0:
    try:
        rmm.DeviceBuffer(size=10, mr=pool)
    except rmm.errors.UnsupportedError:
        print("refused")
    del buffer
    host = mr.HostMemoryResource()
    address = host.allocate(1000)
    print(host.stats().current_bytes, flush=True)
    host.deallocate(address, 1000)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), buffer.tobytes().decode())
"""
    assert run(program) == (0, "refused\n1000\n0 abc\n")


def test_a_second_interpreter_is_refused():
    """The extension has one state for the process."""
    interpreters = pytest.importorskip("_xxsubinterpreters")
    identifier = interpreters.create()
    with pytest.raises(interpreters.RunFailedError, match="main interpreter"):
        interpreters.run_string(identifier, "import rmm_c")
    interpreters.destroy(identifier)
    assert rmm.DeviceBuffer.to_device(b"abc").tobytes() == b"abc"


def test_signals_interrupt_python_code_in_a_callback():
    program = """
import os, signal
base = mr.CudaMemoryResource()
def allocate(nbytes, stream):
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):
        pass
    return base.allocate(nbytes, stream)
try:
    mr.CallbackMemoryResource(allocate, base.deallocate).allocate(10)
except KeyboardInterrupt:
    print("interrupted")
"""
    assert run(program) == (0, "interrupted\n")
