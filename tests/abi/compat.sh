#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: compat.sh SOURCE PREFIX [INCLUDE_FOLDER_OF_CUDA...]
# RMM's header names of the installed tree: nobody gets them who does not ask for them; each
# compiles without the others; a program written for RMM builds with the include path of docs/compat.md, by
# pkg-config and by CMake, and runs. Without include folders of CUDA, so as on a
# machine without a toolkit; the headers for Thrust with those that are given.
set -euo pipefail
. "$(dirname "$0")/common.sh"
source=$1 stage=$2 cuda=("${@:3}")
cp -r "$stage" "$work/moved"
libraries=$(library_folder "$work/moved")
include=$work/moved/include compat=$work/moved/include/rmm-c/compat
export LD_LIBRARY_PATH="$libraries" PKG_CONFIG_PATH="$libraries/pkgconfig"

# Without asking for them.
# shellcheck disable=SC2046
if ${CXX:-c++} -std=c++17 $(pkg-config --cflags rmm-c) -fsyntax-only -x c++ - \
    <<<'#include <rmm/mr/pool_memory_resource.hpp>' 2>"$work/errors"; then
    die "RMM's header names are found without their include path"
fi
grep -q 'rmm/mr/pool_memory_resource.hpp: No such file' "$work/errors" || die "$(cat "$work/errors")"
[ "$(pkg-config --variable=compat_includedir rmm-c)" -ef "$compat" ] || die "rmm-c.pc names another folder"

# All in one file, in both orders, so that a header needs none of those before it; those for
# Thrust need a toolkit.
(cd "$compat" && find . -name '*.hpp' -printf '#include <%P>\n' | grep -vE 'thrust|exec_policy|device_vector' | sort) >"$work/all.hpp"
tac "$work/all.hpp" >"$work/reversed.hpp"
count=$(wc -l <"$work/all.hpp")
[ "$count" -gt 40 ] || die "only $count headers"
compile "${CXX:-c++}" 17 "$work/all.hpp"
compile "${CXX:-c++}" 20 "$work/reversed.hpp"
if command -v clang++ >/dev/null; then
    compile clang++ 17 "$work/reversed.hpp"
    compile clang++ 20 "$work/all.hpp"
fi
echo "$count headers compile, in either order, in C++17 and C++20"
(cd "$compat" && grep -rlE 'thrust/' --include='*.hpp' rmm | sed 's/.*/#include <&>/') >"$work/thrust.hpp"
if [ ${#cuda[@]} -gt 0 ]; then
    compile "${CXX:-c++}" 17 "$work/thrust.hpp" "${cuda[@]/#/-isystem}"
    echo "and $(wc -l <"$work/thrust.hpp") for Thrust"
else
    echo "no CUDA toolkit: those for Thrust are not compiled"
fi

# What else comes with a header of RMM's, and programs use without including it.
brings() { # HEADER USE...
    printf '#include <rmm/%s>\n' "$1" >"$work/brings.cpp"
    for use in "${@:2}"; do
        printf 'using used_%d = decltype(%s);\n' "$((++uses))" "$use" >>"$work/brings.cpp"
    done
    compile "${CXX:-c++}" 17 "$work/brings.cpp" || die "$1 does not bring: ${*:2}"
}
uses=0 view='rmm::cuda_stream_view()' device='rmm::cuda_device_id(0)' log='rmm::default_logger()'
brings device_uvector.hpp '(std::cout)'
brings cuda_stream.hpp 'std::function<void()>()' 'std::unique_ptr<int>()' '(std::cout)'
brings cuda_stream_pool.hpp 'std::atomic<int>(1)'
for kind in pool arena fixed_size; do
    brings "mr/${kind}_memory_resource.hpp" "$view" "$device" "$log" 'std::max(1, 2)' 'std::atomic<int>(1)'
done
brings mr/binning_memory_resource.hpp "$view" 'std::declval<rmm::mr::fixed_size_memory_resource>()'
brings mr/cuda_async_memory_resource.hpp 'std::declval<rmm::mr::cuda_async_view_memory_resource>()'
brings mr/sam_headroom_memory_resource.hpp "$device" 'std::declval<rmm::mr::system_memory_resource>()'
brings mr/failure_callback_resource_adaptor.hpp "$view"
brings mr/thread_safe_resource_adaptor.hpp "$view"
echo "$uses names come with headers as RMM's"

# In an older C++ each says what it needs, and nothing else.
while read -r line; do
    if ${CXX:-c++} -std=c++14 -I"$compat" -I"$include" -fsyntax-only -x c++ - <<<"$line" 2>"$work/errors"; then
        [[ $line =~ exec_check_disable|cuda_api|era\.|logger_macros|pattern|version_config ]] || die "C++14: $line"
    elif [ "$(grep -c 'error:' "$work/errors")" != 2 ] || ! grep -q '#error.*needs\? C++17' "$work/errors"; then
        die "C++14: $line: $(cat "$work/errors")"
    fi
done <"$work/all.hpp"

# A file with CCCL and one without: the definition of the first file is the program's.
cat >"$work/with.cpp" <<'EOF_WITH'
namespace rmm { namespace detail { inline const volatile bool has_cccl = true; } }
const volatile bool *used = &rmm::detail::has_cccl;
EOF_WITH
echo '#include <rmm/resource_ref.hpp>
int main() {}' >"$work/without.cpp"
# shellcheck disable=SC2046
${CXX:-c++} -std=c++17 -O2 -I"$compat" "$work/with.cpp" "$work/without.cpp" -o "$work/both" $(pkg-config --cflags --libs rmm-c)
if "$work/both" 2>"$work/errors" || ! grep -q 'compiled with CCCL 3.3 or newer and some without' "$work/errors"; then
    die "a program of two kinds of files runs: $(cat "$work/errors")"
fi

# A program for RMM 26.10, without a toolkit: CCCL's names are those of this library.
run_26_10 "$source" ""

# The program of the page.
mkdir "$work/program"
page_block "$source/docs/compat.md" "cpp" >"$work/program/main.cpp"
page_block "$source/docs/compat.md" "cmake" >"$work/program/CMakeLists.txt"
[ -s "$work/program/main.cpp" ] && [ -s "$work/program/CMakeLists.txt" ] || die "docs/compat.md has no program"
check_links "$source/docs/compat.md"
cd "$work/program"
expect() { # PROGRAM
    [ "$("$1")" = "1000 integers, the last is 999; the pool holds 1048576 bytes" ] || die "$1: $("$1")"
}
page_block "$source/docs/compat.md" "sh build" | CXX="${CXX:-c++}" bash -e
expect ./main
"$cmake" -S . -B build -DCMAKE_PREFIX_PATH="$work/moved" >/dev/null
"$cmake" --build build >/dev/null
expect build/main
