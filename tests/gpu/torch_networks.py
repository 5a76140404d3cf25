# SPDX-License-Identifier: Apache-2.0
"""
Three models in plain PyTorch whose steps change in size: a transformer language model (the length
of the text), a residual convolutional network (the batch) and a graph network (nodes and edges).

Each is a class with a `network`, an `optimiser`, `sizes` to choose from, `loss(size)` for a step
of training and `infer(size)`. `middle`, a function, is called while a step holds most.
"""
import torch
from torch import nn
from torch.nn import functional


# --- a transformer language model -------------------------------------------------------


class Attention(nn.Module):
    """Causal; with the keys and values of earlier positions in `past`."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x, past):
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.project(x).chunk(3, -1)
        )
        if past is not None:
            key = torch.cat((past[0], key), 2)
            value = torch.cat((past[1], value), 2)
        mixed = functional.scaled_dot_product_attention(
            query, key, value, is_causal=past is None
        )
        return self.output(mixed.transpose(1, 2).flatten(2)), (key, value)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attention = Attention(width, heads)
        self.feed = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x, past):
        mixed, past = self.attention(self.norms[0](x), past)
        x = x + mixed
        return x + self.feed(self.norms[1](x)), past


class LanguageModel(nn.Module):
    def __init__(self, words, longest, width, layers):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(longest, width)
        self.blocks = nn.ModuleList([Block(width, 8) for _ in range(layers)])
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, words))

    def forward(self, text, past):
        """Logits, and the keys and values of each block."""
        begin = 0 if past is None else past[0][0].size(2)
        places = torch.arange(begin, begin + text.size(1), device=text.device)
        x = self.words(text) + self.places(places)
        kept = []
        for i, block in enumerate(self.blocks):
            x, pair = block(x, None if past is None else past[i])
            kept.append(pair)
        return self.head(x), kept


class Transformer:
    """Training on texts of changing length; inference writes 8 words after a text."""

    sizes = range(128, 1025, 64)

    def __init__(self, device):
        self.device, self.batch = device, 16
        self.words, self.used_words = 8192, 64
        self.network = LanguageModel(self.words, 1024 + 8, 512, 8).to(device)
        self.optimiser = torch.optim.AdamW(self.network.parameters(), lr=3e-4)

    def text(self, length):
        return torch.randint(self.used_words, (self.batch, length), device=self.device)

    def loss(self, size):
        text = self.text(size + 1)
        with torch.autocast(self.device, dtype=torch.bfloat16):
            logits, _ = self.network(text[:, :-1], None)
            return functional.cross_entropy(
                logits.flatten(0, 1), text[:, 1:].flatten()
            )

    def infer(self, size, middle):
        text = self.text(size)
        with torch.autocast(self.device, dtype=torch.bfloat16):
            logits, past = self.network(text, None)
            for _ in range(7):
                word = logits[:, -1:].argmax(-1)
                logits, past = self.network(word, past)
            middle()


# --- a residual convolutional network ---------------------------------------------------


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.direct = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.direct = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return functional.relu(self.path(x) + self.direct(x))


class Convolution:
    """Images of 128 x 128, in batches of changing size; their brightness is the class."""

    sizes = range(16, 129, 8)

    def __init__(self, device):
        self.device = device
        layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
        inputs = 64
        for outputs in (64, 128, 256, 512):
            for i in range(2):
                stride = 2 if i == 0 and outputs != 64 else 1
                layers.append(Residual(inputs, outputs, stride))
                inputs = outputs
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10)]
        self.network = nn.Sequential(*layers).to(device)
        self.optimiser = torch.optim.SGD(self.network.parameters(), lr=0.005, momentum=0.9)

    def images(self, size):
        labels = torch.randint(10, (size,), device=self.device)
        images = torch.randn(size, 3, 128, 128, device=self.device)
        return images + labels[:, None, None, None], labels

    def loss(self, size):
        images, labels = self.images(size)
        return functional.cross_entropy(self.network(images), labels)

    def infer(self, size, middle):
        images, _ = self.images(size)
        result = self.network(images).argmax(-1)
        middle()
        return result


# --- a graph network --------------------------------------------------------------------


class Messages(nn.Module):
    """Each node adds up a message for each edge that leads to it."""

    def __init__(self, width):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU())
        self.update = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU())
        self.norm = nn.LayerNorm(width)

    def forward(self, nodes, sources, targets):
        ends = (nodes.index_select(0, sources), nodes.index_select(0, targets))
        pairs = torch.cat(ends, 1)
        total = torch.zeros_like(nodes).index_add(0, targets, self.message(pairs))
        return self.norm(nodes + self.update(torch.cat((nodes, total), 1)))


class GraphModel(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.inputs = nn.Linear(16, width)
        self.layers = nn.ModuleList([Messages(width) for _ in range(layers)])
        self.output = nn.Linear(width, 1)

    def forward(self, nodes, sources, targets):
        x = self.inputs(nodes)
        for layer in self.layers:
            x = layer(x, sources, targets)
        return self.output(x)


class Graph:
    """Random graphs of changing size, 4 to 12 edges a node; a node's value is to be found."""

    sizes = range(8000, 40001, 500)

    def __init__(self, device):
        self.device = device
        self.network = GraphModel(128, 4).to(device)
        self.optimiser = torch.optim.AdamW(self.network.parameters(), lr=1e-3)

    def graph(self, size):
        edges = size * (4 + size // 500 % 9)
        nodes = torch.randn(size, 16, device=self.device)
        sources = torch.randint(size, (edges,), device=self.device)
        targets = torch.randint(size, (edges,), device=self.device)
        return nodes, sources, targets

    def loss(self, size):
        nodes, sources, targets = self.graph(size)
        wanted = nodes.sum(1, keepdim=True)
        return functional.mse_loss(self.network(nodes, sources, targets), wanted)

    def infer(self, size, middle):
        result = self.network(*self.graph(size))
        middle()
        return result


MODELS = {"transformer": Transformer, "convolution": Convolution, "graph": Graph}
