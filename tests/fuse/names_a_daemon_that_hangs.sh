#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A daemon that hangs, stopped or with requests that it has taken: rmmfs --clear, a second rmmfs and
# rmm-top --mount end with one line that gives the reason, and leave the mount alone; rmm-top without
# the mount works. The commands of docs/monitoring.md then get readers and a new daemon going.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
[ "$uid" = 0 ] || skip "needs root, to abort a connection"
top=${RMM_TOP:-$build/tools/top/rmm-top}
enter_mount_namespace
[ -e /sys/fs/fuse/connections/. ] && mount -t fusectl none /sys/fs/fuse/connections 2>/dev/null || true

# Into a pipe: its reader ends, although a process of the command's may be left.
says() { # TEXT COMMAND...
    local text=$1 status=0
    shift
    { timeout -k 1 120 "$@" 2>&1 || echo "status $?"; } | timeout 130 cat >"$work/out" || status=$?
    [ "$status" = 0 ] || fail "$*: a process holds its output"
    [ "$(wc -l <"$work/out")" = 2 ] && grep -qF -- "$text" "$work/out" && grep -qx "status 1" "$work/out" ||
        fail "$*: $(cat "$work/out")"
}

all_say_so() {
    device=$(awk -v at="$mnt" '$5 == at { sub(".*:", "", $3); print $3 }' /proc/self/mountinfo)
    hint="the rmmfs on $mnt does not answer: kill it, or abort its connection: \`echo 1 >/sys/fs/fuse/connections/$device/abort\`"
    says "$hint" "$RMMFS" --clear "$mnt"
    says "$hint" "$RMMFS" "$mnt"
    says "$hint" "$RMMFS" -f "$work/link"
    if [ -x "$top" ]; then
        says "rmmfs does not answer" "$top" --once --mount "$mnt"
        says "rmmfs does not answer" "$top" --json --mount "$mnt"
        timeout -k 1 120 "$top" --once >"$work/out" 2>&1 || fail "rmm-top without the mount: $(cat "$work/out")"
    fi
    [ "$(mount_type)" = fuse.rmmfs ] || fail "the mount is gone"
}

ln -s mnt "$work/link"
list_gpus 1
start_daemon
kill -STOP "$daemon"
all_say_so
kill -CONT "$daemon"
eventually answers
timeout 120 "$RMMFS" --clear "$mnt" || fail "--clear of a live mount"
answers || fail "--clear has ended a live mount"
says "is mounted on $mnt already (pid $daemon)" "$RMMFS" "$mnt"

# Killed while it is stopped: what waited gets an error, and the next start clears the mount.
kill -STOP "$daemon"
cat "$mnt/metrics" >/dev/null 2>"$work/why" &
waiting=$!
kill_daemon
wait "$waiting" && fail "a killed daemon has answered" || true
start_daemon
stop_daemon

# Requests that were taken, of a daemon that cannot be found: the page's commands.
"$RMMFS_HANG" "$mnt" tree >"$work/hang.out" 2>&1 &
hang=$!
eventually grep -q ok "$work/hang.out"
cat "$mnt/metrics" >/dev/null 2>"$work/why" &
waiting=$!
sleep 0.2
kill -KILL "$waiting"
sleep 0.2
kill -0 "$waiting" 2>/dev/null || fail "a reader whose request was taken has ended"
all_say_so
sed -n '/^ *```sh hangs$/,/^ *```$/p' "${test_path%/tests/*}/docs/monitoring.md" | sed '1d;$d' >"$work/page.sh"
[ -s "$work/page.sh" ] || fail "docs/monitoring.md has no such block"
sed -i "s|/rmm|$mnt|g; s|systemctl restart rmmfs|true|" "$work/page.sh"
PATH=${RMMFS%/*}:$PATH timeout -k 1 120 bash -euc "$(cat "$work/page.sh")" >"$work/out" 2>&1 || fail "the page's commands: $(cat "$work/out")"
wait "$waiting" && fail "it was answered" || true
! is_mounted || fail "the mount is still there"
kill "$hang" 2>/dev/null || true
start_daemon
stop_daemon
