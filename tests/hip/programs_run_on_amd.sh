#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: programs_run_on_amd.sh RMM-REPLAY RMM-BENCH RMM-RUN
# The programs over HIP name it, and say what they cannot do there.
set -eu
replay=$1 bench=$2 run=$3
work=$(mktemp -d)
trap '[ $? = 0 ] || cat "$work/out"; rm -rf "$work"' EXIT
export RMM_RUNTIME_DIR=$work
printf 'Thread,Time,Action,Pointer,Size,Stream\n%s\n' \
    '1,00:00:00.000000,allocate,0x10,5000,0' >"$work/log.csv"

says() { # TEXT
    grep -qF -- "$1" "$work/out" || { echo "FAILED: no \"$1\" in:"; exit 1; }
}

"$replay" --resource pool "$work/log.csv" >"$work/out" 2>&1
says 'real (RMM_DRIVER=hip)'
says 'peak bytes              5000'
"$replay" --json --resource pool_virtual "$work/log.csv" >"$work/out" 2>&1
says '"driver": "hip"'
if "$replay" --verify "$work/log.csv" >"$work/out" 2>&1; then
    echo "FAILED: rmm-replay --verify"
    exit 1
fi
says 'AMD GPUs have none'

"$bench" --json --quick --quiet --repetitions 1 --resource pool --filter pair-legacy >"$work/out" 2>&1
says '"driver": "hip"'

"$run" --summary -- "$replay" --resource pool "$work/log.csv" >"$work/out" 2>&1
says 'there is no diagnosis of programs on AMD GPUs'
