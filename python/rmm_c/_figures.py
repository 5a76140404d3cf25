# SPDX-License-Identifier: Apache-2.0
"""The figures of a scope, as statistics and the statistics adaptor return them."""
from dataclasses import dataclass
from typing import Dict


@dataclass(eq=False)
class Statistics(Dict[str, int]):
    """Current, peak and total bytes and allocations of a scope.

    Attributes, as in RMM as of 24.08, and a dictionary, as before.

    >>> figures = Statistics(1, 1, 2, 1, 3, 2)
    >>> figures.peak_bytes == figures["peak_bytes"] == 2
    True
    """

    current_bytes: int
    current_count: int
    peak_bytes: int
    peak_count: int
    total_bytes: int
    total_count: int

    def __getattr__(self, name: str) -> int:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: int) -> None:
        self[name] = value
