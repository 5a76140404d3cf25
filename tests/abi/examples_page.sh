#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: examples_page.sh SOURCE PREFIX
# The installed examples build by the line of their page against the installed tree, as C11 and
# C++17, and print what the page shows, the scripts over a mount. Every example is on the page, and
# installed.
set -euo pipefail
. "$(dirname "$0")/common.sh"
source=$1 stage=$2 tree=()
folder=$(dirname "$(find "$stage" -path '*/examples/hello.c')")
page=$folder/README.md

cmp "$source/examples/README.md" "$page" || die "examples/README.md is installed, but not as it is here"
for file in "$source"/examples/*; do
    name=${file##*/}
    case $name in
    README.md | CMakeLists.txt) continue ;;
    esac
    cmp "$file" "$folder/$name" || die "examples/$name is not installed"
    grep -q "^| .*\`$name\`" "$page" || die "examples/README.md does not list $name"
done

libraries=$(library_folder "$stage")
export PKG_CONFIG_PATH="$libraries/pkgconfig" LD_LIBRARY_PATH="$libraries" PATH="$stage/bin:$PATH"
export RMM_SIM_VIOLATION=exit
unset RMM_DRIVER # the commands say it themselves
build=$(page_block "$page" "sh build")
[[ $build == *"limits.c -o limits"* ]] || die "examples/README.md has no line that builds an example"
cp "$folder"/* "$work"
cd "$work"
for file in *.c; do
    name=${file%.c}
    module=rmm-c
    ! grep -q 'rmm_sim_' "$file" || module=rmm-sim
    line=${build//limits/$name}
    bash -eu <<<"${line/rmm-c/$module}" || die "the line of the page does not build $file"
    # shellcheck disable=SC2046 # flags are words
    ${CC:-cc} -std=gnu11 -Wall -Wextra -Wshadow -Werror "$file" -o "$name" $(pkg-config --cflags --libs "$module")
done

if [ -w /dev/fuse ] && [ -x "$stage/bin/rmmfs" ]; then
    mkdir rmm no_gpus # GPUs of this machine would come before the simulated one
    tree=("$work/rmm")
    RMM_NVIDIA_PROC=$work/no_gpus rmmfs "$work/rmm" || die "rmmfs does not mount"
fi
status=0
"$source/tests/abi/transcript.py" "$page" "${tree[@]}" || status=$?
[ ${#tree[@]} -eq 0 ] || unmount_tree "$work/rmm"
check_links "$source/examples/README.md"
exit $status
