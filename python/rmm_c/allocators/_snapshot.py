# SPDX-License-Identifier: Apache-2.0
"""
A log of allocations as a snapshot for PyTorch's memory viewer.

The viewer arranges blocks in segments, contiguous memory of the driver, and the log has none. So a
segment is here a run of pages of 2 MiB that the log's blocks touch. It exists from its first block
to the end.
"""
import csv
import os
import pickle
import re
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Union

_PAGE = 2 << 20
_DAY_US = 24 * 3600 * 1_000_000

Path = Union[str, "os.PathLike[str]"]


class _Row(NamedTuple):
    action: str
    address: int
    size: int
    stream: int
    time_us: int


def _time_us(text: str) -> int:
    hours, minutes, seconds, micros = map(int, re.split("[:.]", text))
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros


def _rows(log: Path) -> Iterator[_Row]:
    """Allocations and frees; the time goes on at midnight."""
    days = last = 0
    with open(log, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["Action"] not in ("allocate", "free") or row["Size"] == "0":
                continue  # a failure and an allocation of nothing hold no memory
            time = _time_us(row["Time"])
            days += time < last - _DAY_US // 2
            last = time
            yield _Row(
                row["Action"],
                int(row["Pointer"], 0),
                int(row["Size"]),
                int(row["Stream"], 0),
                time + days * _DAY_US,
            )


def _segments(rows: Iterable[_Row]) -> List[Dict[str, Any]]:
    """Without blocks, by address."""
    pages: Dict[int, int] = {}
    for row in rows:
        if row.action == "allocate":
            for page in range(row.address // _PAGE, (row.address + row.size - 1) // _PAGE + 1):
                pages.setdefault(page, row.stream)
    segments: List[Dict[str, Any]] = []
    for page in sorted(pages):
        if segments and segments[-1]["address"] + segments[-1]["total_size"] == page * _PAGE:
            segments[-1]["total_size"] += _PAGE
        else:
            segments.append(_segment(page * _PAGE, pages[page]))
    return segments


def _segment(address: int, stream: int) -> Dict[str, Any]:
    return {
        "device": 0,
        "address": address,
        "total_size": _PAGE,
        "allocated_size": 0,
        "active_size": 0,
        "requested_size": 0,
        "stream": stream,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": [],
    }


def _entry(action: str, row: _Row, address: int, size: int) -> Dict[str, Any]:
    return {
        "action": action,
        "addr": address,
        "size": size,
        "stream": row.stream,
        "time_us": row.time_us,
        "frames": [],
    }


def _trace(rows: Iterable[_Row], segments: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    of_page = {
        page: segment
        for segment in segments
        for page in range(
            segment["address"] // _PAGE, (segment["address"] + segment["total_size"]) // _PAGE
        )
    }
    trace = []
    seen = set()
    for row in rows:
        if row.action == "free":
            for action in ("free_requested", "free_completed"):
                trace.append(_entry(action, row, row.address, row.size))
            continue
        segment = of_page[row.address // _PAGE]
        if segment["address"] not in seen:
            seen.add(segment["address"])
            trace.append(_entry("segment_alloc", row, segment["address"], segment["total_size"]))
        trace.append(_entry("alloc", row, row.address, row.size))
    return trace


def _block(address: int, size: int, state: str) -> Dict[str, Any]:
    requested = size if state == "active_allocated" else 0
    return {
        "address": address,
        "size": size,
        "requested_size": requested,
        "state": state,
        "frames": [],
    }


def _add_blocks(segments: List[Dict[str, Any]], live: Dict[int, int]) -> None:
    """Blocks and gaps of each segment; the viewer adds their sizes up to get addresses."""
    waiting = sorted(live.items(), reverse=True)
    for segment in segments:
        at, end = segment["address"], segment["address"] + segment["total_size"]
        while waiting and waiting[-1][0] < end:
            address, size = waiting.pop()
            if address > at:
                segment["blocks"].append(_block(at, address - at, "inactive"))
            segment["blocks"].append(_block(address, size, "active_allocated"))
            at = address + size
            for figure in ("allocated_size", "active_size", "requested_size"):
                segment[figure] += size
        if at < end:
            segment["blocks"].append(_block(at, end - at, "inactive"))


def snapshot(log: Path, file: Optional[Path] = None) -> Dict[str, Any]:
    """What pytorch.org/memory_viz shows, of a log that LoggingResourceAdaptor wrote.

    The log is of one device and one process. The viewer's frames stay empty, because the log has
    no call stacks.

    log
        The file; flush it before.
    file
        Where the snapshot is written as a pickle, which the page opens. None: nowhere.

    ::

        resource = rmm.mr.LoggingResourceAdaptor(pool, "allocations.csv")
        ...
        resource.flush()
        snapshot(resource.get_file_name(), "snapshot.pickle")
    """
    live: Dict[int, int] = {}
    known = []
    for row in _rows(log):
        if row.action == "allocate":
            live[row.address] = row.size
        elif live.pop(row.address, None) is None:
            continue  # of memory from before the log
        known.append(row)
    segments = _segments(known)
    trace = _trace(known, segments)
    _add_blocks(segments, live)
    made = {"segments": segments, "device_traces": [trace], "allocator_settings": {}}
    if file is not None:
        with open(file, "wb") as out:
            pickle.dump(made, out, protocol=4)  # the page reads 2 to 4
    return made
