#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: recipes_page.sh SOURCE PREFIX
# The commands of docs/recipes.md print what the page shows: its program, built by its "sh recipes"
# lines against the installed tree, under the installed rmm-run and rmmfs. Its links lead somewhere.
set -euo pipefail
. "$(dirname "$0")/common.sh"
source=$1 stage=$2 tree=()
page=$source/docs/recipes.md

libraries=$(library_folder "$stage")
export PKG_CONFIG_PATH="$libraries/pkgconfig" LD_LIBRARY_PATH="$libraries" PATH="$stage/bin:$PATH"
unset RMM_DRIVER # the commands say it themselves
[ -x "$stage/bin/rmm-run" ] || { echo "no installed rmm-run" >&2 && exit 77; }
cp "$source/examples/recipes.c" "$work"
cd "$work"
page_block "$page" "sh recipes" >commands
[ -s commands ] || die "docs/recipes.md has no commands that build its program"
set +u
. ./commands
set -u

if [ -w /dev/fuse ] && [ -x "$stage/bin/rmmfs" ]; then
    mkdir rmm no_gpus # GPUs of this machine would come before the simulated one
    tree=("$work/rmm")
    RMM_NVIDIA_PROC=$work/no_gpus rmmfs "$work/rmm" || die "rmmfs does not mount"
fi
status=0
"$(dirname "$0")/transcript.py" "$page" "${tree[@]}" || status=$?
[ ${#tree[@]} -eq 0 ] || unmount_tree "$work/rmm"
check_links "$page"
exit $status
