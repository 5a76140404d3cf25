#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: gives_its_rights_to_nobody.sh RMM_RUN PROGRAM
# A program with more privileges than its caller (here set-group-ID) loads no library and writes no file
# that its caller's environment names, and rmm-run refuses it.
set -euo pipefail
[ "$(id -u)" = 0 ] || { echo "skipped: needs root, to make a file of another group"; exit 77; }
run=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
program=$work/program
cp "$2" "$program"
export RMM_RUNTIME_DIR=$work/run CUDA_INJECTION64_PATH=$work/none.so RMM_DIAG=usage
export RMM_DEBUG_LOG_FILE=$work/log RMM_LOG_LEVEL=trace
mkdir -m 700 "$RMM_RUNTIME_DIR"

"$program" plain >/dev/null 2>"$work/said"
grep -q "none.so" "$work/said" || { echo "the library was not asked for: $(cat "$work/said")" >&2; exit 1; }
[ -s "$work/log" ] || { echo "nothing was logged" >&2; exit 1; }
rm "$work/log"

chgrp 65534 "$program"
chmod g+s "$program"
env -u RMM_LOG_LEVEL "$program" plain >/dev/null 2>"$work/said"
if grep "none.so" "$work/said" >&2 || [ -e "$work/log" ]; then
    findmnt -no OPTIONS -T "$program" | grep -q nosuid && { echo "skipped: $work is mounted nosuid"; exit 77; }
    echo "a set-group-ID program does what its caller's environment says" >&2
    exit 1
fi

unset CUDA_INJECTION64_PATH
refuses() { # COMMAND...
    local status=0
    "$@" >"$work/out" 2>"$work/said" || status=$?
    [ $status = 125 ] && [ ! -s "$work/out" ] && [ "$(wc -l <"$work/said")" = 1 ] &&
        grep -q "more privileges than its caller" "$work/said" ||
        { echo "$*: status $status: $(cat "$work/out" "$work/said")" >&2; exit 1; }
}
refuses "$run" -- "$program" plain
refuses "$run" --summary -- "$program"
PATH=/proc/nowhere:$work:$PATH refuses "$run" -- program
chgrp "$(id -g)" "$program" # the rights of the caller: no others
"$run" --diag usage -- "$program" plain >/dev/null
