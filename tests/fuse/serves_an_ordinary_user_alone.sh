#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run by a user: that user's programs, read by that user; nobody else gets in.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
command -v fusermount3 >/dev/null || skip "no fusermount3"
as=(setpriv --reuid 65534 --regid 65534 --clear-groups --)

chmod 1777 "$run"
chown 65534 "$mnt"
# /dev/fuse is root's on some machines: in a mount namespace of its own it need not be.
inside=$work/inside.sh
cat >"$inside" <<'END'
set -eu
mkdir "$work/dev"
mknod "$work/dev/fuse" c 10 229
chmod 666 "$work/dev/fuse"
mount --bind "$work/dev/fuse" /dev/fuse
exec setpriv --reuid 65534 --regid 65534 --clear-groups -- bash "$work/user.sh"
END
cat >"$work/user.sh" <<'END'
set -eu
"$RMMFS" -f "$mnt" 2>>"$work/user.log" &
daemon=$!
for i in $(seq 1200); do
    [ ! -e "$mnt/version" ] || break
    kill -0 "$daemon" || exit 1
    sleep 0.05
done
touch "$work/shared/up"
while [ ! -e "$work/shared/look" ]; do sleep 0.05; done
cat "$mnt/gpu0/current_bytes" >"$work/shared/seen"
ls "$mnt/proc" >"$work/shared/processes"
echo >"$mnt/gpu0/peak_bytes" && cat "$mnt/gpu0/peak_bytes" >"$work/shared/peak"
awk -v at="$mnt" '$5 == at' /proc/self/mountinfo >"$work/shared/mount"
kill -TERM "$daemon"
wait "$daemon"

# Without a mount point ~/rmm, made; killed, cleared and mounted again.
export HOME=$work/home
"$RMMFS"
daemon=$(cat "$HOME/rmm/daemon/pid")
kill -KILL "$daemon"
while kill -0 "$daemon" 2>/dev/null && ! grep -q "State:.Z" "/proc/$daemon/status"; do sleep 0.05; done
"$RMMFS" && cat "$HOME/rmm/gpu0/current_bytes" >"$work/shared/again"
kill -TERM "$(cat "$HOME/rmm/daemon/pid")"
while grep -q "$HOME/rmm" /proc/self/mountinfo; do sleep 0.05; done
END
export work mnt
if ! "${as[@]}" test -w /dev/fuse; then
    status=0
    "${as[@]}" "$RMMFS" "$mnt" >"$work/out" 2>&1 || status=$?
    [ "$status" = 1 ] && [ "$(wc -l <"$work/out")" = 1 ] || fail "without /dev/fuse: $status, $(cat "$work/out")"
    grep -q "cannot open /dev/fuse: Permission denied: ask for access" "$work/out" || fail "$(cat "$work/out")"
    ! is_mounted || fail "mounted without /dev/fuse"
fi
mkdir -m 777 "$work/shared"
install -d -o 65534 "$work/home"
touch "$work/user.log"
chmod 666 "$work/user.log"
start_program mine "${as[@]}"
start_program roots
gpu mine 0
gpu roots 0
tell mine alloc 0 100
tell mine free 0 90
tell roots alloc 0 5000
"$RMMFS_PROGRAM" mounts bash "$inside" &
user=$!
ended() { ! kill -0 "$user" 2>/dev/null; }
up_or_ended() { [ -e "$work/shared/up" ] || ended; }
eventually up_or_ended
[ -e "$work/shared/up" ] || fail "a user's daemon did not start: $(cat "$work/user.log")"
touch "$work/shared/look"
wait "$user" || fail "the user's look: $(cat "$work/user.log")"
[ "$(cat "$work/shared/seen")" = 10 ] || fail "gpu0/current_bytes is $(cat "$work/shared/seen")"
[ "$(cat "$work/shared/processes")" = "${program_pid[mine]}" ] || fail "proc has $(cat "$work/shared/processes")"
[ "$(cat "$work/shared/peak")" = 10 ] || fail "peak is $(cat "$work/shared/peak")"
grep -q fuse.rmmfs "$work/shared/mount" || fail "mount is $(cat "$work/shared/mount")"
! grep -q allow_other "$work/shared/mount" || fail "others may look"
[ -e "$run/rmmfs.65534/rmmfs.state" ] || fail "the state is not in rmmfs.65534: $(ls "$run")"
[ "$(cat "$work/shared/again")" = 10 ] || fail "~/rmm/gpu0/current_bytes is $(cat "$work/shared/again")"
