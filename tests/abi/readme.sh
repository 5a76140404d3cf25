#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: readme.sh SOURCE PREFIX
# What README.md shows is true: its program is examples/hello.c, its build line builds it
# against the installed tree, it runs on the simulated GPU as shown, the mounted tree says
# what is shown, its figures are those of docs/performance.md, its other commands have the options
# that it names, and the programs, scripts and folders that it and docs/architecture.md name are
# there.
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

block "sh hello" >"$work/commands"
[ -s "$work/commands" ] || die "README.md has no commands that build the program"
libraries=$(library_folder "$stage")
export PKG_CONFIG_PATH="$libraries/pkgconfig" LD_LIBRARY_PATH="$libraries"
unset RMM_DRIVER # the commands say it themselves
cd "$work"
output=$(echo | bash -eu ./commands) || die "the commands of README.md failed: $output"
[[ $output == *"1000000 bytes of 42 at 0x"* ]] || die "unexpected output: $output"

# The mounted tree, as shown. GPUs of this machine would come before the simulated one.
mounted_tree() {
    local status=0
    block "sh tree" >tree_commands
    sed -i 's|^umount tree|cat tree/daemon/pid >pid; &|' tree_commands
    grep -q '^cat tree/daemon/pid' tree_commands || die "README.md does not unmount its tree"
    mkdir no_gpus
    PATH=$stage/bin:$PATH RMM_NVIDIA_PROC=$work/no_gpus bash -eu ./tree_commands >tree_output || status=$?
    ! grep -qF " $work/tree " /proc/self/mountinfo || umount -l tree || fusermount3 -uz tree
    [ "$status" = 0 ] || die "the commands of the tree failed: $(cat tree_output)"
    wait_for_end "$(cat pid)"
    [ "$(grep -E '^[0-9]+$' tree_output | xargs)" = "1000000 0" ] ||
        die "unexpected peaks: $(cat tree_output)"
    grep -qx peak_bytes tree_output || die "ls does not show the files: $(cat tree_output)"
}
# The transcript at the top, rmm-top, and some rounds of the dashboard, over one mount.
mounted_programs() {
    local status=0
    cp "$source/tests/data/resnet_train.csv.gz" trace.csv.gz
    mkdir rmm
    RMM_NVIDIA_PROC=$work/no_gpus rmmfs "$work/rmm"
    "$source/tests/abi/transcript.py" "$readme" "$work/rmm" || status=1
    block "sh dashboard" | sed "s|/rmm/|$work/rmm/|g; s|while sleep 1;|for _ in 1 2;|" >dashboard
    timeout 120 bash ./dashboard >dashboard_output 2>&1 || true
    [ "$(grep -c 'gpu0/current_bytes:0$' dashboard_output)" -ge 2 ] &&
        grep -q '^#pid  *uid' dashboard_output || { cat dashboard_output && status=1; }
    unmount_tree "$work/rmm"
    [ "$status" = 0 ] || die "README.md shows what the tree does not say"
}
shown_by_top() { # rmm-top has the columns of the picture
    RMM_DRIVER=sim "$stage/bin/rmm-top" --once >top_output || die "rmm-top --once failed"
    local word
    for word in DEVICE USED CACHED OTHERS FREE TOTAL; do
        grep -qw "$word" top_output && block text | grep -qw "$word" || die "rmm-top shows no $word"
    done
}
if [ -w /dev/fuse ] && [ -x "$stage/bin/rmmfs" ]; then
    mounted_tree
    PATH=$stage/bin:$PATH mounted_programs
else
    echo "the tree of README.md is not tried: it needs /dev/fuse and an installed rmmfs"
fi

[ ! -x "$stage/bin/rmm-top" ] || shown_by_top

# The table of figures.
sed -n '/^<!-- compare -->$/,/^<!-- end of compare -->$/p' "$readme" | grep '^|' | sed '1,2d' >table
[ "$(wc -l <table)" -ge 5 ] || die "README.md compares nothing"
while read -r figure; do
    grep -qE "(^|[^0-9.,])$figure([^0-9.,]|\$)" "$source/docs/performance.md" ||
        die "README.md has the figure $figure, which docs/performance.md has not"
done < <(cut -d '|' -f 3- table | grep -oE '[0-9][0-9.,]*')

# Commands that are not run here exist, with the options that they show.
while read -r program option; do
    "$stage/bin/$program" --help | grep -q -- "^  $option" || die "README.md: $program has no $option"
done < <(block sh | grep -oE '^rmm-[a-z]+ --[a-z-]+')

# Every relative link and every path of the table of folders exists.
while read -r path; do
    [ -e "$source/$path" ] || die "README.md names $path, which is not there"
done < <(
    grep -oE '\]\([^)#:]+\)' "$readme" | tr -d ']()'
    sed -nE 's/^\| `([^`]+)` \|.*/\1/p' "$source/docs/architecture.md" | grep / | grep -v '\*'
    block sh | sed -nE 's/^(tools|tests)(\/[a-z_-]+).*/\1\2/p'
)
echo "README.md: program, commands and paths are right"
