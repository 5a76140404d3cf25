# SPDX-License-Identifier: Apache-2.0
"""
What parts of a program allocate: scopes, and a profiler for functions and blocks.

The scopes are those of the statistics adaptor that is the default resource of the current device,
so all threads of the program count in them. The profiler has a scope of the calling thread beside,
for its records by thread.
"""
import inspect
import threading
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Callable, Dict, Iterator, List, Optional, TypeVar

from rmm_c import mr
from rmm_c._figures import Statistics

__all__ = [
    "ProfilerContext",
    "ProfilerRecords",
    "Statistics",
    "default_profiler_records",
    "enable_statistics",
    "get_statistics",
    "pop_statistics",
    "profiler",
    "push_statistics",
    "statistics",
]

Function = TypeVar("Function", bound=Callable[..., Any])


def _adaptor() -> Optional[mr.StatisticsResourceAdaptor]:
    resource = mr.get_current_device_resource()
    return resource if isinstance(resource, mr.StatisticsResourceAdaptor) else None


def enable_statistics() -> None:
    """Put a statistics adaptor over the current default resource, unless one is there."""
    if _adaptor() is None:
        mr.set_current_device_resource(
            mr.StatisticsResourceAdaptor(mr.get_current_device_resource())
        )


def get_statistics() -> Optional[Statistics]:
    """The figures of the innermost scope; None without statistics."""
    adaptor = _adaptor()
    return None if adaptor is None else adaptor.allocation_counts


def push_statistics() -> Optional[Statistics]:
    """Begin a scope; returns the figures of the one around it, None without statistics."""
    adaptor = _adaptor()
    return None if adaptor is None else adaptor.push_counters()


def pop_statistics() -> Optional[Statistics]:
    """End the innermost scope and return its figures; None without statistics."""
    adaptor = _adaptor()
    return None if adaptor is None else adaptor.pop_counters()


@contextmanager
def statistics() -> Iterator[None]:
    """Count within the block: a scope of its own, or an adaptor if there was none.

    Raises ValueError if the default resource is another one at the end.

    >>> from rmm_c import DeviceBuffer
    >>> with statistics():
    ...     buffer = DeviceBuffer(size=20)
    ...     get_statistics().current_bytes
    20
    """
    previous = None
    if push_statistics() is None:
        previous = mr.get_current_device_resource()
        enable_statistics()
    counted = mr.get_current_device_resource()
    try:
        yield
    finally:
        if mr.get_current_device_resource() is not counted:
            raise ValueError("the default resource was changed within statistics()")
        if previous is None:
            pop_statistics()
        else:
            mr.set_current_device_resource(previous)


_HEADING = """\
Memory Profiling
================

"""

_LEGEND = """\
Legends:
  ncalls       - number of times the function or code block was called
  memory_peak  - peak memory allocated in function or code block (in bytes)
  memory_total - total memory allocated in function or code block (in bytes)

Ordered by: {}

"""

_COLUMNS = "ncalls     memory_peak    memory_total  filename:lineno(function)"

_THREADS_MAX = 1000  # a program may begin a thread for each request
_OTHER_THREADS = "(other threads)"


class ProfilerRecords:
    """What profilers have recorded, by name, and by thread and name. Any thread may add."""

    @dataclass
    class MemoryRecord:
        """The figures of one function or block."""

        num_calls: int = 0
        memory_total: int = 0
        memory_peak: int = 0

        def add(self, memory_total: int, memory_peak: int) -> None:
            """Add a call."""
            self.num_calls += 1
            self.memory_total += memory_total
            self.memory_peak = max(self.memory_peak, memory_peak)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: Dict[str, ProfilerRecords.MemoryRecord] = {}
        self._by_thread: Dict[str, Dict[str, ProfilerRecords.MemoryRecord]] = {}

    def add(self, name: str, data: Statistics, thread_data: Optional[Statistics] = None) -> None:
        """Add a call of ``name``; ``thread_data``: what of it the calling thread did."""
        thread = threading.current_thread().name
        with self._lock:
            record = self._records.setdefault(name, self.MemoryRecord())
            record.add(data.total_bytes, data.peak_bytes)
            if thread_data is not None:
                record = self._of_thread(thread).setdefault(name, self.MemoryRecord())
                record.add(thread_data.total_bytes, thread_data.peak_bytes)

    def _of_thread(self, thread: str) -> "Dict[str, ProfilerRecords.MemoryRecord]":
        if thread not in self._by_thread and len(self._by_thread) >= _THREADS_MAX:
            thread = _OTHER_THREADS
        return self._by_thread.setdefault(thread, {})

    @property
    def records(self) -> "Dict[str, ProfilerRecords.MemoryRecord]":
        """A copy of the figures, by name."""
        with self._lock:
            return {name: replace(record) for name, record in self._records.items()}

    @property
    def thread_records(self) -> "Dict[str, Dict[str, ProfilerRecords.MemoryRecord]]":
        """A copy of the figures by thread's name, then by name: what each thread itself allocated
        and freed in its calls, whatever others did meanwhile. Threads of one name are added up, and
        so are those after the first 1000 names, under "(other threads)"."""
        with self._lock:
            return {
                thread: {name: replace(record) for name, record in records.items()}
                for thread, records in self._by_thread.items()
            }

    def report(self, ordered_by: str = "memory_peak", by_thread: bool = False) -> str:
        """A table in descending order of "num_calls", "memory_peak" or "memory_total"; with
        ``by_thread`` one of each thread's own figures, in the order of their names.

        Raises ValueError for another column.
        """
        if ordered_by not in ("num_calls", "memory_peak", "memory_total"):
            raise ValueError(f"a report cannot be ordered by {ordered_by!r}")
        tables = (
            [
                f"Thread: {thread}\n{_table(records, ordered_by)}"
                for thread, records in sorted(self.thread_records.items())
            ]
            if by_thread
            else [_table(records, ordered_by) for records in (self.records,) if records]
        )
        if not tables:
            return _HEADING + "No data, maybe profiling wasn't enabled?"
        return _HEADING + _LEGEND.format(ordered_by) + "\n\n".join(tables)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.records})"

    def __str__(self) -> str:
        return self.report()


def _table(records: Dict[str, ProfilerRecords.MemoryRecord], ordered_by: str) -> str:
    rows = sorted(
        records.items(), key=lambda row: int(getattr(row[1], ordered_by)), reverse=True
    )
    return "\n".join(
        [_COLUMNS]
        + [
            f"{record.num_calls:6,d} {record.memory_peak:15,d} {record.memory_total:15,d}  {name}"
            for name, record in rows
        ]
    )


default_profiler_records = ProfilerRecords()


def _get_descriptive_name_of_object(obj: Any) -> str:
    """Needs no source: a function may be of a prompt or of exec(), or no function at all."""
    function = inspect.unwrap(obj)
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", repr(function))
    if code is None:
        return f"{getattr(function, '__module__', '?')}({name})"
    return f"{code.co_filename}:{code.co_firstlineno}({name})"


class _Entered(threading.local):
    """The adaptors of the blocks that the calling thread is in, innermost last."""

    def __init__(self) -> None:
        self.adaptors: List[Optional[mr.StatisticsResourceAdaptor]] = []


def _push(adaptor: mr.StatisticsResourceAdaptor) -> None:
    """Both scopes, or an exception and none."""
    adaptor.push_counters()
    try:
        adaptor.push_thread_counters()
    except BaseException:
        adaptor.pop_counters()
        raise


class ProfilerContext:
    """A decorator, or the context of a block; made by profiler()."""

    def __init__(self, records: ProfilerRecords, name: str) -> None:
        self._records = records
        self._name = name
        self._entered = _Entered()

    def __call__(self, func: Function) -> Function:
        name = self._name or _get_descriptive_name_of_object(func)

        @wraps(func)
        def profiled(*args: Any, **kwargs: Any) -> Any:
            with ProfilerContext(self._records, name):
                return func(*args, **kwargs)

        return profiled  # type: ignore[return-value]

    def __enter__(self) -> "ProfilerContext":
        if not self._name:
            raise ValueError("a profiler of a block needs a name")
        adaptor = _adaptor()
        if adaptor is not None:
            _push(adaptor)
        self._entered.adaptors.append(adaptor)
        return self

    def __exit__(self, *exc: object) -> None:
        adaptor = self._entered.adaptors.pop()  # the block may have changed the default resource
        if adaptor is not None:
            of_thread = adaptor.pop_thread_counters()
            self._records.add(self._name, adaptor.pop_counters(), of_thread)


def profiler(
    *, records: ProfilerRecords = default_profiler_records, name: str = ""
) -> ProfilerContext:
    """Record what a function or a block allocates. Does nothing without statistics.

    A decorated function is named by its file and line unless ``name`` is given; a block needs one.
    A call of a decorated generator or async function ends when it returns its object, before its
    body runs: put a block into the body instead.

    >>> from rmm_c import DeviceBuffer
    >>> records = ProfilerRecords()
    >>> with statistics():
    ...     with profiler(records=records, name="two buffers"):
    ...         buffers = [DeviceBuffer(size=500), DeviceBuffer(size=500)]
    >>> records.records["two buffers"].memory_peak
    1000
    """
    return ProfilerContext(records, name)
