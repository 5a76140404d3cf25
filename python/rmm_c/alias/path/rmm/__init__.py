# SPDX-License-Identifier: Apache-2.0
"""rmm_c under the name of RMM's package: python -m rmm_c.alias."""
import os
import sys

from rmm_c.alias import become_rmm

become_rmm(sys.modules[__name__], os.path.dirname(__file__))
