#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A user whose 300 threads read long texts without end delays no other user's read: neither of a
# figure (all threads of the daemon were busy with them, and one read took as long as they went
# on), nor of a long text. What is over the user's budget is refused and told. When the reader
# is killed it ends at once, however many of its requests wait.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

chmod 1777 "$run"
start_daemon
start_program hostile setpriv --reuid 65534 --regid 65534 --clear-groups --
start_program innocent
gpu innocent 0
tell innocent alloc 0 100
segment=$(find "$run" -regex '.*/65534\.[0-9a-f]*')
python3 "$(dirname "$0")/forge_side_files.py" "$segment" leaks >/dev/null
chown 65534:65534 "$segment.leaks"

begin=${EPOCHREALTIME/./}
cat "$mnt/proc/${program_pid[hostile]}/leaks" >/dev/null
one_text=$((${EPOCHREALTIME/./} - begin))
slower=$(slowness)
# On a slow machine, or a busy one, a text takes longer, too.
is_quick() { # US SECONDS
    [ "$1" -lt $(($2 * 1000000 * slower)) ] || [ "$1" -lt $((60 * one_text)) ]
}

cat >"$work/hammer.py" <<'END'
import os, sys, threading
path = sys.argv[1]
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
shared = os.open(path, os.O_RDONLY)
refused = threading.Event()
threading.stack_size(1 << 18)
def read():
    while True: # of one descriptor: one renders, the others wait for it
        try:
            os.pread(shared, 100, 0)
        except OSError as error:
            if error.errno != 122: # EDQUOT
                os._exit(error.errno)
            refused.set()
for _ in range(300):
    threading.Thread(target=read, daemon=True).start()
if not refused.wait(300):
    os._exit(1)
print("refused", flush=True)
sys.stdin.read()
END
mkfifo "$work/reading" "$work/stop"
python3 "$work/hammer.py" "$mnt/proc/${program_pid[hostile]}/leaks" <"$work/stop" >"$work/reading" &
hammer=$!
exec 7>"$work/stop" 8<"$work/reading"
read -r answer <&8 || true
[ "$answer" = refused ] || fail "300 threads that read a long text: none was refused"

begin=${EPOCHREALTIME/./}
for _ in $(seq 20); do
    expect "proc/${program_pid[innocent]}/gpu0/peak_bytes" 100
done
took=$((${EPOCHREALTIME/./} - begin))
echo "20 reads of a figure took $took us"
is_quick "$took" 4 || fail "20 reads of a figure take $took us while another user reads long texts"
awk '$1 == 65534 && $2 == "long_reads" && $3 > 100 && $5 > 0' "$mnt/daemon/over_budget" | grep -q . ||
    fail "daemon/over_budget does not tell what was refused: $(cat "$mnt/daemon/over_budget")"

# 255 others wait: in their order a text would take the time of all of them.
begin=${EPOCHREALTIME/./}
grep -q "^rmm_" "$mnt/metrics" || fail "no metrics"
took=$((${EPOCHREALTIME/./} - begin))
echo "metrics took $took us"
is_quick "$took" 8 ||
    fail "metrics take $took us, a long text alone $one_text us"

kill -0 "$hammer" || fail "the hostile readers ended"
begin=${EPOCHREALTIME/./}
kill -KILL "$hammer"
wait "$hammer" 2>/dev/null || true
took=$((${EPOCHREALTIME/./} - begin))
echo "they ended after $took us"
is_quick "$took" 8 || fail "readers that are killed end after $took us"
exec 7>&-

# The daemon ends while requests wait.
python3 "$work/hammer.py" "$mnt/proc/${program_pid[hostile]}/leaks" <"$work/stop" >"$work/reading" &
hammer=$!
exec 7>"$work/stop" 8<"$work/reading"
read -r answer <&8 || true
[ "$answer" = refused ] || fail "they do not read again"
begin=${EPOCHREALTIME/./}
stop_daemon
took=$((${EPOCHREALTIME/./} - begin))
echo "the daemon ended after $took us"
is_quick "$took" 20 || fail "the daemon ends after $took us"
exec 7>&-
wait "$hammer" || true
