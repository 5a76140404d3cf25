#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program that is refused memory and killed at once: /rmm/oom has its own blocks, by stack if a
# tracking adaptor kept them, by stack and kernel under rmm-run. Only for its user and root.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
program=${RMMFS_REFUSED:?the program}
rmm_run=${RMM_RUN_PROGRAM:-}
export RMM_DRIVER=sim
rounds=${RMM_TEST_QUICK:+2}
rounds=${rounds:-10}

refusal() { # PID: its rows
    awk -v pid="$1" '/^[0-9]/ { is_its = $2 == pid } is_its' "$mnt/oom"
}
has_refusal() {
    [ -n "$(refusal "$1")" ]
}
own() { # PID: bytes, count and kernel of each group
    refusal "$1" | awk '$1 == "own" && $2 != "in" { kernel = $6; print $2, $3, kernel }' | tr '\n' ,
}
functions() { # PID BYTES: of the stack in oom.json, by addr2line
    python3 - "$mnt/oom.json" "$1" "$2" <<'END'
import json, subprocess, sys
with open(sys.argv[1], encoding="utf-8") as file:
    tree = json.load(file)
one = [r for r in tree["refusals"] if r["process"] == sys.argv[2]][0]
group = [g for g in one["blocks"] if g["bytes"] == int(sys.argv[3])][0]
for frame in group["stack"]:
    path, offset = frame.rsplit("+", 1)
    if path.endswith("rmmfs_refused"):
        print(subprocess.check_output(["addr2line", "-f", "-e", path, hex(int(offset, 16) - 1)], text=True).split("\n")[0])
END
}
killed() { # COMMAND...: run, and pid of the program
    { "$@" >"$work/said" 2>"$work/error"; } 2>/dev/null || true
    pid=$(awk '$1 == "pid" { print $2 }' "$work/said")
    [ -n "$pid" ] || fail "$*: $(cat "$work/said" "$work/error")"
}

start_daemon
for ((i = 0; i < rounds; i++)); do
    killed "$program" tracked killed
    eventually has_refusal "$pid"
    [ "$(own "$pid")" = "3145728 3 -1,20000 5 -1," ] || fail "tracked: $(refusal "$pid")"
done
if command -v addr2line >/dev/null; then
    functions "$pid" 3145728 | grep -qx take_weights || fail "not in take_weights: $(cat "$mnt/oom.json")"
    functions "$pid" 20000 | grep -qx take_batch || fail "not in take_batch: $(cat "$mnt/oom.json")"
fi
refusal "$pid" | grep -qE "^  own 3145728 3 [0-9]+ ([^;/ ]+[+]0x[0-9a-f]+;)*rmmfs_refused[+]0x" ||
    fail "stacks: $(refusal "$pid")"

# What nobody kept is not known, and is no guess.
killed "$program" plain killed
eventually has_refusal "$pid"
[ -z "$(own "$pid")" ] || fail "plain: $(refusal "$pid")"

# Under rmm-run: kernels, too.
if [ -x "$rmm_run" ]; then
    for ((i = 0; i < rounds; i++)); do
        killed "$rmm_run" -- "$program" plain killed
        eventually has_refusal "$pid"
        [ "$(own "$pid")" = "3145728 3 matmul,20000 5 normalize," ] || fail "rmm-run: $(refusal "$pid")"
    done
    if command -v addr2line >/dev/null; then
        functions "$pid" 3145728 | grep -qx take_weights || fail "not in take_weights: $(cat "$mnt/oom.json")"
    fi
fi

# Others see the refusal, but not where the program allocates.
setpriv --reuid 1002 --regid 1002 --clear-groups -- cat "$mnt/oom" >"$work/others"
grep -q " $pid $uid gpu0 " "$work/others" || fail "not shown to others: $(cat "$work/others")"
! grep -q "^  own" "$work/others" || fail "blocks are shown to others: $(cat "$work/others")"
setpriv --reuid 1002 --regid 1002 --clear-groups -- cat "$mnt/oom.json" >"$work/others"
! grep -q '"blocks": \[' "$work/others" || fail "blocks are shown to others: $(cat "$work/others")"

# A flood: the last ones have them, and the daemon does not read for each.
"$program" tracked flood 20000 >"$work/said" &
flooded() { grep -q refused "$work/said"; }
eventually flooded
pid=$(awk '$1 == "pid" { print $2 }' "$work/said")
last_has_blocks() { refusal "$pid" | grep -q "^  own 3145728 3 "; }
eventually last_has_blocks
all_have_blocks() {
    [ "$(refusal "$pid" | grep -c "^  own 3145728 3 ")" = "$(refusal "$pid" | grep -c '^[0-9]')" ]
}
eventually all_have_blocks
stop_daemon
