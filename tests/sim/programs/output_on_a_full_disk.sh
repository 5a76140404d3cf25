#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: output_on_a_full_disk.sh PROGRAM...
# What a program cannot write to standard output it says in one line, and its status tells.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RMM_RUNTIME_DIR=$work/run
mkdir -m 700 "$RMM_RUNTIME_DIR"
log="$(dirname "$0")/../../data/replay/small.csv"
faulty="$(dirname "$0")/../../data/replay/faulty.csv"

fails() { # NAME ARGUMENT...: to a full disk
    local name=$1 status=0
    shift
    "$@" >/dev/full 2>"$work/said" || status=$?
    [ $status -eq "$wanted" ] || { echo "$*: status $status" >&2; exit 1; }
    grep -v '% done' "$work/said" >"$work/lines" || true # of progress
    [ "$(cat "$work/lines")" = "$name: cannot write to standard output: No space left on device" ] || {
        echo "$*: $(cat "$work/lines")" >&2
        exit 1
    }
}

count=0
for program in "$@"; do
    name=${program##*/}
    wanted=1
    [ "$name" != rmm-run ] || wanted=125 # as env(1): 1 may be the program's
    for option in --help --version; do
        fails "$name" "$program" $option
    done
    case $name in
    rmm-replay)
        fails "$name" "$program" "$log"
        fails "$name" "$program" --json "$log"
        fails "$name" "$program" --advise "$log"
        ;;
    rmm-bench)
        fails "$name" "$program" --quick --filter pair-legacy --resource cuda
        fails "$name" "$program" --list
        ;;
    rmm-top)
        fails "$name" "$program" --once
        fails "$name" "$program" --json
        ;;
    esac
    "$program" --version >&- 2>"$work/said" && { echo "$name writes to what is closed" >&2; exit 1; }
    [ "$(wc -l <"$work/said")" -eq 1 ] || { echo "$name: $(cat "$work/said")" >&2; exit 1; }
    case $name in # without standard error: what it says of the log's rows does not get into its file
    rmm-replay) "$program" --csv "$work/file" "$faulty" >/dev/null 2>&- ;;
    rmm-timeline) "$program" --timeline "$work/file" "$faulty" 2>&- ;;
    rmm-run) "$program" --no-summary -- sh -c '[ ! -e /proc/self/fd/2 ] && echo nothing' >"$work/file" 2>&- ;;
    *) echo nothing >"$work/file" ;;
    esac || { echo "$name: does not work without standard error" >&2; exit 1; }
    ! grep "^$name: " "$work/file" >&2 || { echo "$name: a message in its file" >&2; exit 1; }
    count=$((count + 1))
done
[ $count -ge 4 ] || { echo "only $count programs" >&2; exit 1; }
