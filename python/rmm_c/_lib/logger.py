# SPDX-License-Identifier: Apache-2.0
"""The debug log, where RMM had it from 23.10 to 24.12."""
from rmm_c.pylibrmm.logger import (
    flush_logger,
    get_flush_level,
    get_logging_level,
    logging_level,
    set_flush_level,
    set_logging_level,
    should_log,
)

__all__ = [
    "flush_logger",
    "get_flush_level",
    "get_logging_level",
    "logging_level",
    "set_flush_level",
    "set_logging_level",
    "should_log",
]
