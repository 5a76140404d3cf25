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
