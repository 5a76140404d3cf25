#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: readme.sh SOURCE PREFIX
# What README.md shows is true: its program is examples/hello.c; its commands, in their order and with
# one runtime directory, print what it shows, against the installed tree and on the simulated GPU; its
# figures are those of docs/performance.md; its other commands have the options that it names; and the
# programs, scripts and folders that it and docs/architecture.md name are there.
set -euo pipefail
. "$(dirname "$0")/common.sh"
source=$1 stage=$2
readme=$source/README.md

block() { # TAG
    page_block "$readme" "$1"
}

block c >"$work/hello.c"
[ -s "$work/hello.c" ] || die "README.md has no C program"
grep -v SPDX "$source/examples/hello.c" | diff - "$work/hello.c" ||
    die "the program of README.md is not examples/hello.c"

libraries=$(library_folder "$stage")
export PKG_CONFIG_PATH="$libraries/pkgconfig" LD_LIBRARY_PATH="$libraries" PATH="$stage/bin:$PATH"
unset RMM_DRIVER # the commands say it themselves
# As in a clone; GPUs of this machine would come before the simulated one.
cd "$work"
mkdir no_gpus tests
export RMM_NVIDIA_PROC=$work/no_gpus
cp -r "$source/examples" .
ln -s "$source/tests/data" tests/data

end_of_daemon() { # it ends by itself after the umount
    local environment
    for environment in /proc/[0-9]*/environ; do
        [ "$(cat "${environment%environ}comm" 2>/dev/null)" = rmmfs ] || continue
        ! grep -qzxF "RMM_RUNTIME_DIR=$RMM_RUNTIME_DIR" "$environment" || wait_for_end "$(cut -d / -f 3 <<<"$environment")"
    done
}

if [ -x "$stage/bin/rmm-run" ]; then
    tree=() status=0
    if [ -w /dev/fuse ] && [ -x "$stage/bin/rmmfs" ]; then
        tree=("$work/rmm") # README.md mounts a folder of its own
    else
        echo "the tree of README.md is not tried: it needs /dev/fuse and an installed rmmfs"
    fi
    "$source/tests/abi/transcript.py" "$readme" "${tree[@]}" || status=1
    ! grep -qF " $work/tree " /proc/self/mountinfo || { umount -l tree && status=1; }
    end_of_daemon
    [ "$status" = 0 ] || die "README.md shows what its commands do not print"
else
    echo "the commands of README.md are not tried: they need an installed rmm-run"
fi

# rmm-top has the columns of the picture.
if [ -x "$stage/bin/rmm-top" ]; then
    RMM_DRIVER=sim "$stage/bin/rmm-top" --once >top_output || die "rmm-top --once failed"
    block text >picture
    for word in DEVICE USED CACHED OTHERS FREE TOTAL; do
        grep -qw "$word" top_output && grep -qw "$word" picture || die "rmm-top shows no $word"
    done
fi

# The table of figures.
sed -n '/^<!-- compare -->$/,/^<!-- end of compare -->$/p' "$readme" | grep '^|' | sed '1,2d' >table
[ "$(wc -l <table)" -ge 5 ] || die "README.md compares nothing"
while read -r figure; do
    grep -qE "(^|[^0-9.,])$figure([^0-9.,]|\$|[.,]( |\$))" "$source/docs/performance.md" ||
        die "README.md has the figure $figure, which docs/performance.md has not"
done < <(cut -d '|' -f 3- table | grep -oE '[0-9][0-9.,]*')

# Commands that are not run here exist, with the options that they show.
while read -r program option; do
    "$stage/bin/$program" --help | grep -q -- "^  $option" || die "README.md: $program has no $option"
done < <(block sh | grep -oE '^rmm-[a-z]+ --[a-z-]+')

# The front page stays one.
[ "$(wc -l <"$readme")" -le 180 ] || die "README.md has more than 180 lines"

# Every relative link and every path of the table of folders exists.
while read -r path; do
    [ -e "$source/$path" ] || die "README.md names $path, which is not there"
done < <(
    grep -oE '\]\([^)#:]+\)' "$readme" | tr -d ']()'
    sed -nE 's/^\| `([^`]+)` \|.*/\1/p' "$source/docs/architecture.md" | grep / | grep -v '\*'
    block sh | sed -nE 's/^(tools|tests)(\/[a-z_-]+).*/\1\2/p'
)
echo "README.md: program, commands and paths are right"
