# SPDX-License-Identifier: Apache-2.0
"""The debug log of the library: its level and its destination."""
import os
import warnings
from enum import IntEnum
from typing import Optional, Tuple, Union

from rmm_c import _core
from rmm_c.errors import UnsupportedError


class level_enum(IntEnum):
    """The levels of the debug log, by rising severity."""

    trace = 0
    debug = 1
    info = 2
    warn = 3
    error = 4
    critical = 5
    off = 6


class logging_level(IntEnum):
    """The same levels under their names in RMM 23.10 to 24.12."""

    TRACE = 0
    DEBUG = 1
    INFO = 2
    WARN = 3
    ERR = 4
    CRITICAL = 5
    OFF = 6


Level = Union[level_enum, logging_level]

_asked: Optional[Tuple[Level, int]] = None  # the level that was asked for, and the one in force
_flush_level: Level = level_enum.trace


def _checked(level: Level) -> Level:
    if not isinstance(level, (level_enum, logging_level)):
        raise TypeError(f"level must be a member of level_enum, not {level!r}")
    return level


def get_logging_level() -> Level:
    """The level in force, or the one that was asked for if that was compiled out.

    >>> get_logging_level() in level_enum
    True
    """
    in_force = _core.log_get_level()
    return _asked[0] if _asked and _asked[1] == in_force else level_enum(in_force)


def set_logging_level(level: Level) -> None:
    """Log messages of this level and worse from now on. Of a level that was compiled out there
    are none: then the next one is set, with a warning."""
    global _asked
    lowest = int(_checked(level))
    while True:
        try:
            _core.log_set_level(lowest)
            break
        except UnsupportedError as error:
            if lowest == level:
                name = f"{type(level).__name__}.{level.name}"
                warnings.warn(f"RMM will not log {name}: {error}", stacklevel=2)
            lowest += 1
    _asked = level, lowest


def should_log(level: Level) -> bool:
    """True if a message of this level would be logged."""
    return _core.log_should_log(int(_checked(level)))


def log_to_file(path: Union[str, "os.PathLike[str]"]) -> None:
    """Append the debug log to a file."""
    _core.log_to_file(path)


def log_to_stderr() -> None:
    """Write the debug log to stderr, as at the start."""
    _core.log_to_stderr()


def flush_logger() -> None:
    """Does nothing: each message of the debug log is written at once.

    The rows of ``enable_logging()`` are buffered: ``LoggingResourceAdaptor.flush()``.
    """


def get_flush_level() -> Level:
    """What set_flush_level() has set, at first the lowest level."""
    return _flush_level


def set_flush_level(level: Level) -> None:
    """Does nothing but remember the level: each message is written at once."""
    global _flush_level
    _flush_level = _checked(level)
