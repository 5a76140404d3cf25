# SPDX-License-Identifier: Apache-2.0
"""Programs of tests that need a process of their own."""
import os
import subprocess
import sys


def run(program, **environment):
    """The output of a program that has `rmm` and `mr`."""
    result = subprocess.run(
        [sys.executable, "-c", "import rmm_c as rmm; from rmm_c import mr\n" + program],
        env=dict(os.environ, **environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout.strip()
