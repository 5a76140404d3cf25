#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The files for systemd-tmpfiles and systemd-sysusers do what they say: in a root of their own, a
# second time, and over a mounted tree.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

[ "$(id -u)" = 0 ] || skip "needs root, to make groups"
for tool in systemd-tmpfiles systemd-sysusers; do
    command -v "$tool" >/dev/null || skip "no $tool"
done
files=${test_path%/tests/*}/fusefs
root=$work/root
mkdir -p "$root/etc" "$root/usr/lib/sysusers.d" "$root/usr/lib/tmpfiles.d"

silently() { # TOOL FILE
    "$1" "${@:3}" --root="$root" - <"$files/$2" >"$work/said" 2>&1 || fail "$1: $(cat "$work/said")"
    [ ! -s "$work/said" ] || grep -q "^Creating group" "$work/said" || fail "$1 says: $(cat "$work/said")"
}
for _ in once again; do
    silently systemd-sysusers rmmfs.sysusers.conf
    silently systemd-tmpfiles rmmfs.tmpfiles.conf --create
done
[ "$(grep -c '^rmm:' "$root/etc/group")" = 1 ] || fail "group: $(cat "$root/etc/group")"
! grep -q . "$root/etc/passwd" 2>/dev/null || fail "made a user"
[ "$(stat -c '%A %u %g' "$root/rmm")" = "drwxr-xr-x 0 0" ] || fail "/rmm: $(stat -c '%A %u %g' "$root/rmm")"
[ "$(ls "$root")" = "$(printf 'etc\nrmm\nusr')" ] || fail "made also: $(ls "$root")"

# An update of the package runs it again while the daemon serves.
mnt=$root/rmm
start_daemon
silently systemd-tmpfiles rmmfs.tmpfiles.conf --create
answers || fail "the tree has gone"
stop_daemon
