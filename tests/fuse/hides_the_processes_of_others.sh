#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# -o hidepid: users see their own processes alone, in every file of the tree; a group and root see
# all; the sums of a GPU stay those of all processes.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

chmod 1777 "$run"
list_gpus 1
a=(setpriv --reuid 1001 --regid 1001 --clear-groups --)
b=(setpriv --reuid 1002 --regid 1002 --clear-groups --)
member=(setpriv --reuid 1003 --regid 1003 --groups 1500 --)
cp "$RMMFS_PROGRAM" "$work/secret_of_a"
RMMFS_PROGRAM=$work/secret_of_a start_program theirs "${a[@]}"
start_program ours "${b[@]}"
for name in theirs ours; do
    gpu "$name" 0
    tell "$name" alloc 0 1000
    tell "$name" resource 1 pool "pool_$name" 0 0
    tell "$name" refuse 1 7000
done
theirs=${program_pid[theirs]}
ours=${program_pid[ours]}
tables="oom oom.json metrics metrics.all rmm.prom metrics.om json top index.html processes users cgroups jobs dmem gpu0/processes daemon/rejected daemon/over_budget"

can() { # COMMAND...: as B
    "${b[@]}" "$@" >"$work/seen" 2>"$work/errors"
}
# What B is told of A's process: nothing, by any name, in any table.
sees_nothing_of_a() {
    local file
    for file in $tables; do
        can cat "$mnt/$file" || fail "B cannot read $file: $(cat "$work/errors")"
        ! grep -qE "secret_of_a|pool_theirs|\b1001\b|\b$theirs\b" "$work/seen" ||
            fail "$file shows B: $(grep -E "secret_of_a|pool_theirs|1001|$theirs" "$work/seen" | head -n 3)"
    done
    can grep -q "\b$ours\b" "$mnt/processes" || fail "B does not see its own process"
    can grep -q "pool_ours" "$mnt/metrics.all" || fail "B does not see its own pool"
    for file in cmdline comm stat state uid gpu0/current_bytes gpu0/stat; do
        ! can cat "$mnt/proc/$theirs/$file" || fail "B reads proc/<pid of A>/$file"
    done
    ! can ls "$mnt/proc/$theirs" || fail "B lists A's directory"
    can cat "$mnt/proc/$ours/cmdline" || fail "B cannot read its own cmdline"
    [ "$("${b[@]}" cat "$mnt/gpu0/current_bytes")" = 2000 ] || fail "the sum is not that of all"
}
# A, root, and the group see A's process.
sees_all() { # COMMAND...
    local file
    for file in processes json metrics gpu0/processes; do
        "$@" grep -q "\b$theirs\b" "$mnt/$file" || fail "$* does not see A in $file"
    done
    "$@" grep -q secret_of_a "$mnt/proc/$theirs/cmdline" || fail "$* does not read A's cmdline"
    "$@" ls "$mnt/proc" | grep -q "^$theirs$" || fail "$* does not see A's directory"
    "$@" cat "$mnt/proc/$theirs/gpu0/mr/1.pool_theirs/stat" >/dev/null || fail "$*: a resource of A"
}

# Without the option, as with /proc: everybody sees the cmdline.
start_daemon
sees_all "${b[@]}"
stop_daemon

for level in 1 noaccess; do
    start_daemon -o "hidepid=$level,gid=1500"
    sees_nothing_of_a
    can stat -c %u "$mnt/proc/$theirs" && [ "$(cat "$work/seen")" = 1001 ] ||
        fail "noaccess hides A's directory itself"
    sees_all env
    sees_all "${member[@]}"
    stop_daemon
done

start_daemon -o hidepid=invisible,gid=1500
cat "$mnt/proc/$theirs/comm" >/dev/null # so that the kernel knows the name
sees_nothing_of_a
! can stat "$mnt/proc/$theirs" || fail "B sees that A's process is there"
can ls "$mnt/proc"
[ "$(cat "$work/seen")" = "$ours" ] || fail "proc lists for B: $(cat "$work/seen")"
sees_all env
sees_all "${member[@]}"
! "${member[@]}" cat "$mnt/proc/$theirs/log" 2>/dev/null || fail "the group reads A's log"
! "${a[@]}" test -w "$mnt/proc/$ours/gpu0/limit_bytes" || fail "A may write to B's files"

# A descriptor that goes from root to B, or a thread that becomes B, gives B nothing of A's.
cat >"$work/hand_on.py" <<'END'
import os, sys
mount, pid = sys.argv[1:3]
files = ["processes", "json", "metrics", "daemon/rejected", "gpu0/processes", "proc/%s/cmdline" % pid,
         "proc/%s/stat" % pid]
fds = [os.open(mount + "/" + file, os.O_RDONLY) for file in files]
paths = [os.open(mount + "/" + file, os.O_PATH) for file in files]
sizes = [os.stat(mount + "/" + file).st_size for file in files]
os.setgroups([])
os.setresgid(1002, 1002, 1002)
os.setresuid(1002, 1002, 1002)
for file, fd, path in zip(files, fds, paths):
    try:
        sys.exit("%s: %r" % (file, os.pread(fd, 100, 0)))
    except PermissionError:
        pass
    try:
        text = os.read(os.open("/proc/self/fd/%d" % path, os.O_RDONLY), 1 << 20)
        assert not file.startswith("proc/"), file
    except PermissionError:
        assert file.startswith("proc/"), file
        continue
    assert pid.encode() not in text and b"secret" not in text, file
public = os.open(mount + "/gpu0/current_bytes", os.O_RDONLY)
assert os.read(public, 100) == b"2000\n"
END
python3 "$work/hand_on.py" "$mnt" "$theirs" || fail "a descriptor of root's"
stop_daemon

# Without a group nobody but root and the owner.
start_daemon -o hidepid=2
sees_nothing_of_a
! "${member[@]}" grep -q secret_of_a "$mnt/processes" || fail "a group that was not named sees A"
stop_daemon

for wrong in hidepid=3 hidepid= gid=no_such_group gid=4294967295 gid=; do
    status=0
    "$RMMFS" -f -o "$wrong" "$mnt" 2>"$work/errors" || status=$?
    [ "$status" = 2 ] && [ "$(wc -l <"$work/errors")" = 1 ] || fail "-o $wrong: $status, $(cat "$work/errors")"
done
