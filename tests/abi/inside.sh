#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: inside.sh add_subdirectory|fetch_content SOURCE RMM_CUDA BUILD_TYPE RMM_HEAVY_CHECKS LIBRARY
# The C consumer with rmm-c inside its own project, shared and then, by the project's own
# wish, static: nothing but the library is built, nothing of it is installed, and the
# project's settings stay its own. The shared one, from a copy of the sources,
# consists of the objects of LIBRARY, byte for byte.
# A target "rmm" of the project (RAPIDS has one) is no trouble.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
way=$1 source=$2 cuda=$3 build_type=$4 heavy=$5 library=$6
[ "$way" = add_subdirectory ] || build_type=Debug # nothing is compared: the quickest
if [ "$way" = add_subdirectory ]; then
    mkdir -p "$work/a/place of/another/name"
    cp -r "$source"/{CMakeLists.txt,cmake,compat,include,lib} "$work/a/place of/another/name"
    source="$work/a/place of/another/name"
fi

add_subdirectory() {
    echo "add_subdirectory(\"$source\" rmm-c)"
}

# As FetchContent_Declare() with GIT_REPOSITORY, but for the network.
fetch_content() {
    cat <<END
set(BUILD_SHARED_LIBS OFF)
include(FetchContent)
FetchContent_Declare(rmm-c SOURCE_DIR "$source")
FetchContent_MakeAvailable(rmm-c)
END
}

mkdir "$work/source"
cp "$here/consumer_c/main.c" "$work/source"
echo 'int outer_rmm(void); int outer_rmm(void) { return 0; }' >"$work/source/outer.c"
cat >"$work/source/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.24)
project(outer LANGUAGES C)
set(RMM_CUDA "$cuda" CACHE STRING "")
get_cmake_property(cache_before CACHE_VARIABLES)
get_directory_property(options_before COMPILE_OPTIONS)
$($way)
add_library(rmm outer.c) # static, as is CMake's default
add_executable(consumer main.c)
target_link_libraries(consumer PRIVATE rmm-c::rmm)
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
foreach(target rmm-replay rmm-bench rmm-run rmm-timeline rmm-top rmmfs rmm-inject rmm_harness)
    if(TARGET \${target})
        message(FATAL_ERROR "rmm-c brought \${target} into the outer project")
    endif()
endforeach()
get_target_property(type rmm TYPE)
if(NOT type STREQUAL "STATIC_LIBRARY")
    message(FATAL_ERROR "a library of the outer project has become a \${type}")
endif()
END
"$cmake" -S "$work/source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE="$build_type" -DRMM_HEAVY_CHECKS="$heavy" >"$work/log" 2>&1 ||
    { cat "$work/log"; die "configure failed"; }
"$cmake" --build "$work/build" -j 2 >"$work/log" 2>&1 ||
    { tail -n 40 "$work/log"; die "build failed"; }
expect_consumer_output "$work/build/consumer"

kind=so
[ "$way" = add_subdirectory ] || kind=a
built=$(find "$work/build" -name "librmm-c.$kind")
[ -n "$built" ] || die "no librmm-c.$kind was built"
# a debug build keeps the paths of its machine
if [ "$kind" = so ] && [ "$build_type" != Debug ]; then
    count=0
    while read -r object; do
        cmp "$work/build/rmm-c/lib/$object" "$(dirname "$library")/$object" || die "a build in another folder gives another library"
        count=$((count + 1))
    done < <(cd "$work/build/rmm-c/lib" && find . -path '*/rmm_objects.dir/*.o')
    [ "$count" -gt 100 ] || die "only $count objects compared"
    echo "$count objects are the same bytes in another folder"
fi
"$cmake" --install "$work/build" --prefix "$work/stage" >/dev/null
[ "$(cd "$work/stage" && find . ! -type d)" = ./bin/consumer ] ||
    die "installed with the outer project: $(cd "$work/stage" && find . ! -type d)"
