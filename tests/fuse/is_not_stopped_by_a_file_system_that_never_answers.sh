#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A user mounts a file system that never answers (FUSE) over each place that the daemon looks
# at: his session's folder, the folder of segments in it, that in shared memory, a segment and
# a side file in /run/rmm. The daemon goes on, also one that starts then, with and without
# openat2, and so do programs that start. In a mount namespace with a /run and a /dev/shm of
# its own.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
enter_own_places
as=(setpriv --reuid 65534 --regid 65534 --clear-groups --)

# As the user, where fusermount3 and a fuse.conf allow it; else root mounts for him.
hanging=("$RMMFS_HANG")
if command -v fusermount3 >/dev/null; then
    mkdir "$work/dev"
    mknod "$work/dev/fuse" c 10 229
    chmod 666 "$work/dev/fuse"
    mount --bind "$work/dev/fuse" /dev/fuse
    echo user_allow_other >"$work/fuse.conf"
    touch /etc/fuse.conf
    mount --bind "$work/fuse.conf" /etc/fuse.conf
    hanging=("${as[@]}" "$RMMFS_HANG")
fi
hangs=()
hang() { # PATH
    "${hanging[@]}" "$1" >"$work/hang.out" 2>&1 &
    hangs+=($!)
    eventually grep -q . "$work/hang.out"
    grep -q "^ok" "$work/hang.out" || fail "cannot mount on $1: $(cat "$work/hang.out")"
    : >"$work/hang.out"
}

look() { # WHAT: the daemon answers, with right figures
    sleep 1.3 # beyond the next survey
    [ "$(timeout -s KILL 120 cat "$mnt/gpu0/current_bytes")" = 300 ] || fail "$1: stopped, or wrong"
}

mkdir -p /run/user/65534
chown 65534 /run/user/65534
chmod 700 /run/user/65534
"${as[@]}" mkdir -m 700 /run/user/65534/rmm /dev/shm/rmm-65534
start_daemon
start_program roots
gpu roots 0
tell roots alloc 0 300
look "before"
start_program users "${as[@]}"
gpu users 0
segment=$(basename "$(find /run/rmm -regex '.*/65534\.[0-9a-f]*')")
[ -n "$segment" ] || fail "no segment in /run/rmm"

"${as[@]}" touch "/run/rmm/65534.00000000000000aa" /run/rmm/.65534.00000000000000ab.tmp \
    "/run/rmm/$segment.leaks" "/run/rmm/$segment.diag" "/run/rmm/$segment.events"
hang /run/rmm/65534.00000000000000aa
look "a segment"
hang /run/rmm/.65534.00000000000000ab.tmp
hang "/run/rmm/$segment.leaks"
hang "/run/rmm/$segment.diag"
hang "/run/rmm/$segment.events"
hang "/run/rmm/$segment.control"
for file in leaks diag/usage events_pipe gpu0/peak_bytes; do
    timeout -s KILL 20 head -c 1 "$mnt/proc/${program_pid[users]}/$file" >/dev/null 2>&1 || [ $? -lt 124 ] ||
        [ $file = events_pipe ] || fail "$file: stopped"
done
look "side files"
hang /run/user/65534/rmm
hang /dev/shm/rmm-65534
look "folders"
hang /run/user/65534
look "the session"
grep -q "/run/user/65534 is ignored: its file system (fuse" "$log" || fail "nothing said of the session"

# Programs start beside it, and end; the sweep passes by.
timeout -s KILL 120 "$RMMFS_PROGRAM" </dev/null >/dev/null || fail "a program of root does not start: $?"
timeout -s KILL 120 "${as[@]}" "$RMMFS_PROGRAM" </dev/null >/dev/null || fail "a program of the user: $?"
sleep 10 # beyond the next sweep
look "the sweep"
stop_daemon

# One that starts then; as on a kernel without openat2, too.
start_daemon
look "after a start"
stop_daemon
real=$RMMFS
printf '#!/bin/sh\nexec %s without_openat2 %s "$@"\n' "$RMMFS_PROGRAM" "$real" >"$work/old_kernel"
chmod +x "$work/old_kernel"
RMMFS=$work/old_kernel
start_daemon
look "without openat2"
start_program late "${as[@]}"
gpu late 0
tell late alloc 0 4000
expect gpu0/current_bytes 4300
stop_daemon
RMMFS=$real

# Named by the administrator, it is refused.
mkdir "$work/wanted"
chown 65534 "$work/wanted"
hang "$work/wanted"
status=0
RMM_RUNTIME_DIR=$work/wanted timeout -s KILL 120 "$RMMFS" "$mnt" >"$work/out" 2>&1 || status=$?
[ "$status" = 1 ] || fail "a runtime directory that never answers: exit status $status"
grep -q "has the file system fuse.*, which may never answer: name another" "$work/out" || fail "$(cat "$work/out")"
[ "$(wc -l <"$work/out")" = 1 ] || fail "not one line: $(cat "$work/out")"
kill -KILL "${hangs[@]}"
wait "${hangs[@]}" 2>/dev/null || true
umount -l "$work/wanted"
