# SPDX-License-Identifier: Apache-2.0
"""Helpers under RMM's names."""
from rmm_c.pylibrmm.stream import as_stream

__all__ = ["as_stream"]
