#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: howto_pages.sh SOURCE PREFIX
# The commands of docs/howto/*.md print what the pages show: their program, built by the "sh recipes"
# lines of examples/README.md against the installed tree, under the installed rmm-run and rmmfs. The
# links of the pages lead somewhere.
set -euo pipefail
. "$(dirname "$0")/common.sh"
source=$1 stage=$2 tree=()

libraries=$(library_folder "$stage")
export PKG_CONFIG_PATH="$libraries/pkgconfig" LD_LIBRARY_PATH="$libraries" PATH="$stage/bin:$PATH"
unset RMM_DRIVER # the commands say it themselves
for page in "$source"/docs/howto/*.md; do
    check_links "$page"
done
[ -x "$stage/bin/rmm-run" ] || { echo "no installed rmm-run" >&2 && exit 77; }
cp "$source/examples/recipes.c" "$work"
cd "$work"
page_block "$source/examples/README.md" "sh recipes" >commands
[ -s commands ] || die "examples/README.md has no commands that build recipes.c"
set +u
. ./commands
set -u

if [ -w /dev/fuse ] && [ -x "$stage/bin/rmmfs" ]; then
    mkdir rmm no_gpus # GPUs of this machine would come before the simulated one
    tree=("$work/rmm")
    RMM_NVIDIA_PROC=$work/no_gpus rmmfs "$work/rmm" || die "rmmfs does not mount"
fi
status=0 transcripts=0
for page in "$source"/docs/howto/*.md; do
    grep -qxF '```console' "$page" || continue
    transcripts=$((transcripts + 1))
    "$(dirname "$0")/transcript.py" "$page" "${tree[@]}" || status=1
done
[ ${#tree[@]} -eq 0 ] || unmount_tree "$work/rmm"
[ "$transcripts" -ge 7 ] || die "only $transcripts pages have transcripts"
exit $status
