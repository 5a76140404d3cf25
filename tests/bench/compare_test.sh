#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/bench/compare_test.sh
# What the comparison of counts lets through and what not.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '%s\n' '# GNU 12' 'pair pool 100' 'random pool 200' >"$work/recorded"

expect() { # STATUS LINE TABLE...: compare ends so, and prints a line like that
    local status=0 wanted=$1 line=$2
    shift 2
    printf '%s\n' "$@" >"$work/measured"
    tests/bench/compare "$work/recorded" "$work/measured" >"$work/out" || status=$?
    [ $status = "$wanted" ] && grep -qF "$line" "$work/out" ||
        { echo "exit $status, not $wanted with a line '$line':"; cat "$work/out"; exit 1; }
}
expect 0 '100 instructions an operation, recorded 100 (+0.0 %)' 'pair pool 100' 'random pool 200'
expect 0 '105 instructions an operation, recorded 100 (+5.0 %)' 'pair pool 105' 'random pool 90'
expect 1 '106 instructions an operation, recorded 100 (+6.0 %)  FAILED' 'pair pool 106' 'random pool 200'
expect 1 'not recorded  FAILED' 'pair pool 100' 'random pool 200' 'pair arena 1'
expect 1 'random pool was recorded and is not measured  FAILED' 'pair pool 100'
