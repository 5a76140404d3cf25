#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The unit under a real systemd, which is PID 1 of a container of its own: it starts the daemon, waits
# until it is ready, starts it again after a SIGKILL and when it stands still, and stops it. Figures
# outlive all of that, and lines in the journal have priorities. The units of rmm-exporter: it serves
# the tree as a user of its own, also by a socket, and starts and stops while the daemon hangs.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

# --- as PID 1 of the container ----------------------------------------------------------

# A root with the system's programs, but only the units that are needed.
make_root() { # ROOT
    local name unit units=$1/usr/lib/systemd/system
    mount -t tmpfs none "$1"
    mkdir -p "$1"/{usr,etc/systemd/system/rmmfs.service.d,proc,sys,dev,run,tmp,var/log,mnt}
    mount --rbind /usr "$1/usr"
    for name in bin sbin lib lib64; do
        [ ! -L /$name ] || cp -a /$name "$1/$name"
        [ -e "$1/$name" ] || { mkdir "$1/$name" && mount --rbind /$name "$1/$name"; }
    done
    mkdir "$1/units"
    for unit in sysinit basic local-fs local-fs-pre sockets timers paths slices shutdown umount final; do
        cp "/usr/lib/systemd/system/$unit.target" "$1/units"
    done
    cp /usr/lib/systemd/system/systemd-journald{.service,.socket,-dev-log.socket} "$1/units"
    mount --bind "$1/units" "$units"
    mount -t proc none "$1/proc"
    mount --bind "$1/proc/sys" "$1/proc/sys" # the machine's: systemd would change it
    mount -o remount,bind,ro "$1/proc/sys"
    mount -t sysfs none "$1/sys"
    mount -t cgroup2 none "$1/sys/fs/cgroup"
    mount --rbind /dev "$1/dev"
    mount -t tmpfs none "$1/dev/shm" # not the programs of the machine
    mount -t tmpfs none "$1/run"
    mount --bind "$2" "$1/mnt"
    echo root:x:0:0::/:/bin/sh >"$1/etc/passwd"
    echo root:x:0: >"$1/etc/group"
    touch "$1/etc/fstab"
    tr -d - </proc/sys/kernel/random/uuid >"$1/etc/machine-id"
}

if [ "${1:-}" = inside ]; then
    trap - EXIT
    rm -rf "$work" # that of the first run of the script is another one
    work=$2 root=$2/root
    mount --make-rprivate /
    make_root "$root" "$work/programs"
    cp "$work"/*.service "$work"/*.socket "$root/etc/systemd/system"
    # What a test cannot wait for.
    printf '[Service]\nWatchdogSec=2\nTimeoutAbortSec=1\nEnvironment=ASAN_OPTIONS=%s\n' "${ASAN_OPTIONS:-}" \
        >"$root/etc/systemd/system/rmmfs.service.d/test.conf"
    # LeakSanitizer looks by ptrace, which the unit forbids; other tests look for leaks.
    mkdir "$root/etc/systemd/system/rmm-exporter.service.d"
    printf '[Service]\nEnvironment=ASAN_OPTIONS=detect_leaks=0\n' \
        >"$root/etc/systemd/system/rmm-exporter.service.d/test.conf"
    printf '[Unit]\nWants=basic.target rmmfs.service systemd-journald.service\n' \
        >"$root/etc/systemd/system/test.target"
    mkdir "$root/old"
    cd "$root"
    pivot_root . old
    umount -l old
    mount --make-rshared / # as systemd does outside of containers: units with mounts of their own see new ones
    exec env -i container=test PATH=/usr/bin:/bin:/usr/sbin:/sbin /lib/systemd/systemd \
        --system --unit=test.target --log-target=console --show-status=no
fi

# --- outside -----------------------------------------------------------------------------

[ "$(id -u)" = 0 ] || skip "needs root, for a systemd of its own"
[ -x /lib/systemd/systemd ] || skip "no systemd here"
cgroups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
group=$cgroups/rmmfs-test.$$
[ -n "$cgroups" ] && mkdir "$group" 2>/dev/null || skip "no cgroup of version 2 can be made here"
manager=
leave() {
    local status=$?
    [ -z "$manager" ] || { kill -KILL "$manager" && wait "$manager"; } 2>/dev/null || true
    for _ in $(seq 50); do # until the last of its processes is gone
        find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null || true
        [ -e "$group" ] || break
        sleep 0.1
    done
    finish "$status"
}
trap leave EXIT
mkdir "$work/root" "$work/programs"
exporter=${RMM_EXPORTER:-$build/tools/exporter/rmm-exporter}
[ ! -x "$exporter" ] || cp "$exporter" "$work/programs"
units=${test_path%/tests/*}/tools/exporter
sed "s,@RMM_EXPORTER_BINDIR@,/mnt," "$units/rmm-exporter.service.in" >"$work/rmm-exporter.service"
cp "$units/rmm-exporter.socket" "$work"
cp "$RMMFS" "$RMMFS_PROGRAM" "$work/programs"
sed "s,@RMMFS_BINDIR@,/mnt," "${test_path%/tests/*}/fusefs/rmmfs.service.in" >"$work/rmmfs.service"
(
    echo "$BASHPID" >"$group/cgroup.procs"
    exec unshare --mount --pid --cgroup --uts --ipc --net --fork --kill-child "$test_path" inside "$work"
) >"$log" 2>&1 &
manager=$!

pid_1() { pgrep -P "$manager" | head -n 1; }
inside() { nsenter -t "$(pid_1)" -m -p -C -u -i -n env -i PATH=/usr/bin:/bin "$@"; }
property() { inside systemctl show -P "$1" rmmfs.service 2>/dev/null; }
property_is() { [ "$(property "$1")" = "$2" ]; }
# The watchdog may do so in between, where this machine stands still.
has_restarted() { [ "$(property NRestarts)" -gt "$before" ]; }
shows() { [ "$(inside cat "/rmm/$1" 2>/dev/null)" = "$2" ]; }
eventually property_is ActiveState active
[ "$(inside cat /proc/1/comm)" = systemd ] || fail "PID 1 is $(inside cat /proc/1/comm)"
shows version 1 || fail "ready, and no files are there"

inside sh -c 'RMM_DRIVER=sim exec /mnt/rmmfs_program many 1 2 GPU-00000000' >"$work/program" &
program=$!
eventually grep -q ok "$work/program" # it has allocated
eventually shows daemon/segments 1
total=$(inside cat /rmm/gpu0/total_bytes)
[ "$total" -gt 0 ] || fail "total_bytes is $total"

before=$(property NRestarts)
first=$(property MainPID)
inside kill -KILL "$first"
eventually has_restarted
eventually property_is ActiveState active
[ "$(property MainPID)" != "$first" ] || fail "after SIGKILL it is the same process"
shows gpu0/total_bytes "$total" || fail "after a SIGKILL total_bytes is $(inside cat /rmm/gpu0/total_bytes)"

before=$(property NRestarts)
inside kill -STOP "$(property MainPID)"
eventually has_restarted
eventually property_is ActiveState active
shows gpu0/total_bytes "$total" || fail "after a watchdog total_bytes is $(inside cat /rmm/gpu0/total_bytes)"

inside pkill -KILL rmmfs_program
wait "$program" 2>/dev/null || true
eventually shows daemon/segments 0
inside systemctl stop rmmfs.service
property_is ActiveState inactive || fail "stopped, it is $(property ActiveState)"
property_is Result success || fail "its end was $(property Result)"
! inside grep -q " /rmm " /proc/self/mountinfo || fail "/rmm is still mounted"
inside systemctl start rmmfs.service
shows gpu0/total_bytes "$total" || fail "after a start total_bytes is $(inside cat /rmm/gpu0/total_bytes)"

inside journalctl -q -u rmmfs.service -o cat -p info >"$work/info"
inside journalctl -q -u rmmfs.service -o cat -p err >"$work/errors"
grep -q "mounted on /rmm" "$work/info" || fail "the journal has $(cat "$work/info")"
! grep -q "mounted on /rmm" "$work/errors" || fail "information has the priority of an error"

# --- rmm-exporter --------------------------------------------------------------------------

[ -x "$work/programs/rmm-exporter" ] || { inside systemctl stop rmmfs.service; exit 0; }
served() { inside curl -s -m 20 http://127.0.0.1:19400/metrics 2>/dev/null | grep -qx "rmm_up $1"; }
inside /usr/sbin/ip link set lo up
inside systemctl start rmm-exporter.service || fail "rmm-exporter: $(inside journalctl -q -u rmm-exporter)"
eventually served 1
server=$(inside systemctl show -P MainPID rmm-exporter.service)
[ "$(inside stat -c %u "/proc/$server")" != 0 ] || fail "rmm-exporter runs as root"

# The daemon hangs, and no watchdog ends it.
inside sh -c 'printf "[Service]\nWatchdogSec=0\n" >/etc/systemd/system/rmmfs.service.d/test.conf'
inside systemctl daemon-reload
inside systemctl restart rmmfs.service
eventually served 1
inside kill -STOP "$(property MainPID)"
eventually served 0
timeout 120 nsenter -t "$(pid_1)" -m -p -C -u -i -n systemctl restart rmm-exporter.service ||
    fail "while the daemon hangs, rmm-exporter does not start: $(inside journalctl -q -u rmm-exporter)"
eventually served 0
inside kill -CONT "$(property MainPID)"
eventually served 1
inside systemctl stop rmm-exporter.service
[ "$(inside systemctl show -P Result rmm-exporter.service)" = success ] || fail "the end of rmm-exporter"

inside systemctl start rmm-exporter.socket
eventually served 1
inside systemctl stop rmm-exporter.socket rmm-exporter.service
inside systemctl stop rmmfs.service
