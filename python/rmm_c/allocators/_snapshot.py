# SPDX-License-Identifier: Apache-2.0
"""
A log of allocations as a snapshot for PyTorch's memory viewer.

The viewer arranges blocks in segments, contiguous memory of the driver, and the log has none. So a
segment is here a run of pages of 2 MiB that the log's blocks touch. It exists from its first block
to the end.
"""
import pickle
from typing import Any, Dict, Iterable, List, Optional

from rmm_c.allocators._log_rows import Path, Problems, Row, read_rows

_PAGE = 2 << 20
_DAY_US = 24 * 3600 * 1_000_000
_SIZE_MAX = 1 << 44  # no memory holds more, and the pages of such a block are too many to list


def _problem(row: Row, size: Optional[int]) -> Optional[str]:
    """Why a row cannot be used; size: of the live block at its address."""
    if row.action == "free":
        return "free of an address that is not allocated" if size is None else None
    if size is not None:
        return "allocate of an address that is still allocated"
    if row.address == 0 or row.size > _SIZE_MAX:
        return "allocate of what no memory holds"
    return None


def _blocks(log: Path, live: Dict[int, int], problems: Problems) -> List[Row]:
    """Allocations, and frees of them; the time goes on at midnight. What is left is in `live`."""
    known = []
    days = last = 0
    for row in read_rows(log, problems):
        days += row.time_us < last - _DAY_US // 2
        last = row.time_us
        if row.action == "allocate failure" or row.size == 0:
            continue  # holds no memory
        row = row._replace(time_us=row.time_us + days * _DAY_US)
        size = live.get(row.address)
        problem = _problem(row, size)
        if problem is not None:
            problems.add(row.line, f"{problem}: 0x{row.address:x}, {row.size} bytes; row skipped")
            continue
        if row.action == "allocate":
            live[row.address] = row.size
        elif live.pop(row.address) != row.size:
            text = f"free of {row.size} bytes, allocated with {size}, which is used"
            problems.add(row.line, text)
        known.append(row._replace(size=size or row.size))
    return known


def _segments(rows: Iterable[Row]) -> List[Dict[str, Any]]:
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


def _entry(action: str, row: Row, address: int, size: int) -> Dict[str, Any]:
    return {
        "action": action,
        "addr": address,
        "size": size,
        "stream": row.stream,
        "time_us": row.time_us,
        "frames": [],
    }


def _trace(rows: Iterable[Row], segments: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
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
            if address < at:
                continue  # in another block, which a run began whose former one was killed
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
    no call stacks. It is read as rmm-replay reads it: compressed by gzip, joined of several, cut at
    its end, in either format. What cannot be used is skipped, with a warning that names its line.
    Raises ValueError, with the file and the line, for what is no log.

    log
        The file.
    file
        Where the snapshot is written as a pickle, which the page opens. None: nowhere.

    ::

        resource = rmm.mr.LoggingResourceAdaptor(pool, "allocations.csv")
        ...
        snapshot(resource.get_file_name(), "snapshot.pickle")
    """
    live: Dict[int, int] = {}
    problems = Problems(log)
    known = _blocks(log, live, problems)
    problems.warn(stacklevel=2)
    segments = _segments(known)
    trace = _trace(known, segments)
    _add_blocks(segments, live)
    made = {"segments": segments, "device_traces": [trace], "allocator_settings": {}}
    if file is not None:
        with open(file, "wb") as out:
            pickle.dump(made, out, protocol=4)  # the page reads 2 to 4
    return made
