#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/run with steps that this script writes: what a caller has that ends it early.
set -euo pipefail
folder=$(mktemp -d)
trap 'kill "${run:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT
mkdir -p "$folder/tests/gpu" "$folder/out"
cp "$(dirname "$0")/run" "$folder/tests/gpu"
cat >"$folder/tests/gpu/steps.sh" <<'END_OF_STEPS'
steps="quick slow never"
build=build/gpu
replay=unused
step_quick() {
    attempt "a quick one" 60 echo quick
    row "a fact" passed "42 of them"
}
step_slow() {
    attempt "a slow one" 60 slowly
}
slowly() {
    echo begun
    touch "$OUT/begun"
    sleep 60 &
    wait
}
step_never() {
    row "a later one" passed
}
END_OF_STEPS

fails() { # WHAT
    echo "$1" >&2
    cat "$folder/printed" "$folder/out/table.txt" >&2
    exit 1
}
has() { # FILE TEXT WHAT
    grep -q "$2" "$1" || fails "$3"
}

OUT=$folder/out "$folder/tests/gpu/run" >"$folder/printed" 2>&1 &
run=$!
for ((i = 0; i < 300; i++)); do
    [ ! -e "$folder/out/begun" ] || break
    sleep 0.1
done
has "$folder/printed" '^a quick one  *passed' "a row is not printed when its step ends"
has "$folder/out/table.txt" '^a fact  *passed  42 of them' "a row is not in the table before the end"
kill -TERM "$run"
status=0
wait "$run" || status=$?
[ "$status" -eq 143 ] || fails "SIGTERM gives exit status $status instead of 143"
has "$folder/out/table.txt" '^a slow one  *FAILED  ended by a signal' "the table does not say what was cut off"
! grep -q 'a later one' "$folder/out/table.txt" || fails "it went on after SIGTERM"
[ "$(grep -c '^a fact ' "$folder/printed")" = 2 ] || fails "the whole table is not printed at the end"
tar -xzOf "$folder/out/logs.tar.gz" ./a_slow_one.log | grep -q '^begun$' || fails "the archive has no log of what was cut off"

status=0
OUT=$folder/out "$folder/tests/gpu/run" quick never >"$folder/printed" 2>&1 || status=$?
[ "$status" -eq 0 ] || fails "steps that pass give exit status $status"
has "$folder/out/table.txt" '^a later one  *passed' "the table lacks the last row"
! grep -q 'a slow one' "$folder/out/table.txt" || fails "the table of an earlier run was kept"
