#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A user who writes into /run/rmm as much as possible fills neither /run nor, where the kernel
# has quotas for tmpfs, the place of other users. A folder that holds segments is not hidden by
# a mount. In a mount namespace with a /run and a /dev/shm of its own.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
enter_mount_namespace
mount -t tmpfs -o size=32m tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
unset RMM_RUNTIME_DIR
a=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
b=(setpriv --reuid 65533 --regid 65533 --clear-groups --)
list_gpus 1
mounted() { awk '$5 == "/run/rmm"' /proc/self/mountinfo; }

start_daemon
mounted | grep "nosuid,nodev,noexec" | grep -q " - tmpfs rmm .*size=524288k,nr_inodes=65536" ||
    fail "/run/rmm is not bounded: $(mounted)"
[ "$(stat -c '%a %u' /run/rmm)" = "1777 0" ] || fail "/run/rmm is $(stat -c '%a %u' /run/rmm)"
if mounted | grep -q usrquota; then
    ! "${a[@]}" sh -c 'head -c 200000000 /dev/zero >/run/rmm/filler' 2>"$work/error" || fail "no quota"
    grep -q "quota exceeded" "$work/error" || fail "$(cat "$work/error")"
    "${a[@]}" sh -c 'i=0; while [ $i -lt 20000 ] && : >/run/rmm/.f$i; do i=$((i+1)); done' 2>"$work/error" || true
    grep -q -i "quota exceeded" "$work/error" || fail "no quota of files: $(tail -1 "$work/error")"
else
    ! "${a[@]}" sh -c 'head -c 600000000 /dev/zero >/run/rmm/filler' 2>/dev/null || fail "no bound"
    rm /run/rmm/filler
fi
head -c 1000000 /dev/zero >/run/still_room || fail "/run is full"
start_program other "${b[@]}"
gpu other 0
tell other alloc 0 5
expect gpu0/current_bytes 5
stop_daemon
[ "$(mounted | wc -l)" = 1 ] || fail "the mount did not stay: $(mounted)"
start_daemon
[ "$(mounted | wc -l)" = 1 ] || fail "mounted twice: $(mounted)"
expect gpu0/current_bytes 5
kill_program other
stop_daemon

# A plain folder, in use and not.
umount /run/rmm
chmod 1777 /run/rmm
start_program early "${b[@]}"
gpu early 0
tell early alloc 0 70
: >"$log"
start_daemon
[ -z "$(mounted)" ] || fail "a folder in use is hidden"
grep -q "/run/rmm already holds segments, so rmmfs mounts no tmpfs" "$log" || fail "nothing said"
expect gpu0/current_bytes 70
kill_program early
stop_daemon
rm -r /run/rmm/*
start_daemon
[ "$(mounted | wc -l)" = 1 ] || fail "an empty folder is not bounded"
stop_daemon
