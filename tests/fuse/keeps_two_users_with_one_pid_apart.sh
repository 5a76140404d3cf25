#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A user who leaves a segment that claims the pid of another's process, which he can read in
# /proc, gets neither its directory nor its log, and puts nothing into them.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

as=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
chmod 1777 "$run"
start_program model "${as[@]}"
tell model log 3 said by another
segment=$(find "$run" -regex '.*/65534\.[0-9a-f]*')
cp "$segment" "$work/template"
kill_program model
rm "$segment" "$segment.control"
start_daemon

# The pid, the start time, and the user's own name: then the victim begins, as that pid.
cat >"$work/forge.py" <<'END'
import os, struct, sys, time
template, run, mount, pid = sys.argv[1:3] + [sys.argv[3], int(sys.argv[4])]
ticks = int(open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[19])
segment = bytearray(open(template, "rb").read())
segment[24:32] = struct.pack("<Q", ticks)
segment[40:44] = struct.pack("<I", pid)
name = run + "/65534.00000000000000aa"
with open(name + ".new", "wb") as file:
    file.write(segment)
os.chown(name + ".new", 65534, 65534)
os.rename(name + ".new", name)
deadline = time.time() + 20
while not os.listdir(mount + "/proc") and time.time() < deadline:
    time.sleep(0.02)
END
cat >"$work/victim.sh" <<END
#!/bin/bash
python3 "$work/forge.py" "$work/template" "$run" "$mnt" \$\$ >>"$work/forge.log" 2>&1
exec "\$@"
END
chmod 755 "$work/victim.sh"
start_program victim "$work/victim.sh"
pid=${program_pid[victim]}
tell victim log 3 the secret
[ ! -s "$work/forge.log" ] || fail "forging: $(cat "$work/forge.log")"
expect "proc/$pid/uid" 0
expect "proc/$pid/state" live
grep -q "the secret" "$mnt/proc/$pid/log" || fail "root's own log: $(cat "$mnt/proc/$pid/log")"
! grep -q "said by another" "$mnt/proc/$pid/log" || fail "another's words in root's mouth"
expect "proc/seg-00000000000000aa/uid" 65534
! "${as[@]}" cat "$mnt/proc/$pid/log" 2>/dev/null || fail "uid 65534 reads root's log"
! "${as[@]}" sh -c "echo 1 >$mnt/proc/$pid/trace/enable" 2>/dev/null || fail "uid 65534 traces root"
! "${as[@]}" grep "the secret" "$mnt/log" || fail "uid 65534 sees it in the node's log"
[ "$("${as[@]}" grep -c "said by another" "$mnt/log")" = 1 ] || fail "his own is not in his log"
stop_daemon
