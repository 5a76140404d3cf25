#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# kill -9 of rmmfs and a restart: the dead mount is cleared, every figure is as before,
# and who ended meanwhile is counted once.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

figures() {
    (cd "$mnt" && cat devices && grep . gpu?/* host/* && ls proc) 2>/dev/null |
        grep -v -e ':device_free' -e '^gpu0/processes'
}

list_gpus 2
start_daemon
start_program a
start_program b
start_program c
gpu a 0
gpu b 0
gpu c 1
tell a alloc 0 1000
tell b alloc 0 500
expect gpu0/current_bytes 1500
tell b free 0 500
tell c alloc 1 77
end_program c
expect gpu0/peak_bytes 1500
expect gpu1/total_bytes 77
tell a alloc 32 9
start_program exited
gpu exited 1
tell exited alloc 1 100
kill_program exited
expect gpu1/peak_bytes 100
figures >"$work/before"

kill_daemon
if cat "$mnt/version" 2>"$work/error"; then
    fail "something answers after the daemon was killed"
fi
grep -q "not connected" "$work/error" || fail "a dead mount says $(cat "$work/error")"
start_daemon
figures >"$work/after"
diff "$work/before" "$work/after" || fail "figures changed over a restart"

# Again, with one that ends while no reader looks.
b=${program_pid[b]}
kill_daemon
tell b alloc 0 10
end_program b
start_daemon
expect gpu0/total_bytes 1510
expect gpu0/current_bytes 1000
expect gpu0/peak_bytes 1500
expect "proc/$b/state" exited
expect "proc/$b/gpu0/total_bytes" 510
kill_daemon
start_daemon
expect gpu0/total_bytes 1510
expect gpu1/total_bytes 177
[ "$(grep -c "$mnt " /proc/self/mountinfo)" = 1 ] || fail "mounts are stacked"

# What two programs held at once is in no segment: it is saved when it is seen.
start_program d
gpu d 0
tell d alloc 0 7000
expect gpu0/current_bytes 8000
tell d free 0 7000
kill_daemon
start_daemon
expect gpu0/current_bytes 1000
expect gpu0/peak_bytes 8000

# One that ends while a daemon runs and no reader reads, and whose segment is gone.
start_program unread
gpu unread 1
tell unread alloc 1 100
eventually is gpu1/current_bytes 100
find "$run" -regex ".*/$uid\\.[0-9a-f]*" -delete
kill_program unread
eventually grep -q "^exited GPU-00000001 total_bytes 277$" "$run/rmmfs.state"
kill_daemon
start_daemon
expect gpu1/total_bytes 277
stop_daemon

# Its connection is cut: it fails, so that a service manager starts it again, and leaves no mount.
mkdir "$work/connections"
if mount -t fusectl none "$work/connections" 2>/dev/null; then
    start_daemon
    device=$(stat -c %d "$mnt")
    echo 1 >"$work/connections/$device/abort" || true
    umount "$work/connections"
    status=0
    wait "$daemon" || status=$?
    daemon=
    [ "$status" = 1 ] || fail "rmmfs ended with $status when its connection was cut"
    grep -q "the connection to the kernel was cut" "$log" || fail "nothing said of it"
    ! is_mounted || fail "still mounted"
fi
