#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The daemon and the programs share /run/rmm, but not the mount table, as in containers. A daemon whose
# mount only its container would see mounts nothing there; one whose mount is copied to the machine does;
# what a container that is older than the mount writes below it is shown. A folder that is closed to other
# users is opened, or both sides say that it is closed. Mount namespaces only: the same in real pods
# is in works_in_pods.sh.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
[ "$(id -u)" = 0 ] || skip "needs root, for mount namespaces"
if [ "${RMMFS_TEST_INSIDE:-}" != pids ]; then # process 1 of a pid namespace has the machine's mount table
    unshare --mount --pid --fork --mount-proc true 2>/dev/null || skip "no mount namespaces here"
    status=0
    ln -s "$BASH" "$work/init" # as a machine's process 1 is called
    RMMFS_TEST_INSIDE=pids unshare --mount --pid --fork --kill-child --mount-proc "$work/init" "$test_path" || status=$?
    exit $status
fi
enter_own_places
user=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
list_gpus 1

# start_daemon_in PROPAGATION: in a container that has the machine's /run.
real=$RMMFS
start_daemon_in() {
    printf '#!/bin/sh\nexec unshare --mount --propagation %s %s "$@"\n' "$1" "$real" >"$work/container"
    chmod +x "$work/container"
    "$work/container" -f "$mnt" 2>>"$log" &
    daemon=$!
    eventually serves
}
serves() {
    kill -0 "$daemon" 2>/dev/null || fail "rmmfs did not start"
    shows version 1
}
tree() { nsenter --mount="/proc/$daemon/ns/mnt" cat "$mnt/$1"; }
shows() { [ "$(tree "$1" 2>/dev/null)" = "$2" ]; }
mounts() { awk '$5 == "/run/rmm"' "/proc/$1/mountinfo"; }
mode() { stat -c %a "$1"; }
begin() {
    umount /run/rmm 2>/dev/null || true
    rm -rf /run/rmm /run/rmmfs
    : >"$log"
}
end() {
    kill_program "$1"
    stop_daemon
}

# A DaemonSet with the machine's /run, with and without a folder.
for before in "mkdir -m 1777 /run/rmm" true; do
    begin
    $before
    start_daemon_in private
    start_program a "${user[@]}"
    gpu a 0
    tell a alloc 0 40
    eventually shows gpu0/current_bytes 40
    [ -z "$(mounts "$daemon")" ] || fail "mounted where no program looks: $(mounts "$daemon")"
    grep -q "would hide the segments, so rmmfs mounts none" "$log" || fail "nothing said of the missing limit"
    [ "$(mode /run/rmm)" = 1777 ] || fail "/run/rmm has mode $(mode /run/rmm)"
    end a
done

# With propagation the mount is the machine's.
begin
mount --make-shared /run
start_daemon_in unchanged
mounts self | grep -q " - tmpfs rmm .*size=524288k" || fail "no mount on the machine: $(mounts self)"
start_program a "${user[@]}"
gpu a 0
tell a alloc 0 50
eventually shows gpu0/current_bytes 50
! grep -q '\[warn\]\|warn' "$log" || fail "it warns"
end a
umount /run/rmm
mount --make-private /run

# The folder itself mounted into the container, beside its file system: a mount, though the device is the same.
begin
mkdir -m 1777 /run/rmm
cat >"$work/with_folder" <<END
#!/bin/sh
mount --bind /run/rmm /run/rmm && exec $real "\$@"
END
chmod +x "$work/with_folder"
RMMFS=$work/with_folder
real=$RMMFS start_daemon_in private
start_program a "${user[@]}"
gpu a 0
tell a alloc 0 60
eventually shows gpu0/current_bytes 60
[ "$(mounts "$daemon" | wc -l)" = 1 ] || fail "mounted over a mount: $(mounts "$daemon")"
end a
RMMFS=$real

# A container that is older than the mount, with the folder that kubelet made for it.
begin
mkdir -m 755 /run/rmm
unshare --mount --propagation private sleep 1000 &
older=$!
is_apart() { [ "$(readlink "/proc/$older/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ]; }
eventually is_apart
start_daemon
[ -n "$(mounts self)" ] || fail "an empty folder is not bounded"
start_program a nsenter --mount="/proc/$older/ns/mnt" "${user[@]}"
gpu a 0
tell a alloc 0 70
start_program b "${user[@]}"
gpu b 0
tell b alloc 0 700
eventually is gpu0/current_bytes 770
[ "$(awk '$6 == "/run/rmm" { print $5, $3 }' "$mnt/daemon/directories")" = "ok 1777
below 1777" ] || fail "directories: $(cat "$mnt/daemon/directories")"
kill_program b
end a
kill "$older"

# Opened where nobody has chosen the mode. It holds a file, so that nothing is mounted over it.
for mode in 755 777 700; do
    begin
    mkdir -m $mode /run/rmm
    : >/run/rmm/file
    start_daemon
    [ "$(mode /run/rmm)" = 1777 ] || fail "$mode became $(mode /run/rmm)"
    [ $mode = 700 ] || grep -q "had mode 0$mode; it now has 1777" "$log" || fail "$mode: nothing said"
    stop_daemon
done

# Else both sides say it: a mode that somebody chose, and a file system that may not be changed.
closed() { # MODE WHAT
    start_daemon
    [ "$(mode /run/rmm)" = "$1" ] || fail "$1 became $(mode /run/rmm)"
    grep -q "$2" "$log" || fail "$1: the daemon does not say '$2'"
    [ "$(awk '$6 == "/run/rmm" { print $5 }' "$mnt/daemon/directories")" = closed ] ||
        fail "directories: $(cat "$mnt/daemon/directories")"
    : >"$work/programs.log"
    start_program a "${user[@]}"
    gpu a 0
    tell a alloc 0 1
    grep -q "/run/rmm, where rmmfs looks, is not writable: .*publishes in /dev/shm/rmm-65534 instead" \
        "$work/programs.log" || fail "$1: the program says: $(cat "$work/programs.log")"
    eventually is gpu0/current_bytes 1 # on the machine itself it is found there
    end a
}
begin
mkdir -m 750 /run/rmm
: >/run/rmm/file
closed 750 "/run/rmm has mode 0750: programs of users who may not write there"
begin
mkdir -m 755 /run/rmm
mount --bind /run/rmm /run/rmm
mount -o remount,bind,ro /run/rmm
closed 755 "rmmfs cannot change it to 1777: Read-only file system"
