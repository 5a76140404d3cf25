#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: headers_alone.sh INCLUDE_FOLDER
# Every public header compiles by itself, twice in one file, as strict C11 and as C++17,
# with no other include folder: so it needs no CUDA header.
set -euo pipefail
cd "$1"
warnings="-pedantic -Wall -Wextra -Wshadow -Wundef -Werror"
count=0
while read -r header; do
    header=${header#./}
    source=$(printf '#include <%s>\n#include <%s>\nextern int rmm_headers_alone;\n' "$header" "$header")
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c11 $warnings -Wstrict-prototypes -I. -fsyntax-only -x c - <<<"$source"
    # shellcheck disable=SC2086
    ${CXX:-c++} -std=c++17 $warnings -I. -fsyntax-only -x c++ - <<<"$source"
    count=$((count + 1))
done < <(find . -name '*.h' | sort)
[ "$count" -gt 0 ]
echo "$count headers compile alone"

# Those of C++; all of them together in both standards and by both compilers. Those for CCCL and
# Thrust need a CUDA toolkit: sim.cxx_cccl_17 and tests/gpu compile them.
cxx_count=0
alone() { # COMPILER STANDARD HEADER
    # shellcheck disable=SC2086
    printf '#include <%s>\n#include <%s>\nextern int rmm_headers_alone;\n' "$3" "$3" |
        $1 -std=c++$2 $warnings -I. -fsyntax-only -x c++ -
}
while read -r header; do
    header=${header#./}
    [[ $header =~ cccl|thrust ]] && continue
    alone "${CXX:-c++}" 17 "$header"
    cxx_count=$((cxx_count + 1))
done < <(find . -name '*.hpp' | sort)
[ "$cxx_count" -gt 10 ]
compilers=${CXX:-c++}
command -v clang++ >/dev/null && compilers+=" clang++"
for compiler in $compilers; do
    alone "$compiler" 17 rmm/rmm.hpp
    alone "$compiler" 20 rmm/rmm.hpp
done
echo "$cxx_count C++ headers compile alone; rmm/rmm.hpp in C++17 and C++20 by: $compilers"

# Without exceptions: one error that says so.
if errors=$(${CXX:-c++} -std=c++17 -fno-exceptions -I. -fsyntax-only -x c++ - <<<'#include <rmm/rmm.hpp>' 2>&1); then
    echo "rmm/rmm.hpp compiles without exceptions" >&2
    exit 1
fi
[ "$(grep -c 'error:' <<<"$errors")" = 1 ] && grep -q 'without -fno-exceptions' <<<"$errors" || {
    printf 'without exceptions:\n%s\n' "$errors" >&2
    exit 1
}
