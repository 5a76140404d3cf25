#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every tool that reads a file gets the right bytes, or an error: sendfile, splice and mappings
# are refused, and the tools that begin with them go on with read(2). Reading the whole tree ends.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

command -v busybox >/dev/null || skip "no busybox"
command -v rsync >/dev/null || skip "no rsync"
start_daemon
list=$work/list
start_program a
gpu a 0
tell a resource 1 pool pool 0 0
tell a alloc 0 123456
tell a log 3 a message
cd "$work"

# FILE COMMAND...: writes what is in FILE on stdout, and succeeds.
right() {
    "${@:2}" >got 2>err || fail "$* ends with $?: $(head -n 1 err)"
    cmp got want || fail "$* gives $(wc -c <got) bytes of $(wc -c <want)"
}
# What a tool that believes the size makes of a value: it says so.
right_or_failed() {
    if "${@:2}" >got 2>err && [ ! -s err ]; then
        cmp got want || fail "$* gives $(wc -c <got) bytes of $(wc -c <want) without an error"
    fi
}

cat >calls.py <<'END'
import errno, mmap, os, sys
path = sys.argv[1]
def refused(what, expected, call):
    try:
        result = call()
    except OSError as error:
        assert error.errno in expected, "%s: %s" % (what, error)
    else:
        sys.exit("%s of %s gives %r" % (what, path, result))
def opened():
    return os.open(path, os.O_RDONLY)
out = os.open("out", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
pipe, into = os.pipe()
os.set_blocking(into, False)
refused("sendfile", [errno.EINVAL], lambda: os.sendfile(out, opened(), 0, 65536))
refused("splice", [errno.EINVAL], lambda: os.splice(opened(), into, 65536))
refused("copy_file_range", [errno.EINVAL, errno.EXDEV],
        lambda: os.copy_file_range(opened(), out, 65536))
refused("a shared mapping", [errno.ENODEV],
        lambda: mmap.mmap(opened(), 1, mmap.MAP_SHARED, mmap.PROT_READ))
file = opened()
for whence in os.SEEK_HOLE, os.SEEK_DATA:
    refused("a look for holes", [errno.EINVAL], lambda: os.lseek(file, 0, whence))
# A private one can be made, but has no page.
child = os.fork()
if child == 0:
    try:
        page = mmap.mmap(opened(), 1, mmap.MAP_PRIVATE, mmap.PROT_READ)
        os._exit(1 if page[:1] != b"" else 2)
    except BaseException:
        os._exit(3)
status = os.waitpid(child, 0)[1]
assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == 7, "a private mapping: %#x" % status
# A read gets all, also after these, and beyond the end there is no silence.
file = opened()
text = b""
while True:
    piece = os.read(file, 100)
    if not piece:
        break
    text += piece
assert text == open("want", "rb").read()
END

every_tool() { # FILE
    local path=$mnt/$1
    right "$1" cat "$path"
    right "$1" busybox cat "$path"
    right "$1" sh -c "cat '$path' | cat"
    right "$1" sh -c "cp '$path' copy && cat copy"
    right "$1" sh -c "cp --sparse=always '$path' copy && cat copy"
    right "$1" sh -c "busybox cp '$path' copy && cat copy"
    right "$1" python3 -c "import shutil; shutil.copyfile('$path', 'copy'); print(open('copy').read(), end='')"
    right "$1" dd if="$path" bs=1 status=none
    right "$1" dd if="$path" bs=64k status=none
    right "$1" grep -rh "" "$path"
    right "$1" tail -n 100000 "$path"
    right "$1" busybox tail -n 100000 "$path"
    right "$1" tail -n +1 "$path"
    right "$1" head -n 100000 "$path"
    right "$1" sed '' "$path"
    [ "$(wc -c "$path" | cut -d' ' -f1)" = "$(wc -c <want)" ] || fail "wc -c $1: $(wc -c "$path")"
    [ "$(wc -l "$path" | cut -d' ' -f1)" = "$(wc -l <want)" ] || fail "wc -l $1: $(wc -l "$path")"
    [ "$(tail -n 1 "$path")" = "$(tail -n 1 want)" ] || fail "tail -n 1 $1: $(tail -n 1 "$path")"
    [ "$(tail -c 5 "$path")" = "$(tail -c 5 want)" ] || fail "tail -c 5 $1: $(tail -c 5 "$path")"
    python3 calls.py "$path" || fail "calls"
}

for file in gpu0/current_bytes "proc/${program_pid[a]}/log" gpu0/stat log metrics; do
    cat "$mnt/$file" >want
    every_tool "$file"
done

# tar 1.35 also looks at the time of modification, which is always now.
archive='tar -C "$0" -cf t.tar "$1" 2>tar.err || { cat tar.err >&2; ! grep -qv "file changed as we read it" tar.err; } &&
    tar -xOf t.tar'

# A text has the largest size until the thread opens it, and then its own: tools that believe it are
# right. A value's size is a page, as in sysfs, of which they tell.
for file in README devices json metrics metrics.all metrics.om rmm.prom top processes users cgroups jobs dmem log gpu0/stat gpu0/processes "proc/${program_pid[a]}/log"; do
    cat "$mnt/$file" >want
    size=25165824
    [ "$file" != log ] || size=$(wc -c <want)
    [ "$(stat -c %s "$mnt/$file")" = "$size" ] || fail "$file: size $(stat -c %s "$mnt/$file")"
    right "$file" sh -c "$archive" "$mnt" "$file"
    right "$file" sh -c "rsync '$mnt/$file' r && cat r"
done
for file in gpu0/current_bytes version; do
    cat "$mnt/$file" >want
    [ "$(stat -c '%s %b' "$mnt/$file")" = "4096 8" ] || fail "$file: $(stat -c '%s %b' "$mnt/$file")"
    right_or_failed "$file" sh -c "$archive" "$mnt" "$file"
    right_or_failed "$file" sh -c "rsync '$mnt/$file' r && cat r"
    right_or_failed "$file" busybox tail -c "$(wc -c <want)" "$mnt/$file"
done

# A text that is open has no end to seek: the kernel would take another reader's. Its size is its own.
python3 - "$mnt/metrics" <<'END' || fail "the end of an open text"
import errno, os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
try:
    sys.exit("SEEK_END gives %d" % os.lseek(file, 0, os.SEEK_END))
except OSError as error:
    assert error.errno == errno.EINVAL, error
text = open(sys.argv[1], "rb").read()
assert os.fstat(file).st_size == len(text) > 4096
assert os.read(file, 1 << 20) == text
END

# The kernel ends asynchronous reads at the size in the inode, which a look-up or a listing by
# another reader sets: it must not be shorter than the text.
python3 - "$mnt/metrics.all" <<'END' || fail "an asynchronous read"
import ctypes, mmap, os, struct, sys, time
IO_SETUP, IO_GETEVENTS, IO_SUBMIT, AT = 206, 208, 209, 8192
path = sys.argv[1]
syscall = ctypes.CDLL(None, use_errno=True).syscall
context, page = ctypes.c_ulong(0), mmap.mmap(-1, 4096)
assert syscall(IO_SETUP, 1, ctypes.byref(context)) == 0
def read_later(file):
    to = ctypes.addressof(ctypes.c_char.from_buffer(page))
    block = ctypes.create_string_buffer(
        struct.pack("<QIIHhIQQqQII", 0, 0, 0, 0, 0, file, to, 4096, AT, 0, 0, 0))
    blocks = ctypes.c_void_p(ctypes.addressof(block))
    assert syscall(IO_SUBMIT, context, 1, ctypes.byref(blocks)) == 1
    event = ctypes.create_string_buffer(32)
    assert syscall(IO_GETEVENTS, context, 1, 1, event, None) == 1
    return struct.unpack("<QQqq", event.raw)[2]
def look_up():
    time.sleep(1.1) # the kernel keeps a name for a second
    os.close(os.open(path, os.O_PATH))
def list_names():
    os.listdir(os.path.dirname(path))
for look in look_up, list_names:
    file = os.open(path, os.O_RDONLY)
    assert os.fstat(file).st_size > AT + 4096
    look()
    assert read_later(file) == 4096, "it ends after %s" % look.__name__
    os.close(file)
END

# What programs that read everything never come to: they would wait.
find "$mnt" >"$list"
! grep -q '_pipe$' "$list" || fail "listed: $(grep '_pipe$' "$list")"
[ -f "$mnt/log_pipe" ] && [ -f "$mnt/proc/${program_pid[a]}/events_pipe" ] || fail "a pipe is not found"
mkdir tree
timeout 300 cp -r "$mnt/." tree || fail "cp -r ends with $?"
[ "$(cat tree/gpu0/current_bytes)" = 123456 ] || fail "cp -r: $(cat tree/gpu0/current_bytes)"
cmp tree/README "$mnt/README" || fail "cp -r: README"
timeout 300 grep -rq 123456 "$mnt" || fail "grep -r"
timeout 300 find "$mnt" -type f -exec cat {} + >all || fail "find -exec cat"
status=0
timeout 300 tar -C "$mnt" -cf t.tar . 2>err || status=$?
[ "$status" -le 1 ] || fail "tar of the tree: $status, $(tail -n 1 err)"
! grep -v "File shrank by\|file changed as we read it\|Exiting with failure" err || fail "tar: $(cat err)"
stop_daemon
