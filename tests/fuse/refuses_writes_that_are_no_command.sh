#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Writes that are no command, and files that are made for reading: a real errno, nothing
# changed.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

start_daemon
start_program a
gpu a 0
tell a alloc 0 100

fails() { # ERRNO PYTHON
    python3 - "$mnt" "$1" "$2" <<'END' || fail "$2 does not fail with $1"
import errno, os, sys
m, expected, code = sys.argv[1:]
def write(name, data, flags=0):
    fd = os.open(m + "/" + name, os.O_WRONLY | flags)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)
try:
    exec(code)
except OSError as error:
    sys.exit(0 if error.errno == getattr(errno, expected) else str(error))
sys.exit("no error")
END
}

echo debug >"$mnt/daemon/log_level"
expect daemon/log_level debug
fails EINVAL "write('daemon/log_level', b'loud')"
fails EINVAL "write('daemon/log_level', b'debug\x00')"
fails EINVAL "write('daemon/log_level', b'debug ' * 100)"
fails EINVAL "write('daemon/log_level', b'\n')"
expect daemon/log_level debug
printf info >"$mnt/daemon/log_level"
expect daemon/log_level info
fails EACCES "write('gpu0/current_bytes', b'1')"
fails EACCES "write('version', b'2', os.O_TRUNC)"
fails EACCES "os.truncate(m + '/version', 0)"
fails EISDIR "os.open(m + '/gpu0', os.O_WRONLY)"
fails ENOENT "os.open(m + '/gpu0/nothing', os.O_RDONLY)"
fails ENOENT "os.listdir(m + '/proc/1')"
fails ENOTDIR "os.listdir(m + '/version')"
# For a user the kernel refuses first: directories are 0555.
denied=EPERM
[ "$uid" = 0 ] || denied=EACCES
fails $denied "os.mkdir(m + '/new')"
fails $denied "os.open(m + '/new', os.O_WRONLY | os.O_CREAT)"
fails $denied "os.unlink(m + '/version')"
fails $denied "os.rmdir(m + '/gpu0')"
fails $denied "os.rename(m + '/version', m + '/old')"
fails $denied "os.symlink('x', m + '/link')"
fails $denied "os.link(m + '/version', m + '/link')"
fails EPERM "os.chmod(m + '/version', 0o666)"
fails EPERM "os.chown(m + '/version', 1, 1)"
fails ENAMETOOLONG "os.open(m + '/' + 'x' * 300, os.O_RDONLY)"
expect gpu0/current_bytes 100
expect version 1
stop_daemon
