#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: consumer.sh c|cxx find_package|pkg_config PREFIX
# Builds a program against the installed tree as a user would, and runs it on the
# simulated GPU. The prefix is moved before: nothing may depend on where it was.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
language=$1 way=$2 stage=$3

cp -r "$stage" "$work/moved"
cp -r "$here/consumer_$language" "$work/source"
libraries=$(library_folder "$work/moved")
export LD_LIBRARY_PATH="$libraries"
cd "$work/source"

by_find_package() {
    "$cmake" -S . -B "$work/build" -DCMAKE_PREFIX_PATH="$work/moved" -DCMAKE_BUILD_TYPE=Debug
    "$cmake" --build "$work/build"
    program=$work/build/consumer
}

by_pkg_config() {
    export PKG_CONFIG_PATH="$libraries/pkgconfig"
    local flags
    flags=$(pkg-config --cflags --libs rmm-c rmm-sim)
    program=$work/consumer
    # shellcheck disable=SC2086 # flags are words
    case "$language" in
    c) ${CC:-cc} -std=c11 -Wall -Wextra -Werror main.c -o "$program" $flags ;;
    cxx) ${CXX:-c++} -std=c++17 -Wall -Wextra -Werror main.cpp -o "$program" $flags ;;
    esac
}

"by_$way"
expect_consumer_output "$program"
