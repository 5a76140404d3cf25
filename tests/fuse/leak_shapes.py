#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a test for `promtool test rules`: what RmmLeak must find, and at what it must be silent.

    leak_shapes.py RULES TRACE

RULES is the file of rules, TRACE a recorded training (resnet_train.csv.gz), whose steps are
the noise: each sample falls at another place of a step. Samples are 15 s apart, over five hours.
The seed is fixed, so the printed test is always the same."""
import csv
import gzip
import json
import math
import random
import sys

MIB = 1 << 20
GIB = 1 << 30
SAMPLE_MINUTES = 0.25
HOURS = 5
LEAK_BEGINS = 120  # minutes


def recorded_steps(path):
    """(seconds, bytes in use) of the second half of a trace, where no step is the first."""
    held, seconds, points = 0, 0.0, []
    with gzip.open(path, 'rt', newline='') as file:
        for row in csv.DictReader(file):
            hour, minute, second = row['Time'].split(':')
            seconds = int(hour) * 3600 + int(minute) * 60 + float(second)
            held += int(row['Size']) if row['Action'] == 'allocate' else -int(row['Size'])
            points.append((seconds, held))
    first = (points[0][0] + points[-1][0]) / 2
    last = points[-1][0] - 0.1 * (points[-1][0] - points[0][0])  # before it releases its model
    steps = [point for point in points if first <= point[0] < last]
    least = min(held for _, held in steps)
    return [(seconds, held - least) for seconds, held in steps]


def checkpoint(t, every, minutes):
    return 8 * GIB if t % every < minutes else 0


class Shapes:
    def __init__(self, trace):
        self.random = random.Random(40)
        self.steps = recorded_steps(trace)

    def step(self):
        """What a step has in use at a time of its own, as the recorded one had."""
        when = self.random.uniform(self.steps[0][0], self.steps[-1][0])
        held = 0
        for seconds, held in self.steps:
            if seconds >= when:
                break
        return held

    def batch(self):
        """Another length each time; each fourth sample is between two steps."""
        return 0 if self.random.random() < 0.25 else self.random.uniform(0.2, 1) * 8 * GIB

    # What must be found, within an hour after it begins.
    def leaks(self):
        def after(t):
            return max(0, t - LEAK_BEGINS)
        hour = 40 * MIB / 60  # a minute
        return {
            'steady': lambda t: 60 * GIB + hour * after(t),
            'in_batches': lambda t: 60 * GIB + hour * after(t) + self.batch(),
            'in_recorded_steps': lambda t: 60 * GIB + 25 * hour * after(t) + self.step(),
            'in_small_program': lambda t: 30 * MIB + hour * after(t),
            'with_noise': lambda t: 60 * GIB + hour * after(t) + self.random.gauss(0, 1 * MIB),
            'each_five_minutes': lambda t: 60 * GIB + 5 * hour * (after(t) // 5) + self.batch(),
            'with_checkpoints': lambda t: 60 * GIB + hour * after(t) + checkpoint(t, 20, 3),
            'fast': lambda t: 20 * GIB + 10 * hour * after(t) + self.batch(),
        }

    # At what it must be silent, all the time.
    def innocent(self):
        def loaded(t, minutes):
            return 60 * GIB * min(1, max(0, (t - 90) / minutes))

        def fills(t, minutes):
            return 20 * GIB + 6 * GIB * (1 - math.exp(-max(0, t - 45) / minutes))
        walk = [60 * GIB]

        def walks(_):
            walk[0] += self.random.gauss(0, 0.2 * MIB)
            return walk[0]
        return {
            'constant': lambda t: 60 * GIB,
            'model_load': lambda t: 60 * GIB if t >= 90 else GIB,
            'model_load_10_minutes': lambda t: loaded(t, 10),
            'model_load_30_minutes': lambda t: loaded(t, 30),
            'model_load_in_parts': lambda t: 20 * GIB * sum(t >= at for at in (60, 75, 90)),
            'model_load_and_steps': lambda t: loaded(t, 3) + self.step(),
            'second_model': lambda t: 20 * GIB + (20 * GIB if t >= 130 else 0) + self.batch(),
            'checkpoints': lambda t: 60 * GIB + checkpoint(t, 20, 3) + self.step(),
            'long_checkpoints': lambda t: 60 * GIB + checkpoint(t, 60, 15),
            'each_half_hour_anew': lambda t: 60 * GIB + 100 * MIB * (t % 30),
            'cache_10_minutes': lambda t: fills(t, 10),
            'cache_20_minutes': lambda t: fills(t, 20),
            'cache_30_minutes': lambda t: fills(t, 30) + self.step(),
            'cache_full_in_half_an_hour': lambda t: 20 * GIB + 200 * MIB * min(30, max(0, t - 45)),
            'restart': lambda t: 0 if 100 <= t < 102 else 60 * GIB,
            'slow_restart': lambda t: 60 * GIB if t < 80 else loaded(t, 8),
            'recorded_training': lambda t: 4 * GIB + self.step(),
            'batches': lambda t: 20 * GIB + self.batch(),
            'batches_without_pause': lambda t: 20 * GIB + self.random.uniform(0.2, 1) * 8 * GIB,
            'noise': lambda t: 20 * GIB + self.random.gauss(0, 200 * MIB),
            'wandering': walks,
            'falls': lambda t: 60 * GIB - 40 * MIB / 60 * t,
            'slower_than_12_an_hour': lambda t: 60 * GIB + 12 * MIB / 60 * t,
        }


def series(name, shape, begins=0, ends=HOURS * 60):
    samples = []
    for i in range(int(HOURS * 60 / SAMPLE_MINUTES)):
        t = i * SAMPLE_MINUTES
        samples.append(str(int(shape(t))) if begins <= t < ends else '_')
    labels = f'instance="a:19400",job="rmm",gpu="0",UUID="GPU-a",pid="4711",comm="{name}"'
    return {'series': f'rmm_process_current_bytes{{{labels}}}', 'values': ' '.join(samples)}


def firing(names):
    return [{'labels': f'{{comm="{name}"}}', 'value': 1} for name in sorted(names)]


def main():
    rules, trace = sys.argv[1:]
    shapes = Shapes(trace)
    leaks = shapes.leaks()
    inputs = [series(name, shape) for name, shape in leaks.items()]
    inputs += [series(name, shape) for name, shape in shapes.innocent().items()]
    # A process that leaks from its start on, and one whose figures are missing for 20 minutes: the
    # daemon is gone meanwhile.
    def at_once(t):
        return 60 * GIB + 40 * MIB / 60 * t
    inputs.append(series('since_its_start', at_once, begins=LEAK_BEGINS))
    inputs.append(series('gap', lambda t: 60 * GIB if t < 150 else 61 * GIB, begins=0))
    inputs[-1]['values'] = ' '.join(
        '_' if 520 <= i < 600 else value for i, value in enumerate(inputs[-1]['values'].split(' ')))
    alerts = 'ALERTS{alertname="RmmLeak",alertstate="firing"}'
    found = [*leaks, 'since_its_start']

    def asked(expression, minutes, names):
        return {'expr': f'group by (comm) ({expression})', 'eval_time': f'{minutes}m',
                'exp_samples': firing(names)}
    tests = [
        asked(alerts, LEAK_BEGINS + 40, []),
        asked(alerts, LEAK_BEGINS + 60, found),
        asked(f'count_over_time({alerts}[{HOURS}h])', HOURS * 60, found),
    ]
    test = {'interval': '15s', 'input_series': inputs, 'promql_expr_test': tests}
    json.dump({'rule_files': [rules], 'evaluation_interval': '1m', 'tests': [test]}, sys.stdout)


main()
