# SPDX-License-Identifier: Apache-2.0
"""Every test runs on the simulated GPU, in a private folder, and begins with the defaults."""
import atexit
import contextlib
import ctypes
import os
import shutil
import tempfile
import threading

_folder = tempfile.mkdtemp(prefix="rmm_c_")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
os.environ["RMM_DRIVER"] = "sim"
os.environ["RMM_SIM_DEVICES"] = "2"
os.environ["RMM_SIM_VIOLATION"] = "abort"
os.environ["RMM_RUNTIME_DIR"] = _folder
os.environ["RMM_LOG_LEVEL"] = "critical"
for _variable in ("RMM_RESOURCE", "RMM_LOG_FILE", "RMM_C_LIBRARY"):
    os.environ.pop(_variable, None)

import pytest  # noqa: E402

import rmm_c  # noqa: E402


@pytest.fixture(autouse=True)
def initial_defaults():
    """A test leaves neither another default resource nor live blocks of the simulated GPU."""
    yield
    rmm_c.reinitialize(devices=[0, 1])


@pytest.fixture
def simulated():
    """<rmm/sim.h>, in the library of the simulated GPU that librmm-c has loaded."""
    rmm_c.mr.CudaMemoryResource()
    name = f"librmm-sim.so.{rmm_c.__version__.rpartition('.')[0]}"
    return ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_NOW)


@pytest.fixture
def pool():
    """A pool of 16 MiB."""
    return rmm_c.mr.PoolMemoryResource(rmm_c.mr.CudaMemoryResource(), "16MiB")


@pytest.fixture
def pools():
    """A pool as the default of each device. It gives freed memory out again at once."""
    rmm_c.reinitialize(pool_allocator=True, initial_pool_size="4MiB", devices=[0, 1])


@contextlib.contextmanager
def _threads(work, arguments):
    errors = []

    def guarded(argument):
        try:
            work(argument)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(argument,)) for argument in arguments]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join()
    assert errors == []


@pytest.fixture
def threads():
    """threads(work, arguments): a thread for each argument runs beside the block."""
    return _threads


class Functions:
    """Functions over the cuda resource that remember their calls."""

    def __init__(self):
        self.base = rmm_c.mr.CudaMemoryResource()
        self.calls = []
        self.error = None

    def allocate(self, nbytes, stream):
        if self.error is not None:
            raise self.error
        self.calls.append(("allocate", nbytes, stream))
        return self.base.allocate(nbytes, stream)

    def deallocate(self, ptr, nbytes, stream):
        self.calls.append(("deallocate", nbytes, stream))
        self.base.deallocate(ptr, nbytes, stream)


@pytest.fixture
def functions():
    return Functions()


@pytest.fixture
def callback(functions):
    return rmm_c.mr.CallbackMemoryResource(functions.allocate, functions.deallocate)
