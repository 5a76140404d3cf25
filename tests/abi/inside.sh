#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: inside.sh SOURCE RMM_CUDA BUILD_TYPE RMM_HEAVY_CHECKS LIBRARY
# The C consumer with a copy of rmm-c inside its own project: by add_subdirectory(), shared, and then
# by FetchContent, static because the project asks for it: nothing but the library is built, nothing of it is
# installed, and the project's settings stay its own. It consists of the objects of LIBRARY, byte for
# byte. A target "rmm" of the project (RAPIDS has one) is no trouble.
# Both ways have the same build folder, so that what is compiled for the first serves the second.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
cuda=$2 build_type=$3 heavy=$4 library=$5
source="$work/a/place of/another/name"
mkdir -p "$source"
cp -r "$1"/{CMakeLists.txt,cmake,compat,compat-classic,include,lib} "$source"

add_subdirectory() {
    echo "add_subdirectory(\"$source\" rmm-c)"
}

# As FetchContent_Declare() with GIT_REPOSITORY, but for the network.
fetch_content() {
    cat <<END
set(BUILD_SHARED_LIBS OFF)
include(FetchContent)
FetchContent_Declare(rmm-c SOURCE_DIR "$source" BINARY_DIR "$work/build/rmm-c")
FetchContent_MakeAvailable(rmm-c)
END
}

mkdir "$work/source"
cp "$here/consumer_c/main.c" "$work/source"
echo 'int outer_rmm(void); int outer_rmm(void) { return 0; }' >"$work/source/outer.c"

write_project() { # WAY
    cat >"$work/source/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.24)
project(outer LANGUAGES C)
set(RMM_CUDA "$cuda" CACHE STRING "")
get_cmake_property(cache_before CACHE_VARIABLES)
get_directory_property(options_before COMPILE_OPTIONS)
$($1)
add_library(rmm outer.c) # static, as is CMake's default
add_executable(consumer main.c)
target_link_libraries(consumer PRIVATE rmm-c::rmm rmm-c::rmm-sim)
install(TARGETS consumer)

# What rmm-c may leave: cache entries that begin with its name, CMake's own of what it found.
get_cmake_property(cache_after CACHE_VARIABLES)
list(REMOVE_ITEM cache_after \${cache_before})
list(FILTER cache_after EXCLUDE REGEX
    "^(RMM_|rmm-c_|CUDAToolkit|CUDA_|CMAKE_CUDA|CMAKE_INSTALL_|CMAKE_HAVE_|CMAKE_PROJECT_VERSION|FETCHCONTENT_|FIND_PACKAGE_MESSAGE|Threads_|_)")
if(cache_after)
    message(FATAL_ERROR "rmm-c left in the cache: \${cache_after}")
endif()
get_directory_property(options_after COMPILE_OPTIONS)
if(NOT "\${options_after}" STREQUAL "\${options_before}" OR CMAKE_C_FLAGS MATCHES "Werror"
   OR DEFINED CMAKE_C_STANDARD OR BUILD_TESTING OR CMAKE_INSTALL_RPATH)
    message(FATAL_ERROR "rmm-c changed the outer project's settings")
endif()
foreach(target rmm-replay rmm-bench rmm-run rmm-timeline rmm-top rmm-exporter rmmfs rmm-inject rmm_harness)
    if(TARGET \${target})
        message(FATAL_ERROR "rmm-c brought \${target} into the outer project")
    endif()
endforeach()
get_target_property(type rmm TYPE)
if(NOT type STREQUAL "STATIC_LIBRARY")
    message(FATAL_ERROR "a library of the outer project has become a \${type}")
endif()
END
}

# try_way WAY FILE: builds the project with rmm-c as FILE.
try_way() {
    write_project "$1"
    rm -rf "$work/build/CMakeCache.txt" "$work/stage"
    "$cmake" -S "$work/source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE="$build_type" -DRMM_HEAVY_CHECKS="$heavy" >"$work/log" 2>&1 ||
        { cat "$work/log"; die "$1: configure failed"; }
    "$cmake" --build "$work/build" -j 2 >"$work/log" 2>&1 ||
        { tail -n 40 "$work/log"; die "$1: build failed"; }
    expect_consumer_output "$work/build/consumer"
    [ -n "$(find "$work/build" -name "$2")" ] || die "$1: no $2 was built"
    "$cmake" --install "$work/build" --prefix "$work/stage" >/dev/null
    [ "$(cd "$work/stage" && find . ! -type d)" = ./bin/consumer ] ||
        die "$1: installed with the outer project: $(cd "$work/stage" && find . ! -type d)"
}

try_way add_subdirectory librmm-c.so
others=$(find "$work/build/rmm-c" -name '*.o' | grep -v -E '/rmm_(core|pool_blocks|objects|sim_core|sim_objects)\.dir/' || true)
[ -z "$others" ] || die "more than the library was built: $others"
find "$work/build" -name 'librmm-c.*' -delete
try_way fetch_content librmm-c.a
[ -z "$(find "$work/build" -name 'librmm-c.so*')" ] || die "a shared library was built as well"

# a debug build keeps the paths of its machine
if [ "$build_type" != Debug ]; then
    count=0
    while read -r object; do
        cmp "$work/build/rmm-c/lib/$object" "$(dirname "$library")/$object" || die "a build in another folder gives another library"
        count=$((count + 1))
    done < <(cd "$work/build/rmm-c/lib" && find . -path '*/rmm_core.dir/*.o' -o -path '*/rmm_pool_blocks.dir/*.o' -o -path '*/rmm_objects.dir/*.o')
    [ "$count" -gt 100 ] || die "only $count objects compared"
    echo "$count objects are the same bytes in another folder"
fi
