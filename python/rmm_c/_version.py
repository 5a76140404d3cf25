# SPDX-License-Identifier: Apache-2.0
"""The newest RMM whose names this package has: ``__version__`` of ``import rmm`` (alias)."""
from typing import Dict

__version__ = "26.10.00"
__git_commit__ = ""  # of RMM's sources, of which there are none here


def get_versions() -> Dict[str, str]:
    """As in RMM until 23.02."""
    return {"version": __version__}
