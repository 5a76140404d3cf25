#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: torch_faults.py NAME good|bad
       torch_faults.py --list

A program of PyTorch with one planted fault, or its correct twin. It checks nothing: tools must find
the fault, and nothing in the twin (torch_faults_table.py). Its result may be right by chance.

Exit status 77: a package that the fault needs is not there. RMM_FAULTS_ALLOCATOR=rmm: with the
library's allocator (PYTHONPATH then leads to rmm_c).
"""
import importlib
import sys

import torch_faults_kernels  # noqa: F401  (adds its faults, as the next two do)
import torch_faults_memory  # noqa: F401
import torch_faults_streams  # noqa: F401
from torch_faults_scene import FAULTS, Scene


def run(name, is_bad):
    planted = FAULTS[name]
    try:
        for package in ("torch", *planted.needs):
            importlib.import_module(package)
    except ImportError as error:
        print(f"skipped: {error}", file=sys.stderr)
        return 77
    planted(Scene(), is_bad)
    return 0


def main(arguments):
    if arguments == ["--list"]:
        for name, planted in FAULTS.items():
            print(f"{name}: {' '.join(planted.__doc__.split())}")
        return 0
    if len(arguments) != 2 or arguments[0] not in FAULTS or arguments[1] not in ("good", "bad"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    return run(arguments[0], arguments[1] == "bad")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
