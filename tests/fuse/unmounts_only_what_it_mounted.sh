#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# At its end the daemon unmounts its own tree, wherever that is by then, and nothing that another
# process has mounted where the tree was.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
enter_mount_namespace
# libfuse frees its copy of the path only where it unmounts itself.
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0

end_with() { # STATUS PID
    local status=0
    kill -TERM "$2"
    wait "$2" || status=$?
    [ "$status" -eq "$1" ] || fail "rmmfs ended with $status"
}

# Unmounted while a file is open, the first daemon goes on serving that file.
start_daemon
exec {file}<"$mnt/version"
first=$daemon
umount -l "$mnt"
start_daemon
end_with 0 "$first"
exec {file}<&-
answers || fail "the second daemon's mount is gone"
stop_daemon

mkdir "$work/there"
start_daemon
mount --move "$mnt" "$work/there"
mount -t tmpfs other "$mnt"
echo kept >"$mnt/file"
end_with 0 "$daemon"
daemon=
[ "$(cat "$mnt/file")" = kept ] || fail "the other file system is gone"
umount "$mnt"
ls "$work/there" >/dev/null || fail "what was moved is still mounted"

mkdir -p "$work/parent/tree"
"$RMMFS" -f "$work/parent/tree" 2>>"$log" &
daemon=$!
eventually test -e "$work/parent/tree/version"
mv "$work/parent" "$work/renamed"
end_with 0 "$daemon"
daemon=
ls "$work/renamed/tree" >/dev/null || fail "what is below the renamed folder is still mounted"

end_and_leave_what_covers() { # FOLDER
    end_with 1 "$daemon"
    daemon=
    grep -q "is mounted over $mnt" "$log" || fail "nothing said: $(cat "$log")"
    [ "$(cat "$1/file")" = kept ] || fail "the other file system is gone"
    : >"$log"
}

# A mount that is older than the tree is before it in the mount table, also where it was moved over it.
mkdir "$work/older"
mount -t tmpfs other "$work/older"
echo kept >"$work/older/file"
start_daemon
mount --move "$work/older" "$mnt"
end_and_leave_what_covers "$mnt"
umount "$mnt"
umount -l "$mnt" # the tree, which nothing serves

mkdir "$work/above" "$work/above/tree"
mnt=$work/above/tree
start_daemon
mount -t tmpfs other "$work/above"
echo kept >"$work/above/file"
end_and_leave_what_covers "$work/above"
umount "$work/above"
umount -l "$mnt"
