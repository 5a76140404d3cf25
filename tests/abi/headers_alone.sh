#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: headers_alone.sh INCLUDE_FOLDER [INCLUDE_FOLDER_OF_CUDA...]
# Every public header compiles by itself, twice in one file, as strict C11 and as C++17 without
# casts of C, with no other include folder: so it needs no CUDA header. Those for CCCL and Thrust compile with
# the include folders of CUDA, where they are given; that for RAPIDS is the business of tests/rapids.
set -euo pipefail
cd "$1"
cuda=("${@:2}")
warnings="-pedantic -Wall -Wextra -Wshadow -Wconversion -Wundef -Werror"
count=0
while read -r header; do
    header=${header#./}
    source=$(printf '#include <%s>\n#include <%s>\nextern int rmm_headers_alone;\n' "$header" "$header")
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c11 $warnings -Wstrict-prototypes -I. -fsyntax-only -x c - <<<"$source"
    # shellcheck disable=SC2086
    ${CXX:-c++} -std=c++17 $warnings -Wold-style-cast -I. -fsyntax-only -x c++ - <<<"$source"
    count=$((count + 1))
done < <(find . -name '*.h' | sort)
[ "$count" -gt 0 ]
echo "$count headers compile alone"

# Those of C++; all of them together in both standards and by both compilers.
cxx_count=0
alone() { # COMPILER STANDARD HEADER FLAGS...
    # shellcheck disable=SC2086
    printf '#include <%s>\n#include <%s>\nextern int rmm_headers_alone;\n' "$3" "$3" |
        $1 -std=c++"$2" $warnings -Wold-style-cast -I. "${@:4}" -fsyntax-only -x c++ -
}
while read -r header; do
    header=${header#./}
    if [[ ! $header =~ cccl|thrust ]]; then
        alone "${CXX:-c++}" 17 "$header"
    elif [ ${#cuda[@]} -gt 0 ]; then
        alone "${CXX:-c++}" 17 "$header" "${cuda[@]/#/-isystem}"
    else
        echo "$header: not compiled without a CUDA toolkit"
        continue
    fi
    cxx_count=$((cxx_count + 1))
done < <(find . -name '*.hpp' ! -path ./rmm/cxx/rapids.hpp | sort)
[ "$cxx_count" -gt 10 ]
compilers=${CXX:-c++}
command -v clang++ >/dev/null && compilers+=" clang++"
for compiler in $compilers; do
    alone "$compiler" 17 rmm/rmm.hpp
    alone "$compiler" 20 rmm/rmm.hpp
done
echo "$cxx_count C++ headers compile alone; rmm/rmm.hpp in C++17 and C++20 by: $compilers"

# Without exceptions: one error that says so. In an older C++: one for each header, and the end.
refused() { # COUNT REASON HEADER FLAGS...
    if errors=$(${CXX:-c++} "${@:4}" -I. -fsyntax-only -x c++ - <<<"#include <$3>" 2>&1); then
        echo "$3 compiles with ${*:4}" >&2
        exit 1
    fi
    [ "$(grep -c 'error:' <<<"$errors")" = "$1" ] && grep 'error: #error' <<<"$errors" | grep -q -e "$2" || {
        printf '%s with %s:\n%s\n' "$3" "${*:4}" "$errors" >&2
        exit 1
    }
}
refused 1 'without -fno-exceptions' rmm/rmm.hpp -std=c++17 -fno-exceptions
while read -r header; do
    refused 2 'needs C++17 or newer' "${header#./}" -std=c++14
done < <(find . -name '*.hpp' | grep -vE 'cccl|rapids|thrust')
refused 2 'needs the headers of RAPIDS RMM' rmm/cxx/rapids.hpp -std=c++17
