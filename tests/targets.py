#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a configured build folder knows of its tests, before anything is built.

usage: targets.py programs BUILD LABELS NAMES ONLY
       targets.py not_as_well BUILD OTHER
       targets.py one_thread BUILD

The first prints what the build has to make for the tests of BUILD of which no label matches
LABELS, and whose name does not match NAMES and matches ONLY. The second prints an expression for
the tests of BUILD that the build folder OTHER has not, or that do less there (RMM_TEST_QUICK).
The third needs the programs of BUILD: it prints an expression for the tests whose programs cannot
start a thread.
ctest itself shows a command only when its program is there.
"""
import functools
import pathlib
import re
import subprocess
import sys

ON_REQUEST = 'rmm_request_thread_start'


@functools.lru_cache(maxsize=None)
def read_tests(build):
    """The text that CMake wrote for each test of the folder: its command and its properties."""
    found = {}
    for file in build.rglob('CTestTestfile.cmake'):
        for name, rest in re.findall(r'(?m)^[a-z_]+\(\[=*\[(.*?)\]=*\](.*)', file.read_text()):
            found[name] = found.get(name, '') + rest.split(' _BACKTRACE_TRIPLES ')[0]
    return found


def labels_of(text):
    found = re.search(r' LABELS "([^"]*)"', text)
    return found.group(1).split(';') if found else []


def programs(build, is_wanted):
    """What the build makes of that which tests run: is_wanted(name, labels)."""
    ours = re.compile(re.escape(f'{build.resolve()}/') + r'([^";]+)')
    unrelated = re.compile(r'LD_LIBRARY_PATH=[^;"]*| WORKING_DIRECTORY "[^"]*"')
    return sorted({path for name, text in read_tests(build).items()
                   if is_wanted(name, labels_of(text))
                   for path in ours.findall(unrelated.sub('', text))})


def not_as_well(build, other):
    """The tests of a build that another one has not or leaves to it (scripts), or whose sweeps are
    shorter there."""
    theirs = read_tests(other)
    return sorted(name for name, text in read_tests(build).items()
                  if name not in theirs or 'script' in labels_of(text)
                  or ('RMM_TEST_QUICK=1' in theirs[name] and 'RMM_TEST_QUICK=1' not in text))


def run_nm(build, *arguments):
    return subprocess.run(['nm', *arguments], cwd=build, capture_output=True, text=True,
                          check=False).stdout


@functools.lru_cache(maxsize=None)
def symbols_of(build, path):
    """What a program or an object defines for others."""
    listed = run_nm(build, '--defined-only', '--extern-only', '--format=posix', path)
    return {line.split()[0] for line in listed.splitlines()}


@functools.lru_cache(maxsize=None)
def read_links(build):
    """What each program, library and archive of the build is linked from."""
    text = (build / 'build.ninja').read_text(encoding='utf-8')
    return {made.split()[0]: [path for path in inputs.replace('|', ' ').split()
                              if path.endswith(('.o', '.a'))]
            for made, inputs in re.findall(r'(?m)^build (.+?): \w+_LINKER_\w+ (.*)$', text)}


@functools.lru_cache(maxsize=None)
def starters(build):
    """The objects that call a function which starts a thread. Every program has the library's
    thread for requests, and few start it: so who calls that function, not who defines it."""
    objects = {part for parts in read_links(build).values() for part in parts
               if part.endswith('.o') and (build / part).is_file()}
    listed = run_nm(build, '--undefined-only', '--print-file-name', *sorted(objects))
    call = (r'(?m)^(.+): +U (?:pthread_create|thrd_create|_ZNSt6thread15_M_start_thread\w*|'
            f'{ON_REQUEST})')
    return {part for part in re.findall(call, listed)
            if ON_REQUEST not in symbols_of(build, part)}


@functools.lru_cache(maxsize=None)
def starts_threads(build, path):
    """Whether a program has an object that starts one. Of a script nothing is known. The linker
    takes of an archive what defines a symbol that the program then has."""
    links = read_links(build)
    if path not in links:
        return True
    of_archives = [part for archive in links[path] for part in links.get(archive, [])]
    return (any(part in starters(build) for part in links[path])
            or any(symbols_of(build, part) & symbols_of(build, path)
                   for part in of_archives if part in starters(build)))


def one_thread(build):
    """The tests of which every program is known, and starts no thread."""
    paths = {name: programs(build, lambda other, _, name=name: other == name)
             for name in read_tests(build)}
    return sorted(name for name, used in paths.items()
                  if used and not any(starts_threads(build, path) for path in used))


def any_of(names):
    """An expression for tests of these names."""
    return '^(' + '|'.join(map(re.escape, names)) + ')$'


def main(what, build, *arguments):
    build = pathlib.Path(build)
    if what == 'not_as_well':
        print(any_of(not_as_well(build, pathlib.Path(arguments[0]))))
        return
    if what == 'one_thread':
        print(any_of(one_thread(build)))
        return
    labels, names, only = arguments
    for path in programs(build, lambda name, has: not any(re.fullmatch(labels, one) for one in has)
                         and not re.search(names, name) and re.search(only, name)):
        print(path)


if __name__ == '__main__':
    main(*sys.argv[1:])
