#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Root's daemon without RMM_RUNTIME_DIR: makes /run/rmm for everybody, finds what programs of
# users wrote to their own places before and after, and believes no directory that is not
# its user's. In a mount namespace with a /run and a /dev/shm of its own.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
enter_own_places
as=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
mkdir -p /run/user/65534 /run/user/77
chown 65534 /run/user/65534
chmod 700 /run/user/65534

# Before the daemon there is no /run/rmm: in the user's session, and in shared memory.
start_program session "${as[@]}" env XDG_RUNTIME_DIR=/run/user/65534
start_program shared "${as[@]}"
start_program roots
gpu session 0
gpu shared 0
gpu roots 0
tell session alloc 0 1
tell shared alloc 0 20
tell roots alloc 0 300
ls /run/user/65534/rmm/65534.* /dev/shm/rmm-65534/65534.* /dev/shm/rmm-0/0.* >/dev/null ||
    fail "the programs wrote somewhere else"

start_daemon
expect gpu0/current_bytes 321
[ "$(stat -c '%a %u' /run/rmm)" = "1777 0" ] || fail "/run/rmm is $(stat -c '%a %u' /run/rmm)"
start_program late "${as[@]}"
gpu late 0
tell late alloc 0 4000
[ -n "$(ls /run/rmm/65534.* 2>/dev/null)" ] || fail "a late program does not write to /run/rmm"
expect gpu0/current_bytes 4321
expect "proc/${program_pid[late]}/uid" 65534
[ -e /run/rmmfs/rmmfs.state ] || fail "no state file"
[ "$(stat -c "%a %u" /run/rmmfs)" = "700 0" ] || fail "/run/rmmfs is $(stat -c "%a %u" /run/rmmfs)"

# A directory that its user does not own, and a link to one that its user does own, each with a
# program that lives.
install -d -o 1 -m 700 /dev/shm/rmm-77
install -d -o 78 -m 700 /dev/shm/elsewhere
ln -s /dev/shm/elsewhere /dev/shm/rmm-78
segment_in() { # NAME UID DIRECTORY
    RMM_RUNTIME_DIR=$3 start_program "$1" setpriv --reuid "$2" --regid "$2" --clear-groups --
    gpu "$1" 0
    tell "$1" alloc 0 600000
    ls "$3/$2".*[0-9a-f] >/dev/null || fail "$1 does not write to $3"
}
segment_in foreign 1 /dev/shm/rmm-77
segment_in linked 78 /dev/shm/elsewhere
ln -s /run/rmm /run/user/77/rmm
sleep 0.3
expect gpu0/current_bytes 4321
expect daemon/segments 4

# A user who comes later, in a place that is made later.
mkdir -p /run/user/5
chown 5 /run/user/5
mkdir -m 700 /run/user/5/rmm
chown 5 /run/user/5/rmm
RMM_RUNTIME_DIR=/run/user/5/rmm start_program later setpriv --reuid 5 --regid 5 --clear-groups --
gpu later 0
tell later alloc 0 50000
eventually is gpu0/current_bytes 54321
kill_program shared
expect gpu0/current_bytes 54301
stop_daemon
