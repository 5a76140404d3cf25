#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: compat_cccl.sh SOURCE PREFIX FOLDER CUDA_RUNTIME INCLUDE_FOLDER_OF_CUDA...
# RMM's header names of the installed tree with the CCCL that RMM 26.10 needs and no CUDA toolkit has
# yet, from PyPI; FOLDER keeps it. Each header compiles, and the program for RMM 26.10 runs, as it does with
# the CCCL of the toolkit.
set -euo pipefail
. "$(dirname "$0")/common.sh"
source=$1 stage=$2 folder=$3 cudart=$4
status=0
"$source/tests/cuda/toolkit" cccl-3.5 "$folder/cccl-3.5" || status=$?
if [ $status -eq 75 ] && [ -z "${CI:-}" ]; then
    exit 77
fi
[ $status -eq 0 ] || exit 1
cuda=("${@:5}")
flags=("-isystem$folder/cccl-3.5/include/cccl" "${cuda[@]/#/-isystem}")
libraries=$(library_folder "$stage")
include=$stage/include compat=$stage/include/rmm-c/compat
export LD_LIBRARY_PATH="$libraries"

(cd "$compat" && find . -name '*.hpp' -printf '#include <%P>\n' | grep -v any_resource | sort) >"$work/all.hpp"
echo 'static_assert(RMM_COMPAT_HAS_CCCL && RMM_COMPAT_HAS_STREAM_REF && CCCL_VERSION >= 3005000);' >>"$work/all.hpp"
compile "${CXX:-c++}" 17 "$work/all.hpp" "${flags[@]}"
if command -v clang++ >/dev/null; then
    compile clang++ 20 "$work/all.hpp" "${flags[@]}"
fi
echo "$(grep -c include "$work/all.hpp") headers compile with CCCL 3.5"

run_26_10 "$source" "$cudart -ldl -lpthread -lrt" "${flags[@]}"
run_26_10 "$source" "$cudart -ldl -lpthread -lrt" "${cuda[@]/#/-isystem}"
