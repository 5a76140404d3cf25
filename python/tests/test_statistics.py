# SPDX-License-Identifier: Apache-2.0
"""Scopes of statistics and the profiler."""
import functools
import threading

import pytest

import rmm_c as rmm
from rmm_c import mr, statistics
from rmm_c.statistics import ProfilerRecords, Statistics, profiler


def test_without_statistics_nothing_is_counted():
    assert statistics.get_statistics() is None
    assert statistics.push_statistics() is None
    assert statistics.pop_statistics() is None


def test_scopes_count_what_happens_in_them():
    statistics.enable_statistics()
    adaptor = mr.get_current_device_resource()
    statistics.enable_statistics()
    assert mr.get_current_device_resource() is adaptor
    first = rmm.DeviceBuffer(size=100)
    assert statistics.push_statistics() == Statistics(100, 1, 100, 1, 100, 1)
    second = rmm.DeviceBuffer(size=50)
    del first
    assert statistics.get_statistics() == Statistics(-50, 0, 50, 1, 50, 1)
    assert statistics.pop_statistics() == Statistics(-50, 0, 50, 1, 50, 1)
    assert statistics.get_statistics() == Statistics(50, 1, 150, 2, 150, 2)
    with pytest.raises(IndexError):
        statistics.pop_statistics()
    del second


def test_the_context_adds_an_adaptor_or_a_scope():
    initial = mr.get_current_device_resource()
    with statistics.statistics():
        outer = mr.get_current_device_resource()
        buffer = rmm.DeviceBuffer(size=100)
        with statistics.statistics():
            assert mr.get_current_device_resource() is outer
            assert statistics.get_statistics().current_bytes == 0
        assert statistics.get_statistics().current_bytes == buffer.size
    assert mr.get_current_device_resource() is initial


def test_the_context_notices_another_default(pool):
    with pytest.raises(ValueError, match="changed"):
        with statistics.statistics():
            mr.set_current_device_resource(pool)


def test_the_context_ends_with_an_exception():
    initial = mr.get_current_device_resource()
    with pytest.raises(KeyError):
        with statistics.statistics():
            raise KeyError
    assert mr.get_current_device_resource() is initial


def test_the_profiler_records_functions_and_blocks():
    statistics.enable_statistics()
    records = ProfilerRecords()

    @profiler(records=records)
    def outer(size):
        """Its own text."""
        with profiler(records=records, name="inner"):
            rmm.DeviceBuffer(size=size)
        return rmm.DeviceBuffer(size=2 * size)

    outer(1000)
    outer(500)
    (name,) = set(records.records) - {"inner"}
    assert outer.__doc__ == "Its own text."
    assert "test_statistics.py:" in name and name.endswith("outer)")
    record = records.records[name]
    assert (record.num_calls, record.memory_peak, record.memory_total) == (2, 2000, 4500)
    assert records.records["inner"].memory_peak == 1000
    rows = records.report(ordered_by="num_calls").splitlines()
    assert rows[0] == "Memory Profiling"
    assert ["2", "2,000", "4,500"] in [row.split()[:3] for row in rows[-2:]]
    assert str(records) == records.report() and "inner" in repr(records)


def test_the_profiler_needs_no_source():
    records = ProfilerRecords()
    names = {"profiler": profiler(records=records), "rmm": rmm}
    exec("@profiler\ndef typed_in():\n    return rmm.DeviceBuffer(size=10)\n", names)
    decorated = profiler(records=records)(functools.partial(rmm.DeviceBuffer, size=20))
    with rmm.statistics.statistics():
        names["typed_in"]()
        decorated()
    peaks = {name: record.memory_peak for name, record in records.records.items()}
    assert peaks.pop("<string>:1(typed_in)") == 10
    assert list(peaks.values()) == [20] and "partial" in list(peaks)[0]


def test_the_profiler_records_a_call_that_raises():
    statistics.enable_statistics()
    records = ProfilerRecords()

    @profiler(records=records, name="raises")
    def raises():
        rmm.DeviceBuffer(size=10)
        raise KeyError

    with pytest.raises(KeyError):
        raises()
    assert records.records["raises"].num_calls == 1
    assert statistics.get_statistics().total_bytes == 10


def test_the_profiler_ends_the_scope_that_it_began():
    """Whatever the function has made the default resource meanwhile."""
    records = ProfilerRecords()

    @profiler(records=records, name="changes")
    def changes():
        rmm.DeviceBuffer(size=10)
        mr.set_current_device_resource(mr.StatisticsResourceAdaptor(mr.CudaMemoryResource()))
        rmm.DeviceBuffer(size=20)

    changes()
    assert records.records == {}
    changes()
    assert records.records["changes"].memory_total == 10


def test_threads_that_share_a_profiler_end_their_own_scopes():
    """The thread that enters first ends first, and has another default resource."""
    records = ProfilerRecords()
    block = profiler(records=records, name="block")
    device = mr.CudaMemoryResource()
    entered, ends = threading.Event(), threading.Event()

    def first():
        with block:
            rmm.DeviceBuffer(size=10)
            entered.set()
            assert ends.wait(60)

    mr.set_current_device_resource(mr.StatisticsResourceAdaptor(device))
    thread = threading.Thread(target=first)
    thread.start()
    assert entered.wait(60)
    mr.set_current_device_resource(mr.StatisticsResourceAdaptor(device))
    with block:
        rmm.DeviceBuffer(size=1000)
        ends.set()
        thread.join()
        rmm.DeviceBuffer(size=500)
    data = records.records["block"]
    assert (data.num_calls, data.memory_total) == (2, 1510)


def test_the_profiler_does_nothing_without_statistics():
    records = ProfilerRecords()
    with profiler(records=records, name="block"):
        rmm.DeviceBuffer(size=10)
    assert records.records == {}
    assert "wasn't enabled" in records.report()
    with pytest.raises(ValueError, match="name"):
        with profiler(records=records):
            pass
    with pytest.raises(ValueError, match="ordered"):
        records.report("size")


def test_the_default_records_are_there():
    statistics.enable_statistics()
    with profiler(name="a block of the default records"):
        rmm.DeviceBuffer(size=10)
    assert "a block of the default" in statistics.default_profiler_records.report()


def test_records_by_thread_are_what_each_thread_did(threads):
    """All are in the block at once, so that the scopes of RMM's interface mix."""
    statistics.enable_statistics()
    records = ProfilerRecords()
    meet = threading.Barrier(4)

    def work(number):
        threading.current_thread().name = f"worker {number}"
        for _ in range(2):
            with profiler(records=records, name="block"):
                meet.wait()
                kept = [rmm.DeviceBuffer(size=1000 * number) for _ in range(number)]
                with profiler(records=records, name="inner"):
                    rmm.DeviceBuffer(size=7)
                meet.wait()
                del kept
            meet.wait()

    with threads(work, (1, 2, 3, 4)):
        pass
    by_thread = records.thread_records
    assert set(by_thread) == {f"worker {number}" for number in (1, 2, 3, 4)}
    for number in (1, 2, 3, 4):
        kept = 1000 * number * number
        block, inner = (by_thread[f"worker {number}"][name] for name in ("block", "inner"))
        assert (block.num_calls, block.memory_peak) == (2, kept + 7)
        assert block.memory_total == 2 * (kept + 7)
        assert (inner.num_calls, inner.memory_peak, inner.memory_total) == (2, 7, 14)
    assert records.records["block"].num_calls == 8
    tables = records.report(by_thread=True).split("Thread: ")
    assert [table.split("\n")[0] for table in tables[1:]] == sorted(by_thread)
    assert "     2          16,007          32,014  block" in tables[4]
    assert "Thread: " not in records.report()


def test_a_free_by_another_thread_counts_there():
    statistics.enable_statistics()
    records = ProfilerRecords()
    kept = [rmm.DeviceBuffer(size=1000)]

    def free():
        with profiler(records=records, name="frees"):
            kept.clear()
            rmm.DeviceBuffer(size=300)

    thread = threading.Thread(target=free, name="other")
    with profiler(records=records, name="waits"):
        thread.start()
        thread.join()
    frees = records.thread_records["other"]["frees"]
    assert (frees.memory_peak, frees.memory_total) == (0, 300)
    waits = records.thread_records[threading.current_thread().name]["waits"]
    assert (waits.num_calls, waits.memory_peak, waits.memory_total) == (1, 0, 0)


def test_records_of_many_threads_are_bounded():
    records = ProfilerRecords()
    figures = Statistics(0, 0, 5, 1, 5, 1)

    def add():
        records.add("block", figures, figures)

    for number in range(1100):
        thread = threading.Thread(target=add, name=f"request {number}")
        thread.start()
        thread.join()
    assert len(records.thread_records) == 1001
    assert records.thread_records["(other threads)"]["block"].num_calls == 100
    assert records.records["block"].num_calls == 1100


def test_records_that_a_program_adds_are_of_no_thread():
    records = ProfilerRecords()
    records.add("block", Statistics(0, 0, 5, 1, 5, 1))
    records.add(name="block", data=Statistics(0, 0, 5, 1, 5, 1))
    assert records.records["block"].num_calls == 2
    assert records.thread_records == {}
    assert "wasn't enabled" in records.report(by_thread=True)


def test_the_profiler_begins_both_scopes_or_none(monkeypatch):
    statistics.enable_statistics()
    adaptor = mr.get_current_device_resource()

    def fail():
        raise MemoryError

    monkeypatch.setattr(adaptor, "push_thread_counters", fail, raising=False)
    with pytest.raises(MemoryError):
        with profiler(records=ProfilerRecords(), name="block"):
            pass
    with pytest.raises(IndexError):
        statistics.pop_statistics()


def test_scopes_of_threads_do_not_mix(threads):
    adaptor = mr.StatisticsResourceAdaptor(mr.CudaMemoryResource())
    figures = {}
    meet = threading.Barrier(4)

    def work(number):
        adaptor.push_thread_counters()
        meet.wait()
        for _ in range(number):
            rmm.DeviceBuffer(size=number, mr=adaptor)
        meet.wait()
        figures[number] = adaptor.pop_thread_counters()

    with threads(work, (1, 2, 3, 4)):
        pass
    for number in (1, 2, 3, 4):
        assert figures[number] == Statistics(0, 0, number, 1, number * number, number)
    assert adaptor.allocation_counts.total_count == 10
