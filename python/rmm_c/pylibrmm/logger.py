# SPDX-License-Identifier: Apache-2.0
"""The debug log of the library: its level and its destination."""
import os
import warnings
from enum import IntEnum
from typing import Union

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


def get_logging_level() -> level_enum:
    """The level in force.

    >>> get_logging_level() in level_enum
    True
    """
    return level_enum(_core.log_get_level())


def set_logging_level(level: level_enum) -> None:
    """Log messages of this level and worse from now on. Of a level that was compiled out there
    are none: then the next one is set, with a warning."""
    lowest = int(level)
    while True:
        try:
            _core.log_set_level(lowest)
            return
        except UnsupportedError as error:
            warnings.warn(str(error), stacklevel=2)
            lowest += 1


def should_log(level: level_enum) -> bool:
    """True if a message of this level would be logged."""
    return _core.log_should_log(int(level))


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


def get_flush_level() -> level_enum:
    """The lowest level: each message is written at once."""
    return level_enum(0)


def set_flush_level(level: level_enum) -> None:
    """Does nothing but check the level: each message is written at once."""
    level_enum(level)
