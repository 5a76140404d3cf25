#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch over a pool of rmm-c. Needs a GPU, PyTorch, and the package rmm_c (docs/python.md)."""
import torch
import rmm_c as rmm
from rmm_c.allocators.torch import rmm_torch_allocator

# Before the first use of CUDA. Without RMM_RESOURCE the default resource becomes `auto`: a pool
# that maps memory where the device can, and then grows only by the bytes that are missing.
torch.cuda.memory.change_current_allocator(rmm_torch_allocator)

model = torch.nn.Linear(1000, 1000, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(10):
    rows = torch.randn(64 * (1 + step % 4), 1000, device="cuda") # sizes that change
    loss = model(rows).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.cuda.synchronize()

stats = rmm.mr.get_current_device_resource().stats()
print(f"peak {stats.peak_bytes} bytes, {stats.reserved_bytes} held from the driver")
print("watch it while it runs: cat /rmm/gpu0/processes")
