#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: ends_on_a_small_disk.sh DIAGNOSED PROGRAM...
# A file that does not fit, a pipe that nobody reads and a runtime directory that cannot be made: one
# line, a status other than 0, and nothing half written. DIAGNOSED is a program for rmm-run. The disks
# are small tmpfs in a mount namespace, so this needs root or a kernel that lets users make one.
set -euo pipefail
if [ "${RMM_TEST_IN_NAMESPACE:-}" = "" ]; then
    may=(unshare --mount)
    [ "$(id -u)" = 0 ] || may=(unshare --mount --map-root-user)
    "${may[@]}" true 2>/dev/null || { echo "skipped: no mount namespace may be made"; exit 77; }
    RMM_TEST_IN_NAMESPACE=1 exec "${may[@]}" "$0" "$@"
fi
diagnosed=$1
shift
work=$(mktemp -d)
trap 'umount "$work/disk" "$work/shm" 2>/dev/null || true; rm -rf "$work"' EXIT
export RMM_RUNTIME_DIR=$work/run
mkdir -m 700 "$RMM_RUNTIME_DIR" "$work/disk"
mount -t tmpfs -o size=64k none "$work/disk"
log="$(dirname "$0")/../../data/resnet_train.csv.gz"
small="$(dirname "$0")/../../data/replay/small.csv"

wrong() {
    echo "$*" >&2
    cat "$work/err" >&2
    exit 1
}

fails() { # STATUS LINE COMMAND...: one line on stderr that begins with LINE
    local wanted=$1 line=$2 status=0
    shift 2
    "$@" >"$work/out" 2>"$work/err" || status=$?
    [ $status = "$wanted" ] || wrong "$*: status $status instead of $wanted"
    [ "$(wc -l <"$work/err")" = 1 ] && grep -qF "$line" "$work/err" || wrong "$*: not one line \"$line\""
}

# A file of 4 KiB fits, the one that is wanted does not, or nothing does: the earlier file stays.
does_not_fit() { # STATUS LINE COMMAND...: the command writes $work/disk/file
    local room
    for room in ${rooms:-4096 0}; do
        rm -f "$work"/disk/*
        echo earlier >"$work/disk/file"
        head -c $((61440 - room)) /dev/zero >"$work/disk/filler"
        fails "$@"
        [ "$(ls -A "$work/disk")" = $'file\nfiller' ] || wrong "$*: left $(ls -A "$work/disk")"
        [ "$(cat "$work/disk/file")" = earlier ] || wrong "$*: the earlier file is gone"
    done
    rm -f "$work"/disk/*
}

# --- rmm-run ---------------------------------------------------------------------------------

closed() { # COMMAND...: its stderr is a pipe whose reader has gone
    local status=0
    mkfifo "$work/pipe"
    exec 3<>"$work/pipe" 4>"$work/pipe" 3<&-
    "$@" >"$work/out" 2>&4 || status=$?
    exec 4>&-
    rm "$work/pipe"
    return $status
}

run_writes() { # RMM-RUN
    local option program folder status
    for option in report timeline trace; do
        does_not_fit 125 "rmm-run: --$option: cannot write $work/disk/file: No space left on device" \
            "$1" --$option "$work/disk/file" -- "$diagnosed" plain
    done
    for option in junit sarif; do # the former fits in 4 KiB
        rooms=0 does_not_fit 125 "rmm-run: --$option: cannot write $work/disk/file: No space left on device" \
            "$1" --$option "$work/disk/file" -- "$diagnosed" plain
    done
    for folder in disk/new/ disk; do
        does_not_fit 125 "rmm-run: --report: cannot write $work/$folder: No space left on device" \
            "$1" --report "$work/$folder" -- "$diagnosed" plain
    done
    for program in "$diagnosed" /bin/true; do # the latter allocates nothing
        status=0
        "$1" --summary -- "$program" plain 2>/dev/full || status=$?
        [ $status = 125 ] || wrong "a summary of $program on a full disk: status $status"
    done
    status=0
    closed "$1" --summary --report "$work/report" --timeline "$work/page" -- "$diagnosed" plain || status=$?
    [ $status = 125 ] || wrong "a summary into a closed pipe: status $status"
    [ -s "$work/report" ] && [ -s "$work/page" ] || wrong "a closed pipe cost the other results"
    status=0
    closed "$1" --report "$work/report" -- "$diagnosed" plain 7 || status=$?
    [ $status = 7 ] || wrong "no summary is wanted: status $status"
}

# --- no runtime directory --------------------------------------------------------------------

with_read_only_shm() { # COMMAND...: no other place is left either
    env -u RMM_RUNTIME_DIR -u XDG_RUNTIME_DIR "$@"
}

makes_no_directory() { # NAME PROGRAM
    mkdir -p "$work/shm"
    mount -t tmpfs -o ro none /dev/shm
    if [ -d /run/rmm ] && [ -w /run/rmm ]; then
        mount -t tmpfs -o ro none /run/rmm
    fi
    local line="cannot make /dev/shm/rmm-$(id -u): Read-only file system"
    case $1 in
    rmm-run)
        fails 125 "rmm-run: nothing can be diagnosed: $line" \
            with_read_only_shm "$2" --summary -- touch "$work/ran"
        [ ! -e "$work/ran" ] || wrong "the program has run in vain"
        with_read_only_shm "$2" -- touch "$work/ran" # nothing is wanted but the tree
        [ -e "$work/ran" ] || wrong "the program has not run"
        ;;
    rmm-top)
        with_read_only_shm "$2" --once >"$work/out" 2>"$work/err" || wrong "rmm-top --once"
        [ ! -s "$work/err" ] && grep -q "0 programs" "$work/out" || wrong "rmm-top: $(cat "$work/out")"
        ;;
    *)
        with_read_only_shm "$2" "$small" >"$work/out" 2>"$work/err" || wrong "$1: a failure"
        [ "$(cat "$work/err")" = "$1: /rmm will not show this process: $line; correct this, or set RMM_PUBLISH to 0" ] ||
            wrong "$1: not one line"
        ;;
    esac
    umount /dev/shm
    if mountpoint -q /run/rmm; then
        umount /run/rmm
    fi
}

count=0
for program in "$@"; do
    name=${program##*/}
    case $name in
    rmm-replay)
        does_not_fit 1 "rmm-replay: cannot write $work/disk/file: No space left on device" \
            "$program" --csv "$work/disk/file" "$log"
        makes_no_directory $name "$program"
        ;;
    rmm-timeline)
        for option in timeline trace; do
            does_not_fit 1 "rmm-timeline: --$option: cannot write $work/disk/file: No space left on device" \
                "$program" --$option "$work/disk/file" "$log"
        done
        ;;
    rmm-run)
        run_writes "$program"
        makes_no_directory $name "$program"
        ;;
    rmm-top)
        "$program" --html "$work/page" # some 30 KB without a program, of which half fits
        rm -f "$work"/disk/*
        head -c $((65536 - $(stat -c %s "$work/page") / 8192 * 4096)) /dev/zero >"$work/disk/filler"
        fails 1 "rmm-top: cannot write $work/disk/file: No space left on device" \
            "$program" --html "$work/disk/file"
        [ ! -e "$work/disk/file" ] || wrong "half a page"
        makes_no_directory $name "$program"
        ;;
    rmm-bench | rmm-exporter) ;; # write no file
    *) wrong "$program: what files does it write?" ;;
    esac
    count=$((count + 1))
done
[ $count -ge 4 ] || { echo "only $count programs" >&2; exit 1; }
