#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of a page and compares what they print with what the page shows.

usage: transcript.py PAGE [TREE]

A block ```console has commands, in lines that begin with "$ ", and below each of them its output,
which is stdout and stderr. The commands of a block run in one shell, in the current folder. /rmm
stands for TREE; without it blocks that name /rmm or run rmmfs are left out. Addresses, pids, times,
folders and the number of blanks may differ, line numbers may not; a line "..." stands for any
number of lines. Frames of stacks (6 blanks) have no names without libdw: then they are left out.
Exit 1 if a block prints something else.
"""
import ctypes.util
import os
import re
import subprocess
import sys
import tempfile

MARK = '\x01'
MASKS = [(r'0x[0-9a-f]+', '0xN'),
         (r'\(pid \d+\)', '(pid N)'),
         (r'^\d+ \d+ (live|exited) ', r'N N \1 '),
         (r'\bstream \d{6,}', 'stream N'),
         (r'[\d.]+ (bytes?|[KMGT]iB) x s', 'N x s'),
         (r'(/\S*/)?(\w+\.c):', r'\2:'),
         (r'^\[\d+\]\[[^]]*\]', '[N][N]'),
         (r'\s+', ' ')]


def blocks_of(page):
    """Lists of (command, lines of output)."""
    for text in re.findall(r'^```console\n(.*?)^```$', page, re.M | re.S):
        steps = []
        for line in text.splitlines():
            if line.startswith('$ '):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
        yield steps


def run(steps, tree):
    """The lines that each command prints."""
    script = ''.join(f"{command}\nprintf '{MARK}'\n" for command, _ in steps)
    with tempfile.TemporaryFile('w+', encoding='utf-8') as out: # background programs keep it open
        subprocess.run(['bash'], input=script.replace('/rmm/', f'{tree}/'), text=True, stdout=out,
                       stderr=subprocess.STDOUT, check=False, timeout=120)
        out.seek(0)
        text = out.read()
    return [part.splitlines() for part in text.replace(f'{tree}/', '/rmm/').split(MARK)[:-1]]


def masked(lines):
    if ctypes.util.find_library('dw') is None:
        lines = [line for line in lines if not line.startswith(' ' * 6)]
    for pattern, text in MASKS:
        lines = [re.sub(pattern, text, line) for line in lines]
    return [line.strip() for line in lines]


def agrees(shown, printed):
    if not shown or not printed:
        return shown in ([], ['...']) and (shown == ['...'] or not printed)
    if shown[0] == '...':
        return any(agrees(shown[1:], printed[i:]) for i in range(len(printed) + 1))
    return shown[0] == printed[0] and agrees(shown[1:], printed[1:])


def check(steps, tree):
    outputs = run(steps, tree)
    wrong = 0
    for (command, shown), printed in zip(steps, outputs + [[]] * len(steps)):
        if not agrees(masked(shown), masked(printed)):
            wrong += 1
            print('\n'.join([f'FAILED $ {command}', 'shown:', *shown, 'printed:', *printed]))
    return wrong


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        blocks = list(blocks_of(file.read()))
    tree = sys.argv[2] if len(sys.argv) > 2 else None
    left_out = [steps for steps in blocks if tree is None and
                any(re.search(r'/rmm|\brmmfs ', command) for command, _ in steps)]
    wrong = sum(check(steps, tree or '/rmm') for steps in blocks if steps not in left_out)
    print(f'{len(blocks)} blocks, {len(left_out)} left out without a tree, {wrong} commands wrong')
    return 1 if wrong or not blocks else 0


os.environ['LC_ALL'] = 'C'
sys.exit(main())
