#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each ring that an events_pipe reads takes a descriptor of the daemon's, and one handle of who
# reads it: a user may read half as many pipes as files, gets EDQUOT then, and the rest of the
# daemon's descriptors are left to others.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

[ "$(ulimit -Hn)" -ge 5000 ] || skip "needs 5000 descriptors"
ulimit -Sn 5000
chmod 1777 "$run"
start_daemon
start_program hostile setpriv --reuid 65534 --regid 65534 --clear-groups --
start_program innocent
process=proc/${program_pid[hostile]}
echo 1 >"$mnt/$process/trace/enable"
tell hostile event allocate 0x2000 1024 0
before=$(find "/proc/$daemon/fd" | wc -l)

cat >"$work/pipes.py" <<'END'
import os, sys
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
pipes = []
try:
    for _ in range(3000):
        pipes.append(os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK))
        if b"allocate" not in os.read(pipes[-1], 4096):
            sys.exit("no event")
except OSError as error:
    print(len(pipes), error.errno, flush=True)
else:
    print(len(pipes), 0, flush=True)
sys.stdin.readline()
for pipe in pipes:
    os.close(pipe)
print("closed", flush=True)
sys.stdin.readline()
END
mkfifo "$work/in" "$work/out"
python3 "$work/pipes.py" "$mnt/$process/events_pipe" <"$work/in" >"$work/out" &
reader=$!
exec 7>"$work/in" 8<"$work/out"
read -r count error <&8 || true
echo "$count pipes, then error $error"
[ "$error" = 122 ] || fail "after $count pipes the error is $error, not EDQUOT"
[ "$count" -gt 2000 ] && [ "$count" -le 2049 ] || fail "$count pipes fit"
now=$(find "/proc/$daemon/fd" | wc -l)
[ $((now - before)) -le 2050 ] || fail "the daemon has $now descriptors, $before before"
grep -q "^65534 handles 4096 4096 [1-9]" "$mnt/daemon/over_budget" ||
    fail "over_budget: $(cat "$mnt/daemon/over_budget")"
expect "proc/${program_pid[innocent]}/state" live

# What is closed is given back, descriptors and handles.
echo >&7
read -r count <&8 || true
[ "$count" = closed ] || fail "the reader says $count"
given_back() {
    [ "$(find "/proc/$daemon/fd" | wc -l)" -le $((before + 5)) ] &&
        grep -q "^65534 handles 0 4096" "$mnt/daemon/over_budget"
}
eventually given_back
exec 7>&-
wait "$reader"
stop_daemon
