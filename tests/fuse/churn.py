#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: churn.py SECONDS SEED

Programs start, allocate, change their groups' totals and end by themselves or by SIGKILL, and the
daemon is killed and started anew, for SECONDS; after each round, and at the end, every sum of the
tree must be that of the programs which live: by GPU, process, user and job. For
keeps_every_sum_through_churn.sh, which sets

    RMMFS, RMMFS_PROGRAM, RMM_RUNTIME_DIR   as in common.sh
    CHURN_MOUNT, CHURN_LOG   of the daemon
    CHURN_GROUPS             an empty group of version 2, whose groups are made and removed here
"""
import os
import random
import signal
import subprocess
import sys
import time

MOUNT, LOG, GROUPS = (os.environ[name] for name in ("CHURN_MOUNT", "CHURN_LOG", "CHURN_GROUPS"))
GPUS = 4
PROGRAMS_MAX = 40
USERS = (0, 65534)
DEADLINE = 60  # seconds for what another process does in its own time


class Program:
    """One process, and what it holds by location."""

    number = 0

    def __init__(self, user, job):
        Program.number += 1
        self.user, self.job, self.held = user, job, {}
        self.process = subprocess.Popen(
            [os.environ["RMMFS_PROGRAM"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            preexec_fn=self.become)
        self.pid = self.process.pid
        self.hear("start")

    def become(self):
        if self.job:
            with open(f"{self.job.folder}/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
        os.setgroups([])
        os.setresgid(self.user, self.user, self.user)
        os.setresuid(self.user, self.user, self.user)

    def hear(self, what):
        answer = self.process.stdout.readline()
        assert answer == "ok\n", f"program {self.pid} answers {answer!r} to {what}"

    def tell(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        self.hear(what)

    def change(self, draw):
        location = draw.choice([*range(GPUS), 32])
        if location not in self.held:
            name = f"GPU-0000000{location} 0000:0{location}:00.0 1000000 Test GPU {location}"
            self.tell(f"location {location} " + (name if location < 32 else "host - 0 host"))
            self.held[location] = 0
        if self.held[location] and draw.random() < 0.4:
            count = draw.randint(1, self.held[location])
            self.tell(f"free {location} {count}")
            self.held[location] -= count
        else:
            count = draw.randint(1, 1000)
            self.tell(f"alloc {location} {count}")
            self.held[location] += count

    def exec(self):
        self.tell("exec")
        self.held = {}

    def end(self, draw):
        if draw.random() < 0.5:
            self.process.kill()
        else:
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        if self.job:
            self.job.leave()

    def bytes(self):
        return sum(count for location, count in self.held.items() if location < 32)


class Job:
    """A group with the name that Slurm or kubelet gives."""

    number = 0

    def __init__(self, draw):
        Job.number += 1
        self.members = 0
        if draw.random() < 0.5:
            self.kind, self.name = "slurm_job", str(Job.number)
            path = f"slurmstepd.scope/job_{Job.number}/step_0/user/task_0"
        else:
            self.kind, self.name = "container", f"{Job.number:064x}"
            path = f"kubepods/pod4a163a05-439d-484b-8e53-{Job.number:012x}/{self.name}"
        self.folder = f"{GROUPS}/{path}"
        os.makedirs(self.folder)

    def leave(self):
        self.members -= 1
        folder = self.folder
        while self.members == 0 and folder != GROUPS:
            try:
                os.rmdir(folder)
            except OSError:
                break  # of other jobs, or its last process is still ending
            folder = os.path.dirname(folder)


class Daemon:
    def __init__(self):
        self.starts = 0
        self.start()

    def start(self):
        self.starts += 1
        with open(LOG, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([os.environ["RMMFS"], "-f", MOUNT], stderr=log)
        wait_until(lambda: os.path.exists(f"{MOUNT}/version"), "the daemon serves")

    def restart(self, how):
        self.process.send_signal(how)
        status = self.process.wait()
        assert how == signal.SIGKILL or status == 0, f"rmmfs ended with {status}"
        self.start()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait() == 0, "rmmfs ended with an error"

    def facts(self):
        pid = self.process.pid
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            memory = next(line.split()[1] for line in file if line.startswith("VmRSS"))
        return f"{len(os.listdir(f'/proc/{pid}/fd'))} descriptors, {int(memory) // 1024} MiB"


def wait_until(question, what):
    end = time.monotonic() + DEADLINE
    while True:
        try:
            if question():
                return
        except OSError as error:
            what = f"{what}: {error}" if time.monotonic() > end else what
        assert time.monotonic() < end, f"not in {DEADLINE} s: {what}"
        time.sleep(0.02)


def read(name):
    with open(f"{MOUNT}/{name}", encoding="ascii") as file:
        return file.read()


def rows(name):
    return [line.split() for line in read(name).splitlines() if not line.startswith("#")]


def add(sums, key, count):
    sums[key] = sums.get(key, 0) + count


def without_zeros(sums):
    return {
        kind: {key: count for key, count in found.items() if count}
        for kind, found in sums.items()
    }


def expected(programs):
    """By file and key: bytes of live programs. What holds nothing is left out."""
    sums = {"gpu": {}, "process": {}, "user": {}, "job": {}}
    for program in programs:
        for location, count in program.held.items():
            if location < 32:
                add(sums["gpu"], f"gpu{location}", count)
        add(sums["process"], str(program.pid), program.bytes())
        add(sums["user"], str(program.user), program.bytes())
        if program.job:
            job = (program.job.kind, program.job.name, str(program.user))
            add(sums["job"], job, program.bytes())
    return without_zeros(sums)


def seen():
    sums = {
        "gpu": {name: int(read(f"{name}/current_bytes")) for name in os.listdir(MOUNT)
                if name.startswith("gpu")},
        "process": {row[0]: int(row[3]) for row in rows("processes")},
        "user": {row[0]: int(row[1]) for row in rows("users")},
        "job": {(row[0], row[1], row[2]): int(row[4]) for row in rows("jobs")
                if row[0] in ("slurm_job", "container") and row[3] == "live"},
    }
    return without_zeros(sums)


def check(programs):
    wanted = expected(programs)
    last = {}

    def is_right():
        last.update(seen())
        return last == wanted

    try:
        wait_until(is_right, "the sums are right")
    except AssertionError:
        for kind, sums in wanted.items():
            wrong = {key: (sums.get(key, 0), last.get(kind, {}).get(key, 0))
                     for key in {*sums, *last.get(kind, {})}
                     if sums.get(key, 0) != last.get(kind, {}).get(key, 0)}
            print(f"{kind}: (held, shown) {wrong}")
        raise


def start_program(draw, programs):
    jobs = [program.job for program in programs if program.job]
    choice = draw.random()
    job = None if choice < 0.2 else draw.choice(jobs) if choice < 0.5 and jobs else Job(draw)
    if job:
        job.members += 1
    programs.append(Program(draw.choice(USERS), job))


def step(draw, programs):
    choice = draw.random()
    if choice < 0.15 and len(programs) < PROGRAMS_MAX or not programs:
        start_program(draw, programs)
    elif choice < 0.27:
        programs.pop(draw.randrange(len(programs))).end(draw)
    elif choice < 0.29:
        draw.choice(programs).exec()
    else:
        draw.choice(programs).change(draw)


def start_reader():
    """Opens what is long, all the time; a killed daemon answers it with errors."""
    files = " ".join(f"{MOUNT}/{name}" for name in ("metrics", "json", "index.html"))
    command = f"cd / && while :; do cat {files}; sleep 0.05; done"
    return subprocess.Popen(
        ["sh", "-c", command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True)


def main():
    seconds, seed = float(sys.argv[1]), int(sys.argv[2])
    draw = random.Random(seed)
    daemon = Daemon()
    reader = start_reader()
    programs, steps, rounds = [], 0, 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(100):
            step(draw, programs)
            steps += 1
        if draw.random() < 0.2:
            daemon.restart(draw.choice((signal.SIGKILL, signal.SIGTERM)))
        check(programs)
        rounds += 1
    print(
        f"seed {seed}: {steps} steps, {Program.number} programs in {Job.number} jobs, {rounds} "
        f"rounds, {daemon.starts} daemons; {len(programs)} programs live; {daemon.facts()}"
    )
    os.killpg(reader.pid, signal.SIGKILL)
    reader.wait()
    for program in programs:
        program.end(draw)
    check([])
    daemon.stop()


if __name__ == "__main__":
    main()
