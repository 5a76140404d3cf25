#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: readme.sh SOURCE PREFIX
# What README.md shows is true: its program is examples/hello.c, its build line builds it
# against the installed tree, it runs on the simulated GPU as shown, the mounted tree says
# what is shown, and the programs, scripts and folders that it names are there.
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
if [ -w /dev/fuse ] && [ -x "$stage/bin/rmmfs" ]; then
    mounted_tree
else
    echo "the tree of README.md is not tried: it needs /dev/fuse and an installed rmmfs"
fi

# Every relative link and every path of the table of folders exists.
while read -r path; do
    [ -e "$source/$path" ] || die "README.md names $path, which is not there"
done < <(
    grep -oE '\]\([^)#:]+\)' "$readme" | tr -d ']()'
    sed -nE 's/^\| `([^`]+)` \|.*/\1/p' "$readme" | grep / || true
    block sh | sed -nE 's/^(tools|tests)(\/[a-z_-]+).*/\1\2/p'
)
echo "README.md: program, commands and paths are right"
