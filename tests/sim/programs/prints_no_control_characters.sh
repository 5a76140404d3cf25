#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: prints_no_control_characters.sh PROGRAM...
# Escape sequences in arguments and in names of files reach no terminal: '?' stands for what a
# terminal obeys, in messages and in reports.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RMM_RUNTIME_DIR=$work/run RMM_NVIDIA_PROC=$work/none
mkdir -m 700 "$RMM_RUNTIME_DIR"
evil=$'\e[31m\a\r\b\x7f\xc2\x9b1m\xff\xc3\xa9'
clean=$'?[31m?'
log=$work/$evil.csv
cp "$(dirname "$0")/../../data/replay/small.csv" "$log"

prints_clean() { # COMMAND...
    "$@" >"$work/out" 2>&1 </dev/null || true
    grep -qF -- "$clean" "$work/out" || { echo "$*: does not name it: $(cat -v "$work/out")" >&2; exit 1; }
    # C1 controls are two bytes in UTF-8; what is no UTF-8 a terminal may take for one
    ! LC_ALL=C grep -qP '[\x00-\x09\x0b-\x1f\x7f\xff]|\xc2[\x80-\x9f]' "$work/out" ||
        { echo "$*: $(cat -v "$work/out")" >&2; exit 1; }
}

count=0
for program in "$@"; do
    name=${program##*/}
    prints_clean "$program" "--$evil"
    case $name in
    rmm-replay)
        prints_clean "$program" "$work/no $evil"
        prints_clean "$program" --repeat "$evil" "$log"
        prints_clean "$program" --resource "$evil" "$log"
        prints_clean "$program" --csv "$work/$evil/x" "$log"
        prints_clean "$program" "$log"
        prints_clean "$program" --advise "$log"
        "$program" --csv "$work/rows" "$log" >"$work/out"
        prints_clean head -n 1 "$work/rows"
        ;;
    rmm-bench) prints_clean "$program" --filter "$evil" ;;
    rmm-top)
        prints_clean "$program" "$evil"
        prints_clean "$program" --once --mount "$work/$evil"
        prints_clean "$program" --once --replay "$work/$evil"
        prints_clean "$program" --html "$work/$evil/x"
        ;;
    rmm-timeline) prints_clean "$program" --trace "$work/$evil/x" "$log" ;;
    rmm-run)
        export RMM_INJECT_LIBRARY=$program # any ELF file: "true" does not load it
        prints_clean "$program" "$work/$evil"
        prints_clean "$program" --report "$work/$evil/x" true
        prints_clean "$program" --suppressions "$work/$evil" --summary true
        cp /bin/true "$work/$evil"
        prints_clean "$program" --summary "$work/$evil"
        ;;
    esac
    count=$((count + 1))
done
[ $count -ge 4 ] || { echo "only $count programs" >&2; exit 1; }
