# SPDX-License-Identifier: Apache-2.0
"""The header of a side file of the diagnosis, for files that tests forge (docs/diag-format.md)."""
import struct

BYTES = 680
KERNEL_BYTES, ROW_BYTES, FINDING_BYTES = 256, 136, 160
SECTIONS = ["kernels", "rows", "findings", "functions", "peaks", "parts", "stacks", "modules",
            "verdicts", "origins", "frees", "sites", "resources", "lines"]
COUNTERS = {"launches": 0, "launches_unnamed": 1, "parameter_failures": 7, "blocks_dropped": 8,
            "findings_total": 21}
COUNTER_COUNT = 25


def pack(size, mode, sections, counters):
    """sections: name to (offset, stride, count, used); others are absent."""
    text = struct.pack("<QHHIQIIII32s96s", 0x314741494D4D5252, 1, 0, BYTES, size, 1, 0, 0, 0, mode,
                       b"active")
    for name in SECTIONS:
        text += struct.pack("<IIII", *sections.get(name, (0, 0, 0, 0)))
    values = [0] * COUNTER_COUNT
    for name, value in counters.items():
        values[COUNTERS[name]] = value
    return text + struct.pack("<%dQ88s" % COUNTER_COUNT, *values, b"")
