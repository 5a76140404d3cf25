# SPDX-License-Identifier: Apache-2.0
"""
The rows of an allocation log, read as rmm-replay reads them.

A log may be cut, compressed, and joined of several: then it has gzip members one after the other,
or a header among its rows. What is no row is skipped and reported with its line; a file without
any row in its first lines is no log.
"""
import os
import re
import warnings
import zlib
from typing import IO, Iterator, List, NamedTuple, Tuple, Union

Path = Union[str, "os.PathLike[str]"]

_CHUNK = 1 << 16
_GZIP_MAGIC = b"\x1f\x8b"
_LINE_MAX = 1024
_HOPELESS_LINES = 20  # without one row before the file is taken for something else
_SHOWN = 10
_COLUMNS = b"Thread,Time,Action,Pointer,Size,Stream"
_COUNTS = (6, 8, 9, 11)  # of columns: with those of the pool (2) and the extended ones (3) behind
_TIME = re.compile(rb"([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:[.:](\d{1,9}))?")
_NUMBER = re.compile(rb"\d+|0[xX][0-9a-fA-F]+")


class Row(NamedTuple):
    """An allocation, a free or a failure, at a time of the day."""

    line: int
    action: str
    address: int
    size: int
    stream: int
    time_us: int


class Problems:
    """What is wrong with a log: warnings that name the file and the line."""

    def __init__(self, log: Path) -> None:
        self._log = os.fspath(log)
        self._shown: List[str] = []
        self._count = 0

    def add(self, line: int, text: str) -> None:
        """Only the first ones are shown."""
        self._count += 1
        if self._count <= _SHOWN:
            self._shown.append(f"{self._log}:{line}: {text}")

    def warn(self, stacklevel: int) -> None:
        """Warn of all of them, from a caller that many calls above."""
        if self._count > _SHOWN:
            self._shown.append(f"{self._log}: {self._count - _SHOWN} more rows like these")
        for text in self._shown:
            warnings.warn(text, stacklevel=stacklevel + 1)


def read_rows(log: Path, problems: Problems) -> Iterator[Row]:
    """Raises ValueError, with the file and the line, for what is no log, and OSError."""
    waiting: List[Tuple[int, str]] = []  # problems before the first row
    has_rows = False
    for line, text in _lines(log, problems):
        if not text.strip() or _is_header(text.strip()):
            continue
        try:
            row = _parse(line, text)
        except ValueError as error:
            waiting.append((line, str(error)))
            if not has_rows and len(waiting) == _HOPELESS_LINES:
                break
            row = None
        has_rows = has_rows or row is not None
        if has_rows:
            for at, problem in waiting:
                problems.add(at, problem + "; row skipped")
            waiting.clear()
        if row is not None:
            yield row
    if waiting:
        at, problem = waiting[0]
        raise ValueError(f"{os.fspath(log)}: not an allocation log: line {at}: {problem}")


def _is_header(text: bytes) -> bool:
    return text == _COLUMNS or text.startswith(_COLUMNS + b",")


def _parse(line: int, text: bytes) -> Row:
    if len(text) > _LINE_MAX:
        raise ValueError(f"the line is longer than {_LINE_MAX} characters")
    columns = [column.strip() for column in text.split(b",")]
    if len(columns) not in _COUNTS:
        raise ValueError(f"{len(columns)} columns where 6 are expected ({_COLUMNS.decode()})")
    _, time, action, pointer, size, stream = columns[:6]
    _number("Thread", columns[0])
    if action not in (b"allocate", b"free", b"allocate failure"):
        raise ValueError(f"Action {_shown(action)} is none of allocate, free, allocate failure")
    return Row(
        line,
        action.decode(),
        0 if pointer == b"(nil)" else _number("Pointer", pointer),
        _number("Size", size),
        _number("Stream", stream),
        _time_us(time),
    )


def _number(name: str, column: bytes) -> int:
    if _NUMBER.fullmatch(column) is not None:
        value = int(column, 16 if column[:2].lower() == b"0x" else 10)
        if value < 1 << 64:
            return value
    raise ValueError(f"{name} {_shown(column)} is not a number of 64 bits")


def _time_us(column: bytes) -> int:
    match = _TIME.fullmatch(column)
    if match is None:
        raise ValueError(f"Time {_shown(column)} is not HH:MM:SS.ffffff")
    hours, minutes, seconds = (int(match.group(part)) for part in (1, 2, 3))
    micros = int(((match.group(4) or b"") + b"0" * 6)[:6])
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros


def _shown(column: bytes) -> str:
    return '"' + re.sub(r"[^ -~]", "?", column[:40].decode("latin-1")) + '"'


def _lines(log: Path, problems: Problems) -> Iterator[Tuple[int, bytes]]:
    """With their numbers, without their ends, and without a byte order mark before the first."""
    number, rest = 0, b""
    with open(log, "rb") as file:
        source = _Bytes(file)
        try:
            for piece in source:
                *lines, rest = (rest + piece).split(b"\n")
                for text in lines:
                    number += 1
                    yield number, _plain(number, text)
                if len(rest) > _CHUNK:
                    raise ValueError("not an allocation log: a line without an end")
        except (ValueError, zlib.error) as error:
            raise ValueError(f"{os.fspath(log)}:{number + 1}: {error}") from None
    if rest:
        yield number + 1, _plain(number + 1, rest)
    if source.is_cut:
        problems.add(number + 1, "the compressed file ends too early")


def _plain(number: int, text: bytes) -> bytes:
    if number == 1 and text.startswith(b"\xef\xbb\xbf"):
        text = text[3:]
    return text.rstrip(b"\r")


class _Bytes:
    """The bytes of a file: those of its gzip members, and the plain text behind them."""

    is_cut = False  # it ends within a member

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __iter__(self) -> Iterator[bytes]:
        data = self._more(b"")
        while data.startswith(_GZIP_MAGIC):
            member = zlib.decompressobj(16 + zlib.MAX_WBITS)
            while data and not member.eof:
                yield member.decompress(data)
                data = b"" if member.eof else self._file.read(_CHUNK)
            if not member.eof:
                self.is_cut = True
                return
            data = self._more(member.unused_data)
        while data:
            yield data
            data = self._file.read(_CHUNK)

    def _more(self, data: bytes) -> bytes:
        """Enough to tell a member from text, if there is as much."""
        while len(data) < len(_GZIP_MAGIC):
            piece = self._file.read(_CHUNK)
            if not piece:
                break
            data += piece
        return data
