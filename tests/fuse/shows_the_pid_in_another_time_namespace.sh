#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program in a time namespace whose boot clock is shifted sees another start time of itself than
# the daemon. It is shown under its pid all the same, and so is one without a shift beside it; a
# start time that no shift explains still proves no pid.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
as=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
chmod 1777 "$run"
shifted() { # SECONDS
    shift=("${as[@]}" unshare -U -r -T --boottime "$1" -f --kill-child --)
}
shifted 1000000
"${shift[@]}" true 2>/dev/null || skip "no time namespaces here"
list_gpus 1
start_daemon
child_of() { tr -d ' ' <"/proc/$1/task/$1/children"; }

start_program ahead "${shift[@]}"
shifted -1
start_program behind "${shift[@]}"
start_program plain "${as[@]}"
for name in ahead behind plain; do
    gpu $name 0
    tell $name alloc 0 1000
done
eventually is gpu0/current_bytes 3000
ahead=$(child_of "${program_pid[ahead]}")
behind=$(child_of "${program_pid[behind]}")
[ "$(awk '$1 == "boottime" { print $2 }' "/proc/$ahead/timens_offsets")" = 1000000 ] || fail "no shift of $ahead"
for pid in "$ahead" "$behind" "${program_pid[plain]}"; do
    expect "proc/$pid/uid" 65534
    expect "proc/$pid/gpu0/current_bytes" 1000
done
[ -z "$(find "$mnt/proc" -maxdepth 1 -name 'seg-*')" ] || fail "a segment without a pid: $(ls "$mnt/proc")"

# A file that claims a time in between, held by a process with a shift and without.
cp "$(find "$run" -regex '.*/65534\.[0-9a-f]*' | head -1)" "$work/template"
chmod 644 "$work/template"
ticks=$(od -An -td8 -j24 -N8 "$work/template")
claim() { # ID TICKS [COMMAND...]
    ATTACK_UID=65534 "${@:3}" python3 "$(dirname "$0")/attack.py" claim "$run" "65534.$1" "$work/template" "$2" &
    eventually test -e "$mnt/proc/seg-$1"
}
claim 00000000000000aa $((ticks + 50000000))
claim 00000000000000bb $((ticks - 50000000)) unshare -T --boottime 1000000 -f --kill-child --
expect "proc/$ahead/gpu0/current_bytes" 1000
stop_daemon
