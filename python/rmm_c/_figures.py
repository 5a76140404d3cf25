# SPDX-License-Identifier: Apache-2.0
"""The figures of a scope, as statistics and the statistics adaptor return them."""
from dataclasses import dataclass


@dataclass
class Statistics:
    """Current, peak and total bytes and allocations of a scope."""

    current_bytes: int
    current_count: int
    peak_bytes: int
    peak_count: int
    total_bytes: int
    total_count: int
