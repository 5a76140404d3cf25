#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: as_rmm.sh SOURCE PREFIX
# find_package(rmm) and the other ways by which the documents of RAPIDS RMM 0.15 to 26.10 bring RMM into
# a CMake project, answered by this library: with a CUDA toolkit if there is one, and without.
# Nothing is found by those who do not name the folder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
source=$1
cp -r "$2" "$work/moved"
libraries=$(library_folder "$work/moved")
include=$work/moved/include as_rmm=$libraries/cmake/rmm-c/as-rmm
export LD_LIBRARY_PATH="$libraries" RMM_LOG_LEVEL=off
mkdir "$work/project" "$work/project/sub"
cp "$here"/as_rmm/{new,classic}.cpp "$here/as_rmm/cpm.cmake" "$work/project"
echo "add_executable(inner ../new.cpp)
target_link_libraries(inner PRIVATE rmm::rmm)" >"$work/project/sub/CMakeLists.txt"

"$cmake" -DFOLDER="$as_rmm" -P "$here/as_rmm/versions.cmake"

configure() { # TEXT OPTION...
    printf 'cmake_minimum_required(VERSION 3.24)\nproject(p LANGUAGES CXX)\n%s\n' "$1" >"$work/project/CMakeLists.txt"
    rm -rf "$work/build"
    "$cmake" -S "$work/project" -B "$work/build" "${@:2}" >"$work/log" 2>&1
}
program() { # [-both] new|classic TEXT OPTION...: the text brings RMM and links it to the program main
    local how ways=(OFF)
    if [ "$1" = -both ]; then # without the toolkit as well
        ways+=(ON)
        shift
    fi
    for how in "${ways[@]}"; do
        if ! configure "add_executable(main $1.cpp)"$'\n'"$2" -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=$how "${@:3}" ||
            ! "$cmake" --build "$work/build" -j 2 >>"$work/log" 2>&1; then
            die "$(tail -n 60 "$work/log")"
        fi
        built=$("$work/build/main") # a line of its own: the status counts
        [[ $built == "$1 "2[46] ]] || die "$2: $built"
    done
}
refused() { # MESSAGE TEXT OPTION...
    if configure "$2" "${@:3}" || ! tr -s '\n ' ' ' <"$work/log" | grep -qF "$1"; then
        die "$2 is not refused with '$1': $(cat "$work/log")"
    fi
}
at=-Drmm_DIR=$as_rmm

# As each version's documents have it.
folders="$include/rmm-c/compat-classic;$include/rmm-c/compat;$include"
program classic 'find_path(RMM_INCLUDE rmm/device_buffer.hpp) # 0.15 has no config file
find_library(RMM_LIBRARY rmm)
target_include_directories(main PRIVATE ${RMM_INCLUDE})
target_compile_definitions(main PRIVATE RMM_COMPAT_HAS_CUDA=0)
target_link_libraries(main PRIVATE ${RMM_LIBRARY})' "-DRMM_INCLUDE=$folders" "-DRMM_LIBRARY=$libraries/librmm-c.so"
program classic 'find_package(rmm 0.18 REQUIRED)
target_link_libraries(main PRIVATE rmm::rmm)' "-Drmm_ROOT=$as_rmm"
program -both classic 'find_package(rmm 21.12 REQUIRED)
if(NOT rmm_FOUND OR NOT rmm_VERSION VERSION_EQUAL 21.12 OR NOT RMM_VERSION_MAJOR EQUAL 21 OR NOT RMM_VERSION_MINOR EQUAL 12)
    message(FATAL_ERROR "${rmm_FOUND} ${rmm_VERSION} ${RMM_VERSION_MAJOR}")
endif()
find_package(rmm) # again, as by another package of the project
target_link_libraries(main PRIVATE rmm::Thrust rmm::rmm)' "-DCMAKE_PREFIX_PATH=$as_rmm"
program classic 'include(cpm.cmake)
CPMFindPackage(NAME rmm VERSION 24.06 GITHUB_REPOSITORY rapidsai/rmm)
target_compile_definitions(main PRIVATE WANTED_MINOR=6)
target_link_libraries(main PUBLIC rmm::rmm)' $at
program classic 'find_package(rmm 25.02 REQUIRED)
target_link_libraries(main PRIVATE rmm::rmm_logger rmm::rmm_logger_impl rmm::rmm)' $at
program classic 'include(cpm.cmake)
CPMAddPackage(NAME rmm VERSION 25.12 GITHUB_REPOSITORY rapidsai/rmm SYSTEM Off SOURCE_SUBDIR cpp)
target_link_libraries(main PRIVATE rmm::rmm)' $at -DCPM_USE_LOCAL_PACKAGES=ON
program -both new 'find_package(rmm 26.08 REQUIRED)
target_link_libraries(main PRIVATE rmm::rmm rapids_logger::rapids_logger)
find_package(rmm) # again, as by another package of the project
add_subdirectory(sub)' $at
page=$(page_block "$source/docs/compat.md" "cmake rmm")
[ -n "$page" ] || die "docs/compat.md has no project that finds RMM"
program new "$page" $at
program new 'set(rapids_rmm_version 26.10)
include(cpm.cmake)
rapids_cpm_rmm()
target_link_libraries(main PRIVATE rmm::rmm)' "-DCMAKE_PREFIX_PATH=$as_rmm"
program new 'find_package(RMM REQUIRED)
target_link_libraries(main PRIVATE rmm::rmm)' "-DRMM_DIR=$as_rmm"

# In FetchContent: found, and as a source tree. The era by the variable where no version says it.
fetch='include(FetchContent)
FetchContent_Declare(rmm GIT_REPOSITORY https://github.com/rapidsai/rmm GIT_TAG v26.08.00 SOURCE_SUBDIR cpp EXTRA)
FetchContent_MakeAvailable(rmm)
target_link_libraries(main PRIVATE rmm::rmm)'
program new "${fetch/EXTRA/FIND_PACKAGE_ARGS 26.08}" $at
mkdir "$work/clone"
cp -r "$source"/{CMakeLists.txt,cmake,compat,compat-classic,include,lib} "$work/clone"
program new "${fetch/EXTRA/}" "-DFETCHCONTENT_SOURCE_DIR_RMM=$work/clone/cmake/as-rmm" -DRMM_CUDA=OFF
program classic 'include(cpm.cmake)
CPMAddPackage(NAME rmm VERSION 24.06 GITHUB_REPOSITORY rapidsai/rmm OPTIONS "BUILD_TESTS OFF")
target_link_libraries(main PRIVATE rmm::rmm)' "-DCPM_rmm_SOURCE=$work/clone/cmake/as-rmm" -DRMM_CUDA=OFF -DRMM_COMPAT_ERA=classic
program new 'find_package(rmm 24.06 REQUIRED)
target_link_libraries(main PRIVATE rmm::rmm)' $at -DRMM_COMPAT_ERA=new

# What is not found, and what does not go together.
refused 'By not providing "Findrmm.cmake"' 'find_package(rmm REQUIRED)' "-DCMAKE_PREFIX_PATH=$work/moved"
refused 'requested version "26.12"' 'find_package(rmm 26.12 REQUIRED)' $at
refused "RMM_COMPAT_ERA is 'old': use classic" 'find_package(rmm REQUIRED)' $at -DRMM_COMPAT_ERA=old
refused 'rmm::rmm is here already, and not with the interface of RMM 24.06' 'find_package(rmm 26.08 REQUIRED)
find_package(rmm 24.06 REQUIRED)' $at
