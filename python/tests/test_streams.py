# SPDX-License-Identifier: Apache-2.0
"""Streams of this package and of others, and pools of streams."""
import gc
import sys
import types
import weakref

import pytest

import rmm_c as rmm
from rmm_c.pylibrmm.cuda_stream_pool import CudaStreamPool
from rmm_c.pylibrmm.stream import (
    DEFAULT_STREAM,
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    CudaStreamFlags,
    Stream,
    as_stream,
)
from rmm_c.pylibrmm.utils import as_stream as same_function


class Protocol:
    def __init__(self, handle, version=0):
        self.answer = (version, handle)

    def __cuda_stream__(self):
        return self.answer


def test_a_new_stream_is_unlike_any_other():
    first, second = Stream(), Stream(flags=CudaStreamFlags.NON_BLOCKING)
    assert first != second and first != DEFAULT_STREAM
    assert len({first, second, Stream(first)}) == 2
    assert first.__cuda_stream__() == (0, first.handle)
    assert not first.is_default()
    first.synchronize()


def test_a_stream_is_initialised_once():
    own = Stream()
    for stream in (Stream(), Stream(Protocol(own.handle))):
        handle = stream.handle
        for arguments in ((), (own,)):
            with pytest.raises(RuntimeError, match="already"):
                stream.__init__(*arguments)
        assert stream.handle == handle


def test_the_default_streams():
    assert DEFAULT_STREAM == LEGACY_DEFAULT_STREAM != PER_THREAD_DEFAULT_STREAM
    assert DEFAULT_STREAM.is_default() and not PER_THREAD_DEFAULT_STREAM.is_default()
    assert Stream(0) == DEFAULT_STREAM and hash(Stream(0)) == hash(DEFAULT_STREAM)
    assert DEFAULT_STREAM != "stream"
    for stream in (DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM):
        stream.synchronize()
        assert rmm.DeviceBuffer.to_device(b"abc", stream).tobytes(stream) == b"abc"


def test_a_stream_of_the_protocol_is_used_and_kept_alive():
    own = Stream()
    foreign = Protocol(own.handle)
    end = weakref.ref(foreign)
    stream = Stream(foreign)
    assert stream == own and stream.owner is foreign
    buffer = rmm.DeviceBuffer(size=10, stream=foreign)
    assert buffer.stream == own
    del foreign, stream
    assert end() is not None
    del buffer
    assert end() is None
    attribute = types.SimpleNamespace(__cuda_stream__=(0, own.handle))
    assert Stream(attribute) == own


def test_what_is_no_stream_is_refused():
    for wrong in ("stream", 1.5, True, object()):
        with pytest.raises(TypeError, match="stream is needed"):
            Stream(wrong)
        with pytest.raises(TypeError):
            rmm.DeviceBuffer(size=1, stream=wrong)
    with pytest.raises(NotImplementedError, match="version: '7'"):
        Stream(Protocol(0, version=7))
    with pytest.raises(ValueError, match="flags"):
        Stream(DEFAULT_STREAM, flags=CudaStreamFlags.SYNC_DEFAULT)
    with pytest.raises(OverflowError):
        Stream(-1)
    with pytest.raises(ValueError):
        Stream(flags=8)


def test_streams_of_frameworks_from_before_the_protocol(monkeypatch):
    own = Stream()

    class CupyStream:
        ptr = own.handle

    class NumbaStream:
        def __int__(self):
            return own.handle

    class TorchStream:
        cuda_stream = own.handle

    space = types.SimpleNamespace
    cupy_streams = space(Stream=CupyStream, ExternalStream=CupyStream)
    for name, module, stream in (
        ("cupy", space(cuda=space(stream=cupy_streams)), CupyStream()),
        ("numba.cuda", space(cudadrv=space(driver=space(Stream=NumbaStream))), NumbaStream()),
        ("torch", space(cuda=space(Stream=TorchStream)), TorchStream()),
    ):
        with pytest.raises(TypeError):
            Stream(stream)
        monkeypatch.setitem(sys.modules, name, module)
        assert Stream(stream) == own


def test_as_stream_makes_streams_only_where_needed():
    own = Stream()
    assert as_stream(own) is own and same_function is as_stream
    assert as_stream(Protocol(own.handle)) == own


def test_a_wrapper_of_a_stream_keeps_it():
    own = Stream()
    wrapper = Stream(own)
    handle = own.handle
    del own
    gc.collect()
    wrapper.synchronize()
    assert wrapper.handle == handle


def test_a_pool_hands_out_its_streams_in_turn():
    pool = CudaStreamPool(pool_size=3, flags=CudaStreamFlags.NON_BLOCKING)
    assert pool.get_pool_size() == 3
    assert len({pool.get_stream() for _ in range(9)}) == 3
    assert pool.get_stream(stream_id=1) == pool.get_stream(4)
    stream = pool.get_stream()
    del pool
    gc.collect()
    stream.synchronize()
    assert CudaStreamPool().get_pool_size() == 16
    with pytest.raises(ValueError):
        CudaStreamPool(0)
    with pytest.raises(OverflowError):
        CudaStreamPool(1).get_stream(-1)
