# SPDX-License-Identifier: Apache-2.0
"""Two processes of Python share memory."""
import os
import signal
import socket
import subprocess
import sys

import pytest

import rmm_c
from rmm_c import sharing
from rmm_c.pylibrmm.stream import DEFAULT_STREAM

CHILD = """
import socket, sys
import rmm_c
from rmm_c import sharing
from rmm_c.pylibrmm.stream import DEFAULT_STREAM

peer = socket.socket(fileno=int(sys.argv[1]))
with sharing.Exported.receive(peer) as exported:
    memory = exported.open()
host = bytearray(memory.size)
rmm_c._core.copy_to_host(memory.ptr, host, DEFAULT_STREAM)
assert host == b"abc" * 1000, host[:10]
rmm_c._core.copy_from_host(memory.ptr, b"xyz" * 1000, DEFAULT_STREAM)
memory.close()
assert memory.ptr == 0
peer.send(b"done")
"""


def run_importer(mr, buffer):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(theirs.fileno())], pass_fds=[theirs.fileno()]
        )
        theirs.close()
        with sharing.export(mr, buffer) as exported:
            assert len(exported.descriptors) == 1
            exported.send(ours)
        assert exported.descriptors == []
        answer = ours.recv(4)
        assert child.wait() == 0
        assert answer == b"done"


@pytest.mark.parametrize(
    "make",
    [
        lambda: rmm_c.mr.VirtualPoolMemoryResource(exportable=True),
        lambda: rmm_c.mr.CudaAsyncMemoryResource(enable_ipc=True),
        lambda: rmm_c.mr.from_spec("statistics+pool_virtual:exportable"),
    ],
)
def test_another_process_reads_and_writes_a_buffer(make):
    mr = make()
    buffer = rmm_c.DeviceBuffer.to_device(b"abc" * 1000, mr=mr)
    buffer.stream.synchronize()
    run_importer(mr, buffer)
    assert buffer.tobytes() == b"xyz" * 1000


def test_an_import_in_the_same_process_is_an_array():
    pool = rmm_c.mr.VirtualPoolMemoryResource(exportable=True)
    buffer = rmm_c.DeviceBuffer.to_device(b"abc" * 1000, mr=pool)
    with sharing.export(pool, buffer.ptr + 1, 2) as exported, exported.open() as memory:
        array = memory.__cuda_array_interface__
        assert array["shape"] == (2,) and array["data"] == (memory.ptr, False)
        host = bytearray(2)
        rmm_c._core.copy_to_host(memory.ptr, host, DEFAULT_STREAM)
        assert host == b"bc"
    assert memory.__cuda_array_interface__["shape"] == (0,)


def test_what_is_wrong_is_one_error():
    plain = rmm_c.mr.VirtualPoolMemoryResource()
    buffer = rmm_c.DeviceBuffer(size=100, mr=plain)
    with pytest.raises(rmm_c.errors.RMMError, match="exportable"):
        sharing.export(plain, buffer)
    with pytest.raises(rmm_c.errors.RMMError, match="malformed"):
        sharing.Exported(b"no record", []).open()
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours, pytest.raises(rmm_c.errors.RMMError, match="closed the socket"):
        sharing.Exported.receive(ours)


def test_a_wait_for_an_export_ends_by_a_timeout_or_a_signal():
    def interrupt(number, frame):
        raise KeyboardInterrupt

    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(0.01)
        with pytest.raises(TimeoutError, match="no export"):
            sharing.Exported.receive(ours)
        ours.settimeout(None)
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.01)
                sharing.Exported.receive(ours)
        finally:
            signal.signal(signal.SIGALRM, before)


def test_an_export_that_is_dropped_closes_its_descriptors():
    pool = rmm_c.mr.VirtualPoolMemoryResource(exportable=True)
    buffer = rmm_c.DeviceBuffer(size=100, mr=pool)
    exported = sharing.export(pool, buffer)
    descriptor = exported.descriptors[0]
    os.fstat(descriptor)
    del exported
    with pytest.raises(OSError):
        os.fstat(descriptor)
