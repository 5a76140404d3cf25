# SPDX-License-Identifier: Apache-2.0
"""``PYTHONPATH=$(python -m rmm_c.alias)``: where ``import rmm`` finds this package."""
import pathlib

print(pathlib.Path(__file__).resolve().parent / "path")
