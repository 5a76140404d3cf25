#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests/run builds and runs is chosen by tests/targets.py: of files as CMake writes them."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TARGETS = pathlib.Path(sys.argv.pop(1), 'tests/targets.py')


def line(name, command, label, environment):
    return (f'add_test([=[{name}]=] {command})\nset_tests_properties([=[{name}]=] PROPERTIES  '
            f'ENVIRONMENT "{environment}" LABELS "{label}" WORKING_DIRECTORY "B/tests" '
            '_BACKTRACE_TRIPLES "B/not/this;1;add_test;")\n')


class Targets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def write(self, build, *lines):
        path = self.folder / build / 'tests'
        path.mkdir(parents=True)
        text = ''.join(lines).replace('B/', f'{self.folder / build}/')
        (path / 'CTestTestfile.cmake').write_text(text, encoding='utf-8')

    def ask(self, what, build, *arguments):
        return subprocess.run([TARGETS, what, self.folder / build, *arguments], text=True,
                              check=True, capture_output=True).stdout

    def test_programs_are_those_that_commands_and_variables_name(self):
        self.write('dev', line('sim.a', '"B/tests/test_a" "x"', 'sim',
                               'LD_LIBRARY_PATH=B/hip;T=B/lib/t.so'),
                   line('sim.b', '"script" "B/tools/b"', 'sim', ''),
                   line('fuse.c', '"B/fusefs/c"', 'fuse', ''))
        self.assertEqual(self.ask('programs', 'dev', 'fuse', '^$', '.'),
                         'lib/t.so\ntests/test_a\ntools/b\n')
        self.assertEqual(self.ask('programs', 'dev', 'none', r'^sim\.', '.'), 'fusefs/c\n')
        self.assertEqual(self.ask('programs', 'dev', 'none', '^$', r'\.b$'), 'tools/b\n')

    def test_a_test_that_another_build_lacks_or_shortens_is_chosen(self):
        same, short = line('sim.same', '"B/a"', 'sim', 'A=1'), line('sim.short', '"B/a"', 'sim', '')
        always = line('sim.always', '"B/a"', 'sim', 'RMM_TEST_QUICK=1')
        self.write('dev', same, short, always, line('sim.only', '"B/a"', 'sim', ''))
        self.write('asan', same, always,
                   line('sim.short', '"B/a"', 'sim', 'A=1;RMM_TEST_QUICK=1'))
        self.assertEqual(self.ask('not_as_well', 'dev', str(self.folder / 'asan')),
                         '^(sim\\.only|sim\\.short)$\n')

    def test_an_expression_that_matches_no_test_is_told(self):
        names = ('sim.a', 'sim.b', 'fuse.c')
        self.write('dev', *(line(name, '"B/a"', 'sim', '') for name in names))
        there = self.ask('unmatched', 'dev', r'^sim\.(a|b)$|^fuse\.c$', r'^(sim|fuse)\.')
        self.assertEqual(there, '')
        self.assertEqual(self.ask('unmatched', 'dev', r'^sim\.(a|gone)$|^fuse\.d', r'^hip\.'),
                         '^sim\\.gone$\n^fuse\\.d\n^hip\\.')
        self.assertEqual(self.ask('unmatched', 'dev', r'^sim\.(a|c_(e|f)|b)$'),
                         '^sim\\.c_e$\n^sim\\.c_f$')


unittest.main()
