# SPDX-License-Identifier: Apache-2.0
"""Snapshots for PyTorch's memory viewer."""
import pickle

import pytest

from rmm_c import mr
from rmm_c.allocators.torch import snapshot
from rmm_c.pylibrmm.stream import Stream

HEADER = "Thread,Time,Action,Pointer,Size,Stream\n"
ENTRY = {"action", "addr", "size", "stream", "time_us", "frames"}


@pytest.fixture
def of_rows(tmp_path):
    """A snapshot of rows "TIME,ACTION,POINTER,SIZE,STREAM"."""

    def make(*rows):
        path = tmp_path / "rows.csv"
        path.write_text(HEADER + "".join(f"1,{row}\n" for row in rows))
        return snapshot(path)

    return make


def test_of_a_run_has_its_blocks_and_sums(pool, tmp_path):
    logged = mr.LoggingResourceAdaptor(pool, str(tmp_path / "log.csv"))
    stream = Stream()
    sizes = [1000, 5 << 20, 300, 70000, 1]
    blocks = [(logged.allocate(size, stream), size) for size in sizes]
    for address, size in blocks[1:4:2]:
        logged.deallocate(address, size, stream)
    logged.flush()
    made = snapshot(logged.get_file_name(), tmp_path / "snapshot.pickle")
    assert pickle.loads((tmp_path / "snapshot.pickle").read_bytes()) == made

    live = dict(blocks[0::2])
    (trace,) = made["device_traces"]
    assert all(set(entry) == ENTRY for entry in trace)
    counts = {entry["action"]: 0 for entry in trace}
    held = {}
    for entry in trace:
        counts[entry["action"]] += 1
        if entry["action"] == "alloc":
            held[entry["addr"]] = entry["size"]
        elif entry["action"] == "free_completed":
            assert held.pop(entry["addr"]) == entry["size"]
    assert held == live
    assert (counts["alloc"], counts["free_requested"], counts["free_completed"]) == (5, 2, 2)
    assert counts["segment_alloc"] == len(made["segments"])

    active = {}
    for segment in made["segments"]:
        assert sum(b["size"] for b in segment["blocks"]) == segment["total_size"]
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at
            at += block["size"]
            if block["state"] == "active_allocated":
                active[block["address"]] = block["requested_size"]
    assert active == live
    assert sum(s["allocated_size"] for s in made["segments"]) == sum(live.values())
    for (address, size) in live.items():
        logged.deallocate(address, size, stream)


def test_segments_are_runs_of_pages_that_blocks_touch(of_rows):
    made = of_rows(
        "00:00:00.000001,allocate,0x40000000,1,0x0",
        "00:00:00.000002,allocate,0x401fff00,512,0x7",
        "00:00:00.000003,allocate,0x50000000,256,0x7",
        "00:00:00.000004,free,0x50000000,256,0x7",
    )
    places = [(s["address"], s["total_size"], s["stream"]) for s in made["segments"]]
    assert places == [(0x40000000, 4 << 20, 0), (0x50000000, 2 << 20, 7)]
    assert [s["allocated_size"] for s in made["segments"]] == [513, 0]
    first = [(e["action"], e["addr"], e["size"]) for e in made["device_traces"][0][:2]]
    assert first == [("segment_alloc", 0x40000000, 4 << 20), ("alloc", 0x40000000, 1)]


def test_time_goes_on_at_midnight(of_rows):
    made = of_rows(
        "23:59:59.999999,allocate,0x1000,256,0x0",
        "00:00:00.000000,free,0x1000,256,0x0",
    )
    times = [entry["time_us"] for entry in made["device_traces"][0]]
    assert times == [times[0]] * 2 + [times[0] + 1] * 2


def test_what_holds_no_memory_is_left_out(of_rows):
    made = of_rows(
        "00:00:00.000001,allocate failure,(nil),1000,0x0",
        "00:00:00.000002,allocate,(nil),0,0x0",
        "00:00:00.000003,free,0x9000,256,0x0",
    )
    assert made["segments"] == [] and made["device_traces"] == [[]]
