#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rmmfs --check says for each fact whether it is as it should be, and rmmfs --ping whether the daemon
# answers; both in bounded time when it hangs. In a mount namespace with a /run and a /dev/shm of its own.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
enter_own_places
user=(setpriv --reuid 65534 --regid 65534 --clear-groups --)

# check STATUS [ARGUMENT...]: to $work/facts
check() {
    local wanted=$1 status=0
    shift
    "${as[@]}" "$RMMFS" --check "$@" >"$work/facts" 2>"$work/errors" || status=$?
    [ "$status" = "$wanted" ] || fail "--check $* ended with $status: $(cat "$work/facts" "$work/errors")"
    [ ! -s "$work/errors" ] || [ "$wanted" = 2 ] || fail "--check $*: $(cat "$work/errors")"
}
as=()
told() { grep -qE "$1" "$work/facts" || fail "not told: $1; but: $(cat "$work/facts")"; }
ping_fails() { # WHY
    ! "$RMMFS" --ping "$mnt" 2>"$work/errors" || fail "--ping succeeds: $1"
    grep -q "$1" "$work/errors" || fail "--ping says: $(cat "$work/errors"), not: $1"
}

# Before the daemon.
check 1 "$mnt"
told '^FAILED  /run/rmm: No such file or directory: start rmmfs'
told "^FAILED  no rmmfs is mounted on $mnt "
ping_fails "no rmmfs is mounted on $mnt"

# As it should be: as root and as the user.
start_daemon
start_program a "${user[@]}"
gpu a 0
pid=${program_pid[a]}
"$RMMFS" --ping "$mnt" || fail "--ping fails"
for as in "" "${user[*]}"; do
    read -ra as <<<"$as"
    check 0 "$pid" "$mnt"
    told '^ok      /run/rmm is on tmpfs, mounted on /run/rmm$'
    told '^ok      /run/rmm has mode 1777, owner root$'
    told "^ok      rmmfs \(pid $daemon\) answers on $mnt$"
    told '^ok      the daemon looks at this /run/rmm$'
    told "^ok      process $pid has the segment /run/rmm/65534\.[0-9a-f]{16}$"
    told '^ok      the daemon looks at that file system: /run/rmm$'
    told "^ok      $mnt/proc/$pid is there$"
    check 0 "$mnt"
done
as=()

# Without a name a user looks at root's tree, if there is no other. /rmm is made in a view of the root.
mkdir -p /run/root/{upper,work,all} /run/root/upper/{rmm,run,dev,proc}
mount -t overlay -o lowerdir=/,upperdir=/run/root/upper,workdir=/run/root/work overlay /run/root/all
for place in run dev proc; do mount --rbind "/$place" "/run/root/all/$place"; done
mount --bind "$mnt" /run/root/all/rmm
as=(env HOME=/nonexistent chroot --userspec=65534:65534 /run/root/all)
cp "$RMMFS" /run/root/upper/rmm-check
RMMFS=/rmm-check check 0
told "^ok      rmmfs \(pid $daemon\) answers on /rmm$"
as=()
umount -R /run/root/all

# A process without a segment, none, another user's, and wrong usage.
sleep 1000 &
check 1 $! "$mnt"
told "^FAILED  process $! has no segment: it does not use librmm-c"
kill $!
check 1 2147483647 "$mnt"
told '^FAILED  there is no process 2147483647$'
as=(setpriv --reuid 65533 --regid 65533 --clear-groups --)
check 1 "$pid" "$mnt"
told "^FAILED  process $pid: Permission denied: run this as root or as its user$"
as=()
check 2 "$pid" "$mnt" more
grep -q "rmmfs: one mount point only, not also 'more'" "$work/errors" || fail "$(cat "$work/errors")"

# Programs that look elsewhere: by a variable, and in a container that has a /run of its own.
mkdir "$work/elsewhere"
RMM_RUNTIME_DIR=$work/elsewhere start_program b
gpu b 0
RMM_RUNTIME_DIR=$work/elsewhere check 1 "${program_pid[b]}" "$mnt"
told "^FAILED  the daemon does not look at this $work/elsewhere: give both the same folder"
told "^FAILED  the daemon looks nowhere on the file system of $work/elsewhere/0\."
told "^FAILED  $mnt/proc/${program_pid[b]}: No such file or directory: see daemon/unshown"
kill_program b
cat >"$work/container" <<'END'
#!/bin/sh
mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /dev/shm && exec "$@"
END
chmod +x "$work/container"
start_program c unshare --mount "$work/container"
gpu c 0
check 1 "${program_pid[c]}" "$mnt"
told "^ok      process ${program_pid[c]} has the segment /dev/shm/rmm-0/0\.[0-9a-f]{16}, in another mount namespace$"
told "^FAILED  the daemon looks nowhere on the file system of /dev/shm/rmm-0/0\..*needs the machine's /run/rmm"
kill_program c

# A folder that was closed while the daemon runs.
chmod 755 /run/rmm
check 1 "$mnt"
told '^FAILED  /run/rmm has mode 0755, and other users cannot write there: `chmod 1777 /run/rmm`'
told "^FAILED  the daemon's /run/rmm has mode 0755"
chmod 1777 /run/rmm

# A daemon that hangs, and one that was killed.
kill -STOP "$daemon"
is_stopped() { [ -z "$(grep -h '^State:' "/proc/$daemon"/task/*/status | grep -v stopped)" ]; }
eventually is_stopped
ping_fails "the rmmfs on $mnt does not answer within 3 s"
check 1 "$pid" "$mnt"
told "^FAILED  the rmmfs on $mnt does not answer within 3 s$"
told "^ok      process $pid has the segment"
kill -CONT "$daemon"
"$RMMFS" --ping "$mnt" || fail "--ping fails after the stop"
kill_daemon
ping_fails "Transport endpoint is not connected: it was killed"
check 1 "$mnt"
told "^FAILED  the rmmfs on $mnt does not answer: .*: it was killed: start it again, or rmmfs --clear$"
"$RMMFS" --clear "$mnt"

# -o mkdir makes the mount point, and only that.
rmdir "$mnt"
start_daemon -o mkdir
stop_daemon
! "$RMMFS" -o mkdir "$work/none/mnt" 2>"$work/errors" || fail "made a parent"
[ ! -e "$work/none" ] || fail "made a parent"

# A mount point that was mounted into the container by itself (a hostPath): told of.
: >"$log"
mkdir "$work/host"
mount --bind "$work/host" "$mnt"
mount --make-shared "$mnt"
start_daemon
grep -q "$mnt is itself mounted into this container: if rmmfs is killed" "$log" || fail "nothing said of the hostPath"
kill -TERM "$daemon"
wait "$daemon" || fail "rmmfs ended with $?"
daemon=
umount "$mnt"
kill_program a
