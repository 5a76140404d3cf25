#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program of Python under rmm-run, on the simulated GPU: its stacks begin with its lines.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
built=${RMMFS%/fusefs/rmmfs}
rmm_run=$built/tools/run/rmm-run
program=$(cd "$(dirname "$0")/../sim/programs" && pwd)/python_program.py
export RMM_TEST_LIBRARY=$built/lib/librmm-c.so RMM_TEST_HELPER=
[ -x "$rmm_run" ] && [ -e "$RMM_TEST_LIBRARY" ] || skip "built without rmm-run or the library"

start_daemon
runtimes=$(ldd "$RMM_TEST_LIBRARY" | awk '/lib(asan|tsan|ubsan)\.so/ { print $3 }' | paste -sd :)
RMM_DRIVER=sim LD_PRELOAD=$runtimes ASAN_OPTIONS=detect_leaks=0 \
    "$rmm_run" -- python3 "$program" lines >"$work/said" 2>"$work/error" ||
    fail "rmm-run: $(cat "$work/error")"
exited() { grep -qx exited "$mnt"/proc/*/state 2>/dev/null; }
eventually exited
cp -r "$mnt"/proc/* "$work/ended" # which is shown for 30 s
line_at() { grep -n "# at $1\$" "$program" | cut -d: -f1; }
step='\((Trainer\.)?step\);'
has() { grep -qE "$2" "$work/ended/diag/$1" || fail "$1 has no $2: $(cat "$work/ended/diag/$1")"; }
has stacks "^0	[^;]*/python_program\.py:[0-9]+\(overrun\);[^;]*/python_program\.py:$(line_at first)$step"
has stacks "^1	[^;]*;[^;]*/python_program\.py:$(line_at second)$step.*;[^;]*librmm-c\.so[^;]*\+0x"
has stacks "^2	[^	]*:$(line_at 'second free')$step[^	]*	[^	]*:$(line_at allocation)$step[^	]*	[^	]*:$(line_at free)$step"
has verdicts "^leaked	.*:$(line_at 'other allocation')$step"
has peak "	[^	]*:$(line_at allocation)$step"
stop_daemon
