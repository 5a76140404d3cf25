# SPDX-License-Identifier: Apache-2.0
"""DeviceBuffer: copies and pickles, of subclasses too."""
import copy
import pickle
import subprocess
import sys

import pytest

import rmm_c as rmm
from rmm_c.pylibrmm.stream import Stream


@pytest.mark.parametrize("make", [lambda b: b.copy(), copy.copy, copy.deepcopy])
def test_copies_have_their_own_memory(make, pool):
    buffer = rmm.DeviceBuffer.to_device(b"abc", mr=pool)
    other = make(buffer)
    assert other.tobytes() == b"abc"
    assert other.ptr != buffer.ptr


@pytest.mark.parametrize("make", [lambda b: b.copy(), copy.copy, copy.deepcopy])
def test_a_copy_is_of_the_same_resource_and_stream(make, pool):
    stream = Stream()
    other = make(rmm.DeviceBuffer(size=10, mr=pool, stream=stream))
    assert other.mr is pool
    assert other.stream is stream


class Named(rmm.DeviceBuffer):
    """A subclass with another constructor and with attributes."""

    def __new__(cls, name):
        return super().__new__(cls, size=3)

    def __init__(self, name):
        self.copy_from_host(b"abc")
        self.names = [name]


@pytest.mark.parametrize(
    "make", [copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))]
)
def test_the_copy_of_a_subclass_has_its_class_and_attributes(make):
    buffer = Named("one")
    buffer.itself = buffer
    other = make(buffer)
    assert (type(other), other.tobytes(), other.names) == (Named, b"abc", ["one"])
    assert other.itself is (buffer if make is copy.copy else other)
    assert (other.names is buffer.names) == (make is copy.copy)
    assert other.ptr != buffer.ptr and type(buffer.copy()) is rmm.DeviceBuffer


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_carry_the_contents(protocol):
    buffer = rmm.DeviceBuffer.to_device(b"abcdef")
    assert pickle.loads(pickle.dumps(buffer, protocol)).tobytes() == b"abcdef"


class Reduced(rmm.DeviceBuffer):
    """A subclass that is pickled in its own way."""

    def __reduce__(self):
        return bytes, (self.tobytes() + b"!",)


def test_reduce_works_as_with_other_classes():
    make, arguments, *_ = rmm.DeviceBuffer.to_device(b"abc").__reduce__()
    assert make(*arguments).tobytes() == b"abc"
    reduced = Reduced(size=3)
    reduced.copy_from_host(b"abc")
    assert pickle.loads(pickle.dumps(reduced)) == b"abc!"


def test_pickles_leave_large_contents_out_of_band():
    buffer = rmm.DeviceBuffer.to_device(bytes(1 << 20))
    parts = []
    pickled = pickle.dumps(buffer, 5, buffer_callback=parts.append)
    assert len(pickled) < 1000
    assert pickle.loads(pickled, buffers=parts).tobytes() == bytes(1 << 20)


def test_another_process_reads_a_pickle():
    buffer = rmm.DeviceBuffer.to_device(b"from one to another")
    program = "import pickle, sys; print(pickle.load(sys.stdin.buffer).tobytes())"
    output = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(buffer), stdout=subprocess.PIPE
    ).stdout
    assert output == b"b'from one to another'\n"
