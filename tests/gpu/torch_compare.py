#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: torch_compare.py RESULT RESULT

Two results of torch_train.py must be the same training: the same losses and weights, but
for the rounding that another choice of a kernel may bring.
"""
import sys

import torch


def main():
    first, second = (torch.load(path) for path in sys.argv[1:3])
    assert first["losses"][-1] < first["losses"][0], "nothing was learned"
    largest = 0.0
    for one, other in zip(
        [torch.tensor(first["losses"])] + first["weights"],
        [torch.tensor(second["losses"])] + second["weights"],
        strict=True,
    ):
        largest = max(largest, (one - other).abs().max().item())
    print(f"{len(first['losses'])} steps, largest difference {largest:g}")
    sys.exit(0 if largest <= 1e-4 else 1)


if __name__ == "__main__":
    main()
