#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: add_subdirectory.sh SOURCE RMM_CUDA
# The C consumer with rmm-c inside its own project: nothing but the library is built, and
# the outer project's settings stay its own.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

mkdir "$work/source"
cp "$here/consumer_c/main.c" "$work/source"
cat >"$work/source/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.24)
project(outer LANGUAGES C)
set(RMM_CUDA "$2" CACHE STRING "")
add_subdirectory("$1" rmm-c EXCLUDE_FROM_ALL)
add_executable(consumer main.c)
target_link_libraries(consumer PRIVATE rmm-c::rmm)
if(CMAKE_C_FLAGS MATCHES "Werror" OR TARGET test_options OR TARGET rmm-replay)
    message(FATAL_ERROR "rmm-c brought more than the library into the outer project")
endif()
END
"$cmake" -S "$work/source" -B "$work/build" -G Ninja >"$work/log" 2>&1 ||
    { cat "$work/log"; die "configure failed"; }
"$cmake" --build "$work/build" -j 2 >"$work/log" 2>&1 ||
    { tail -n 40 "$work/log"; die "build failed"; }
expect_consumer_output "$work/build/consumer"
