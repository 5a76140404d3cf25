#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One user's 15,000 pools do not push another user's programs out of /rmm/metrics.all: it stays below
# 24 MiB, says how much of the first user's is left out, and shows all of the other's.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

other=65534
chmod 1777 "$run"
start_daemon
start_programs 60 250 GPU-hostile setpriv --reuid "$other" --regid "$other" --clear-groups --
start_program mine
gpu mine 0
tell mine resource 1 cuda cuda 0 0
tell mine resource 2 pool mine 0 1
tell mine alloc 0 1000
eventually is daemon/segments 61

series() { # PATTERN: how many samples of /rmm/FILE match
    grep -c "$1" "$work/text"
}
for file in metrics.all; do
    cat "$mnt/$file" >"$work/text" || fail "cannot read $file"
    bytes=$(stat -c %s "$work/text")
    [ "$bytes" -le $((24 << 20)) ] || fail "$file has $bytes bytes"
    [ "$bytes" -ge $((22 << 20)) ] || fail "$file has only $bytes bytes"
    left_out=$(sed -n "s/^rmm_over_budget{uid=\"$other\"} //p" "$work/text")
    shown=$(series '^rmm_resource_current_bytes{gpu="[0-9]*",UUID="GPU-hostile"')
    [ "$((shown + left_out))" -eq $((60 * 251)) ] || fail "$file: $shown shown, $left_out left out"
    [ "$(series '^rmm_resource_free_bytes{gpu="[0-9]*",UUID="GPU-hostile"')" -eq "$shown" ] ||
        fail "$file: a family is shown of fewer resources than another"
    [ "$(series '^rmm_process_current_bytes{.*UUID="GPU-hostile"')" -eq 60 ] || fail "$file: not all processes"
    [ "$(series "^rmm_resource_current_bytes{.*pid=\"${program_pid[mine]}\"")" -eq 2 ] ||
        fail "$file: the other user's resources are not all there"
    ! grep -q 'rmm_over_budget{uid="0"}' "$work/text" || fail "$file: the other user is over budget"
done
hostile=$(sed -n 's/^rmm_device_current_bytes{.*GPU-hostile"} //p' "$work/text")
[ "$hostile" = $((60 * 250 * 4096)) ] || fail "the sum of all is $hostile"
end_programs
stop_daemon
