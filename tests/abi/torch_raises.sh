#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: torch_raises.sh PREFIX
# Where PyTorch's library is in the process, a failed rmm_torch_malloc() is a C++ exception.
# PyTorch is played by an empty library of its name.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

libraries=$(library_folder "$1")
export PKG_CONFIG_PATH="$libraries/pkgconfig" LD_LIBRARY_PATH="$libraries" RMM_LOG_LEVEL=off
echo 'int rmm_test_played;' | ${CC:-cc} -x c -shared -fPIC -Wl,-soname,libc10.so -o "$work/libc10.so" -
# shellcheck disable=SC2046 # flags are words
${CXX:-c++} -std=c++17 -Wall -Wextra -Werror "$here/torch_raises.cpp" -o "$work/torch_raises" \
    $(pkg-config --cflags --libs rmm-c) -ldl
"$work/torch_raises" "$work/libc10.so"
