# SPDX-License-Identifier: Apache-2.0
"""
Each function reads and writes behind the work that was queued before, on whatever stream, device
and thread. The simulated GPU runs work late and in an order of its own, so a missing wait shows.
"""
import copy
import gc
import pickle
import random
import threading

import pytest
from late import BYTES, contents, non_blocking, queued

import rmm_c as rmm
from rmm_c.pylibrmm.device_buffer import copy_device_to_ptr, copy_host_to_ptr, copy_ptr_to_host
from rmm_c.pylibrmm.memory_resource._defaults import current_device
from rmm_c.pylibrmm.stream import DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Stream

ROUNDS = 40
DEFAULTS = [DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM]


def to_host(buffer):
    host = bytearray(buffer.size)
    buffer.copy_to_host(host)
    return bytes(host)


def by_address(buffer):
    host = bytearray(buffer.size)
    copy_ptr_to_host(buffer.ptr, host)
    return bytes(host)


def into_another(buffer):
    target = rmm.DeviceBuffer(size=buffer.size, stream=non_blocking())
    target.copy_from_device(buffer)
    return target.tobytes()


def into_another_by_addresses(buffer):
    target = rmm.DeviceBuffer(size=buffer.size, stream=non_blocking())
    copy_device_to_ptr(buffer.ptr, target.ptr, buffer.size)
    return target.tobytes(target.stream)


def on_another_stream(buffer):
    buffer.stream = non_blocking()
    return buffer.tobytes(buffer.stream)


READS = {
    "bytes": bytes,
    "tobytes": lambda buffer: buffer.tobytes(),
    "tobytes elsewhere": lambda buffer: buffer.tobytes(non_blocking()),
    "copy_to_host": to_host,
    "copy_to_host of numpy": lambda buffer: buffer.copy_to_host().tobytes(),
    "copy_ptr_to_host": by_address,
    "copy_from_device": into_another,
    "copy_device_to_ptr": into_another_by_addresses,
    "DeviceBuffer(ptr=)": lambda b: rmm.DeviceBuffer(ptr=b.ptr, size=b.size).tobytes(),
    "pickle": lambda buffer: pickle.loads(pickle.dumps(buffer)).tobytes(),
    "copy": lambda buffer: buffer.copy().tobytes(),
    "copy.copy": lambda buffer: copy.copy(buffer).tobytes(),
    "copy.deepcopy": lambda buffer: copy.deepcopy(buffer).tobytes(),
    "stream": on_another_stream,
}


def change(name, *arguments):
    def read(buffer):
        getattr(buffer, name)(*arguments)
        return buffer.tobytes()[:BYTES]

    return read


READS.update(
    {
        "resize": change("resize", 2 * BYTES),
        "resize elsewhere": lambda b: change("resize", 2 * BYTES, non_blocking())(b),
        "reserve": change("reserve", 2 * BYTES),
        "shrink_to_fit": change("shrink_to_fit"),
    }
)


@pytest.mark.parametrize("name", READS)
def test_a_read_comes_after_the_work_of_the_buffers_stream(name, pools):
    stream = non_blocking()
    for i in range(ROUNDS):
        want = contents(i)
        assert READS[name](queued(want, stream)) == want


@pytest.mark.parametrize("stream", DEFAULTS, ids=["legacy", "per-thread"])
@pytest.mark.parametrize("name", READS)
def test_a_read_comes_after_the_work_of_another_devices_default_stream(name, stream, pools):
    for i in range(ROUNDS):
        want = contents(i)
        with current_device(1):
            buffer = queued(want, stream)
        assert READS[name](buffer) == want


@pytest.mark.parametrize("name", READS)
def test_a_read_comes_after_the_work_of_another_threads_default_stream(name, pools):
    for i in range(10):
        want = contents(i)
        made = []
        work = lambda: made.append(queued(want, PER_THREAD_DEFAULT_STREAM))  # noqa: E731
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert READS[name](made.pop()) == want


@pytest.mark.parametrize("name", READS)
def test_a_read_comes_after_a_copy_on_a_third_stream(name, pools):
    own, third = non_blocking(), non_blocking()
    for i in range(ROUNDS):
        want = contents(i)
        buffer = rmm.DeviceBuffer(size=BYTES, stream=own)
        buffer.copy_from_device(queued(want, third), third)
        assert READS[name](buffer) == want


@pytest.mark.parametrize("current", [0, 1])
@pytest.mark.parametrize("stream", DEFAULTS, ids=["legacy", "per-thread"])
def test_a_copy_between_devices_waits_for_the_source(current, stream, pools):
    for i in range(ROUNDS):
        want = contents(i)
        with current_device(1):
            source = rmm.DeviceBuffer.to_device(want, stream)
            source.resize(4 * BYTES, stream)
        with current_device(0):
            target = rmm.DeviceBuffer(size=4 * BYTES, stream=stream)
        with current_device(current):
            target.copy_from_device(source, stream)
        assert target.tobytes(stream)[:BYTES] == want


def test_a_copy_from_the_host_comes_after_the_work_on_the_buffer(pools):
    stream = non_blocking()
    for i in range(ROUNDS):
        for write in (
            lambda buffer, want: buffer.copy_from_host(want),
            lambda buffer, want: copy_host_to_ptr(want, buffer.ptr),
        ):
            buffer = queued(contents(-1), stream)
            write(buffer, contents(i))
            stream.synchronize()
            assert buffer.tobytes() == contents(i)


@pytest.mark.parametrize("ends", ["source", "target"])
def test_memory_of_a_copy_is_free_after_the_copy(ends, pools):
    """Freed memory is at once another buffer's: the copy neither reads nor writes that one."""
    own, other = non_blocking(), non_blocking()
    for i in range(ROUNDS):
        want = contents(i)
        source = rmm.DeviceBuffer.to_device(want, own)
        target = rmm.DeviceBuffer(size=BYTES, stream=own)
        target.copy_from_device(source, other)
        kept = target if ends == "source" else None
        del source
        if kept is None:
            target = None
        others = [rmm.DeviceBuffer.to_device(bytes(BYTES), own) for _ in range(3)]
        other.synchronize()
        assert all(buffer.tobytes() == bytes(BYTES) for buffer in others)
        assert kept is None or kept.tobytes() == want


def test_a_buffer_of_another_threads_default_stream_is_freed_behind_its_work(pools):
    for i in range(10):
        made = []

        def work():
            source = rmm.DeviceBuffer.to_device(contents(i), PER_THREAD_DEFAULT_STREAM)
            made.append(source.copy())

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        made.clear()
        others = [
            rmm.DeviceBuffer.to_device(bytes(BYTES), PER_THREAD_DEFAULT_STREAM) for _ in range(3)
        ]
        DEFAULT_STREAM.synchronize()
        assert all(buffer.tobytes() == bytes(BYTES) for buffer in others)


def test_the_number_of_a_stream_may_be_all_that_is_left_of_it(pools):
    """It keeps no stream alive, so what was queued there is done when the call returns."""
    for i in range(ROUNDS):
        want = contents(i)
        own, other = non_blocking(), non_blocking()
        source, target = queued(want, own), rmm.DeviceBuffer(size=BYTES, stream=own)
        target.copy_from_device(source, other.handle)
        copy_device_to_ptr(source.ptr, target.ptr, BYTES, other.handle)
        del other
        gc.collect()
        assert target.tobytes() == want


def test_a_buffer_and_its_streams_end_in_any_order(pools):
    for i in range(ROUNDS):
        own, other = non_blocking(), non_blocking()
        source, target = queued(contents(i), own), rmm.DeviceBuffer(size=BYTES, stream=own)
        target.copy_from_device(source, other)
        parts = [source, target, own, other]
        del source, target, own, other
        random.Random(i).shuffle(parts)
        while parts:
            parts.pop()


SEED = random.SystemRandom().randrange(1 << 32)


@pytest.mark.parametrize("seed", [1, SEED])
def test_any_operations_in_any_order_keep_every_byte(seed, pools):
    """Two devices; legacy, per-thread, blocking and non-blocking streams of both; two threads."""
    choose = random.Random(seed)
    streams = DEFAULTS + [stream() for stream in (Stream, non_blocking)]
    with current_device(1):
        streams += [stream() for stream in (Stream, non_blocking)]
    pairs = []

    def step():
        what = choose.randrange(9)
        stream = choose.choice(streams)
        if what < 2 or len(pairs) < 4:
            want = choose.randbytes(choose.randrange(1, 5000))
            pairs.append((rmm.DeviceBuffer.to_device(want, stream), want))
            return
        at = choose.randrange(len(pairs))
        buffer, want = pairs[at]
        if what == 2 and len(pairs) > 30:
            pairs.pop(at)
        elif what == 3:
            pairs[at] = (copy.copy(buffer), want)
        elif what == 4:
            source, from_source = choose.choice(pairs)
            if source.size <= buffer.size and source is not buffer:
                buffer.copy_from_device(source, stream)
                pairs[at] = (buffer, from_source + want[source.size :])
        elif what == 5:
            size = choose.randrange(1, 5000)
            buffer.resize(max(size, buffer.size) if size % 2 else min(size, buffer.size), stream)
            tail = buffer.tobytes(stream)[len(want) :]  # uninitialised
            pairs[at] = (buffer, (want + tail)[: buffer.size])
        elif what == 6:
            buffer.stream = stream
        elif what == 7:
            part = choose.randbytes(choose.randrange(1, buffer.size + 1))
            buffer.copy_from_host(part, stream)
            pairs[at] = (buffer, part + want[len(part) :])
        else:
            assert buffer.tobytes(stream) == want, f"seed {seed}"

    def steps(count):
        for _ in range(count):
            with current_device(choose.randrange(2)):
                step()

    for _ in range(12):
        steps(250)
        errors = []

        def guarded():
            try:
                steps(250)
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=guarded)
        thread.start()
        thread.join()
        assert errors == []
    for buffer, want in pairs:
        assert bytes(buffer) == want, f"seed {seed}"
