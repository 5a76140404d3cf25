#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/mutate on a small program: each operator, one build of all mutants, and the record of what
a run reaches."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

MUTATE = pathlib.Path(sys.argv.pop(1), 'tests/mutate')
sys.path.append('/usr/lib/python3/dist-packages')
sys.path.insert(0, str(MUTATE))
sys.path.insert(0, str(MUTATE.parent))

try:
    import operators
    import tree
except ImportError as missing:
    print(f'skipped: {missing}: install python3-clang')
    sys.exit(77)

SOURCE = '''\
#define TWICE(x) ((x) * 2 + 1)
#define RMM_CHECK_ARG(ok, text) do { if (!(ok)) { return -1; } } while (0)
int printf(const char *format, ...);
static int lock_count;
static void lock(void) { lock_count++; }
static void unlock(void) { lock_count--; }
static void log_it(int value) { (void)value; }
static int difference(int left, int right) { return left - right; }
int main(int count, char **arguments)
{
    static int fixed = 40;
    char name[8];
    (void)arguments;
    RMM_CHECK_ARG(count > 0, "no name");
    lock();
    name[0] = 'x';
    if (count < 2 && name[0] == 'x') {
        fixed = difference(
            fixed, count);
    }
    log_it(TWICE(count));
    unlock();
    printf("%d %d %d\\n", fixed, lock_count, TWICE(count) + 5);
    return 0;
}
'''


class Mutate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.source = self.folder / 'tiny.c'
        self.source.write_text(SOURCE, encoding='utf-8')
        self.points = operators.find_points(self.source, 'tiny.c', [])

    def find(self, operator, old):
        found = [point for point in self.points if (point.operator, point.old) == (operator, old)]
        self.assertEqual(len(found), 1, f'{operator} of {old}')
        return found[0]

    def build(self, *points):
        mutants = dict(enumerate(points, start=1))
        tree.ROOT, tree.sources = self.folder, lambda folders: ['tiny.c']
        out = self.folder / 'out'
        tree.write_mutants(out, mutants)
        subprocess.run(['gcc', '-w', '-o', self.folder / 'tiny', out / 'tiny.c'], check=True)

    def output(self, **environment):
        return subprocess.run([self.folder / 'tiny'], env=environment, capture_output=True,
                              text=True, check=False).stdout

    def test_offers_each_operator_and_leaves_macros_declarations_and_messages_alone(self):
        found = {(point.line, point.operator, point.new) for point in self.points if point.line > 8}
        self.assertEqual(found, {
            (14, 'dropped', ''), (15, 'dropped', ''), (16, 'dropped', ''), (16, 'constant', '1'),
            (17, 'boundary', 'count <= 2'), (17, 'constant', '2 + 1'), (17, 'constant', '1'),
            (17, 'comparison', "name[0] != 'x'"),
            (17, 'comparison', "count < 2 || name[0] == 'x'"),
            (17, 'negated', "!(count < 2 && name[0] == 'x')"),
            (18, 'dropped', ''), (18, 'swapped', 'difference( count, fixed)'),
            (22, 'lost undo', ''), (23, 'dropped', ''), (23, 'constant', '5 + 1'),
            (23, 'arithmetic', 'TWICE(count) - 5'),
            (23, 'swapped', 'printf("%d %d %d\\n", lock_count, fixed, TWICE(count) + 5)'),
            (23, 'swapped', 'printf("%d %d %d\\n", fixed, TWICE(count) + 5, lock_count)'),
            (24, 'constant', '1')})

    def test_one_build_has_all_mutants_and_the_environment_chooses_one(self):
        self.build(self.find('lost undo', 'unlock();'), self.find('constant', '5'),
                   self.find('swapped', 'difference( fixed, count)'),
                   self.find('dropped', 'lock();'))
        self.assertEqual(self.output(), '39 0 8\n')
        self.assertEqual([self.output(RMM_MUTANT=str(number)) for number in (1, 2, 3, 4)],
                         ['39 1 8\n', '39 0 9\n', '-39 0 8\n', '39 -1 8\n'])

    def test_records_what_a_run_reaches(self):
        self.source.write_text(SOURCE.replace('count < 2', 'count > 2'), encoding='utf-8')
        self.points = operators.find_points(self.source, 'tiny.c', [])
        self.build(self.find('constant', '5'), self.find('arithmetic', 'left - right'))
        record = self.folder / 'record'
        record.write_bytes(bytes(3))
        self.output(RMM_MUTANT_RECORD=str(record))
        self.assertEqual(record.read_bytes(), b'\0\1\0')

    def test_keeps_the_numbers_of_lines(self):
        self.build(self.find('swapped', 'difference( fixed, count)'))
        text = (self.folder / 'out/tiny.c').read_text(encoding='utf-8')
        self.assertEqual(text.count('\n'), SOURCE.count('\n') + 2)

    def lines_of(self, operator, source):
        self.source.write_text(source, encoding='utf-8')
        found = operators.find_points(self.source, 'tiny.c', [])
        return [point.line for point in found if point.operator == operator]

    def test_leaves_boundaries_alone_where_both_results_are_the_same(self):
        self.assertEqual(self.lines_of('boundary', (
            'int least(int a, int b) { return a < b ? a : b; }\n'
            'int most(int a, int b) { if (a < b) { a = b; } return a; }\n'
            'int other(int a, int b) { return a < b ? 7 : b; }\n'
            'int down(int a, int b) { return a > b ? a - b : 0; }\n'
            'int up(int a, int b) { return a < b ? b + a : 0; }\n'
            'int most_sum(int a, int b) { return b > 99 - a ? 99 : a + b; }\n'
            'int order(int a, int b) { return (a > b) - (a < b); }\n'
            'int is_open(int dirfd) { return dirfd >= 0; }\n'
            'int is_due(long now_ns, long due_ns) { return now_ns >= due_ns; }\n')), [3, 5])

    def test_leaves_alone_what_the_compiler_notices_and_what_is_the_same_in_any_order(self):
        self.assertEqual(self.lines_of('swapped', (
            'int printf(const char *format, ...);\n'
            'int add_saturating(int a, int b);\n'
            'int show(const char *text) { return printf("%s\\n", text); }\n'
            'int sum(int a, int b) { return add_saturating(a, b); }\n'
            'int both(const char *a, const char *b) { return printf("%s%s\\n", a, b); }\n')), [5])

    def test_leaves_hashes_checks_and_a_first_zero_alone(self):
        self.assertEqual(self.lines_of('constant', (
            'int zero(void) { int all[4] = {0}; return all[2]; }\n'
            'unsigned hash_of(unsigned a) { return a * 31; }\n'
            'unsigned long spread(unsigned long a) { return a * 0x9e3779b97f4a7c15ull; }\n'
            '_Bool walk_check(int a) { return a != 0; }\n'
            'int bounds_check(int a) { return a != 0; }\n')), [1, 5])


if __name__ == '__main__':
    unittest.main()
