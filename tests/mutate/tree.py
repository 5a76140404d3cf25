# SPDX-License-Identifier: Apache-2.0
"""The copy of the sources that contains the mutants: what is drawn, written and built."""
import collections
import fnmatch
import json
import pathlib
import random
import re
import shlex
import subprocess

import operators

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# What a sample is drawn from. The simulated GPU is a test's double; cuda.c runs on a GPU only.
SOURCES = ['lib/*.c', 'lib/*.h', 'fusefs/*.c', 'fusefs/*.h', 'tools/*.c', 'tools/*.h',
           'include/rmm/cxx/*.hpp', 'compat/*.hpp', 'compat-classic/*.hpp']
EXCLUDED = ['lib/driver/sim/*', 'lib/driver/cuda*', 'tools/demo/*', '*_format.h']
FLAGS_OF_HEADERS = ['-x', 'c++', '-std=c++17']
DROPPED = re.compile(r'^-(o|c|W.*|M[DTFQ]?|g.*|O.*|f(no-)?(use|sanitize|diag|stack|cf|concept).*)$')


class Problem(Exception):
    """Ends the program with a message."""


def run(folder, *command):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def tracked_files():
    return [name for name in run(ROOT, 'git', 'ls-files', '-z').stdout.split('\0') if name]


def copy_sources(folder):
    """The tracked files, as they are now. What is the same keeps its time, and so does a source
    that a former run changed: write_mutants() follows."""
    names, changing = tracked_files(), set(sources(None))
    for name in names:
        source, copy = ROOT / name, folder / name
        if name in changing and copy.is_file():
            continue
        if source.is_file() and not source.is_symlink():
            write_changed(copy, source.read_bytes())
            copy.chmod(source.stat().st_mode)
        elif source.is_symlink() and not copy.is_symlink():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.symlink_to(source.readlink())
    for path in folder.rglob('*'):
        if (path.is_file() and path.relative_to(folder).parts[0] != 'build'
                and str(path.relative_to(folder)) not in names):
            path.unlink()


def write_changed(path, content):
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def matches(name, patterns):
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def sources(folders):
    """The files of these folders, or all, that a sample is drawn from."""
    return [name for name in tracked_files()
            if matches(name, SOURCES) and not matches(name, EXCLUDED)
            and (not folders or any(name.startswith(f'{folder}/') for folder in folders))]


def folder_of(name):
    """What the figures are printed by."""
    parts = name.split('/')
    if parts[0] == 'include':
        return '/'.join(parts[:3])
    return '/'.join(parts[:2]) if parts[0] in ('lib', 'tools') else parts[0]


class Flags:
    """How the build compiles a file; a header is parsed as a file of its folder is."""
    def __init__(self, build):
        self.of_file, self.of_folder, self.cxx = {}, {}, None
        for entry in json.loads((build / 'compile_commands.json').read_text()):
            path = pathlib.Path(entry['file'])
            words = shlex.split(entry['command'])
            flags = [word for word in words[1:]
                     if not DROPPED.match(word) and not word.endswith(('.o', '.c', '.cpp'))]
            self.of_file.setdefault(str(path), flags)
            self.of_folder.setdefault(str(path.parent), flags)
            if '/tests/cxx/' in str(path):
                self.cxx = self.cxx or flags

    def get(self, path):
        if path.suffix == '.hpp':
            return self.cxx and [*self.cxx, *FLAGS_OF_HEADERS]
        if path.suffix == '.h':
            return self.of_folder.get(str(path.parent))
        return self.of_file.get(str(path))


class Drawer:
    """Draws a file by its length, then an operator among those it offers, then a place. Each draw
    is independent of the others: a changed file changes those of that file."""
    def __init__(self, folder, names, flags, seed):
        self.folder, self.flags, self.seed = folder, flags, seed
        self.names = [name for name in sorted(names) if flags.get(folder / name)]
        self.lengths = [(folder / name).read_bytes().count(b'\n') for name in self.names]
        self.points, self.drawn = {}, collections.defaultdict(list)

    def points_of(self, name):
        if name not in self.points:
            path = ROOT / name
            by_operator = collections.defaultdict(list)
            for point in operators.find_points(path, name, self.flags.get(self.folder / name)):
                by_operator[point.operator].append(point)
            self.points[name] = by_operator
        return self.points[name]

    def draw(self, count):
        if not self.names:
            raise Problem('no source to draw from')
        tries = 0
        while sum(map(len, self.drawn.values())) < count and tries < 20 * count:
            tries += 1
            dice = random.Random(f'{self.seed} {tries}')
            name = dice.choices(self.names, self.lengths)[0]
            by_operator = self.points_of(name)
            if not by_operator:
                continue
            point = dice.choice(by_operator[dice.choice(sorted(by_operator))])
            if all(point.end <= other.start or other.end <= point.start
                   for other in self.drawn[name]):
                self.drawn[name].append(point)
        return sorted(point for points in self.drawn.values() for point in points)


def write_mutants(folder, mutants):
    """mutants: number -> point. Writes all sources, and those with mutants with all of theirs."""
    by_file = {name: [] for name in sources(None)}
    for number, point in mutants.items():
        by_file[point.file].append((point.start, number, point))
    for name, found in by_file.items():
        text = (ROOT / name).read_bytes().decode('latin-1')
        for _, number, point in sorted(found, reverse=True):
            new = point.replacement.replace(operators.SWITCH, f'rmm__mutant({number})')
            text = text[:point.start] + new + text[point.end:]
        if found:
            text = f'#include "{HERE / "mutant.h"}"\n#line 1 "{folder / name}"\n{text}'
        write_changed(folder / name, text.encode('latin-1'))


def failed_lines(folder, output):
    """The lines of mutated files that the compiler's errors name, also as the place of a call."""
    found = set()
    for path, line in re.findall(r'(/[^\s:]+):(\d+):\d+: +(?:error|required|note|  in)', output):
        path = pathlib.Path(path)
        if path.is_relative_to(folder):
            found.add((str(path.relative_to(folder)), int(line)))
    return found


def first_failure(output):
    return output[max(0, output.find('FAILED:')):][:3000]


def span_contains(point, text_line):
    return point.line <= text_line <= point.line + point.replacement.count('\n')


def build(folder, mutants, targets):
    """Builds, and takes out of mutants those that do not compile. Returns them."""
    discarded = {}
    while True:
        write_mutants(folder, mutants)
        done = run(folder, 'cmake', '--build', 'build/dev', '--target', *targets, '--', '-k', '0')
        if done.returncode == 0:
            return discarded
        lines = failed_lines(folder, done.stdout + done.stderr)
        bad = {number: point for number, point in mutants.items()
               if any(point.file == name and span_contains(point, line) for name, line in lines)}
        if not bad:
            raise Problem(f'the build failed:\n{first_failure(done.stdout + done.stderr)}')
        for number in bad:
            del mutants[number]
        discarded.update(bad)


def has_option(option):
    """Whether the C compiler knows it."""
    return run(ROOT, 'cc', option, '-E', '-x', 'c', '/dev/null').returncode == 0


def configure(folder):
    """Undefined behaviour ends a program, and what nobody assigned has odd values, here and on the
    heap (judge.py): under the sanitizers the tests notice the same, and this costs little. A test
    wants the lines of a program's source."""
    flags = '-w -O0 -g1'
    odd = '-ftrivial-auto-var-init=pattern'
    c_flags = (f'{flags} -fsanitize=undefined -fsanitize-undefined-trap-on-error '
               f'{odd if has_option(odd) else ""}')
    done = run(folder, 'cmake', '--preset', 'dev', '-DRMM_WERROR=OFF', '-DRMM_BUILD_PYTHON=OFF',
               f'-DCMAKE_C_FLAGS={c_flags}', f'-DCMAKE_CXX_FLAGS={flags}',
               '-DCMAKE_C_FLAGS_DEBUG=', '-DCMAKE_CXX_FLAGS_DEBUG=')
    if done.returncode != 0:
        raise Problem(f'cmake failed:\n{done.stdout}{done.stderr}')
