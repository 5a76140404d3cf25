#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Walks the recipes of docs/extending.md in a copy of the sources and reads back what is new.

usage: recipes.py SOURCE

A block ```diff FILE is applied to that file: its lines but the added ones must stand there, once.
A block ```sh is run. The copy is built once, with the recipes of all sections "A new ...".
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
TARGETS = ['rmm_c', 'rmmfs', 'rmm-top', 'rmm-timeline', 'rmm_python', 'test_stat_docs',
           'subjects_conformance', 'faults_sim', 'test_diag_reader', 'test_rmmfs_man_page']

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


# A C++ program over the default resource.
CXX_PROGRAM = r'''
#include <rmm/rmm.hpp>
#include <cstdio>

int main()
{
    rmmc::buddy_options options;
    options.block_bytes = 4096;
    rmmc::resource mr = rmmc::buddy_resource(rmmc::get_current_device_resource(), options);
    std::printf("%s\n", rmmc::resource_cast<rmmc::buddy_resource>(mr)->type_name);
}
'''


def recipes():
    """The blocks of each section "## A new NAME": (kind, file, text)."""
    text = (SOURCE / 'docs/extending.md').read_text(encoding='utf-8')
    found = {}
    for section in re.split(r'(?m)^## ', text):
        name = re.match(r'A new (.*)', section)
        if name:
            found[name[1]] = re.findall(r'(?ms)^```(diff|sh) ?([^\n]*)\n(.*?)^```$', section)
    return found


def apply_diff(path, diff):
    """The block's lines begin with "+" (added), "-" (removed), or " " (there already)."""
    lines = diff.splitlines(keepends=True)
    old = ''.join(line[1:] for line in lines if line[0] in ' -')
    new = ''.join(line[1:] for line in lines if line[0] in ' +')
    text = path.read_text(encoding='utf-8')
    if any(line[0] not in ' +-' for line in lines) or text.count(old) != 1:
        raise AssertionError(f'docs/extending.md changes {path.name}, which has {text.count(old)} '
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
        for kind, file, text in (block for blocks in cls.recipes.values() for block in blocks):
            if kind == 'sh':
                run('bash', '-euc', text, cwd=cls.copy)
            elif not file.startswith('docs/'):  # those are for a test to ask for
                apply_diff(cls.copy / file, text)
        run(CMAKE, '-S', cls.copy, '-B', cls.build, '-DCMAKE_BUILD_TYPE=Debug',
            '-DCMAKE_C_FLAGS_DEBUG=-O0', '-DRMM_CUDA=OFF', '-DRMM_BUILD_PYTHON=ON',
            '-DRMM_WERROR=ON')
        run(CMAKE, '--build', cls.build, '--parallel', '2', '--target', *TARGETS)
        cls.environment = dict(os.environ, RMM_DRIVER='sim', RMM_RESOURCE='staging',
                               RMM_RUNTIME_DIR=str(cls.work / 'run'),
                               RMM_NVIDIA_PROC=str(cls.work / 'no_gpus'))
        (cls.work / 'run').mkdir(mode=0o700)

    def compile(self, compiler, name, text):
        library = next(self.build.rglob('librmm-c.so')).parent
        (self.work / name).write_text(text, encoding='utf-8')
        program = (self.work / name).with_suffix('')
        run(*compiler, self.work / name, '-o', program, f'-I{self.copy}/include', f'-L{library}',
            f'-Wl,-rpath,{library}', '-lrmm-c')
        return program

    def start_program(self):
        program = self.compile([os.environ.get('CC', 'cc')], 'program.c', PROGRAM)
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
        self.assertEqual(read(tree / 'daemon/debug'), '0\n')
        (tree / 'daemon/debug').write_text('1\n', encoding='ascii')
        self.assertEqual(read(tree / 'daemon/debug'), '1\n')
        self.assertEqual(read(tree / 'daemon/log_level'), 'debug\n')
        process = next(one for one in json.loads(read(tree / 'json'))['processes']
                       if one['pid'] == str(pid))  # another test's program may be there still
        shown = process['devices'][0]['resources'][0]
        self.assertEqual((shown['type'], shown['trim_count']), ('staging', 3))
        labels = f'gpu="0",[^}}]*pid="{pid}",[^}}]*resource="1.staging",type="staging"'
        self.assertRegex(read(tree / 'metrics.all'), f'\nrmm_resource_trim_total{{{labels}}} 3\n')
        seen = json.loads(run(next(self.build.rglob('rmm-top')), '--json', env=self.environment))
        self.assertIn('"trim_count": 3', json.dumps(seen))

    def check_says_what_is_missing(self, recipe, page, program, missing):
        """Of a page that lacks the recipe's lines the program names them, and then nothing."""
        diff = next(text for _, file, text in self.recipes[recipe] if file == page)
        check = [next(self.build.rglob(program))]
        environment = dict(os.environ, RMM_SOURCE_DIR=str(self.copy))
        before = subprocess.run(check, env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, check=False)
        self.assertNotEqual(before.returncode, 0)
        self.assertIn(missing or diff.splitlines()[-1][1:], before.stdout)
        apply_diff(self.copy / page, diff)
        run(*check, env=environment)

    def test_the_documents_check_says_which_row_is_missing(self):
        self.check_says_what_is_missing('statistic', 'docs/statistics.md', 'test_stat_docs', None)

    def test_the_documents_check_says_which_class_is_missing(self):
        self.check_says_what_is_missing('finding class', 'docs/diagnostics.md', 'test_diag_reader',
                                        '`overlapping_copy`')

    def test_the_documents_check_says_which_file_is_missing(self):
        check = [next(self.build.rglob('test_rmmfs_man_page'))]
        environment = dict(os.environ, RMM_SOURCE_DIR=str(self.copy))

        def said():
            return subprocess.run(check, env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False).stdout

        self.assertIn('Write below ".SS /rmm/daemon/"\n.TP\n.BR debug " (0644)"', said())
        page, diff = next((file, text) for _, file, text in self.recipes['file in the tree']
                          if file.startswith('docs/'))
        apply_diff(self.copy / page, diff)
        self.assertNotIn('debug', said())

    def test_the_planted_fault_is_found_and_its_twin_is_not(self):
        environment = dict(os.environ, RMM_DRIVER='sim', RMM_SIM_DEVICES='2',
                           RMM_INJECT_LIBRARY=str(next(self.build.rglob('librmm-inject.so'))))
        run_program = next(self.build.rglob('rmm-run'))
        faults = next(self.build.rglob('faults_sim'))
        shown = run(self.copy / 'tests/gpu/faults/run', run_program, faults,
                    'pool_copy_onto_itself', env=environment)
        self.assertIn('2 of 2 programs', shown)
        environment['RMM_RUNTIME_DIR'] = str(self.work / 'diagnosed')
        (self.work / 'diagnosed').mkdir(mode=0o700)
        shown = run(run_program, '--summary', '--', faults, 'pool_copy_onto_itself', 'faulty',
                    env=environment)
        self.assertIn('copies 500 bytes onto themselves, 1 time\n    a block of 1000 bytes', shown)

    def test_the_suites_of_resources_try_it(self):
        program = next(self.build.rglob('subjects_conformance'))
        for name in ('staging', 'buddy'):
            run(program, name, env=dict(self.environment, RMM_PUBLISH='0', RMM_LOG_LEVEL='off',
                                        RMM_SIM_DEVICES='2'))

    def test_python_and_specs_make_it_with_its_options(self):
        code = ('from rmm_c import mr\n'
                'for pool in (mr.BuddyMemoryResource(mr.CudaMemoryResource(), 4096),\n'
                '             mr.from_spec("buddy:64KiB:3")):\n'
                '    address = pool.allocate(1000)\n'
                '    pool.trim(0)\n'
                '    figures = pool.stats()\n'
                '    pool.deallocate(address, 1000)\n'
                '    print(type(pool).__name__, figures.reserved_bytes, figures.trim_count)\n')
        library = next(self.build.rglob('librmm-c.so'))
        shown = run(os.environ.get('RMM_PYTHON', 'python3'), '-c', code, cwd=self.work,
                    env=dict(self.environment, PYTHONPATH=str(self.build / 'python/package'),
                             RMM_C_LIBRARY=str(library)))
        self.assertEqual(shown, f'BuddyMemoryResource {4096 * 128} 1\n'
                                f'BuddyMemoryResource {65536 * 3} 1\n')

    def test_a_class_of_cxx_makes_it(self):
        program = self.compile([os.environ.get('CXX', 'c++'), '-std=c++17'], 'program_cxx.cpp',
                               CXX_PROGRAM)
        self.assertEqual(run(program, env=self.environment), 'buddy\n')

    def test_the_tool_has_its_option(self):
        timeline = next(self.build.rglob('rmm-timeline'))
        log = self.copy / 'tests/data/resnet_train.csv.gz'
        self.assertIn('--check', run(timeline, '--help'))
        self.assertEqual(run(timeline, '--check', log), '')

    def test_no_recipe_is_longer_than_promised(self):
        """Places in the code: a resource's two copies are one block of commands."""
        code = {name: [text for _, file, text in blocks if not file.startswith('docs/')]
                for name, blocks in self.recipes.items()}
        self.assertEqual({name: len(texts) for name, texts in code.items()},
                         {'statistic': 2, 'figure in programs': 6, 'resource': 4,
                          'resource with options': 6, 'resource in C++ and Python': 7,
                          'option of a tool': 3, 'file in the tree': 3, 'finding class': 3})
        for text in code['statistic']:
            self.assertEqual(len(re.findall('(?m)^[+]', text)), 1)


if __name__ == '__main__':
    unittest.main(verbosity=2)
