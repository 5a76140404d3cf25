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
cat >"$work/forge.py" <<'END'
import fcntl, os, struct, sys, time
template, run, name, shift = sys.argv[1:]
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
with open(run + "/forged", "w+b") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    segment = bytearray(open(template, "rb").read())
    segment[24:32] = struct.pack("<Q", (struct.unpack("<Q", segment[24:32])[0] + int(shift)) % 2**64)
    file.write(segment)
    file.flush()
    os.rename(run + "/forged", run + "/" + name)
    while os.path.exists(run):  # setuid() made it outlive its parent
        time.sleep(0.1)
END
cp "$(find "$run" -regex '.*/65534\.[0-9a-f]*' | head -1)" "$work/template"
chmod 644 "$work/template"
python3 "$work/forge.py" "$work/template" "$run" 65534.00000000000000aa 50000000 &
eventually test -e "$mnt/proc/seg-00000000000000aa"
unshare -T --boottime 1000000 -f --kill-child -- python3 "$work/forge.py" "$work/template" "$run" 65534.00000000000000bb -50000000 &
eventually test -e "$mnt/proc/seg-00000000000000bb"
expect "proc/$ahead/gpu0/current_bytes" 1000
stop_daemon
