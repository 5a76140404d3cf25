#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program as users write it, linked with librmm-c, on the simulated GPU: a recorded
# training replayed through a pool, seen while it runs and after it.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
root=${test_path%/tests/fuse/*}
replay=${RMMFS%/fusefs/rmmfs}/tools/replay/rmm-replay
[ -x "$replay" ] || skip "built without rmm-replay"

start_daemon
RMM_DRIVER=sim "$replay" --hold 600 "$root/tests/data/resnet_train.csv.gz" >"$work/report" 2>&1 &
program=$!
peak=5648896016 # most bytes allocated at once in the trace
left=214499816  # what the trace never frees
done_or_dead() { is "proc/$program/gpu0/current_bytes" "$left" || ! kill -0 "$program" 2>/dev/null; }
eventually done_or_dead
kill -0 "$program" 2>/dev/null || fail "rmm-replay: $(cat "$work/report")"
expect gpu0/uuid SIM-0
expect gpu0/current_bytes "$left"
expect gpu0/peak_bytes "$peak"
expect "proc/$program/comm" rmm-replay
mr=proc/$program/gpu0/mr
pool=$(basename "$mnt/$mr"/*pool*)
expect "$mr/$pool/type" pool
expect "$mr/$pool/current_bytes" "$left"
expect "$mr/$pool/peak_bytes" "$peak"
expect "$mr/$pool/upstream/type" cuda
expect "$mr/$pool/maximum_bytes" 0
reserved=$(cat "$mnt/$mr/$pool/reserved_bytes")
[ "$reserved" -ge "$peak" ] || fail "the pool holds $reserved, its peak was $peak"
expect gpu0/reserved_bytes "$reserved"
expect gpu0/cached_bytes $((reserved - left - $(cat "$mnt/gpu0/padding_bytes")))
awk '$1 == "free_bytes" { f = $2 } $1 == "padding_bytes" { p = $2 } $1 == "current_bytes" { c = $2 }
    $1 == "reserved_bytes" { r = $2 } END { exit f + p + c != r }' "$mnt/$mr/$pool/stat" ||
    fail "current + padding + free is not reserved: $(cat "$mnt/$mr/$pool/stat")"
echo >"$mnt/$mr/$pool/peak_bytes"
expect "$mr/$pool/peak_bytes" "$left"
expect gpu0/peak_bytes "$peak"
kill -KILL "$program"
wait "$program" 2>/dev/null || true
expect gpu0/current_bytes 0
expect gpu0/peak_bytes "$peak"
expect "proc/$program/state" exited
stop_daemon
