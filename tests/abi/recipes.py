#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Walks the recipes of CONTRIBUTING.md in a copy of the sources and reads back what is new.

usage: recipes.py SOURCE

A block ```diff FILE is applied to that file: its lines but the added ones must stand there, once.
A block ```sh is run. The copy is built once, with all three recipes.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))
CMAKE = os.environ.get('CMAKE', 'cmake')
TARGETS = ['rmm_c', 'rmmfs', 'test_stat_docs', 'subjects_conformance']

# Allocates from the default resource, trims it three times, and stays until its input ends.
PROGRAM = r'''
#include <rmm/rmm.h>
#include <stdio.h>

int main(void)
{
    rmm_resource_t *mr;
    void *block;
    if (rmm_get_current_device_resource(&mr) ||
        rmm_resource_alloc(mr, 5000, 0, RMM_STREAM_DEFAULT, &block)) {
        return fprintf(stderr, "%s\n", rmm_last_error_message()), 1;
    }
    for (int i = 0; i < 3; i++) {
        if (rmm_resource_trim(mr, 0) != RMM_ERR_UNSUPPORTED) { /* it keeps nothing */
            return 1;
        }
    }
    puts("ready");
    fflush(stdout);
    getchar();
    rmm_resource_dealloc(mr, block, 5000, 0, RMM_STREAM_DEFAULT);
    rmm_resource_release(mr);
    return 0;
}
'''


def run(*command, **options):
    """Its output; the test fails with it if the command does."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f'{command} ends with {done.returncode}:\n{done.stdout[-4000:]}')
    return done.stdout


def recipes():
    """The blocks of each section "## A new NAME": (kind, file, text)."""
    text = (SOURCE / 'CONTRIBUTING.md').read_text(encoding='utf-8')
    found = {}
    for section in re.split(r'(?m)^## ', text):
        name = re.match(r'A new (statistic|resource|file)\b', section)
        if name and name[1] not in found and not section.startswith('A new source'):
            found[name[1]] = re.findall(r'(?ms)^```(diff|sh) ?([^\n]*)\n(.*?)^```$', section)
    return found


def apply_diff(path, diff):
    """The block's lines begin with "+" (added), or " " (there already)."""
    lines = diff.splitlines(keepends=True)
    old = ''.join(line[1:] for line in lines if line[0] == ' ')
    new = ''.join(line[1:] for line in lines)
    text = path.read_text(encoding='utf-8')
    if any(line[0] not in ' +' for line in lines) or text.count(old) != 1:
        raise AssertionError(f'CONTRIBUTING.md changes {path.name}, which has {text.count(old)} '
                             f'times, not once, the lines\n{old}')
    path.write_text(text.replace(old, new), encoding='utf-8')


class Recipes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.work = pathlib.Path(folder.name)
        cls.copy = cls.work / 'source'
        cls.build = cls.work / 'build'
        shutil.copytree(SOURCE, cls.copy, symlinks=True,
                        ignore=shutil.ignore_patterns('build', '.git', 'shared'))
        cls.recipes = recipes()
        for name in ('statistic', 'resource', 'file'):
            for kind, file, text in cls.recipes[name]:
                if kind == 'sh':
                    run('bash', '-euc', text, cwd=cls.copy)
                elif not file.startswith('docs/'):  # those are for a test to ask for
                    apply_diff(cls.copy / file, text)
        run(CMAKE, '-S', cls.copy, '-B', cls.build, '-DCMAKE_BUILD_TYPE=Debug',
            '-DCMAKE_C_FLAGS_DEBUG=-O0', '-DRMM_CUDA=OFF', '-DRMM_BUILD_TOOLS=OFF',
            '-DRMM_BUILD_INJECT=OFF', '-DRMM_WERROR=ON')
        run(CMAKE, '--build', cls.build, '--parallel', '2', '--target', *TARGETS)
        cls.environment = dict(os.environ, RMM_DRIVER='sim', RMM_RESOURCE='staging',
                               RMM_RUNTIME_DIR=str(cls.work / 'run'),
                               RMM_NVIDIA_PROC=str(cls.work / 'no_gpus'))
        (cls.work / 'run').mkdir(mode=0o700)

    def start_program(self):
        program = self.work / 'program'
        library = next(self.build.rglob('librmm-c.so')).parent
        (self.work / 'program.c').write_text(PROGRAM, encoding='utf-8')
        run(os.environ.get('CC', 'cc'), self.work / 'program.c', '-o', program,
            f'-I{self.copy}/include', f'-L{library}', f'-Wl,-rpath,{library}', '-lrmm-c')
        started = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, env=self.environment)
        self.addCleanup(started.communicate, '\n')
        self.assertEqual(started.stdout.readline(), 'ready\n')
        return started.pid

    def mount(self):
        if not os.access('/dev/fuse', os.W_OK):
            self.skipTest('/dev/fuse is not writable here')
        tree = self.work / 'tree'
        tree.mkdir()
        daemon = subprocess.Popen([next(self.build.rglob('rmmfs')), '-f', tree],
                                  env=self.environment)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.send_signal, signal.SIGTERM)
        for _ in range(400):
            if (tree / 'version').exists():
                return tree
            time.sleep(0.05)
        self.fail('rmmfs does not mount')
        return None

    def test_what_is_new_is_served_counted_and_shown(self):
        pid = self.start_program()
        tree = self.mount()
        resource = tree / f'proc/{pid}/gpu0/mr/1.staging'

        def read(path):
            return path.read_text(encoding='ascii')

        self.assertEqual(read(resource / 'type'), 'staging\n')
        self.assertEqual(read(resource / 'current_bytes'), '5000\n')
        self.assertEqual(read(resource / 'trim_count'), '3\n')
        self.assertIn('\ntrim_count 3\n', read(resource / 'stat'))
        self.assertEqual(read(tree / 'daemon/process_count'), '1\n')
        shown = json.loads(read(tree / 'json'))['processes'][0]['devices'][0]['resources'][0]
        self.assertEqual((shown['type'], shown['trim_count']), ('staging', 3))
        labels = f'gpu="0",[^}}]*pid="{pid}",[^}}]*resource="1.staging",type="staging"'
        self.assertRegex(read(tree / 'metrics'), f'\nrmm_resource_trim_total{{{labels}}} 3\n')

    def test_the_documents_check_says_which_row_is_missing(self):
        diffs = [text for _, file, text in self.recipes['statistic'] if file.startswith('docs/')]
        row = diffs[0].splitlines()[-1][1:]
        check = [next(self.build.rglob('test_stat_docs'))]
        environment = dict(os.environ, RMM_SOURCE_DIR=str(self.copy))
        before = subprocess.run(check, env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, check=False)
        self.assertNotEqual(before.returncode, 0)
        self.assertIn(row, before.stdout)
        apply_diff(self.copy / 'docs/statistics.md', diffs[0])
        run(*check, env=environment)

    def test_the_suites_of_resources_try_it(self):
        program = next(self.build.rglob('subjects_conformance'))
        run(program, 'staging', env=dict(self.environment, RMM_PUBLISH='0', RMM_LOG_LEVEL='off',
                                         RMM_SIM_DEVICES='2'))

    def test_no_recipe_is_longer_than_promised(self):
        """Places in the code: a resource's two copies are one block of commands."""
        code = {name: [text for _, file, text in blocks if not file.startswith('docs/')]
                for name, blocks in self.recipes.items()}
        self.assertEqual({name: len(texts) for name, texts in code.items()},
                         {'statistic': 2, 'resource': 4, 'file': 2})
        for text in code['statistic']:
            self.assertEqual(len(re.findall('(?m)^[+]', text)), 1)


if __name__ == '__main__':
    unittest.main(verbosity=2)
