# SPDX-License-Identifier: Apache-2.0
"""Runs tests: once to record which mutants each of them reaches, then those that reach a mutant."""
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import tempfile
import time

import tree

SKIPPED = 77
# Daemons that a test leaves behind end with it, and their mounts go.
ALONE = ('unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc')


class Test:
    """What ctest knows of a test, and what the recording pass found."""
    def __init__(self, entry):
        properties = {item['name']: item['value'] for item in entry.get('properties', [])}
        self.name, self.command = entry['name'], entry['command']
        self.label = self.name.partition('.')[0]  # the suite
        if self.label == 'fuse' and os.geteuid() == 0:
            self.command = [*ALONE, *self.command]
        self.environment = dict(item.split('=', 1) for item in properties.get('ENVIRONMENT', []))
        self.folder = properties.get('WORKING_DIRECTORY')
        self.timeout = properties.get('TIMEOUT', 300)
        self.seconds, self.reached, self.verdict = 0.0, set(), None

    def run(self, timeout, **variables):
        """The exit status, or None after a time-out. A process group of its own ends with it.
        Sweeps are short, as under the sanitizers, and fresh memory is not zero."""
        environment = {**os.environ, **self.environment, 'RMM_TEST_QUICK': '1',
                       'MALLOC_PERTURB_': '165', **variables}
        environment.pop('CI', None)
        nothing = subprocess.DEVNULL
        with subprocess.Popen(self.command, cwd=self.folder, env=environment, stdin=nothing,
                              stdout=nothing, stderr=nothing, start_new_session=True) as process:
            try:
                return process.wait(timeout)
            except subprocess.TimeoutExpired:
                return None
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass


def read_tests(build, is_wanted):
    listed = tree.run(build, 'ctest', '--show-only=json-v1').stdout
    tests = [Test(entry) for entry in json.loads(listed)['tests'] if entry.get('command')]
    return [test for test in tests if is_wanted(test.name, test.label)]


def record(test, numbers):
    """Runs a test without a mutant; it notes which mutants the test reaches."""
    with tempfile.NamedTemporaryFile(prefix='rmm_mutants.') as file:
        file.write(bytes(max(numbers) + 1))
        file.flush()
        os.chmod(file.name, 0o666)
        start = time.monotonic()
        status = test.run(test.timeout, RMM_MUTANT_RECORD=file.name)
        test.seconds = time.monotonic() - start
        with open(file.name, 'rb') as reached:
            bits = reached.read()
    test.reached = {number for number in numbers if bits[number]}
    test.verdict = {0: 'passes', SKIPPED: 'skipped', None: 'does not end'}.get(status, 'fails')
    return test


def record_all(tests, numbers, jobs):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda test: record(test, numbers), tests))


def is_killed(test, number):
    status = test.run(10 + 10 * test.seconds, RMM_MUTANT=str(number))
    if status in (0, SKIPPED):
        return False
    # A test that fails by chance must not count; one that hangs does so again.
    return status is None or test.run(10 + 10 * test.seconds, RMM_MUTANT=str(number)) != 0


def shared_words(test, file):
    """How many words of the file's path are in the test's name and command: those of
    lib/publish/log_ring.c in sim/publish/test_log_ring."""
    words = set(re.findall(r'[a-z]+', file)) - {'lib', 'c', 'h'}
    return len(words & set(re.findall(r'[a-z]+', f'{test.name} {test.command}')))


def judge(number, file, tests, budget):
    """The name of the test that kills the mutant, or None. Tests named like the file run first,
    then the quickest, until they have taken the budget of seconds."""
    spent = 0.0
    for test in sorted(tests, key=lambda test: (-shared_words(test, file), test.seconds)):
        if spent > 0 and spent + test.seconds > budget:
            continue
        spent += test.seconds
        if is_killed(test, number):
            return test.name
    return None


def judge_all(mutants, tests, jobs, budget, tell):
    reaching = {number: [test for test in tests if number in test.reached] for number in mutants}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(judge, number, point.file, reaching[number], budget): number
                   for number, point in mutants.items()}
        for done in concurrent.futures.as_completed(running):
            number = running[done]
            tell(number, done.result(), reaching[number])
