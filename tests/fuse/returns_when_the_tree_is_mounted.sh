#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Without -f: when the command returns the files are there, the daemon lives on its own
# (no terminal, its folder is /) and ends on SIGTERM. `umount` ends it too.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

start_program a
gpu a 0
tell a alloc 0 42
(cd "$work" && "$RMMFS" mnt >"$work/out" 2>&1) || fail "rmmfs: $(cat "$work/out")"
[ "$(mount_type)" = fuse.rmmfs ] || fail "mounted is $(mount_type)"
expect gpu0/current_bytes 42
[ ! -s "$work/out" ] || fail "it printed: $(cat "$work/out")"
daemon=$(cat "$mnt/daemon/pid")
[ "$(readlink "/proc/$daemon/cwd")" = / ] || fail "it stays in $(readlink "/proc/$daemon/cwd")"
[ "$(readlink "/proc/$daemon/fd/0")" = /dev/null ] || fail "it keeps the terminal"
[ "$(ps -o sid= -p "$daemon" | tr -d ' ')" = "$daemon" ] || fail "it has no session of its own"
kill -TERM "$daemon"
gone() { ! kill -0 "$daemon" 2>/dev/null; }
eventually gone
! is_mounted || fail "still mounted"

"$RMMFS" "$mnt"
daemon=$(cat "$mnt/daemon/pid")
expect gpu0/current_bytes 42
umount "$mnt"
eventually gone
daemon=
