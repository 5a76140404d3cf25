# SPDX-License-Identifier: Apache-2.0
"""
usage: python3 -m rmm_c.frameworks torch_program.py FIGURES

A training as /rmm sees it: PyTorch's functions of figures, which are read from a file of rows
"device allocated peak reserved". The file is replaced by rename; the program ends when it is gone.
"""
import os
import sys
import time
import types

rows = []


def stats(device):
    try:
        with open(sys.argv[1]) as file:
            rows[:] = [[int(number) for number in line.split()] for line in file]
    except FileNotFoundError:
        pass  # the program is about to end
    allocated, peak, reserved = next((row[1:] for row in rows if row[0] == device), (0, 0, 0))
    used = {"current": allocated, "peak": peak, "allocated": peak}
    count = {"current": 1, "peak": 1, "allocated": 1}
    return {
        "allocated_bytes": {"all": used},
        "allocation": {"all": count},
        "reserved_bytes": {"all": {"current": reserved}},
        "segment": {"all": {"allocated": 1}},
        "num_ooms": 0,
    }


torch = types.ModuleType("torch")
torch.cuda = types.SimpleNamespace(
    is_initialized=lambda: True,
    get_allocator_backend=lambda: "native",
    device_count=lambda: 2,
    memory_stats_as_nested_dict=stats,
)
sys.modules["torch"] = torch
while os.path.exists(sys.argv[1]):
    time.sleep(0.05)
