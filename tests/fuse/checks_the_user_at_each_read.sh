#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A file of one user is read by that user and root alone, whatever way its descriptor went:
# handed on, kept over a setuid, or opened again from an O_PATH descriptor.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

chmod 1777 "$run"
start_daemon
start_program theirs setpriv --reuid 1001 --regid 1001 --clear-groups --
gpu theirs 0
tell theirs log 3 their secret
start_program ours
tell ours log 3 of root
pid=${program_pid[theirs]}

cat >"$work/readers.py" <<'END'
import errno, os, sys
mount, pid = sys.argv[1:3]
A, B = 1001, 1002

def attempt(what, call, wanted):
    try:
        seen = call()
    except OSError as error:
        seen = error.errno
    assert seen == wanted if isinstance(wanted, int) else wanted in seen, "%s: %r" % (what, seen)

def as_user(uid, body):
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(100, 100, 100)
            os.setresuid(uid, uid, uid)
            body()
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, "as uid %d" % uid

def refused(fd):
    out = os.memfd_create("out")
    pipe, into = os.pipe()
    attempt("read", lambda: os.read(fd, 100), errno.EACCES)
    attempt("pread", lambda: os.pread(fd, 100, 0), errno.EACCES)
    attempt("preadv", lambda: os.preadv(fd, [bytearray(100)], 3), errno.EACCES)
    attempt("sendfile", lambda: os.sendfile(out, fd, 0, 100), errno.EINVAL)
    attempt("splice", lambda: os.splice(fd, into, 100), errno.EINVAL)
    attempt("open again", lambda: os.open("/proc/self/fd/%d" % fd, os.O_RDONLY), errno.EACCES)

path = "%s/proc/%s/log" % (mount, pid)
files = ["%s/proc/%s/%s" % (mount, pid, name) for name in ("log", "log_pipe", "leaks", "events_pipe")]
for file in files + [mount + "/log", mount + "/log_pipe"]:
    fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    by_path = os.open(file, os.O_PATH)
    as_user(B, lambda: refused(fd))
    as_user(B, lambda: attempt("O_PATH", lambda: os.open("/proc/self/fd/%d" % by_path, os.O_RDONLY),
                               errno.EACCES))
    os.close(fd)
    os.close(by_path)
# A's own, and root's own, are read.
fd = os.open(path, os.O_RDONLY)
attempt("root", lambda: os.read(fd, 1000), b"their secret")
as_user(A, lambda: attempt("A by root's", lambda: os.pread(fd, 1000, 0), b"their secret"))
# The node's log: an inode, an owner and a text for each user. Nobody gets that of another, as A's
# process that became B does not; only its own, by its name.
def nodes_log(uid, text):
    status = os.stat(mount + "/log")
    assert status.st_uid == uid and status.st_mode & 0o777 == 0o400, status
    seen = open(mount + "/log", "rb").read()
    assert seen == text and status.st_size == len(text), (uid, seen)
    os.write(report, b"%d\n" % status.st_ino)

def becomes(fd, uid):
    os.setresuid(0, 0, 0)
    os.setresuid(uid, uid, uid)
    os.lseek(fd, 0, os.SEEK_SET) # at the end splice gives nothing, to anybody
    refused(fd)

pipe, report = os.pipe()
alls = open(mount + "/log", "rb").read()
nodes_log(0, alls)
as_user(A, lambda: nodes_log(A, [line for line in alls.splitlines(True) if b"their secret" in line][0]))
as_user(B, lambda: nodes_log(B, b""))
assert len(set(os.read(pipe, 1000).split())) == 3, "inodes"
child = os.fork()
if child == 0:
    os.setgroups([])
    os.setresuid(A, A, 0)
    fd = os.open(mount + "/log", os.O_RDONLY)
    assert b"their secret" in os.read(fd, 1000)
    becomes(fd, B)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0, "a process that became B"
# What all may read is read by any descriptor.
public = os.open("%s/proc/%s/comm" % (mount, pid), os.O_RDONLY)
as_user(B, lambda: attempt("B", lambda: os.pread(public, 100, 0), b"rmmfs_program"[:15]))
END
python3 "$work/readers.py" "$mnt" "$pid" || fail "a descriptor"
stop_daemon
