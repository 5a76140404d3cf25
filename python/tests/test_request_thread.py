# SPDX-License-Identifier: Apache-2.0
"""The thread that obeys operators: that it comes and goes."""
import os
import pathlib
import subprocess
import sys

import rmm_c as rmm


def is_there():
    for task in pathlib.Path("/proc/self/task").iterdir():
        try:
            if (task / "comm").read_text() == "rmm-requests\n":
                return True
        except OSError:
            pass  # it has ended
    return False


def test_it_is_started_and_stopped():
    buffer = rmm.DeviceBuffer(size=10)
    rmm.request_thread.stop()
    rmm.request_thread.start()
    rmm.request_thread.start()
    while not is_there():
        pass
    rmm.request_thread.stop()
    while is_there():
        pass
    assert buffer.size == 10


def test_a_program_ends_with_it():
    program = """
import os, rmm_c as rmm
def allocate(nbytes, stream):
    return cuda.allocate(nbytes, stream)
def deallocate(pointer, nbytes, stream):
    cuda.deallocate(pointer, nbytes, stream)
cuda = rmm.mr.CudaMemoryResource()
pool = rmm.mr.PoolMemoryResource(rmm.mr.CallbackMemoryResource(allocate, deallocate), "1MiB")
if os.environ.get("RMM_REQUEST_THREAD") != "1":
    rmm.request_thread.start()
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
print("done")
"""
    for chosen in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=dict(os.environ, RMM_REQUEST_THREAD=chosen),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert (done.returncode, done.stdout) == (0, "done\n")
