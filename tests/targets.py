#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a configured build folder knows of its tests, before anything is built.

usage: targets.py programs BUILD LABELS NAMES ONLY
       targets.py not_as_well BUILD OTHER
       targets.py unmatched BUILD EXPRESSION...

The first prints what the build has to make for the tests of BUILD whose label does not match
LABELS, and whose name does not match NAMES and matches ONLY. The second prints an expression for
the tests of BUILD that the build folder OTHER has not, or that do less there (RMM_TEST_QUICK).
The third prints each alternative of the expressions that matches no test of BUILD, as after a
test was renamed.
ctest itself shows a command only when its program is there.
"""
import functools
import pathlib
import re
import sys


@functools.lru_cache(maxsize=None)
def read_tests(build):
    """The text that CMake wrote for each test of the folder: its command and its properties."""
    found = {}
    for file in build.rglob('CTestTestfile.cmake'):
        for name, rest in re.findall(r'(?m)^[a-z_]+\(\[=*\[(.*?)\]=*\](.*)', file.read_text()):
            found[name] = found.get(name, '') + rest.split(' _BACKTRACE_TRIPLES ')[0]
    return found


def label_of(text):
    found = re.search(r' LABELS "([^"]*)"', text)
    return found.group(1) if found else ''


def programs(build, is_wanted):
    """What the build makes of that which tests run: is_wanted(name, label)."""
    ours = re.compile(re.escape(f'{build.resolve()}/') + r'([^";]+)')
    unrelated = re.compile(r'LD_LIBRARY_PATH=[^;"]*| WORKING_DIRECTORY "[^"]*"')
    return sorted({path for name, text in read_tests(build).items()
                   if is_wanted(name, label_of(text))
                   for path in ours.findall(unrelated.sub('', text))})


def not_as_well(build, other):
    """The tests of a build that another one has not, or whose sweeps are shorter there."""
    theirs = read_tests(other)
    return sorted(name for name, text in read_tests(build).items()
                  if name not in theirs
                  or ('RMM_TEST_QUICK=1' in theirs[name] and 'RMM_TEST_QUICK=1' not in text))


def alternatives(expression):
    """What stands between the "|" of an expression, and of the only group in each part."""
    parts, depth = [''], 0
    for character in expression:
        depth += (character == '(') - (character == ')')
        if character == '|' and depth == 0:
            parts.append('')
        else:
            parts[-1] += character
    for part in parts:
        begin, opened, rest = part.partition('(')
        group, _, end = rest.rpartition(')')
        yield from (begin + inner + end for inner in alternatives(group)) if opened else [part]


def unmatched(build, expressions):
    return [part for expression in expressions for part in alternatives(expression)
            if not any(re.search(part, name) for name in read_tests(build))]


def main(what, build, *arguments):
    build = pathlib.Path(build)
    if what == 'unmatched':
        print('\n'.join(unmatched(build, arguments)), end='')
        return
    if what == 'not_as_well':
        names = not_as_well(build, pathlib.Path(arguments[0]))
        print('^(' + '|'.join(map(re.escape, names)) + ')$')
        return
    labels, names, only = arguments
    for path in programs(build, lambda name, label: not re.search(f'^({labels})$', label)
                         and not re.search(names, name) and re.search(only, name)):
        print(path)


if __name__ == '__main__':
    main(*sys.argv[1:])
