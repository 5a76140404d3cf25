#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: static_library.sh SOURCE RMM_CUDA
# Builds and installs librmm-c.a, and the C consumer against it both ways.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

"$cmake" -S "$1" -B "$work/build" -G Ninja -DBUILD_SHARED_LIBS=OFF -DRMM_CUDA="$2" \
    -DRMM_BUILD_TESTS=OFF -DRMM_BUILD_TOOLS=OFF -DRMM_BUILD_FUSEFS=OFF -DRMM_BUILD_INJECT=OFF \
    -DCMAKE_BUILD_TYPE=Release >"$work/log" 2>&1 || { cat "$work/log"; die "configure failed"; }
"$cmake" --build "$work/build" -j 2 >"$work/log" 2>&1 || { tail -n 40 "$work/log"; die "build failed"; }
"$cmake" --install "$work/build" --prefix "$work/stage" >/dev/null
[ -z "$(find "$work/stage" -name '*.so*')" ] || die "a static build installed a shared library"

"$here/consumer.sh" c find_package "$work/stage"
"$here/consumer.sh" c pkg_config "$work/stage"
