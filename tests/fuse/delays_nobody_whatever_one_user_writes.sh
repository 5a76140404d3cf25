#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One user fills the directory of all with segments that are never finished, empty files,
# dead segments and renames. Another user's figures are read as fast as before, give or take,
# another user's new program is found, and the daemon's log stays short.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

attack=$(dirname "$0")/attack.py
as=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
chmod 1777 "$run"
chmod 755 "$work"
start_program model "${as[@]}"
cp "$(find "$run" -regex '.*/65534\.[0-9a-f]*')" "$work/template"
chmod 644 "$work/template"
kill_program model
list_gpus 1
start_daemon
start_program innocent
gpu innocent 0
tell innocent alloc 0 100
file=$mnt/proc/${program_pid[innocent]}/gpu0/peak_bytes

writes() { # FOLDER
    writers=()
    ATTACK_UID=65534 python3 "$attack" being_made "$1" 4000 &
    writers+=($!)
    ATTACK_UID=65534 python3 "$attack" empty "$1" 30000 &
    writers+=($!)
    ATTACK_UID=65534 python3 "$attack" dead "$1" 1500 "$work/template" &
    writers+=($!)
    ATTACK_UID=65534 python3 "$attack" rename "$1" 4 "$work/template" &
    writers+=($!)
}
# What the machine is as busy with, where the daemon does not look.
mkdir -m 1777 "$work/elsewhere"
writes "$work/elsewhere"
calm=$(python3 "$attack" read 4 "$file")
wait "${writers[@]}"

writes "$run"
harassed=$(python3 "$attack" read 4 "$file")
start_program late
gpu late 0
tell late alloc 0 11
eventually is "proc/${program_pid[late]}/gpu0/current_bytes" 11
eventually is gpu0/current_bytes 111
echo "microseconds, median and 99th percentile: calm $calm, harassed $harassed"
# Before names waited in queues: 157,000 to 10,000,000 of a calm 70.
slower=$(slowness)
[ "${harassed% *}" -lt $((60000 * slower)) ] || [ "${harassed% *}" -lt $((100 * slower * ${calm% *})) ] ||
    fail "a read takes $harassed us while another user writes, else $calm us"
lines=$(wc -l <"$log")
[ "$lines" -lt $((100 + SECONDS * 5)) ] || fail "$lines lines in the daemon's log after $SECONDS s"
expect "proc/${program_pid[innocent]}/gpu0/peak_bytes" 100
wait "${writers[@]}"
eventually remove_files_of 65534
expect gpu0/current_bytes 111
stop_daemon
