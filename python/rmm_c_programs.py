# SPDX-License-Identifier: Apache-2.0
"""
The commands rmm-run, rmm-top, ... of a wheel: each becomes the program of its name.

Beside the package and not in it: the import of rmm_c loads librmm-c, which most of the programs do
not need.
"""
import importlib.util
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the program that the command is named after."""
    name = os.path.basename(sys.argv[0])
    found = importlib.util.find_spec("rmm_c")
    if found is None or not found.submodule_search_locations:
        sys.exit(f"{name}: the package rmm_c is not there: install the wheel again")
    program = os.path.join(found.submodule_search_locations[0], "bin", name)
    try:
        os.execv(program, [program] + sys.argv[1:])
    except OSError as error:
        sys.exit(f"{name}: cannot run {program}: {error}")
