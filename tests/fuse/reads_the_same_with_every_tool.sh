#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files that are shorter than their size: cat, head, tail, wc, cp, dd, grep, awk, ls, find, stat, a
# shell's own read and a kept descriptor all see it.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

start_daemon
start_program a
gpu a 0
tell a alloc 0 123456
file=$mnt/gpu0/current_bytes
same() { # WHAT TEXT
    [ "$2" = 123456 ] || fail "$1 gives '$2'"
}

same cat "$(cat "$file")"
same head "$(head -n 1 "$file")"
same "head -c" "$(head -c 6 "$file")"
same tail "$(tail -n 1 "$file")"
same awk "$(awk '{ print $1 }' "$file")"
same grep "$(grep -o '^123456$' "$file")"
same "dd bs=1" "$(dd if="$file" bs=1 status=none)"
same "dd bs=4k" "$(dd if="$file" bs=4k status=none)"
same sed "$(sed -n 1p "$file")"
same "the shell" "$(<"$file")"
read -r line <"$file"
same read "$line"
same python "$(python3 -c "print(open('$file').read(), end='')")"
[ "$(wc -c <"$file")" = 7 ] || fail "wc -c gives $(wc -c <"$file")"
cp "$file" "$work/copy"
same cp "$(cat "$work/copy")"
[ "$(stat -c '%s %F %a' "$file")" = "4096 regular file 444" ] || fail "stat: $(stat "$file")"
[ "$(stat -c %a "$mnt/gpu0/peak_bytes")" = 644 ] || fail "mode of peak_bytes"
[ "$(stat -c '%a %F' "$mnt/gpu0")" = "555 directory" ] || fail "mode of gpu0"
ls -lR "$mnt" >"$work/list" || fail "ls -lR"
grep -q current_bytes "$work/list" || fail "ls -lR does not list"
[ "$(find "$mnt" -name current_bytes | wc -l)" = 3 ] || fail "find: $(find "$mnt" -name current_bytes)"
find "$mnt" -type f -readable -exec cat {} + >/dev/null || fail "not every file can be read"
grep -r . "$mnt" >"$work/all" || fail "grep -r"
[ "$(tail -c 1 "$file" | od -An -c | tr -d ' ')" = '\n' ] || fail "no newline at the end"

# Every file ends in a newline and is not empty; but logs, in which nothing happened.
find "$mnt" -type f ! -name log | while read -r name; do
    [ "$(tail -c 1 "$name" | od -An -c | tr -d ' ')" = '\n' ] || fail "no newline at the end of $name"
done

# A kept descriptor: at 0 it is rendered again, elsewhere the same text goes on.
exec {kept}<"$file"
python3 - "$kept" <<'END' || fail "a kept descriptor"
import os, sys
fd = int(sys.argv[1])
assert os.pread(fd, 3, 0) == b"123"
assert os.pread(fd, 100, 3) == b"456\n"
assert os.pread(fd, 100, 7) == b""
END
tell a alloc 0 1000000
[ "$(python3 -c "import os; print(os.pread($kept, 3, 0), os.pread($kept, 9, 3))")" = "b'112' b'3456\\n'" ] ||
    fail "a kept descriptor does not show what is new"
stop_daemon
