#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A file system that somebody mounted over the tree is there after the daemon's end, with its files;
# what is left of the tree below it goes at the next start.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
enter_mount_namespace

start_daemon
mount -t tmpfs over "$mnt"
echo kept >"$mnt/file"
kill -TERM "$daemon"
status=0
wait "$daemon" || status=$?
daemon=
[ "$status" -eq 1 ] || fail "rmmfs ended with $status"
[ "$(cat "$mnt/file")" = kept ] || fail "the other file system is gone"
grep -q "a file system of type tmpfs is mounted over $mnt" "$log" || fail "the log does not say so"

umount "$mnt"
[ "$(mount_type)" = fuse.rmmfs ] || fail "what is below is $(mount_type)"
start_daemon
start_program a
gpu a 0
tell a alloc 0 100
expect gpu0/current_bytes 100
stop_daemon
