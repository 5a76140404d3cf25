#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: install_preset.sh SOURCE RMM_CUDA
# The preset "install" is optimised and wants nothing that only tests need; tools/demo builds it, on
# machines that have only the packages that it names.
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

presets=$(grep -o -- '--preset [a-z]*' "$1/tools/demo" | sort -u)
[ "$presets" = "--preset install" ] || die "tools/demo builds $presets"
