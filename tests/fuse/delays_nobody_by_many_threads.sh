#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A user whose figures take long to read, because many segments with many resources say that they
# are of one process, reads them with 64 threads: another user's read of a figure took 11 s. Nor
# do 300 segments whose resources are being written for ever keep others from a sum: they are left
# out of what is free, and that is told.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

here=$(dirname "$0")
chmod 1777 "$run"
as=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
list_gpus 1
start_program model "${as[@]}"
gpu model 0
tell model resource 1 pool pool 0 0
cp "$(find "$run" -regex '.*/65534\.[0-9a-f]*')" "$work/template"
chmod 644 "$work/template"
kill_program model
start_daemon
start_program innocent
gpu innocent 0
tell innocent alloc 0 100
tell innocent resource 1 pool pool 0 0
tell innocent hole 1 1000 250

# hold KIND COUNT: until let_go
hold() {
    mkfifo "$work/held.in" "$work/held.out"
    ATTACK_UID=65534 python3 "$here/attack_sums.py" slots "$1" "$run" "$2" "$work/template" \
        <"$work/held.in" >"$work/held.out" &
    holder=$!
    exec 7>"$work/held.in" 8<"$work/held.out"
    rm "$work/held.in" "$work/held.out"
    local answer=
    read -r answer <&8 || true
    [ "$answer" = ready ] || fail "no segments: '$answer'"
}
let_go() {
    exec 7>&- 8<&-
    wait "$holder"
    eventually remove_files_of 65534
}

hold together 15
eventually is "proc/$holder/state" live
cat >"$work/hammer.py" <<'END'
import os, sys, threading
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
shared = [os.open(sys.argv[1], os.O_RDONLY) for _ in range(64)]
counts = [0] * len(shared)
threading.stack_size(1 << 18)
def read(number):
    while True:
        os.pread(shared[number], 100, 0)
        counts[number] += 1
for number in range(len(shared)):
    threading.Thread(target=read, args=(number,), daemon=True).start()
print("reading", flush=True)
for _ in sys.stdin:
    print(sum(counts), flush=True)
os._exit(0)
END
mkfifo "$work/hammer.in" "$work/hammer.out"
python3 "$work/hammer.py" "$mnt/proc/$holder/gpu0/fragmentation" \
    <"$work/hammer.in" >"$work/hammer.out" &
hammer=$!
exec 5>"$work/hammer.in" 6<"$work/hammer.out"
read -r answer <&6 || true
[ "$answer" = reading ] || fail "the hostile readers did not start"
hostile_reads() {
    local count
    echo >&5
    read -r count <&6 || fail "the hostile readers ended"
    echo "$count"
}
all_read() { [ "$(hostile_reads)" -ge 64 ]; }
eventually all_read
# Counted, not timed: on a busy machine all reads take longer. While each request of the innocent
# reader waited behind the 64 others, there were thousands of theirs.
before=$(hostile_reads)
for _ in $(seq 15); do
    expect "proc/${program_pid[innocent]}/gpu0/peak_bytes" 100
done
during=$(($(hostile_reads) - before))
echo "$during hostile reads during 15 reads of a figure"
[ "$during" -lt 1500 ] || fail "15 reads of a figure had to wait for $during of 64 threads"
exec 5>&-
wait "$hammer"
# More than 1024 resources of one process: what is free in them is unknown.
expect "proc/$holder/gpu0/fragmentation" -1
let_go
eventually is daemon/segments 1

hold torn 300
eventually is daemon/segments 301
expect gpu0/fragmentation 0.750
expect_key gpu0/stat processes_left_out 300
grep -qE '^65534 sum_slots 0 4096 [1-9]' "$mnt/daemon/over_budget" ||
    fail "daemon/over_budget: $(cat "$mnt/daemon/over_budget")"
let_go
eventually is daemon/segments 1
expect_key gpu0/stat processes_left_out 0
stop_daemon
