# SPDX-License-Identifier: Apache-2.0
"""Streams, where RMM had them from 0.18 to 25.10; now rmm_c.pylibrmm.stream."""
from rmm_c.pylibrmm.stream import (
    DEFAULT_STREAM,
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Stream,
)

__all__ = ["DEFAULT_STREAM", "LEGACY_DEFAULT_STREAM", "PER_THREAD_DEFAULT_STREAM", "Stream"]
