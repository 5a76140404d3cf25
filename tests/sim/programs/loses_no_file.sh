#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: loses_no_file.sh PROGRAM...
# A file that is written replaces neither the file that is read nor another one that the same command
# writes, by whatever name; and a program that is ended in the middle leaves no part of a file.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RMM_RUNTIME_DIR=$work/run
mkdir -m 700 "$RMM_RUNTIME_DIR" "$work/files"
small=$(realpath "$(dirname "$0")/../../data/replay/small.csv")
cd "$work/files"
cp "$small" log
ln -s log link
ln log hard

refuses() { # COMMAND...: with 2, one line, and every file as it was
    local status=0
    "$@" >"$work/out" 2>&1 || status=$?
    [ $status = 2 ] || { echo "$*: status $status: $(cat "$work/out")" >&2; exit 1; }
    [ "$(wc -l <"$work/out")" = 1 ] || { echo "$*: $(cat "$work/out")" >&2; exit 1; }
    cmp -s log "$small" || { echo "$*: the log is another one" >&2; exit 1; }
    [ "$(echo *)" = "hard link log" ] || { echo "$*: left $(echo *)" >&2; exit 1; }
}

writes() { # PID: its CSV is open, under whatever name it has until it is whole
    [ -n "$(find "/proc/$1/fd" -lname "$(pwd -P)/[#n]*" 2>/dev/null)" ]
}

count=0
for program in "$@"; do
    case ${program##*/} in
    rmm-replay)
        for name in log ./log link hard; do
            refuses "$program" --csv $name log
        done
        "$program" --csv new log >"$work/out"
        "$program" --csv new log >"$work/out" # again, over the one that is there
        [ "$(grep -c . new)" -gt 2 ] || { echo "no CSV" >&2; exit 1; }
        rm new
        "$program" --speed 0.0000001 --csv new log >"$work/out" 2>&1 &
        for ((i = 0; i < 600; i++)); do
            writes $! && break
            sleep 0.1
        done
        writes $! || { echo "no CSV is begun: $(cat "$work/out")" >&2; exit 1; }
        kill $!
        wait $! && { echo "the pauses are too short" >&2; exit 1; }
        [ ! -e new ] || { echo "a part of a CSV: $(cat new)" >&2; exit 1; }
        rm -f new.* # of file systems that have no file without a name
        ;;
    rmm-timeline)
        refuses "$program" --timeline log log
        refuses "$program" --trace link log
        for name in new ./new "$work/files/new" ../files/new; do
            refuses "$program" --timeline new --trace "$name" log
        done
        ;;
    rmm-run)
        refuses "$program" --report new --timeline new -- touch ran
        refuses "$program" --report log --trace hard -- touch ran
        refuses "$program" --report ./log --suppressions log -- touch ran
        refuses "$program" --summary --trace hard --suppressions log -- touch ran
        for name in new ./new "$work/files/new"; do
            refuses "$program" --timeline new --trace "$name" -- touch ran
        done
        ;;
    rmm-top) refuses "$program" --html log --replay link ;;
    rmm-bench | rmm-exporter) ;; # write no file
    *) echo "$program: what files does it write?" >&2; exit 1 ;;
    esac
    count=$((count + 1))
done
[ $count -ge 4 ] || { echo "only $count programs" >&2; exit 1; }
