#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: builds.sh SOURCE VERSION FOLDER
# The library, the diagnosis, their tests and the headers for C++ with the toolkit of another CUDA: FOLDER
# keeps the toolkit. What is a matter of the version is run too. Programs with kernels
# compile with an nvcc of CUDA 13, from 12.4 on.
set -euo pipefail
source=$1 version=$2 folder=$3
root=$folder/$version build=$folder/build-$version
mkdir -p "$folder"
status=0
"$source/tests/cuda/toolkit" "$version" "$root" || status=$?
if [ $status -eq 75 ] && [ -z "${CI:-}" ]; then
    exit 77
fi
[ $status -eq 0 ] || exit 1

configure() { # ROOT OPTION...
    "${CMAKE:-cmake}" -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DRMM_WERROR=ON -DRMM_CUDA=ON \
        -DRMM_BUILD_INJECT=ON -DRMM_BUILD_FUSEFS=OFF -DRMM_BUILD_TOP=OFF -DRMM_INSTALL=OFF \
        -DCMAKE_C_FLAGS_DEBUG=-O0 -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_CUDA_ARCHITECTURES=80-virtual \
        "-DCUDAToolkit_ROOT=$1" "${@:2}"
}
# A folder that is no toolkit, and one that has no runtime beside its headers.
refused() { # TEXT ROOT
    rm -rf "$build"
    if configure "$2" >"$folder/refused.log" 2>&1 || ! tr -s '\n ' ' ' <"$folder/refused.log" | grep -qF "$1"; then
        cat "$folder/refused.log"
        echo "CUDAToolkit_ROOT=$2 is not refused with: $1"
        exit 1
    fi
}
refused "is no CUDA toolkit: it has neither bin/nvcc nor version.txt" "$root/include"

rm -rf "$build"
kernels=()
if [ "$version" != 12.4 ]; then
    kernels=(-DCMAKE_CUDA_COMPILER=NOTFOUND)
fi
configure "$root" "${kernels[@]}" >"$folder/configure-$version.log" 2>&1 || { cat "$folder/configure-$version.log"; exit 1; }
grep -E 'CUDA runtime|CUPTI|Kernels' "$folder/configure-$version.log"
targets=(rmm_c rmm-inject tests/gpu/all tests/cxx/all test_inject_driver)
for part in inject inject_batches inject_calls inject_contexts inject_freed inject_graphs inject_guards inject_order; do
    targets+=(test_diag_$part)
done
"${CMAKE:-cmake}" --build "$build" -j "$(nproc)" --target "${targets[@]}" >"$folder/build-$version.log" 2>&1 || {
    grep -E '^FAILED|error|undefined' "$folder/build-$version.log" | head -n 40
    exit 1
}
ctest --test-dir "$build" --output-on-failure --no-tests=error -R '^(unit\.(diag_inject.*|inject_driver)|sim\.cxx_.*)$' -j "$(nproc)"

# The headers in one file, which takes a seventh of the time: abi.headers_alone and abi.compat show that each
# compiles alone.
# The wheels of 12.0 lack what Thrust includes.
warnings=(-Wall -Wextra -Wshadow -Wconversion -Wundef -Werror)
compile() { # STANDARD HEADER...
    printf '#include <%s>\n' "${@:2}" | ${CXX:-c++} -std=c++"$1" "${warnings[@]}" -I"$source/compat" \
        -I"$source/include" -isystem "$root/include" -fsyntax-only -x c++ -
}
headers=(rmm/rmm.hpp rmm/cuda_stream_view.hpp rmm/device_uvector.hpp rmm/prefetch.hpp rmm/resource_ref.hpp)
if [ "$version" = 12.0 ]; then
    errors=$(compile 17 rmm/cxx/cccl.hpp 2>&1) && { echo "rmm/cxx/cccl.hpp compiles without CCCL"; exit 1; }
    [ "$(grep -c 'error:' <<<"$errors")" = 1 ] && grep -q 'needs CCCL 2.2' <<<"$errors" || { echo "$errors"; exit 1; }
else
    headers+=(rmm/cxx/cccl.hpp rmm/cxx/thrust.hpp rmm/exec_policy.hpp rmm/device_vector.hpp
        rmm/mr/thrust_allocator_adaptor.hpp)
fi
for standard in 17 20; do
    compile $standard "${headers[@]}"
done
rm -rf "$build"
echo "${#headers[@]} headers compile with CUDA $version in C++17 and C++20"
