#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what a hostile user may write to a directory of segments, and measures readers.
With ATTACK_UID it becomes that user first.

  attack.py being_made DIR COUNT        segments that are never finished
  attack.py empty DIR COUNT             empty files with the names of segments
  attack.py names DIR COUNT             empty files with names that mean nothing
  attack.py segment_names DIR COUNT     empty files with names of segments, in an own folder
  attack.py toggle SECONDS DIR          makes and removes a file and its own folder there
  attack.py dead DIR COUNT TEMPLATE     whole segments that no process holds
  attack.py rename DIR SECONDS TEMPLATE one segment under a new name, again and again
  attack.py claim DIR NAME TEMPLATE TICKS  a file of that name, held by a process that did not start
                                        when the file says
  attack.py orphan DIR TEMPLATE         a segment whose process ends, after a line of input,
                                        and leaves its lock to a child; prints both pids
  attack.py garbage DIR SECONDS TEMPLATE  live segments and side files whose bytes change at
                                        random, and whose files are cut
  attack.py torn DIR SECONDS TEMPLATE   a live segment whose slots and log are being written
                                        for ever
  attack.py flood DIR SECONDS TEMPLATE  a live segment that logs without a pause
  attack.py odd DIR TEMPLATE            what is no file, or is endless, under the names of segments
                                        and side files; hard links; names with newlines
  attack.py lease DIR SECONDS TEMPLATE  live segments and side files under leases, which an open
                                        waits for up to 45 s
  attack.py cut DIR SECONDS TEMPLATE    a live segment that is cut and grown again without a pause
  attack.py hold SECONDS MOUNT          keeps as many handles as it may; long texts, never read
  attack.py poll SECONDS MOUNT          polls all that can be polled, again and again
  attack.py splice SECONDS MOUNT        splices and sends all that it may read into full pipes
  attack.py storm SECONDS MOUNT         writes commands to its own program, without a pause
  attack.py keep SECONDS MOUNT          opens what it may, reads at odd places, keeps it open
  attack.py command SECONDS MOUNT       writes any words to all that it may write to
  attack.py read SECONDS FILE           how long open, read and close take; prints median and
                                        99th percentile in microseconds
"""
import fcntl
import os
import random
import resource
import select
import signal
import socket
import struct
import sys
import time

PID_AT, TICKS_AT, MADE_AT = 40, 24, 32
SLOTS_AT, LOG_AT = 80, 448  # of the header: offset, stride, count
LOG_HEAD_BYTES, LOG_TEXT_AT = 64, 24
EDGES = (0, 1, 2, 0x7f, 0xffff, 0x7fffffff, 0xffffffff, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1)
WORDS = (b"max", b"all", b"reset", b"0", b"1", b"1 GiB", b"1GiB", b"-1", b"trace", b"off", b"\n",
         b"\0", b"9" * 70, b"18446744073709551615", b"9223372036854775807KiB", b"\xff" * 5000)


def name_of(number):
    return "%d.%016x" % (os.getuid(), 0xA77AC << 40 | number)


def being_made(directory, count):
    for i in range(int(count)):
        with open(os.path.join(directory, name_of(i)), "wb") as file:
            file.write(bytes(4096))


def empty(directory, count):
    for i in range(int(count)):
        os.close(os.open(os.path.join(directory, name_of(1 << 24 | i)), os.O_CREAT, 0o600))


def names(directory, count, pattern="x%d"):
    for i in range(int(count)):
        os.close(os.open(os.path.join(directory, pattern % i), os.O_CREAT | os.O_WRONLY, 0o600))


def segment_names(directory, count):
    os.makedirs(directory, 0o700, exist_ok=True)
    names(directory, count, "%d.%%016x" % os.getuid())


def toggle(seconds, directory):
    file, own = os.path.join(directory, "rmm-x"), os.path.join(directory, "rmm-%d" % os.getuid())
    end = time.time() + float(seconds)
    while time.time() < end:
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
        os.unlink(file)
        os.mkdir(own, 0o700)
        os.rmdir(own)
        time.sleep(0.001)


def start_ticks():
    with open("/proc/self/stat", "rb") as file:
        return int(file.read().rsplit(b")", 1)[1].split()[19])


def forged(template, pid, number):
    with open(template, "rb") as file:
        segment = bytearray(file.read())
    segment[TICKS_AT:TICKS_AT + 8] = struct.pack("<Q", start_ticks())
    segment[MADE_AT:MADE_AT + 8] = struct.pack("<Q", time.time_ns() + number)
    segment[PID_AT:PID_AT + 4] = struct.pack("<I", pid)
    return segment


def put(directory, number, segment):
    path = os.path.join(directory, name_of(2 << 24 | number))
    with open(path + ".new", "wb") as file:
        file.write(segment)
    return path


def dead(directory, count, template):
    for i in range(int(count)):
        path = put(directory, i, forged(template, 1, i))
        os.rename(path + ".new", path)


def rename(directory, seconds, template):
    path = put(directory, 1 << 20, forged(template, os.getpid(), 0))  # no name of dead()
    os.rename(path + ".new", path)
    end = time.time() + float(seconds)
    number = 0
    while time.time() < end:
        number += 1
        other = os.path.join(directory, name_of(3 << 24 | number % 100000))
        os.rename(path, other)
        path = other
    os.unlink(path)


def claim(directory, name, template, ticks):
    path = os.path.join(directory, name)
    with open(template, "rb") as file:
        segment = bytearray(file.read())
    segment[TICKS_AT:TICKS_AT + 8] = struct.pack("<Q", int(ticks) % 2**64)
    with open(path + ".new", "w+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(segment)
        file.flush()
        os.fchmod(file.fileno(), 0o666)
        os.rename(path + ".new", path)
        while os.path.exists(directory):  # a change of user made it outlive its parent
            time.sleep(0.1)


def orphan(directory, template):
    begin, told = os.pipe()
    process = os.fork()
    if process == 0:
        path = put(directory, 0, forged(template, os.getpid(), 0))
        lock = os.open(path + ".new", os.O_RDWR)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(path + ".new", path)
        child = os.fork()
        if child == 0:
            while os.path.exists(directory):  # a test that failed kills only its own jobs
                time.sleep(0.1)
            os._exit(0)
        os.write(told, b"%d %d\n" % (os.getpid(), child))
        sys.stdin.readline()
        os._exit(0)
    print(os.read(begin, 32).decode().strip(), flush=True)
    os.waitpid(process, 0)
    print("ended", flush=True)


def live(directory, number, template):
    """A segment of this process that holds its lock; returns its file and path."""
    while True:
        path = put(directory, number, forged(template, os.getpid(), number))
        try:
            file = open(path + ".new", "r+b", buffering=0)
            fcntl.flock(file, fcntl.LOCK_EX)
            os.rename(path + ".new", path)
            return file, path
        except FileNotFoundError:
            pass  # the daemon removed it before it had a lock: again


def until(seconds):
    end = time.time() + float(seconds)
    while time.time() < end:
        yield


def change(file, size):
    at = random.randrange(min(size, 4096) if random.random() < 0.5 else size)
    width = random.choice("BHIQ")
    value = random.choice(EDGES) if random.random() < 0.7 else random.getrandbits(64)
    file.seek(at & ~7)
    file.write(struct.pack("<" + width, value & ((1 << 8 * struct.calcsize(width)) - 1)))


def garbage(directory, seconds, template):
    size = os.path.getsize(template)
    number = 16 << 24
    for _ in until(seconds):
        number += 1
        file, path = live(directory, number, template)
        sides = [open("%s.%s" % (path, suffix), "w+b", buffering=0)
                 for suffix in ("control", "leaks", "diag", "events", "x")]
        for side in sides:
            side.write(random.randbytes(random.choice((0, 64, 4096, 70000))))
        for _ in range(200):
            change(file, size)
            time.sleep(0.002)
        os.truncate(random.choice([path] + [side.name for side in sides]), random.randrange(5000))
        time.sleep(0.05)
        for other in [file] + sides:
            other.close()
            os.unlink(other.name if other is not file else path)


SIDES = ("control", "leaks", "diag", "events", "blocks")


def odd(directory, template):
    def new(number):
        return os.path.join(directory, name_of(5 << 24 | number))
    _, path = live(directory, 5 << 24 | 0xffff, template)
    for i in range(8):
        os.mkfifo(new(i))
        socket.socket(socket.AF_UNIX).bind(new(0x10 + i))
        os.mkdir(new(0x20 + i))
        os.symlink("/dev/zero", new(0x30 + i))
        os.symlink(path, new(0x40 + i))
        os.link(path, new(0x50 + i))
        with open(new(0x60 + i), "wb") as file:
            file.write(forged(template, os.getpid(), i) if i % 2 else b"")
            file.truncate(1 << 40)
    for n, suffix in enumerate(SIDES):
        for i, make in enumerate((os.mkfifo, os.mkdir, lambda name: os.symlink("/dev/zero", name),
                                  lambda name: socket.socket(socket.AF_UNIX).bind(name),
                                  lambda name: os.truncate(os.open(name, os.O_CREAT | os.O_RDWR),
                                                           1 << 40))):
            _, path = live(directory, 6 << 24 | n << 8 | i, template)
            make("%s.%s" % (path, suffix))
    for name in (b"\n", b"65534.\n0a77ac0000000001", b"65534.0a77ac0000000001\n",
                 "65534.\u202e0a77ac".encode(), b"\xff" * 255, b"-rf", b"%s%n", b". ."):
        with open(os.path.join(directory.encode(), name), "wb") as file:
            file.write(b"x")
    print("made", flush=True)
    sys.stdin.readline()


def leased(path):
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    return fd


def lease(directory, seconds, template):
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    held = []
    for number, _ in enumerate(until(seconds)):
        if number < 200:
            path = put(directory, 7 << 24 | number, forged(template, os.getpid(), number))
            held += [leased("%s.%s" % (path, suffix)) for suffix in SIDES]
            if number % 2 == 0:  # else its side files are met
                held.append(leased(path + ".new"))
            os.rename(path + ".new", path)
        time.sleep(0.01)
    print(len(held))


def cut(directory, seconds, template):
    for number, _ in enumerate(until(seconds)):
        file, path = live(directory, 8 << 24 | number & 0xff, template)
        whole = os.pread(file.fileno(), 1 << 22, 0)
        for _ in range(50):
            file.truncate(random.randrange(len(whole)))
            os.pwrite(file.fileno(), whole, 0)
        os.unlink(path)
        file.close()


def hold(seconds, mount):
    resource.setrlimit(resource.RLIMIT_NOFILE, [resource.getrlimit(resource.RLIMIT_NOFILE)[1]] * 2)
    held, refused = [], 0
    long = ("metrics", "json", "leaks")
    paths = sorted(files_below(mount), key=lambda path: not path.endswith(long))
    for _ in until(seconds):
        for path in paths:
            try:
                held.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            except OSError:
                refused += 1
        if refused > 1000:
            time.sleep(0.05)
    print(len(held), refused)


def poll(seconds, mount):
    fds = []
    for path in files_below(mount):
        try:
            fds.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        except OSError:
            pass
    for _ in until(seconds):
        poller = select.poll()
        for fd in fds:
            poller.register(fd, select.POLLPRI | select.POLLIN)
        poller.poll(0)


def splice(seconds, mount):
    out, into = os.pipe()
    os.set_blocking(into, False)
    for _ in until(seconds):
        for path in files_below(mount, 500):
            try:
                fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            except OSError:
                continue
            for move in (lambda fd=fd: os.splice(fd, into, 1 << 16),
                         lambda fd=fd: os.sendfile(into, fd, 0, 1 << 16),
                         lambda fd=fd: os.write(into, os.read(fd, 1 << 16))):
                try:
                    move()
                except OSError:
                    pass
            os.close(fd)
    os.close(out)


def storm(seconds, mount):
    own = [path for path in files_below(mount) if os.access(path, os.W_OK)]
    fds = [os.open(path, os.O_WRONLY | os.O_NONBLOCK) for path in own]
    for _ in until(seconds if fds else 0):
        for fd in fds:
            try:
                os.pwrite(fd, random.choice(WORDS), 0)
            except OSError:
                pass
    print(len(fds))


def words_of(segment, at):
    return struct.unpack_from("<III", segment, at)


def torn(directory, seconds, template):
    file, path = live(directory, 32 << 24, template)
    segment = os.pread(file.fileno(), 4096, 0)
    slots, stride, count = words_of(segment, SLOTS_AT)
    log, log_stride, log_count = words_of(segment, LOG_AT)
    for i in range(count):
        os.pwrite(file.fileno(), struct.pack("<III", 2 * i + 1, 1, 1), slots + stride * i)
    os.pwrite(file.fileno(), struct.pack("<I", count), 92)
    for i in range(log_count):
        os.pwrite(file.fileno(), struct.pack("<Q", 2 * i + 1), log + log_stride * i)
    for n, _ in enumerate(until(seconds)):
        os.pwrite(file.fileno(), struct.pack("<Q", n), log - LOG_HEAD_BYTES)
        os.pwrite(file.fileno(), struct.pack("<I", 2 * n + 1), slots + stride * (n % count))
        time.sleep(0.0005)
    os.unlink(path)


def flood(directory, seconds, template):
    file, path = live(directory, 64 << 24, template)
    log, stride, count = words_of(os.pread(file.fileno(), 4096, 0), LOG_AT)
    text = "\u202e\x1b[31m\n [innocent] ".encode() * 24
    for n, _ in enumerate(until(seconds)):
        record = struct.pack("<QQIHH", 2 * n + 2, time.time_ns(), n & 0xffffffff, n % 9, 480)
        os.pwrite(file.fileno(), record + text[:stride - LOG_TEXT_AT], log + stride * (n % count))
        os.pwrite(file.fileno(), struct.pack("<Q", n + 1), log - LOG_HEAD_BYTES)
    os.unlink(path)


def files_below(directory, most=20000):
    found = []
    for folder, _, names in os.walk(directory):
        found += [os.path.join(folder, name) for name in names]
        if "pid" in names or folder.endswith("/trace"):
            found += [os.path.join(folder, pipe) for pipe in ("log_pipe", "events_pipe")]
        if len(found) > most:
            break
    return found


def read_oddly(fd):
    try:
        for _ in range(4):
            os.pread(fd, random.choice((0, 1, 7, 4096, 1 << 20)),
                     random.choice((0, 1, 4095, 4096, 1 << 31, 1 << 62)))
    except OSError:
        pass


def keep(seconds, mount):
    kept = []
    for _ in until(seconds):
        for path in random.sample(paths := files_below(mount), min(len(paths), 500)):
            try:
                kept.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            except OSError:
                continue
            read_oddly(kept[-1])
            read_oddly(random.choice(kept))
        while len(kept) > 600 or (kept and random.random() < 0.9):
            os.close(kept.pop(random.randrange(len(kept))))


def command(seconds, mount):
    for _ in until(seconds):
        for path in files_below(mount):
            if not os.access(path, os.W_OK):
                continue
            try:
                fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                continue
            for _ in range(3):
                try:
                    os.pwrite(fd, random.choice(WORDS), random.choice((0, 0, 1, 1 << 40)))
                except OSError:
                    pass
            os.close(fd)
        time.sleep(0.1)


def read(seconds, path):
    times = []
    end = time.time() + float(seconds)
    while time.time() < end or len(times) < 5:
        begin = time.perf_counter()
        with open(path, "rb", buffering=0) as file:
            if not file.read(4096):
                sys.exit("attack.py: %s is empty" % path)
        times.append(time.perf_counter() - begin)
        time.sleep(0.002)
    times.sort()
    print("%d %d" % (times[len(times) // 2] * 1e6, times[len(times) * 99 // 100] * 1e6))


if __name__ == "__main__":
    if "ATTACK_UID" in os.environ:
        os.setgroups([])
        os.setresgid(*[int(os.environ["ATTACK_UID"])] * 3)
        os.setresuid(*[int(os.environ["ATTACK_UID"])] * 3)
    globals()[sys.argv[1]](*sys.argv[2:])
