#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program under rmm-run, on the simulated GPU: what diag/usage says of each block is what
# the program says itself.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
built=${RMMFS%/fusefs/rmmfs}
rmm_run=$built/tools/run/rmm-run
program=$built/tests/sim/diag/rmm_diag_program
[ -x "$rmm_run" ] && [ -x "$program" ] || skip "built without rmm-run or its test program"

start_daemon
RMM_DRIVER=sim "$rmm_run" --diag usage -- "$program" >"$work/said" 2>"$work/error" ||
    fail "rmm-run: $(cat "$work/error")"
exited() { grep -qx exited "$mnt"/proc/*/state 2>/dev/null; }
eventually exited
process=$(cd "$mnt" && ls -d proc/*)
expect "$process/comm" rmm_diag_progra # the kernel keeps 15
expect "$process/diag/cupti" active
[ "$(grep -vc '^#' "$mnt/$process/diag/usage")" = "$(grep -c . "$work/said")" ] ||
    fail "usage: $(cat "$mnt/$process/diag/usage")"
while read -r address bytes first last uses; do
    row=$(printf '0x%x' "$address")
    [ "$first" != none ] || first=- last=-
    seen=$(awk -F '\t' -v at="$row" '$1 == at { print $2, $8, $9, $10 }' "$mnt/$process/diag/usage")
    [ "$seen" = "$bytes $uses $first $last" ] || fail "$row: '$seen', the program says $bytes $uses $first $last"
done <"$work/said"
expect_key "$process/diag/stat" launches 11
expect_key "$process/diag/stat" blocks_dropped 0
[ "$(awk -F '\t' '$3 == "sum" { print $2 }' "$mnt/$process/diag/kernels")" = 1 ] ||
    fail "kernels: $(cat "$mnt/$process/diag/kernels")"
stop_daemon
