#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: cxx_page.sh SOURCE PREFIX
# What docs/cxx.md shows is true against the installed tree, on the simulated GPU. Its program is
# examples/cxx.cpp and runs as shown. Its other examples, each a block of its own after those
# before it, compile with both compilers and standards, and run. Its names are in the headers.
set -euo pipefail
. "$(dirname "$0")/common.sh"
source=$1 stage=$2
page=$source/docs/cxx.md

page_block "$page" cpp >"$work/cxx.cpp"
[ -s "$work/cxx.cpp" ] || die "docs/cxx.md has no program"
grep -v SPDX "$source/examples/cxx.cpp" | diff - "$work/cxx.cpp" ||
    die "the program of docs/cxx.md is not examples/cxx.cpp"
page_block "$page" "sh cxx" >"$work/commands"
[ -s "$work/commands" ] || die "docs/cxx.md has no commands that build the program"

libraries=$(library_folder "$stage")
export PKG_CONFIG_PATH="$libraries/pkgconfig" LD_LIBRARY_PATH="$libraries" RMM_LOG_LEVEL=off
unset RMM_DRIVER # the commands say it themselves
cd "$work"
output=$(bash -eu ./commands) || die "the commands of docs/cxx.md failed: $output"
[[ $output == *"the third of 1000 elements is 3"*"refused: limiting"* ]] || die "unexpected output: $output"

# A function for each example.
awk 'BEGIN { print "#include <cstdio>\n#include <string_view>\n#include <vector>\n#include <rmm/rmm.hpp>" }
    $0 == "```" && inside { print "}"; inside = 0 }
    inside { print }
    $0 == "```cpp part" { n++; inside = 1
        printf "static void part_%d([[maybe_unused]] rmmc::stream_view stream)\n{\n", n }
    END { print "int main()\n{"
        for (i = 1; i <= n; i++) printf "    part_%d({});\n", i
        print "}" }' "$page" >parts.cpp
[ "$(grep -c '^static void part' parts.cpp)" -ge 6 ] || die "docs/cxx.md has few examples"
compilers=${CXX:-c++}
command -v clang++ >/dev/null && compilers+=" clang++"
for compiler in $compilers; do
    for standard in 17 20; do
        # shellcheck disable=SC2046 # flags are words
        $compiler -std=c++$standard -Wall -Wextra -Werror -Wno-unused-variable \
            -Wno-unused-but-set-variable parts.cpp -o parts $(pkg-config --cflags --libs rmm-c)
        output=$(RMM_DRIVER=sim RMM_SIM_VIOLATION=exit ./parts) || die "an example of docs/cxx.md failed: $output"
        [[ $output == *"the callback's exception came out"*"at most 1048576 bytes"*"10 B"* ]] ||
            die "unexpected output: $output"
    done
done

while read -r name; do
    grep -rqw -- "$name" "$stage/include/rmm/cxx" || die "docs/cxx.md names $name, which no header has"
done < <(grep -oE 'rmmc::[a-z_]+|`[a-z_]+_(resource|adaptor)`' "$page" | sed 's/rmmc:://; s/`//g' | sort -u)
check_links "$page"
echo "docs/cxx.md: program, examples, names and links are right; compiled by: $compilers"
