#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: amd.sh SOURCE PREFIX STANDIN_FOLDER
# The program of docs/amd.md builds against the installed tree and the HIP of the system, by its two
# ways, and runs over the stand-in of HIP's library without RMM_DRIVER.
set -euo pipefail
. "$(dirname "$0")/common.sh"
source=$1 stage=$2 standin=$3
cp -r "$stage" "$work/moved"
libraries=$(library_folder "$work/moved")
export PKG_CONFIG_PATH="$libraries/pkgconfig" RMM_PUBLISH=0
unset RMM_DRIVER
export TMPDIR=$work # hipcc leaves files of the device's side

mkdir "$work/program"
page_block "$source/docs/amd.md" "cpp" >"$work/program/main.cpp"
page_block "$source/docs/amd.md" "cmake" >"$work/program/CMakeLists.txt"
[ -s "$work/program/main.cpp" ] && [ -s "$work/program/CMakeLists.txt" ] || die "docs/amd.md has no program"
check_links "$source/docs/amd.md"
cd "$work/program"
expect() { # PROGRAM
    # the loader says that the stand-in has no versions of symbols
    LD_LIBRARY_PATH="$standin:$libraries" "$1" >"$work/out" 2>"$work/errors" || die "$1: $(cat "$work/errors")"
    [ "$(cat "$work/out")" = "the last of 1000 integers is 7; the pool holds 1048576 bytes" ] || die "$1: $(cat "$work/out")"
}
"$cmake" -S . -B build -DCMAKE_PREFIX_PATH="$work/moved" >/dev/null
"$cmake" --build build >/dev/null
expect build/main
# As hipMM's documents have it, with HIP found by the program, or brought by its compiler.
as_rmm=$libraries/cmake/rmm-c/as-rmm
printf '%s\n' 'cmake_minimum_required(VERSION 3.24)' 'project(program LANGUAGES CXX)' 'find_package(hip REQUIRED)' \
    'find_package(rmm REQUIRED)' 'if(NOT rmm_VERSION VERSION_EQUAL 23.12)' 'message(FATAL_ERROR "${rmm_VERSION}")' 'endif()' \
    'add_executable(main main.cpp)' 'target_link_libraries(main PRIVATE rmm::rmm)' >CMakeLists.txt
"$cmake" -S . -B build_rmm -Drmm_ROOT="$as_rmm" >/dev/null
"$cmake" --build build_rmm >/dev/null
expect build_rmm/main
if command -v hipcc >/dev/null; then
    (unset HIPCC; page_block "$source/docs/amd.md" "sh build" | sed 's/-std=c++17/& --offload-arch=gfx90a/' | bash -e)
    expect ./main
else
    echo "no hipcc: built with CMake only"
fi
