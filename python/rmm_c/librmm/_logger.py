# SPDX-License-Identifier: Apache-2.0
"""The levels of the debug log, where RMM has them as of 24.12."""
from rmm_c.pylibrmm.logger import level_enum, logging_level

__all__ = ["level_enum", "logging_level"]
