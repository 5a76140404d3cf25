#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: compat_classic.sh SOURCE PREFIX [INCLUDE_FOLDER_OF_CUDA...]
# RMM's names up to 26.04 of the installed tree, whose folder stands before that of compat: each header
# compiles without the others and with a program's warnings; the programs of tests/cxx with clang and
# the other standards, without a CUDA toolkit and with the headers of the one that is given; the program of
# docs/compat-classic.md by hand and by CMake, with a shared library beside it, and with LTO; files of both
# interfaces in one program end it with one line.
set -euo pipefail
. "$(dirname "$0")/common.sh"
source=$1 stage=$2 cuda=("${@:3}")
cp -r "$stage" "$work/moved"
libraries=$(library_folder "$work/moved")
include=$work/moved/include
classic=$include/rmm-c/compat-classic compat=$include/rmm-c/compat
export LD_LIBRARY_PATH="$libraries" PKG_CONFIG_PATH="$libraries/pkgconfig"
folders=(-I"$classic" -I"$compat" -I"$include")
warnings=(-Wall -Wextra -Wshadow -Wconversion -Wundef -Wold-style-cast -Woverloaded-virtual -Wnon-virtual-dtor -Werror)
gcc=${CXX:-c++} clang=
command -v clang++ >/dev/null && clang=clang++
[ "$(pkg-config --variable=compat_classic_includedir rmm-c)" -ef "$classic" ] || die "rmm-c.pc names another folder"

# Each header, in both orders. Those for Thrust need a toolkit.
for folder in "$classic" "$compat"; do
    (cd "$folder" && find rmm rapids_logger -name '*.h*' -printf '#include <%p>\n' 2>/dev/null || true)
done | sort -u >"$work/headers"
grep -vE 'thrust|exec_policy|device_vector' "$work/headers" >"$work/all.hpp"
tac "$work/all.hpp" >"$work/reversed.hpp"
count=$(wc -l <"$work/all.hpp")
[ "$count" -gt 80 ] || die "only $count headers"
compile() { # COMPILER STANDARD FILE FLAGS...
    "$1" -std=c++"$2" "${warnings[@]}" "${folders[@]}" "${@:4}" -fsyntax-only -x c++ "$3"
}
compile "$gcc" 17 "$work/all.hpp" -DRMM_COMPAT_HAS_CUDA=0
compile "${clang:-$gcc}" 20 "$work/reversed.hpp" -DRMM_COMPAT_HAS_CUDA=0 -DRMM_COMPAT_HAS_SPDLOG=0
if [ ${#cuda[@]} -gt 0 ]; then
    grep -E 'thrust|exec_policy|device_vector' "$work/headers" >"$work/thrust.hpp"
    compile "$gcc" 17 "$work/thrust.hpp" "${cuda[@]/#/-isystem}"
fi
while read -r line; do # one by one, as far as they are not small
    compile "$gcc" 17 - -DRMM_COMPAT_HAS_CUDA=0 <<<"$line"
done < <(grep -E 'classic|host/|resource_ref|owning|detail/(brace|spdlog|nvtx|format|logging)|version' "$work/all.hpp")
echo "$count headers compile, in either order, in C++17 and C++20"

# In an older C++ a header says what it needs, and nothing else.
if "$gcc" -std=c++14 "${folders[@]}" -fsyntax-only -x c++ - 2>"$work/errors" \
    <<<'#include <rmm/mr/device/pool_memory_resource.hpp>'; then
    die "C++14 compiles"
fi
[ "$(grep -c 'error:' "$work/errors")" = 2 ] && grep -q '#error.*needs\? C++17' "$work/errors" || die "$(cat "$work/errors")"

# The programs of tests/cxx, which gcc builds there.
run() { # COMPILER STANDARD PART FLAGS...
    "$1" -std=c++"$2" -Wall -Wextra -Wno-unneeded-internal-declaration -Werror -I"$source/tests" "${folders[@]}" \
        -DRMM_TEST_ENVIRONMENT= "${@:4}" "$source/tests/cxx/test_compat_classic_$3.cpp" \
        -L"$libraries" -lrmm-sim -lrmm-c -pthread -o "$work/$3"
    RMM_PUBLISH=0 RMM_LOG_LEVEL=off RMM_SIM_DEVICES=2 RMM_SIM_VIOLATION=exit "$work/$3" >"$work/output" 2>&1 ||
        die "$1 C++$2 $3: $(cat "$work/output")"
    echo "$1 C++$2 $3: $(tail -n 1 "$work/output")"
}
parts=(documents programs lifetime logger)
if [ -n "$clang" ]; then
    for part in "${parts[@]}"; do
        run "$clang" 20 "$part" -DRMM_COMPAT_HAS_CUDA=0 -DRMM_COMPAT_HAS_SPDLOG=0
    done
fi
if [ ${#cuda[@]} -gt 0 ] && [ -n "$clang" ]; then # without the runtime: what they use of it is inline
    for part in documents programs; do
        compile "$clang" 17 "$source/tests/cxx/test_compat_classic_$part.cpp" "${cuda[@]/#/-isystem}" \
            -I"$source/tests" -DRMM_TEST_ENVIRONMENT= -Wno-old-style-cast -Wno-unneeded-internal-declaration
    done
fi

# A file of each interface.
echo '#include <rmm/resource_ref.hpp>
int main() {}' >"$work/without.cpp"
echo '#include <rmm/mr/device/pool_memory_resource.hpp>
int used() { return 0; }' >"$work/with.cpp"
"$gcc" -std=c++17 -c "${folders[@]}" -DRMM_COMPAT_HAS_CUDA=0 "$work/with.cpp" -o "$work/with.o"
"$gcc" -std=c++17 -c "${folders[@]:1}" -DRMM_COMPAT_HAS_CUDA=0 "$work/without.cpp" -o "$work/without.o"
"$gcc" "$work/with.o" "$work/without.o" -o "$work/both" -L"$libraries" -lrmm-c
if "$work/both" 2>"$work/errors" || ! grep -q 'with the headers of compat-classic and some without' "$work/errors"; then
    die "a program of both interfaces runs: $(cat "$work/errors")"
fi

# The program of the page.
page=$source/docs/compat-classic.md
mkdir "$work/program"
page_block "$page" "cpp" >"$work/program/main.cpp"
page_block "$page" "cmake" >"$work/program/CMakeLists.txt"
[ -s "$work/program/main.cpp" ] && [ -s "$work/program/CMakeLists.txt" ] || die "docs/compat-classic.md has no program"
check_links "$page"
cd "$work/program"
expect() { # PROGRAM
    [ "$("$1")" = "1000 bytes live, 3048 at most; the pool holds 1048576 bytes" ] || die "$1: $("$1")"
}
page_block "$page" "sh build" | CXX=$gcc bash -e
expect ./main
"$cmake" -S . -B build -DCMAKE_PREFIX_PATH="$work/moved" >/dev/null
"$cmake" --build build >/dev/null
expect build/main

# The default that a shared library sets is the program's, without symbols that only one of them has; LTO too.
cat >"$work/library.cpp" <<'EOF_LIBRARY'
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/per_device_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
rmm::mr::cuda_memory_resource of_cuda;
rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> pool(&of_cuda, 1 << 20);
__attribute__((visibility("default"))) rmm::mr::device_memory_resource *set_default()
{
    rmm::mr::set_current_device_resource(&pool);
    return &pool;
}
EOF_LIBRARY
cat >"$work/main.cpp" <<'EOF_MAIN'
#include <rmm/device_buffer.hpp>
#include <rmm/mr/device/per_device_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
rmm::mr::device_memory_resource *set_default();
rmm::device_buffer static_buffer(10);
int main()
{
    using pool_t = rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource>;
    rmm::mr::device_memory_resource *set = set_default();
    rmm::device_buffer buffer(100, rmm::cuda_stream_default);
    auto *pool = dynamic_cast<pool_t *>(rmm::mr::get_current_device_resource());
    try {
        (void)set->allocate(std::size_t(1) << 50);
    } catch (const rmm::out_of_memory &) {
        return pool == set && buffer.memory_resource() == set ? 0 : 2;
    }
    return 1;
}
EOF_MAIN
flags=(-std=c++17 "${folders[@]}" -DRMM_COMPAT_HAS_CUDA=0)
for options in "-O0" "-O2 -flto"; do
    # shellcheck disable=SC2086
    "$gcc" "${flags[@]}" $options -fPIC -shared -fvisibility=hidden "$work/library.cpp" -o "$work/libused.so" -L"$libraries" -lrmm-c
    # shellcheck disable=SC2086
    "$gcc" "${flags[@]}" $options "$work/main.cpp" -o "$work/uses" -L"$work" -lused -L"$libraries" -lrmm-c -Wl,-rpath,"$work"
    RMM_LOG_LEVEL=off "$work/uses" || die "a shared library and a program with $options: $?"
done
echo "a shared library and its program have one default"
