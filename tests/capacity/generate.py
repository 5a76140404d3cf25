#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: generate.py FAMILY SEED >log.csv
       generate.py --list

Writes an allocation log in RMM's CSV. A log has a family, which is a kind of program, and a
seed, which chooses the program's sizes and its run: the same family and seed give the same
log again. Most logs have 6,000 to 25,000 operations.
"""
import math
import random
import sys

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
UNIT = 256


class Log:
    """The operations of one log. A block is known by its address, which is never used again."""

    def __init__(self, rng):
        self.rng = rng
        self.rows = []
        self.live = {}
        self.live_bytes = 0
        self.peak_bytes = 0
        self.next_address = 0x7F0000000000

    def alloc(self, size, stream=0):
        size = max(1, int(size))
        block = self.next_address
        self.next_address += (size + 2 * UNIT - 1) // UNIT * UNIT
        self.live[block] = (size, stream)
        self.live_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        self.rows.append(('allocate', block, size, stream))
        return block

    def free(self, block, stream=None):
        size, own_stream = self.live.pop(block)
        self.live_bytes -= size
        self.rows.append(('free', block, size, own_stream if stream is None else stream))

    def free_all(self, blocks):
        for block in blocks:
            self.free(block)

    def size(self, block):
        return self.live[block][0]

    def touch(self, sizes):
        """Temporary buffers: allocated one by one, freed in the reverse order."""
        self.free_all(reversed([self.alloc(size) for size in sizes]))

    def uniform_log(self, low, high):
        return math.exp(self.rng.uniform(math.log(low), math.log(high)))

    def pareto(self, low, high, exponent):
        return min(high, low * self.rng.paretovariate(exponent))

    def lasts(self, low, high):
        """A function that says whether the log is shorter than a length in this range."""
        operations = self.rng.randrange(low, high)
        return lambda: len(self.rows) < operations

    def write(self, file):
        file.write('Thread,Time,Action,Pointer,Size,Stream\n')
        for i, (action, block, size, stream) in enumerate(self.rows):
            file.write(f'1,00:{i // 60000000:02d}:{i // 1000000 % 60:02d}.{i % 1000000:06d},'
                       f'{action},0x{block:x},{size},{stream}\n')


def etl(log, rng):
    """Tables of columns: load, filter, join; inputs are dropped late."""
    tables = []
    for _ in range(250):
        choice = rng.random()
        if choice < 0.3 or len(tables) < 2:
            rows = log.uniform_log(1e4, 4e6)
            tables.append([log.alloc(rows * rng.choice([1, 4, 8, 8, 16]))
                           for _ in range(rng.randrange(2, 12))])
        elif choice < 0.75:
            table = rng.choice(tables)
            factor = log.uniform_log(0.02, 1.5)
            scratch = [log.alloc(log.size(column) * rng.choice([0.25, 0.5, 1]) + 1024)
                       for column in rng.sample(table, min(3, len(table)))]
            result = [log.alloc(log.size(column) * factor) for column in table]
            log.free_all(scratch)
            tables.append(result)
        else:
            table = tables.pop(rng.randrange(len(tables)))
            rng.shuffle(table)
            log.free_all(table)
        while len(tables) > 12:
            log.free_all(tables.pop(0))


def serve(log, rng):
    """Requests whose buffers grow by steps and live for a random time."""
    for _ in range(40):
        log.alloc(log.uniform_log(2 * MIB, 64 * MIB))
    requests = []
    for _ in range(4000):
        choice = rng.random()
        if choice < 0.2 and len(requests) < 48:
            requests.append([log.alloc(log.uniform_log(0.05 * MIB, 4 * MIB)),
                             log.alloc(4096 * rng.randrange(1, 64))])
        elif choice < 0.75 and requests:
            request = rng.choice(requests)
            size = log.size(request[0])
            larger = log.alloc(size * 1.5 if rng.random() < 0.5 else size + 2 * MIB)
            log.free(request[0])
            request[0] = larger
            if size > 200 * MIB:
                log.free_all(request)
                requests.remove(request)
        elif requests and choice > 0.85:
            log.free_all(requests.pop(rng.randrange(len(requests))))
        else:
            scratch = [log.alloc(log.uniform_log(0.01 * MIB, 20 * MIB)) for _ in range(3)]
            log.free_all(scratch)


def streams(log, rng):
    """Tensors on four streams, freed in any order."""
    queue = []
    for _ in range(3000):
        if len(queue) < rng.randrange(4, 40):
            queue.append(log.alloc(log.uniform_log(0.1 * MIB, 40 * MIB), rng.choice([0, 1, 2, 3])))
        else:
            log.free(queue.pop(rng.randrange(len(queue))))
    log.free_all(queue)


def training(log, rng):
    """A transformer: activations of the forward pass freed by the backward one, optimizer
    state from the first step on, sequences of changing length, now and then an evaluation."""
    layers = rng.randrange(6, 25)
    hidden = rng.choice([512, 768, 1024, 1536])
    vocabulary = rng.choice([16000, 32000, 50257])
    batch = rng.choice([4, 8, 16])
    longest = rng.choice([256, 512, 1024])
    keeps_scores = rng.random() < 0.4
    recomputes = rng.random() < 0.3
    keeps_gradients = rng.random() < 0.5
    changes_length = rng.random() < 0.7
    shapes = [3 * hidden * hidden, 3 * hidden, hidden * hidden, 4 * hidden * hidden,
              4 * hidden * hidden, 2 * hidden]
    weights = [log.alloc(vocabulary * hidden * 4)]
    weights += [log.alloc(shape * 4) for _ in range(layers) for shape in shapes]
    state = []
    gradients = {}

    def layer_forward(count, length):
        row = count * length * 2
        saved = [log.alloc(row * hidden), log.alloc(row * 3 * hidden)]
        if keeps_scores:
            saved.append(log.alloc(row * length * (hidden // 64)))
        else:
            log.touch([row * hidden // 2])
        saved += [log.alloc(row * hidden), log.alloc(row * hidden), log.alloc(row * 4 * hidden)]
        log.touch([row * 4 * hidden])
        saved += [log.alloc(row * hidden), log.alloc(row * hidden // 2)]
        return saved

    def layer_backward(saved, index, upstream):
        for block in reversed(saved):
            gradient = log.alloc(log.size(block))
            log.free(upstream)
            upstream = gradient
            log.free(block)
        for weight in weights[1 + index * len(shapes):1 + (index + 1) * len(shapes)]:
            if weight not in gradients:
                gradients[weight] = log.alloc(log.size(weight))
            else:
                log.touch([log.size(weight)])
        return upstream

    def step(count, length):
        inputs = [log.alloc(count * length * 8) for _ in range(2)]
        kept = []
        for _ in range(layers):
            saved = layer_forward(count, length)
            if recomputes:
                log.free_all(saved[1:])
                saved = saved[:1]
            kept.append(saved)
        logits = log.alloc(count * length * vocabulary * 2)
        log.touch([count * length * vocabulary * 4, count * length * 4])
        upstream = log.alloc(count * length * hidden * 2)
        log.free(logits)
        for index in reversed(range(layers)):
            saved = kept.pop()
            if recomputes:
                saved += layer_forward(count, length)
            upstream = layer_backward(saved, index, upstream)
        log.free(upstream)
        log.free_all(inputs)

    def update():
        if not state:
            state.extend(log.alloc(log.size(weight)) for weight in weights for _ in range(2))
        for first in range(0, len(weights), 24):
            log.touch([sum(log.size(weight) for weight in weights[first:first + 24])])
        if not keeps_gradients:
            log.free_all(gradients.values())
            gradients.clear()

    def evaluate():
        previous = log.alloc(batch * longest * hidden * 2)
        for _ in range(layers):
            saved = layer_forward(2 * batch, longest // 2)
            log.free(previous)
            previous = saved.pop(0)
            log.free_all(saved)
        log.free(previous)

    more = log.lasts(9000, 25000)
    while more():
        length = longest
        if changes_length:
            length = max(32, int(longest * rng.betavariate(4, 2)) // 8 * 8)
        step(batch if rng.random() < 0.95 else rng.randrange(1, batch + 1), length)
        update()
        if rng.random() < 0.1:
            evaluate()


def inference(log, rng):
    """A language model that serves: a cache of keys and values for each request, enlarged as
    its answer grows; prompts need large temporary buffers; memory limits who is admitted."""
    hidden = rng.choice([2048, 4096, 5120])
    layers = rng.choice([16, 24, 32])
    groups = rng.choice([1, 2, 4])
    token_bytes = rng.choice([1024, 2048, 4096]) * layers
    budget = log.uniform_log(2 * GIB, 16 * GIB)
    step_tokens = rng.choice([32, 64, 128, 256])
    grows_by_half = rng.random() < 0.3
    for _ in range(layers):
        for factor in (3, 1, 4, 4):
            log.alloc(hidden * hidden * factor // 4)
    log.alloc(hidden * 32000 * 2)
    weights = log.live_bytes
    requests = []

    def enlarge(request, tokens):
        size = tokens * token_bytes // groups
        for index, block in enumerate(request['cache']):
            request['cache'][index] = log.alloc(size)
            log.free(block)
        request['room'] = tokens

    def admit():
        prompt = int(min(8192, rng.lognormvariate(6, 1)) + 16)
        answer = int(min(4096, rng.lognormvariate(5.5, 0.9)) + 8)
        room = (prompt + step_tokens) // step_tokens * step_tokens
        if log.live_bytes - weights + room * token_bytes > budget:
            return
        inputs = log.alloc(prompt * 8)
        for _ in range(3):
            log.touch([prompt * hidden * 2, prompt * hidden * 6, prompt * hidden * 8])
        cache = [log.alloc(room * token_bytes // groups) for _ in range(groups)]
        log.touch([prompt * hidden * 2, 32000 * 4])
        log.free(inputs)
        requests.append({'cache': cache, 'tokens': prompt, 'room': room, 'left': answer})

    def decode():
        count = len(requests)
        log.touch([count * hidden * 2, count * hidden * 8, count * 32000 * 4])
        for request in list(requests):
            advance = min(request['left'], 16)
            request['left'] -= advance
            request['tokens'] += advance
            if request['left'] == 0:
                requests.remove(request)
                log.free_all(request['cache'])
            elif request['tokens'] > request['room']:
                room = request['room'] + step_tokens
                enlarge(request, int(request['room'] * 1.5) if grows_by_half else room)

    more = log.lasts(8000, 25000)
    while more():
        for _ in range(rng.choice([0, 0, 1, 1, 2, 5])):
            admit()
        if requests:
            decode()
        if log.live_bytes - weights > 1.1 * budget:
            log.free_all(requests.pop()['cache'])


def analytics(log, rng):
    """Queries over tables larger than memory: scans by chunks, hash joins, partitions that are
    spilled when memory is short and read back to be sorted and merged."""
    budget = log.uniform_log(2 * GIB, 24 * GIB)
    chunk = budget / rng.choice([24, 48, 96])
    dimensions = []

    def scan():
        packed = log.alloc(chunk * rng.uniform(0.2, 0.5))
        log.touch([64 * KIB, chunk * 0.02])
        columns = [log.alloc(chunk * rng.choice([0.05, 0.1, 0.1, 0.2]) * rng.uniform(0.9, 1.1))
                   for _ in range(rng.randrange(3, 8))]
        log.free(packed)
        return columns

    def select(columns, share):
        mask = log.alloc(log.size(columns[0]) / 8)
        index = log.alloc(log.size(columns[0]) * share)
        result = [log.alloc(log.size(column) * share) for column in columns]
        log.free_all([mask, index] + columns)
        return result

    def join(columns, matches):
        maps = [log.alloc(log.size(columns[0]) * matches) for _ in range(2)]
        result = [log.alloc(log.size(column) * matches) for column in columns]
        result.append(log.alloc(log.size(columns[-1]) * matches))
        log.free_all(maps + columns)
        return result

    def build():
        parts = [scan() for _ in range(rng.randrange(1, 4))]
        whole = log.alloc(sum(log.size(part[0]) for part in parts))
        table = log.alloc(log.size(whole) * 2.2)
        for part in parts:
            log.free_all(part)
        return [whole, table]

    def spill(partitions):
        for partition in partitions:
            if log.live_bytes < 0.8 * budget:
                return
            if partition['columns']:
                partition['sizes'] = [log.size(column) for column in partition['columns']]
                log.free_all(partition['columns'])
                partition['columns'] = []

    def merge(partitions):
        while len(partitions) > 1:
            group = partitions[:rng.randrange(2, 5)]
            del partitions[:len(group)]
            for partition in group:
                if not partition['columns']:
                    partition['columns'] = [log.alloc(size) for size in partition['sizes']]
            width = min(len(partition['columns']) for partition in group)
            merged = [log.alloc(0.7 * sum(log.size(part['columns'][i]) for part in group))
                      for i in range(width)]
            log.touch([log.size(merged[0]), 2 * MIB])
            for partition in group:
                log.free_all(partition['columns'])
            partitions.append({'columns': merged})
            spill(partitions)

    def query():
        hash_table = build() if rng.random() < 0.7 else None
        share = log.uniform_log(0.02, 0.9)
        partitions = []
        for _ in range(rng.randrange(8, 60)):
            columns = select(scan(), share * rng.uniform(0.8, 1.2))
            if hash_table:
                columns = join(columns, rng.uniform(0.3, 1.5))
            partitions.append({'columns': columns})
            if log.live_bytes > 0.9 * budget:
                spill(partitions)
        merge(partitions)
        if hash_table:
            log.free_all(hash_table)
        for partition in partitions:
            log.free_all(partition['columns'])

    more = log.lasts(6000, 20000)
    while more():
        if rng.random() < 0.3:
            dimensions.append(build())
            if len(dimensions) > 4:
                log.free_all(dimensions.pop(0))
        query()


def graphs(log, rng):
    """Graph algorithms: a graph that stays, arrays of a run, frontiers whose sizes follow a
    power law, and neighbour sampling for training with batches made ahead."""
    vertices = log.uniform_log(1e6, 2e7)
    edges = vertices * rng.choice([8, 16, 32])
    for size in (8 * vertices, 4 * edges, 4 * edges):
        log.alloc(size)
    kept = []
    batches = []

    def search():
        arrays = [log.alloc(rng.choice([4, 8]) * vertices) for _ in range(rng.randrange(1, 4))]
        visited = log.alloc(vertices / 8)
        frontier = log.alloc(4)
        for _ in range(rng.randrange(6, 40)):
            count = log.pareto(vertices * 1e-4, vertices, 0.7)
            expanded = min(edges, count * log.pareto(2, 64, 1.2))
            work = [log.alloc(4 * expanded), log.alloc(8 * count)]
            log.touch([count / 16 + 1024])
            following = log.alloc(4 * count)
            log.free_all(work)
            log.free(frontier)
            frontier = following
        log.free_all([frontier, visited])
        return arrays

    def rank():
        now = log.alloc(4 * vertices)
        for _ in range(rng.randrange(10, 30)):
            following = log.alloc(4 * vertices)
            log.touch([log.uniform_log(1024, 4 * MIB), 4])
            log.free(now)
            now = following
        return [now]

    def sample():
        count = rng.choice([1024, 4096])
        blocks = []
        for fanout in (15, 10, 5):
            grown = count * log.pareto(fanout / 3, fanout, 2)
            log.touch([grown * 8, grown * 4])
            blocks += [log.alloc(grown * 8), log.alloc(grown * 8), log.alloc(4 * count)]
            count = min(vertices, grown * rng.uniform(0.5, 0.9))
        blocks.append(log.alloc(count * 4 * rng.choice([64, 100, 128])))
        return blocks

    more = log.lasts(6000, 25000)
    while more():
        kind = rng.random()
        if kind < 0.6:
            kept.append(search())
        elif kind < 0.75:
            kept.append(rank())
        else:
            for _ in range(rng.randrange(5, 40)):
                batches.append(sample())
                if len(batches) > 6:
                    log.free_all(batches.pop(0))
        while len(kept) > rng.randrange(2, 8):
            log.free_all(kept.pop(rng.randrange(len(kept))))


def pins(log, rng):
    """Small results that stay for long, made between the large buffers of short jobs."""
    limit = rng.randrange(100, 1500)
    largest = rng.choice([32, 64, 128, 256])
    pinned = []
    jobs = []
    more = log.lasts(8000, 20000)
    while more():
        if len(jobs) < rng.randrange(1, 6):
            size = log.uniform_log(4, largest) * MIB
            jobs.append([log.alloc(size * rng.choice([0.5, 1, 1, 2]))
                         for _ in range(rng.randrange(2, 7))])
            continue
        job = rng.choice(jobs)
        for _ in range(rng.randrange(0, 4)):
            log.touch([log.uniform_log(1 * MIB, largest * MIB)])
            pinned.append(log.alloc(log.uniform_log(256, 512 * KIB)))
        log.free(job.pop(rng.randrange(len(job))))
        if not job:
            jobs.remove(job)
        while len(pinned) > limit:
            log.free(pinned.pop(int(len(pinned) * rng.random() ** 2)))


def growing(log, rng):
    """Requests that append to vectors: room doubles (or grows by half) as they fill, is cut to
    size at the end, and the results stay in a cache that drops what was not used for long."""
    factor = rng.choice([1.5, 2, 2])
    cache_bytes = log.uniform_log(0.5 * GIB, 4 * GIB)
    parallel = rng.randrange(4, 32)
    requests = []
    cache = []
    cached = 0
    more = log.lasts(8000, 25000)
    while more():
        if len(requests) < parallel and rng.random() < 0.4:
            vectors = [[log.alloc(64 * KIB * rng.choice([1, 1, 4])), 0.0,
                        log.uniform_log(0.2 * MIB, 128 * MIB)]
                       for _ in range(rng.randrange(1, 5))]
            requests.append(vectors)
            continue
        if not requests:
            continue
        vectors = rng.choice(requests)
        vector = rng.choice(vectors)
        vector[1] += vector[2] * rng.uniform(0.02, 0.3)
        while vector[1] > log.size(vector[0]):
            larger = log.alloc(log.size(vector[0]) * factor)
            log.free(vector[0])
            vector[0] = larger
        log.touch([vector[2] * rng.uniform(0.01, 0.1)])
        if min(used / wanted for _, used, wanted in vectors) < 0.8:
            continue
        requests.remove(vectors)
        for block, used, _ in vectors:
            result = log.alloc(used)
            log.free(block)
            cache.append(result)
            cached += log.size(result)
        while cached > cache_bytes:
            block = cache.pop(0 if rng.random() < 0.7 else rng.randrange(len(cache)))
            cached -= log.size(block)
            log.free(block)


def strings(log, rng):
    """Text columns: offsets, characters and validity masks; split, extract, concatenate and
    gather need sizes and pairs for each row before the characters."""
    tables = []
    window = rng.randrange(4, 14)
    typical = log.uniform_log(8e5, 6e6)

    def column(rows, length):
        return {'rows': rows, 'length': length, 'blocks': [
            log.alloc(4 * (rows + 1)), log.alloc(rows * length), log.alloc(rows / 8 + 64)]}

    def load():
        rows = typical * log.uniform_log(0.3, 2)
        log.touch([rows * 24, rows * 4])
        return [column(rows, rng.lognormvariate(2.5, 0.8)) for _ in range(rng.randrange(1, 6))]

    def transform(table):
        result = []
        for source in table:
            pairs = log.alloc(16 * source['rows'])
            sizes = log.alloc(4 * source['rows'])
            log.touch([source['rows'] / 32 + 512])
            for _ in range(rng.choice([1, 1, 2, 4])):
                share = rng.uniform(0.1, 1.2)
                result.append(column(source['rows'], source['length'] * share))
            log.free_all([sizes, pairs])
        return result

    def gather(table, share):
        index = log.alloc(4 * table[0]['rows'] * share)
        log.touch([8 * table[0]['rows'], 8 * table[0]['rows'] * share])
        result = [column(source['rows'] * share, source['length']) for source in table]
        log.free(index)
        return result

    def drop(table):
        for source in table:
            log.free_all(source['blocks'])

    more = log.lasts(6000, 20000)
    while more():
        choice = rng.random()
        if choice < 0.25 or not tables:
            tables.append(load())
        elif choice < 0.6:
            tables.append(transform(rng.choice(tables)[:4]))
        elif choice < 0.85:
            tables.append(gather(rng.choice(tables), log.uniform_log(0.05, 1)))
        else:
            drop(tables.pop(rng.randrange(len(tables))))
        while len(tables) > window:
            drop(tables.pop(0 if rng.random() < 0.6 else rng.randrange(len(tables))))


def phases(log, rng):
    """A program whose sizes change from phase to phase: many small blocks, then few large ones,
    then others. At its end a phase gathers its results in new blocks; they, and a few blocks
    that are still used, stay for one or two phases more."""
    target = log.uniform_log(2 * GIB, 16 * GIB)
    stay = []
    more = log.lasts(10000, 25000)
    while more():
        low = log.uniform_log(4 * KIB, 16 * MIB)
        high = min(low * log.uniform_log(4, 200), target / 8)
        load = target * rng.uniform(0.5, 1) - log.live_bytes
        stack_like = rng.random() < 0.3
        blocks = []
        held = 0
        for _ in range(rng.randrange(300, 2500)):
            size = log.uniform_log(low, high)
            while blocks and (held + size > load or (held > load / 2 and rng.random() < 0.4)):
                block = blocks.pop() if stack_like else blocks.pop(rng.randrange(len(blocks)))
                held -= log.size(block)
                log.free(block)
            if held + size <= load:
                blocks.append(log.alloc(size))
                held += log.size(blocks[-1])
        results = [log.alloc(target * log.uniform_log(0.001, 0.04))
                   for _ in range(rng.randrange(1, 8))]
        share = rng.uniform(0, 0.04)
        for block in blocks:
            if rng.random() < share:
                results.append(block)
            else:
                log.free(block)
        stay.append(results)
        while len(stay) > rng.choice([1, 2]):
            log.free_all(stay.pop(0))


def mixed(log, rng):
    """Sizes with a heavy tail, as in a shared notebook: most blocks small and brief, most bytes
    in few large ones, which tend to live longer; memory is used up to a limit."""
    budget = log.uniform_log(2 * GIB, 16 * GIB)
    exponent = rng.uniform(0.6, 1.2)
    sizes = [int(log.uniform_log(1 * MIB, 256 * MIB)) for _ in range(rng.randrange(4, 20))]
    repeats = rng.uniform(0.1, 0.6)
    brief = []
    long_lived = []
    more = log.lasts(10000, 30000)
    while more():
        size = rng.choice(sizes) if rng.random() < repeats else log.pareto(
            4 * KIB, budget / 6, exponent)
        while log.live_bytes + size > budget:
            pool = brief if brief and rng.random() < 0.6 else long_lived or brief
            log.free(pool.pop(rng.randrange(len(pool))))
        block = log.alloc(size)
        if rng.random() < (0.5 if size > 8 * MIB else 0.05):
            long_lived.append(block)
        else:
            brief.append(block)
        while len(brief) > rng.randrange(1, 60):
            log.free(brief.pop() if rng.random() < 0.7 else brief.pop(0))
        while len(long_lived) > rng.randrange(20, 400):
            log.free(long_lived.pop(int(len(long_lived) * rng.random())))


def handover(log, rng):
    """A pipeline over streams: one reads, some decode and compute, one writes. Each stage
    allocates its result on its own stream and frees the input there."""
    stages = rng.randrange(3, 6)
    depth = rng.randrange(2, 8)
    large = log.uniform_log(16 * MIB, 96 * MIB)
    queues = [[] for _ in range(stages)]
    for stream in range(stages):
        log.alloc(log.uniform_log(4 * MIB, 32 * MIB), stream + 16)
    more = log.lasts(6000, 16000)
    while more():
        stage = rng.randrange(stages)
        stream = stage + 16
        if stage == 0:
            if len(queues[0]) < depth:
                size = large * rng.lognormvariate(0, 0.6)
                queues[0].append([log.alloc(size / 4, stream), log.alloc(64 * KIB, stream)])
            continue
        if not queues[stage - 1] or len(queues[stage]) >= depth:
            continue
        item = queues[stage - 1].pop(0)
        scratch = log.alloc(log.size(item[0]) * rng.uniform(0.1, 1), stream)
        factor = 4 * rng.uniform(0.8, 1.2) if stage == 1 else rng.uniform(0.4, 1.4)
        result = [log.alloc(min(256 * MIB, max(1 * MIB, log.size(item[0]) * factor)), stream),
                  log.alloc(rng.randrange(1, 64) * 4 * KIB, stream)]
        log.free(scratch)
        for block in item:
            log.free(block, stream)
        if stage < stages - 1:
            queues[stage].append(result)
        else:
            for block in result:
                log.free(block)


def mesh(log, rng):
    """A simulation on an adaptive mesh: patches of cells with several fields each, refined and
    coarsened as the solution moves; ghost cells and fluxes are temporary."""
    fields = rng.randrange(2, 6)
    edge = rng.choice([32, 48, 64])
    count = rng.randrange(60, 300)
    patches = []

    def patch():
        cells = math.prod(edge * rng.choice([1, 1, 2, 3]) + 4 for _ in range(3))
        return [log.alloc(cells * 8) for _ in range(fields)]

    for _ in range(count):
        patches.append(patch())
    more = log.lasts(10000, 25000)
    while more():
        for group in rng.sample(patches, min(len(patches), 12)):
            size = log.size(group[0])
            log.touch([size * 3, size * 3] + [size * 0.1] * rng.randrange(1, 4))
        wanted = count * rng.uniform(0.7, 1.3)
        for _ in range(rng.randrange(4, 30)):
            if len(patches) < wanted:
                patches.append(patch())
            else:
                log.free_all(patches.pop(rng.randrange(len(patches))))
        if rng.random() < 0.1:
            order = rng.sample(range(len(patches)), len(patches) // 3)
            for i in order:
                moved = [log.alloc(log.size(block)) for block in patches[i]]
                log.free_all(patches[i])
                patches[i] = moved


FAMILIES = {function.__name__: function for function in (
    etl, serve, streams, training, inference, analytics, graphs, pins, growing, strings, phases,
    mixed, handover, mesh)}


def make(family, seed):
    """The Log of a family (a name of FAMILIES) and a seed."""
    log = Log(random.Random(family + str(seed)))
    FAMILIES[family](log, log.rng)
    return log


def main(arguments):
    if arguments in (['-h'], ['--help']):
        print(__doc__.strip())
        return 0
    if arguments == ['--list']:
        for name, function in FAMILIES.items():
            print(f'{name:10} {" ".join(function.__doc__.split())}')
        return 0
    if len(arguments) != 2 or not arguments[1].isdigit():
        print(__doc__.strip(), file=sys.stderr)
        return 2
    if arguments[0] not in FAMILIES:
        print(f'generate.py: no family {arguments[0]}; there are: {", ".join(FAMILIES)}',
              file=sys.stderr)
        return 2
    make(arguments[0], int(arguments[1])).write(sys.stdout)
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:
        sys.exit(1)
