#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# examples/dashboard.sh runs in busybox's shell with nothing but busybox's tools, and shows what
# the files say. Without rmmfs it ends and says so.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
busybox=$(command -v busybox) || skip "no busybox"
script=${test_path%/tests/fuse/*}/examples/dashboard.sh
mkdir "$work/bin"
for tool in sed sleep; do
    ln -s "$busybox" "$work/bin/$tool"
done

list_gpus 2
start_daemon
start_program small
gpu small 0
tell small alloc 0 $((5 << 20))
start_program large
gpu large 1
tell large reserve 1 $((3000 << 20))
tell large alloc 1 $((2000 << 20))

PATH=$work/bin "$busybox" sh "$script" "$mnt" 0.1 >"$work/shown" 2>"$work/errors" &
dashboard=$!
rounds() { [ "$(grep -c '^GPU\|GPU  ' "$work/shown")" -ge 3 ]; }
eventually rounds
kill "$dashboard"
wait "$dashboard" 2>/dev/null || true
[ ! -s "$work/errors" ] || fail "it complains: $(cat "$work/errors")"
awk '/CURRENT_MIB/ { if (++round == 3) exit } round == 2' "$work/shown" >"$work/round"
awk '{ $1 = $1; print }' "$work/round" | sed -n '2,$p' >"$work/rows"
diff - "$work/rows" <<END || fail "a round is: $(cat "$work/round")"
gpu0 5 5 0 0.000
gpu1 2000 2000 3000 0.000

PID UID CURRENT_BYTES RESERVED_BYTES COMMAND
${program_pid[large]} $uid 2097152000 3145728000 rmmfs_program
${program_pid[small]} $uid 5242880 0 rmmfs_program
END
stop_daemon
status=0
PATH=$work/bin "$busybox" sh "$script" "$mnt" 2>"$work/errors" || status=$?
[ "$status $(cat "$work/errors")" = "1 dashboard.sh: $mnt shows no GPU memory: mount it with rmmfs $mnt" ] ||
    fail "without rmmfs: $status, $(cat "$work/errors")"
