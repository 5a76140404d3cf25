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
                   line('sim.b', '"script" "B/tools/b"', 'sim;slow', ''),
                   line('fuse.c', '"B/fusefs/c"', 'fuse', ''))
        self.assertEqual(self.ask('programs', 'dev', 'fuse', '^$', '.'),
                         'lib/t.so\ntests/test_a\ntools/b\n')
        self.assertEqual(self.ask('programs', 'dev', 'slow|f', r'^sim\.a', '.'), 'fusefs/c\n')
        self.assertEqual(self.ask('programs', 'dev', 'none', '^$', r'\.b$'), 'tools/b\n')

    def test_a_test_that_another_build_lacks_or_shortens_is_chosen(self):
        same, short = line('sim.same', '"B/a"', 'sim', 'A=1'), line('sim.short', '"B/a"', 'sim', '')
        always = line('sim.always', '"B/a"', 'sim', 'RMM_TEST_QUICK=1')
        script = line('unit.s', '"s.py"', 'unit;script', '')
        self.write('dev', same, short, always, script, line('sim.only', '"B/a"', 'sim', ''))
        self.write('asan', same, always, script,
                   line('sim.short', '"B/a"', 'sim', 'A=1;RMM_TEST_QUICK=1'))
        self.assertEqual(self.ask('not_as_well', 'dev', str(self.folder / 'asan')),
                         '^(sim\\.only|sim\\.short|unit\\.s)$\n')

    def test_a_test_has_one_thread_if_none_of_its_programs_can_start_another(self):
        self.write('dev', line('unit.one', '"B/one"', 'unit', ''),
                   line('unit.two', '"B/two"', 'unit', ''),
                   line('unit.has', '"B/has"', 'unit', ''),
                   line('unit.asks', '"B/asks"', 'unit', ''),
                   line('sim.both', '"B/one"', 'sim', 'OTHER=B/two'),
                   line('sim.shell', '"B/shell.sh"', 'sim', ''),
                   line('sim.unknown', '"python3" "-V"', 'sim', ''))
        links = []
        create = '  pthread_create(&t, 0, run, 0);\n'
        ask = 'rmm_request_thread_start();\n'
        for name, head, body, more in (
                ('lib', f'void {ask[:-4]}(void) {{ pthread_t t; {create} }}\n', '', []),
                ('one', '', '', []), ('two', '', create, []), ('has', '', '', ['lib']),
                ('asks', f'void {ask}', ask, ['lib'])):
            source, build = self.folder / f'{name}.c', self.folder / 'dev'
            main = '' if name == 'lib' else (
                f'int main(void) {{ pthread_t t;\n{body}  (void)&t; return run(0) != 0; }}\n')
            source.write_text('#include <pthread.h>\nstatic void *run(void *p) { return p; }\n'
                              f'{head}{main}', encoding='utf-8')
            subprocess.run(['cc', '-c', '-o', build / f'{name}.o', source], check=True)
            if name == 'lib':
                continue
            objects = [f'{part}.o' for part in (name, *more)]
            subprocess.run(['cc', '-pthread', '-o', name, *objects], check=True, cwd=build)
            links.append(f'build {name}: C_EXECUTABLE_LINKER__{name}_Debug {" ".join(objects)} '
                         '| c.so || x\n')
        (self.folder / 'dev/build.ninja').write_text(''.join(links), encoding='utf-8')
        (self.folder / 'dev/shell.sh').write_text('exit 0\n', encoding='utf-8')
        self.assertEqual(self.ask('one_thread', 'dev'), '^(unit\\.has|unit\\.one)$\n')


unittest.main()
