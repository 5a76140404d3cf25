#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: beside_rapids.sh INCLUDE_FOLDER [RAPIDS_INCLUDE...]
# Our headers and those of RAPIDS RMM in one file: no header of ours defines or uses a name
# that is a macro of theirs, and no file of ours hides one of theirs. With the include folders
# of RAPIDS RMM (librmm, rapids_logger, CCCL, CUDA) both are really compiled together.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
include=$(cd "$1" && pwd)
shift

cd "$include"
mapfile -t headers < <(find . -name '*.h' | sed 's|^\./||' | sort)
[ ${#headers[@]} -gt 20 ] || die "no headers in $include"
mapfile -t names < <(grep -v '^#' "$here/rapids_names.txt")
printf '#include <%s>\n' "${headers[@]}" >"$work/all.h"

# None defined by ours.
${CC:-cc} -std=c11 -I. -dM -E -x c "$work/all.h" | awk '{ sub(/\(.*/, "", $2); print $2 }' | sort -u >"$work/ours"
printf '%s\n' "${names[@]}" | sort -u | comm -12 - "$work/ours" >"$work/both"
[ ! -s "$work/both" ] || die "defined by our headers and by RAPIDS: $(xargs <"$work/both")"

# None used by ours: each stands for something that cannot be compiled.
printf '#define %s ) not to be used (\n' "${names[@]}" >"$work/first.h"
cat "$work/first.h" "$work/all.h" >"$work/poisoned.h"
${CC:-cc} -std=c11 -I. -Wall -Werror -fsyntax-only -x c "$work/poisoned.h"
${CXX:-c++} -std=c++17 -I. -Wall -Werror -fsyntax-only -x c++ "$work/poisoned.h"

# The same for ours of C++: rmm.hpp includes all but those for CCCL and Thrust.
${CXX:-c++} -std=c++17 -I. -dM -E -x c++ rmm/rmm.hpp | awk '{ sub(/\(.*/, "", $2); print $2 }' | sort -u >"$work/ours"
printf '%s\n' "${names[@]}" | sort -u | comm -12 - "$work/ours" >"$work/both"
[ ! -s "$work/both" ] || die "defined by rmm/rmm.hpp and by RAPIDS: $(xargs <"$work/both")"
echo '#include <rmm/rmm.hpp>' | cat "$work/first.h" - >"$work/poisoned.cpp"
${CXX:-c++} -std=c++17 -I. -Wall -Werror -fsyntax-only "$work/poisoned.cpp"

# Theirs are *.hpp but for one, and lie in rmm/, rmm/mr/ and rmm/detail/.
[ -z "$(find . -name '*.hpp' ! -path ./rmm/rmm.hpp ! -path './rmm/cxx/*')" ] || die "an .hpp of ours could hide one of RAPIDS"
[ ! -e rmm/detail/thrust_namespace.h ] || die "rmm/detail/thrust_namespace.h is a file of RAPIDS"
echo "${#names[@]} names of RAPIDS are free in ${#headers[@]} headers"

[ $# -gt 0 ] || exit 0
flags=(-I.)
for folder in "$@"; do
    [ -d "$folder" ] || die "no folder $folder"
    flags+=(-isystem "$folder")
done
for order in OURS_FIRST THEIRS_FIRST; do
    ${CXX:-c++} -std=c++20 -Wall -Wextra -Werror -D$order -DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE \
        "${flags[@]}" -fsyntax-only "$here/beside_rapids.cpp"
    echo "compiled together with RAPIDS RMM: $order"
done
