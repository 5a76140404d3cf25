#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: install_preset.sh SOURCE RMM_CUDA
# The preset "install" is optimised and wants nothing that only tests need; tools/demo and tools/install
# build it, on machines that have only the packages that they name.
set -euo pipefail
. "$(dirname "$0")/common.sh"

(cd "$1" && "$cmake" --preset install -B "$work/build" -DRMM_CUDA="$2") >"$work/log" 2>&1 ||
    { cat "$work/log"; die "configure failed"; }
cache=$work/build/CMakeCache.txt
grep -qx 'RMM_BUILD_TESTS:BOOL=OFF' "$cache" || die "it builds the tests"
! grep -i '^[^/]*cmocka.*=' "$cache" || die "it looks for cmocka"
! grep '^RMM_PYTHON' "$cache" || die "it looks for Python"
grep -q '^CMAKE_BUILD_TYPE:[A-Z]*=RelWithDebInfo$' "$cache" || die "it is not optimised"
! grep -q -- '-Werror' "$work/build/build.ninja" || die "a warning of another compiler would end the build"

# Where libfuse has its version in another header, as on Debian 13, the list of parts has it too.
fuse=$(sed -n 's/^RMM_FUSE_INCLUDE_DIR:PATH=//p' "$cache")
if [ -n "$fuse" ]; then
    cp -r "$fuse" "$work/fuse3"
    for header in fuse_common.h libfuse_config.h; do
        [ ! -e "$work/fuse3/$header" ] || sed -i '/define *FUSE_M[AI][A-Z]*_VERSION/d' "$work/fuse3/$header"
    done
    printf '#define FUSE_%s_VERSION %s\n' MAJOR 3 MINOR 17 >>"$work/fuse3/libfuse_config.h"
    (cd "$1" && "$cmake" --preset install -B "$work/build" -DRMM_FUSE_INCLUDE_DIR="$work/fuse3") >"$work/log" 2>&1 ||
        { cat "$work/log"; die "configure failed with the headers of another libfuse"; }
    [ ! -d "$work/build/fusefs" ] || grep -q '"versionInfo": "3.17"' "$work/build/rmm-c.spdx.json" ||
        die "rmm-c.spdx.json has another version of libfuse"
fi

for program in tools/demo tools/install; do
    presets=$(grep -o -- '--preset [a-z]*' "$1/$program" | sort -u)
    [ "$presets" = "--preset install" ] || die "$program builds $presets"
done

# tools/install installs what that preset built, and needs no other right than to write its prefix.
mkdir -p "$work/clone" "$work/bin"
cp -r "$1/tools" "$work/clone"
printf '#!/bin/sh\necho "$*" >>"%s"\n' "$work/calls" >"$work/bin/cmake"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/sudo"
chmod +x "$work/bin"/*
PATH=$work/bin:$PATH "$work/clone/tools/install" "$work/prefix" </dev/null >"$work/log" 2>&1 || { cat "$work/log"; die "tools/install failed"; }
expected="--preset install
--build --preset install
--install build/install --prefix $work/prefix"
[ "$(cat "$work/calls")" = "$expected" ] || die "tools/install runs cmake $(cat "$work/calls")"
