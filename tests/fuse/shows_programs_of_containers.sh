#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs of rootless containers: in user namespaces uid 0 is another user outside, so a
# segment's name says 0 and its file has another owner. They are shown as that owner's, under
# the host's pid, and swept; a file whose name pretends to be another user's is shown
# as himself, and gets nothing that is the other's.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
as=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
chmod 1777 "$run"
"${as[@]}" unshare -U -r true 2>/dev/null || skip "no user namespaces here"
list_gpus 1

# One user as root of a namespace of his own, and with pids of its own.
start_daemon
start_program mine "${as[@]}" unshare -U -r
gpu mine 0
tell mine alloc 0 1000
ls "$run"/0.* >/dev/null || fail "the segment is not named as its process sees itself: $(ls "$run")"
eventually is gpu0/current_bytes 1000
expect "proc/${program_pid[mine]}/uid" 65534
expect daemon/segments_rejected 0
tell mine log 3 words of the container
grep -q "words of the container" "$mnt/proc/${program_pid[mine]}/log" || fail "root does not read the log"
"${as[@]}" grep -q "words of the container" "$mnt/proc/${program_pid[mine]}/log" || fail "its owner does not"
! setpriv --reuid 65533 --regid 65533 --clear-groups cat "$mnt/proc/${program_pid[mine]}/log" 2>/dev/null ||
    fail "another user reads it"

start_program nested "${as[@]}" unshare -U -r -p -f --kill-child
gpu nested 0
tell nested alloc 0 20
eventually is gpu0/current_bytes 1020
pid=$(cat "/proc/${program_pid[nested]}/task/${program_pid[nested]}/children" | tr -d ' ')
expect "proc/$pid/uid" 65534
expect "proc/$pid/gpu0/current_bytes" 20

# A range of mapped users: uid 5 inside is 100005 outside.
cat >"$work/mapped" <<'END'
#!/usr/bin/env python3
"""Runs a command as uid 5 of a user namespace that maps 0..65535 to 100000 on."""
import os, sys
up, down = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    import ctypes
    os.setgroups([])
    if ctypes.CDLL(None, use_errno=True).unshare(0x10000000) != 0:
        os._exit(1)
    os.write(up[1], b"x")
    os.read(down[0], 1)
    os.setgid(5)
    os.setuid(5)
    os.execvp(sys.argv[1], sys.argv[1:])
os.read(up[0], 1)
for name in "uid_map", "gid_map":
    with open("/proc/%d/%s" % (child, name), "w") as file:
        file.write("0 100000 65536")
os.write(down[1], b"x")
with open(os.environ["MAPPED_PID"], "w") as file:
    file.write(str(child))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) and 1)
END
chmod 755 "$work/mapped"
export MAPPED_PID=$work/mapped.pid
start_program mapped "$work/mapped"
gpu mapped 0
tell mapped alloc 0 300
ls "$run"/5.* >/dev/null || fail "no segment of uid 5: $(ls "$run")"
eventually is gpu0/current_bytes 1320
eventually test -s "$MAPPED_PID"
expect "proc/$(cat "$MAPPED_PID")/uid" 100005

# Ended, they are in the totals once, made small, and swept as others are.
kill_program mine
end_program mapped
kill -KILL "$pid"
eventually is gpu0/current_bytes 0
expect gpu0/total_bytes 1320
expect daemon/segments_rejected 0
live() { find "$run" -regex '.*/[05]\.[0-9a-f]*' -perm -200; }
all_marked() { [ -z "$(live)" ]; }
eventually all_marked
find "$run" -regex '.*/[05]\.[0-9a-f]*' -exec touch -d "2 minutes ago" {} +
all_gone() { [ -z "$(find "$run" -regex '.*/[05]\..*')" ]; }
eventually all_gone

# The victim's name on a file of another user.
start_program victim setpriv --reuid 65533 --regid 65533 --clear-groups --
gpu victim 0
tell victim alloc 0 7
tell victim log 3 the secret
chmod 755 "$work"
start_program model "${as[@]}"
gpu model 0
cp "$(find "$run" -regex '.*/65534\.[0-9a-f]*' | head -1)" "$work/template"
chmod 644 "$work/template"
kill_program model
# No process has the start time that it claims.
ATTACK_UID=65534 python3 "$(dirname "$0")/attack.py" claim "$run" 65533.00000000000000aa "$work/template" 1 &
eventually test -e "$mnt/proc/seg-00000000000000aa"
expect proc/seg-00000000000000aa/uid 65534
expect "proc/${program_pid[victim]}/uid" 65533
expect gpu0/current_bytes 7
! "${as[@]}" cat "$mnt/proc/${program_pid[victim]}/log" 2>/dev/null || fail "the forger reads the victim's log"
! "${as[@]}" grep "the secret" "$mnt/log" || fail "the forger reads the victim's line"
stop_daemon
