#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everybody reads figures; a mark is reset by its process's user or root, the node's by
# root. What names kernels and addresses only its owner reads.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

as() { # UID COMMAND...
    setpriv --reuid "$1" --regid "$1" --clear-groups -- "${@:2}"
}
refused() { # UID FILE
    if as "$1" sh -c "echo >$mnt/$2" 2>"$work/error"; then
        fail "uid $1 wrote $2"
    fi
    grep -q "Permission denied" "$work/error" || fail "uid $1 at $2: $(cat "$work/error")"
}
allowed() {
    as "$1" sh -c "echo >$mnt/$2" || fail "uid $1 could not write $2"
}

chmod 1777 "$run"
start_daemon
start_program theirs setpriv --reuid 65534 --regid 65534 --clear-groups --
gpu theirs 0
tell theirs resource 1 cuda cuda 0 0
tell theirs alloc 0 100
tell theirs take 1 100
tell theirs free 0 60
tell theirs give 1 60
pid=${program_pid[theirs]}
process=proc/$pid/gpu0

expect "proc/$pid/uid" 65534
[ "$(stat -c '%u %g' "$mnt/$process/peak_bytes")" = "65534 65534" ] || fail "owner of peak_bytes"
[ "$(stat -c %u "$mnt/gpu0/peak_bytes")" = 0 ] || fail "owner of gpu0/peak_bytes"
[ "$(as 1234 cat "$mnt/gpu0/current_bytes")" = 40 ] || fail "uid 1234 cannot read gpu0"
[ "$(as 1234 cat "$mnt/$process/peak_bytes")" = 100 ] || fail "uid 1234 cannot read the process"
as 65534 cat "$mnt/proc/$pid/diag/usage" >/dev/null || fail "the owner cannot read usage"
! as 1234 cat "$mnt/proc/$pid/diag/usage" 2>/dev/null || fail "uid 1234 reads usage"

refused 1234 "$process/peak_bytes"
refused 1234 "$process/mr/1.cuda/peak_bytes"
refused 1234 gpu0/peak_bytes
refused 65534 gpu0/peak_bytes
refused 1234 daemon/log_level
for file in limit_bytes trim mr/1.cuda/limit_bytes mr/1.cuda/trim; do
    refused 1234 "$process/$file"
done
expect "$process/limit_bytes" max
as 65534 sh -c "echo 5 >$mnt/$process/limit_bytes" || fail "the owner sets no limit"
expect "$process/limit_bytes" 5
echo max >"$mnt/$process/limit_bytes" || fail "root takes no limit away"
expect "$process/limit_bytes" max
expect "$process/peak_bytes" 100
allowed 65534 "$process/peak_bytes"
expect "$process/peak_bytes" 40
expect "$process/mr/1.cuda/peak_bytes" 100
allowed 65534 "$process/mr/1.cuda/peak_bytes"
expect "$process/mr/1.cuda/peak_bytes" 40
expect gpu0/peak_bytes 100
allowed 0 gpu0/peak_bytes
expect gpu0/peak_bytes 40

# A descriptor that root opened does not make its holder root. By bash: its number may have two
# digits, which not every sh takes.
exec {passed}>"$mnt/gpu0/peak_bytes"
echo >&"$passed" || fail "root could not write through its descriptor"
if as 1234 bash -c "echo >&$passed" 2>"$work/error"; then
    fail "uid 1234 wrote through root's descriptor"
fi
grep -q "Permission denied" "$work/error" || fail "uid 1234 by a descriptor: $(cat "$work/error")"
stop_daemon
