#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: torch_shapes.py MODEL ALLOCATOR

Runs a program whose blocks change in size in a way of its own, with an allocator as in
torch_models.py, and prints one line of JSON: the bytes reserved over the peak of what was live, and
the median time of a step after the first third.

  diffusion    a denoising network with attention, images of five resolutions, in batches
  sampling     a graph network on neighbourhoods that are sampled for each step
  speculative  a draft model proposes tokens, a larger one checks them, caches are cut back
  lora         small trained matrices beside frozen weights, texts of any length, an evaluation
  experts      a mixture of experts: each gets as many tokens as the router sends it
"""
import json
import os
import random
import statistics
import sys
import time

from torch_models import SETTINGS, Ours, Theirs

STEPS = 48


def causal(functional, query, key, value):
    """Attention of the last positions to all before them."""
    import torch

    new, all_of_them = query.shape[2], key.shape[2]
    if new == all_of_them:
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    mask = torch.ones(new, all_of_them, dtype=torch.bool, device=query.device)
    return functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask.tril(all_of_them - new)
    )


def language_model(torch, words, width, layers, linear):
    """Embedding, blocks of attention and a feed-forward network, and an output; bfloat16."""
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.project, self.output = linear(width, 3 * width), linear(width, width)
            self.up, self.down = linear(width, 4 * width), linear(4 * width, width)

        def forward(self, x, past):
            query, key, value = (
                part.unflatten(-1, (width // 64, 64)).transpose(1, 2)
                for part in self.project(self.first(x)).chunk(3, -1)
            )
            if past is not None:
                key = torch.cat((past[0], key), 2)
                value = torch.cat((past[1], value), 2)
            x = x + self.output(causal(functional, query, key, value).transpose(1, 2).flatten(2))
            return x + self.down(functional.gelu(self.up(self.second(x)))), (key, value)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(words, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.out = nn.Linear(width, words, bias=False)

        def forward(self, tokens, past=None):
            x = self.words(tokens)
            past = past or [None] * layers
            kept = []
            for block, before in zip(self.blocks, past):
                x, cache = block(x, before)
                kept.append(cache)
            return self.out(x), kept

    return Model().to(torch.bfloat16).cuda()


def diffusion(torch, rng):
    nn, functional = torch.nn, torch.nn.functional
    widths = (96, 192, 384)

    def convolve(before, after):
        return nn.Sequential(
            nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(8, after), nn.SiLU()
        )

    class Denoiser(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList(map(convolve, (4, *widths[:-1]), widths))
            self.mix = nn.MultiheadAttention(widths[-1], 6, batch_first=True)
            self.up = nn.ModuleList(
                convolve(a + b, b) for a, b in zip(widths[:0:-1], widths[-2::-1])
            )
            self.out = nn.Conv2d(widths[0], 4, 1)

        def forward(self, x):
            skips = []
            for layer in self.down:
                x = layer(x)
                skips.append(x)
                x = functional.avg_pool2d(x, 2)
            row = x.flatten(2).transpose(1, 2)
            x = x + self.mix(row, row, row, need_weights=False)[0].transpose(1, 2).view_as(x)
            for layer, skip in zip(self.up, skips[-2::-1]):
                x = functional.interpolate(x, size=skip.shape[2:])
                x = layer(torch.cat((x, skip), 1))
            return self.out(x)

    network = Denoiser().to(torch.bfloat16).cuda().eval()
    finished = []

    def step():
        side, batch = rng.choice((64, 96, 128, 160, 192)), rng.randrange(1, 9)
        image = torch.randn(batch, 4, side, side, device="cuda", dtype=torch.bfloat16)
        with torch.no_grad():
            for _ in range(8):
                twice = network(torch.cat((image, image)))
                image = image - 0.1 * (twice[:batch] + 7 * (twice[batch:] - twice[:batch]))
        finished.append(functional.interpolate(image.float(), scale_factor=8))
        while len(finished) > 5:
            finished.pop(rng.randrange(len(finished)))

    return step


def sampling(torch, rng):
    nn, functional = torch.nn, torch.nn.functional
    count, width = 2_000_000, 128
    features = torch.randn(count, width, device="cuda")
    starts = torch.sort(torch.randint(0, count * 12, (count + 1,), device="cuda")).values
    edges = torch.randint(0, count, (count * 12,), device="cuda")
    layers = nn.ModuleList([nn.Linear(2 * width, width) for _ in range(3)]).cuda()
    optimiser = torch.optim.Adam(layers.parameters(), 1e-3)

    def neighbours(nodes, most):
        degree = (starts[nodes + 1] - starts[nodes]).clamp(max=most)
        owner = torch.repeat_interleave(torch.arange(len(nodes), device="cuda"), degree)
        place = torch.arange(len(owner), device="cuda") - (degree.cumsum(0) - degree)[owner]
        return owner, edges[starts[nodes][owner] + place]

    def step():
        nodes = torch.randint(0, count, (rng.randrange(500, 12000),), device="cuda")
        hops = []
        for most in (15, 10, 5):
            owner, others = neighbours(nodes, most)
            every, place = torch.unique(torch.cat((nodes, others)), return_inverse=True)
            hops.append((place[: len(nodes)], owner, place[len(nodes) :]))
            nodes = every
        x = features[nodes]
        for layer, (own, owner, others) in zip(layers, reversed(hops)):
            total = torch.zeros(len(own), width, device="cuda").index_add_(0, owner, x[others])
            x = functional.relu(layer(torch.cat((x[own], total), 1)))
        optimiser.zero_grad(set_to_none=True)
        x.square().mean().backward()
        optimiser.step()

    return step


def speculative(torch, rng):
    linear = torch.nn.Linear
    draft = language_model(torch, 32000, 512, 4, linear).eval()
    large = language_model(torch, 32000, 1024, 16, linear).eval()

    def cut(past, length):
        return [(key[:, :, :length].clone(), value[:, :, :length].clone()) for key, value in past]

    def step():
        batch, length = rng.choice((1, 2, 4, 8)), rng.randrange(64, 2000)
        tokens = torch.randint(0, 32000, (batch, length), device="cuda")
        with torch.no_grad():
            quick, large_past = draft(tokens)[1], large(tokens)[1]
            last = tokens[:, -1:]
            for _ in range(rng.randrange(4, 10)):
                proposed = [last]
                for _ in range(5):
                    logits, quick = draft(proposed[-1], quick)
                    proposed.append(logits[:, -1:].argmax(-1))
                logits, large_past = large(torch.cat(proposed, 1), large_past)
                length += rng.randrange(1, 6)
                quick, large_past = cut(quick, length), cut(large_past, length)
                last = logits[:, -1:].argmax(-1)

    return step


def lora(torch, rng):
    nn, functional = torch.nn, torch.nn.functional

    class Adapted(nn.Linear):
        def __init__(self, inputs, outputs):
            super().__init__(inputs, outputs)
            self.low = nn.Parameter(torch.randn(16, inputs) * 0.01)
            self.high = nn.Parameter(torch.zeros(outputs, 16))

        def forward(self, x):
            return super().forward(x) + functional.linear(functional.linear(x, self.low), self.high)

    network = language_model(torch, 32000, 1024, 12, Adapted)
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(name.endswith((".low", ".high")))
    trained = [p for p in network.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(trained, 1e-4)
    number = 0

    def loss():
        length = rng.randrange(64, 1500)
        tokens = torch.randint(
            0, 32000, (max(1, rng.randrange(4000, 12000) // length), length), device="cuda"
        )
        return functional.cross_entropy(network(tokens)[0].float().flatten(0, 1), tokens.flatten())

    def step():
        nonlocal number
        number += 1
        if number % 8 == 0:
            with torch.no_grad():
                loss()
            return
        optimiser.zero_grad(set_to_none=True)
        loss().backward()
        optimiser.step()

    return step


def experts(torch, rng):
    nn, functional = torch.nn, torch.nn.functional
    width, count = 1024, 16

    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.router = nn.LayerNorm(width), nn.Linear(width, count)
            self.every = nn.ModuleList(
                nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))
                for _ in range(count)
            )

        def forward(self, x):
            weight, chosen = self.router(self.norm(x)).softmax(-1).topk(2, -1)
            out = torch.zeros_like(x)
            for number, expert in enumerate(self.every):
                rows, slots = (chosen == number).nonzero(as_tuple=True)
                out.index_add_(0, rows, expert(x[rows]) * weight[rows, slots, None])
            return x + out

    network = nn.Sequential(*[Experts() for _ in range(6)]).to(torch.bfloat16).cuda()
    optimiser = torch.optim.AdamW(network.parameters(), 1e-4)

    def step():
        tokens = rng.randrange(2000, 24000)
        x = torch.randn(tokens, width, device="cuda", dtype=torch.bfloat16)
        optimiser.zero_grad(set_to_none=True)
        functional.mse_loss(network(x).float(), x.float()).backward()
        optimiser.step()

    return step


MODELS = {make.__name__: make for make in (diffusion, sampling, speculative, lora, experts)}


def main(model, allocator):
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = SETTINGS.get(allocator, SETTINGS["default"])
    import torch

    figures = Theirs(torch) if allocator in SETTINGS else Ours(torch, allocator)
    torch.manual_seed(1)
    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans for a second at each new length
    step = MODELS[model](torch, random.Random(model))
    times = []
    for _ in range(STEPS):
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
        figures.read()
    _, _, reserved, live = figures.read()
    print(
        json.dumps(
            {
                "model": model,
                "allocator": allocator,
                "ratio": round(reserved / live, 4),
                "live_mib": live >> 20,
                "ms": round(statistics.median(times[STEPS // 3 :]) * 1e3, 2),
                "all_ms": round(sum(times) * 1e3),
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in MODELS:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)
    main(*sys.argv[1:])
