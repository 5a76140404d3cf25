#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program under rmm-run, on the simulated GPU: what diag/usage says of each block is what
# the program says itself, and an error that it makes is a finding.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
built=${RMMFS%/fusefs/rmmfs}
rmm_run=$built/tools/run/rmm-run
program=$built/tests/sim/diag/rmm_diag_program
[ -x "$rmm_run" ] && [ -x "$program" ] || skip "built without rmm-run or its test program"

start_daemon
RMM_DRIVER=sim "$rmm_run" -- "$program" overrun >"$work/said" 2>"$work/error" ||
    fail "rmm-run: $(cat "$work/error")"
exited() { grep -qx exited "$mnt"/proc/*/state 2>/dev/null; }
eventually exited
cp -r "$mnt"/proc/* "$work/ended" # which is shown for 30 s
process=../ended
expect "$process/comm" rmm_diag_progra # the kernel keeps 15
expect "$process/diag/cupti" active
expect "$process/diag/mode" usage,bounds
expect "$process/diag/findings_total" 3
seen=$(awk -F '\t' '!/^#/ { print $1, $2, $3, $4, $6, $7, $8, $9, $20, $21 }' "$mnt/$process/diag/findings")
[ "$seen" = "out_of_bounds write memset_async 3 1000 0 1001 1 pool activations" ] ||
    fail "findings: $(cat "$mnt/$process/diag/findings")"
expect_key "$process/diag/stat" findings_dropped 0
stacks=$mnt/$process/diag/stacks
grep -qE "^0	.*librmm-c\.so[^;]*;rmm_diag_program\+0x[0-9a-f]+;" "$stacks" || fail "stacks: $(cat "$stacks")"
grep -qE "^# file	rmm_diag_program	.*/rmm_diag_program	([0-9a-f]+|-)$" "$stacks" ||
    fail "files of stacks: $(cat "$stacks")"
[ "$(stat -c %a "$stacks")" = 400 ] || fail "mode of stacks"
[ "$(grep -vc '^#' "$mnt/$process/diag/usage")" = "$(grep -c . "$work/said")" ] ||
    fail "usage: $(cat "$mnt/$process/diag/usage")"
while read -r address bytes first last launches fills; do
    row=$(printf '0x%x' "$address")
    [ "$first" != none ] || first=- last=-
    seen=$(awk -F '\t' -v at="$row" '$1 == at { print $2, $8, $10, $12, $13 }' "$mnt/$process/diag/usage")
    [ "$seen" = "$bytes $launches $fills $first $last" ] || fail "$row: '$seen', the program says $bytes $uses $first $last"
done <"$work/said"
expect_key "$process/diag/stat" launches 11
expect_key "$process/diag/stat" fills 3
expect_key "$process/diag/stat" copies 0
expect_key "$process/diag/stat" blocks_dropped 0
[ "$(awk -F '\t' '$3 == "sum" { print $2 }' "$mnt/$process/diag/kernels")" = 1 ] ||
    fail "kernels: $(cat "$mnt/$process/diag/kernels")"
seen=$(awk -F '\t' '!/^#/ { print $1, $2, $3, $4, $6 }' "$mnt/$process/diag/peak" | tr '\n' ,)
[ "$seen" = "0 70000 1 98.6 scale,0 1000 1 1.4 fill,0 1 1 0.0 -," ] || fail "peak: $(cat "$mnt/$process/diag/peak")"
grep -q '^# device 0: 71001 bytes in 3 blocks, [0-9]* ns ago; 0 bytes not attributed$' "$mnt/$process/diag/peak" ||
    fail "peak: $(cat "$mnt/$process/diag/peak")"
seen=$(awk -F '\t' '$1 != "never_used" && !/^#/ { print $1, $2, $3, $5, $6, $7, $9 }' "$mnt/$process/diag/verdicts" | sort | tr '\n' ,)
[ "$seen" = "leaked certain 0 1 1 1 -,leaked certain 0 1 1000 1000 fill,leaked certain 0 1 70000 70000 scale," ] ||
    fail "verdicts: $(cat "$mnt/$process/diag/verdicts")"
[ "$(grep -c '^never_used	likely	0	2	1	1	1	' "$mnt/$process/diag/verdicts")" = 1 ] ||
    fail "verdicts: $(cat "$mnt/$process/diag/verdicts")"
for table in peak verdicts; do # where the blocks were allocated, and from what
    frames='.*librmm-c\.so[^;]*;rmm_diag_program\+0x[0-9a-f]+;[^	]*'
    [ "$(grep -cE "	$frames	pool	activations$" "$mnt/$process/diag/$table")" = "$(grep -vc '^#' "$mnt/$process/diag/$table")" ] ||
        fail "stacks in $table: $(cat "$mnt/$process/diag/$table")"
    grep -qE "^# file	rmm_diag_program	.*/rmm_diag_program	([0-9a-f]+|-)$" "$mnt/$process/diag/$table" ||
        fail "files of $table: $(cat "$mnt/$process/diag/$table")"
done
expect_key "$process/diag/stat" sites_dropped 0
stop_daemon
