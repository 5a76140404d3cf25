#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: doc_program.sh SOURCE PREFIX NAME EXPECTED
# The first program of docs/NAME.md is examples/NAME.c, its "sh NAME" lines build it
# against the installed tree, in C and, by a C++ compiler, in C++17, and run it on the
# simulated GPU, where it prints EXPECTED. Every link of the page leads somewhere.
set -euo pipefail
. "$(dirname "$0")/common.sh"
source=$1 stage=$2 name=$3 expected=$4
page=$source/docs/$name.md

awk '$0 == "```" { if (inside) exit } inside { print } $0 == "```c" { inside = 1 }' "$page" >"$work/$name.c"
[ -s "$work/$name.c" ] || die "docs/$name.md has no program"
grep -v SPDX "$source/examples/$name.c" | diff - "$work/$name.c" ||
    die "the program of docs/$name.md is not examples/$name.c"
page_block "$page" "sh $name" >"$work/commands"
[ -s "$work/commands" ] || die "docs/$name.md has no commands that build the program"

libraries=$(library_folder "$stage")
export PKG_CONFIG_PATH="$libraries/pkgconfig" LD_LIBRARY_PATH="$libraries"
unset RMM_DRIVER # the commands say it themselves
cd "$work"
output=$(bash -eu ./commands) || die "the commands of docs/$name.md failed: $output"
[[ $output == *"$expected"* ]] || die "unexpected output: $output"

# shellcheck disable=SC2046 # flags are words
${CC:-cc} -std=c11 -pedantic -Wall -Wextra -Wshadow -Werror "$name.c" -o "$name-c11" $(pkg-config --cflags --libs rmm-c)
# shellcheck disable=SC2046
${CXX:-c++} -std=c++17 -Wall -Wextra -Werror -x c++ "$name.c" -x none -o "$name-cxx" $(pkg-config --cflags --libs rmm-c)
for program in "$name-c11" "$name-cxx"; do
    output=$(RMM_DRIVER=sim "./$program") || die "$program failed: $output"
    [[ $output == *"$expected"* ]] || die "unexpected output of $program: $output"
done

check_links "$page"
echo "docs/$name.md: program, commands and links are right"
