#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: torch_steps.py [LIBRMM_C]

Trains two transformers with PyTorch, from a fixed seed, with its own allocator or with ours: a
round of the network that a line of standard input names, "small" (bound by launches) or "large"
(bound by the GPU). Prints how many microseconds a step of the round took, measured between two
synchronisations. Ends with its input; overhead.py asks so.
"""
import sys
import time

import torch

SIZES = {  # layers, width, batch, steps a round
    "small": (4, 256, 4, 20),
    "large": (12, 1024, 32, 8),
}
WORDS, LENGTH = 1000, 256


def make(layers, width):
    layer = torch.nn.TransformerEncoderLayer(
        width, 8, 4 * width, dropout=0.0, batch_first=True
    )
    return torch.nn.Sequential(
        torch.nn.Embedding(WORDS, width),
        torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False),
        torch.nn.Linear(width, WORDS),
    ).cuda()


def round_of(layers, width, batch, steps):
    """A function that trains STEPS steps and returns how many microseconds one took."""
    torch.manual_seed(1)
    network = make(layers, width)
    optimiser = torch.optim.AdamW(network.parameters())
    text = torch.randint(0, WORDS, (batch, LENGTH + 1), device="cuda")

    def train_round():
        begin = time.perf_counter()
        for step in range(steps):
            length = LENGTH - 16 * (step % 4)
            optimiser.zero_grad()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                logits = network(text[:, :length])
                loss = torch.nn.functional.cross_entropy(
                    logits.flatten(0, 1), text[:, 1 : length + 1].flatten()
                )
            loss.backward()
            optimiser.step()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / steps * 1e6

    return train_round


def train_in_turns():
    rounds = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in rounds:
            rounds.clear()  # the memory of the network before
            rounds[name] = round_of(*SIZES[name])
        print(f"{rounds[name]():.1f}", flush=True)


def main():
    if len(sys.argv) > 1:
        torch.cuda.memory.change_current_allocator(
            torch.cuda.memory.CUDAPluggableAllocator(
                sys.argv[1], "rmm_torch_malloc", "rmm_torch_free"
            )
        )
    train_in_turns()


if __name__ == "__main__":
    main()
