# SPDX-License-Identifier: Apache-2.0
"""Snapshots for PyTorch's memory viewer."""
import gzip
import pickle
import re
import warnings

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
    )
    assert made["segments"] == [] and made["device_traces"] == [[]]


def rows(*numbers):
    """Whole rows: an allocation and its free for each number."""
    block = "1,10:11:12.{1}0000{0},{2},0x7f{0}000,1000,0x1\n"
    each = [(number, *part) for number in numbers for part in ((0, "allocate"), (5, "free"))]
    return "".join(block.format(*row) for row in each)


def actions(log, *problems):
    """Those of the snapshot of a log, and its warnings: the parts of their texts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = snapshot(log)
    texts = [str(warning.message) for warning in caught]
    assert len(texts) == len(problems), texts
    for text, problem in zip(texts, problems):
        assert problem in text and str(log) in text and caught[0].filename == __file__
    return [entry["action"] for entry in made["device_traces"][0]]


PAIR = ["alloc", "free_requested", "free_completed"]
WHOLE = ["segment_alloc"] + PAIR
ROW = "1,10:11:12.000001,allocate,0x7f0000,1000,0x1"


def test_a_row_that_is_cut_is_skipped_with_its_line(tmp_path):
    log = tmp_path / "log.csv"
    for end in range(1, len(ROW)):
        log.write_text(HEADER + rows(1) + ROW[:end])
        whole = ROW[:end].count(",") == 5 and ROW[end - 1] not in ",x"
        assert actions(log, *([] if whole else [":4: "]))[:4] == WHOLE


@pytest.mark.parametrize(
    "line, why",
    [
        ("1,2,3", "3 columns"),
        ("x,10:11:12.000001,free,0x1,1,0x1", 'Thread "x"'),
        ("1,25:11:12.000001,free,0x1,1,0x1", 'Time "25:11:12.000001"'),
        ("1,10:11:12.000001,freed,0x1,1,0x1", 'Action "freed"'),
        ("1,10:11:12.000001,free,0xg,1,0x1", 'Pointer "0xg"'),
        ("1,10:11:12.000001,free,0x1,-1,0x1", 'Size "-1"'),
        ("1,10:11:12.000001,free,0x1,1,0x" + "f" * 17, "64 bits"),
        ("1,10:11:12.000001,free,0x1,1,\x1b[2J", 'Stream "?[2J"'),
        ("1," + "0" * 2000, "longer than 1024"),
        ("1,10:11:12.000001,free,0x9000,256,0x1", "not allocated"),
        ("1,10:11:12.000001,allocate,(nil),256,0x1", "no memory"),
        ("1,10:11:12.000001,allocate,0x1," + str(1 << 60) + ",0x1", "no memory"),
        ("\0" * 50, "columns"),
        ("\xff\xfe", "columns"),
    ],
    ids=range(14),
)
def test_a_row_that_is_wrong_is_skipped_with_the_reason(line, why, tmp_path):
    log = tmp_path / "log.csv"
    log.write_bytes((HEADER + rows(1) + line + "\n" + rows(2)).encode("latin-1"))
    assert actions(log, ":4: ") == WHOLE + PAIR
    with pytest.warns(UserWarning, match=re.escape(why)):
        snapshot(log)


def test_many_problems_are_counted(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(HEADER + rows(1) + "nothing\n" * 1000)
    shown = [f":{line}: 1 columns" for line in range(4, 14)]
    assert actions(log, *shown, "990 more") == WHOLE


def test_a_free_with_another_size_frees_the_block(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(HEADER + ROW + "\n" + ROW.replace("allocate", "free").replace("1000,", "10,"))
    assert actions(log, ":3: free of 10 bytes, allocated with 1000") == WHOLE


def test_logs_may_be_compressed_and_joined(tmp_path):
    first, second = (HEADER + rows(number) for number in (1, 2))
    first, second = first.encode(), second.encode()
    for name, content in {
        "joined.csv": first + second,
        "compressed.csv.gz": gzip.compress(first + second),
        "two members.csv.gz": gzip.compress(first) + gzip.compress(second),
        "without a name that says so": gzip.compress(first + second),
        "plain behind.gz": gzip.compress(first) + second,
        "member within a row.gz": gzip.compress(first[:70]) + gzip.compress(first[70:] + second),
        "windows.csv": b"\xef\xbb\xbf" + (first + second).replace(b"\n", b"\r\n"),
        "no header.csv": first.split(b"\n", 1)[1] + second,
        "empty lines.csv": first + b"\n \n" + second,
        "old times.csv": first + second.replace(b".", b":"),
        "extended.csv": (first + second)
        .replace(b"Stream\n", b"Stream,Device,DurationNs,Caller\n")
        .replace(b"0x1\n", b"0x1,0,-1,main+0x10\n"),
        "pool size.csv": (first + second)
        .replace(b"Stream\n", b"Stream,PoolBytes,UsedBytes\n")
        .replace(b"0x1\n", b"0x1,4194304,1000\n"),
        "all columns.csv": (first + second)
        .replace(b"Stream\n", b"Stream,PoolBytes,UsedBytes,Device,DurationNs,Caller\n")
        .replace(b"0x1\n", b"0x1,4194304,1000,0,-1,main+0x10\n"),
    }.items():
        log = tmp_path / name
        log.write_bytes(content)
        assert actions(log) == WHOLE + PAIR, name


def test_a_compressed_log_that_is_cut_is_read_up_to_there(tmp_path):
    log = tmp_path / "log.csv.gz"
    log.write_bytes(gzip.compress((HEADER + rows(1)).encode())[:-4])
    assert actions(log, ":4: the compressed file ends too early") == WHOLE


def test_a_resumed_log_of_a_killed_process_is_read(tmp_path):
    """The blocks that the first run did not free are in the way of the second one's."""
    log = tmp_path / "log.csv"
    again = ROW.replace("0x7f0000", "0x7f0100")
    log.write_text(HEADER + ROW + "\n" + ROW[:20] + "\n" + HEADER + again + "\n" + ROW + "\n")
    with pytest.warns(UserWarning):
        made = snapshot(log)
    for segment in made["segments"]:
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]


def test_what_is_no_log_is_an_error_with_file_and_line(tmp_path):
    damaged = bytearray(gzip.compress(HEADER.encode() + rows(*range(9)).encode()))
    damaged[len(damaged) // 2] ^= 0xFF
    for content, why in (
        (b"some text\n" * 100, "line 1: 1 columns"),
        (b"some text", "line 1: 1 columns"),
        (bytes(1 << 20), "1: not an allocation log"),
        (bytes(damaged), "1: Error"),
        (b"\x1f\x8bnothing", "1: Error"),
    ):
        log = tmp_path / "log.csv"
        log.write_bytes(content)
        with pytest.raises(ValueError) as caught:
            snapshot(log)
        assert str(log) in str(caught.value) and why in str(caught.value), str(caught.value)
    with pytest.raises(FileNotFoundError):
        snapshot(tmp_path / "missing.csv")
