# SPDX-License-Identifier: Apache-2.0
"""Sizes as text, and the types that arguments have."""
import operator
import os
import re
from typing import Optional, SupportsIndex, Union

Size = Union[int, str, SupportsIndex]
Path = Union[str, "os.PathLike[str]"]

_PREFIXES = "kmgtpezy"
_PATTERN = re.compile(
    r"([0-9]+(?:\.[0-9]*)?)[\t ]*(?:(?:([kmgtpezy])(i)?)?b)?", re.IGNORECASE
)


def parse_bytes(s: Size) -> int:
    """A number of bytes, from a number or a text with a unit. As in RMM, "1 k" is none: 1 kB are
    1000 bytes, 1 KiB 1024.

    >>> parse_bytes("1GiB"), parse_bytes("1.5 kB"), parse_bytes(4096)
    (1073741824, 1500, 4096)
    """
    if not isinstance(s, str):
        try:
            return operator.index(s)
        except TypeError:
            name = type(s).__name__
            raise TypeError(f"a number of bytes is an int or a str, not {name}") from None
    match = _PATTERN.fullmatch(s.strip())
    if match is None:
        raise ValueError(f"Could not parse {s!r} as a number of bytes")
    number, prefix, binary = match.groups()
    base = 1024 if binary else 1000
    power = _PREFIXES.index(prefix.lower()) + 1 if prefix else 0
    factor: int = base**power
    return int(float(number) * factor) if "." in number else int(number) * factor


def parse_optional_bytes(s: Optional[Size]) -> int:
    """As parse_bytes(); None is 0, which the library takes as its default."""
    return 0 if s is None else parse_bytes(s)
