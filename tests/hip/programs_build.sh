#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: programs_build.sh SOURCE STANDIN LIBRARY ROCM_INCLUDE [PROGRAM...]
# The programs with HIP's types (programs/) compile with g++ and clang++, and with clang for HIP, which
# rocThrust needs, and run over the stand-in of HIP's library without RMM_DRIVER. In ROCM_INCLUDE are
# the headers of HIP, rocThrust and rocPRIM.
set -euo pipefail
source=$1 standin=$(dirname "$2") library=$(dirname "$3") rocm=$4
programs=("${@:5}")
[ ${#programs[@]} -gt 0 ] || programs=(resources streams adaptors allocators cuda_names per_thread rocthrust)
work=$(mktemp -d)
export TMPDIR=$work # clang leaves files of the device's side
trap 'rm -rf "$work"' EXIT
compat=(-I"$source/compat-classic" -I"$source/compat" -I"$source/include")
warnings=(-Wall -Wextra -Wshadow -Wundef -Werror)
here=$source/tests/hip/programs
# a folder that the compiler searches by itself must not come first
[ "$rocm" = /usr/include ] || compat+=(-isystem "$rocm")
links=("$standin/libamdhip64.so.5" -L"$library" -lrmm-c -pthread)
export LD_LIBRARY_PATH=$standin:$library RMM_PUBLISH=0 RMM_SIM_DEVICES=2 RMM_SIM_VIOLATION=exit
export RMM_DEBUG_LOG_FILE=$work/debug.log RMM_RUNTIME_DIR=$work
unset RMM_DRIVER

die() {
    echo "FAILED: $1" >&2
    exit 1
}

run() { # NAME HOW
    (cd "$work" && "./$1" "$work") >"$work/out" 2>&1 || die "$1, $2: $(cat "$work/out")"
    count=$((count + 1))
}

# For the host alone: headers, calls of HIP and memory, without kernels.
host() { # COMPILER STANDARD NAME FLAGS...
    "$1" -std=c++"$2" "${warnings[@]}" -D__HIP_PLATFORM_AMD__=1 "${compat[@]}" "${@:4}" \
        "$here/$3.cpp" -o "$work/$3" "${links[@]}" || die "$3 does not compile with $1"
    run "$3" "$1 c++$2"
}

# By clang for HIP. The device's side is checked for an architecture and not linked into the program,
# which launches nothing. `-include memory`: clang 14 and HIP's headers define __noinline__, which
# libstdc++ uses as an attribute's name.
hip=(clang++ -x hip --rocm-path=/usr -nogpulib -include memory -D__HIP_PLATFORM_AMD__=1)
device() { # STANDARD NAME FLAGS...
    "${hip[@]}" --cuda-device-only --offload-arch=gfx1030 -std=c++"$1" "${compat[@]}" "${@:3}" \
        -fsyntax-only "$here/$2.cpp" || die "$2: the side of the device does not compile"
    "${hip[@]}" --cuda-host-only -std=c++"$1" "${compat[@]}" "${@:3}" \
        -c "$here/$2.cpp" -o "$work/$2.o" || die "$2 does not compile with clang for HIP"
    # what the compiler names for the code of the device
    nm -u "$work/$2.o" | sed -nE 's/.* U (__hip_(fatbin|gpubin_handle)[a-z0-9_]*)$/void *\1[2];/p' >"$work/fatbin.c"
    cc -c "$work/fatbin.c" -o "$work/fatbin.o"
    c++ "$work/$2.o" "$work/fatbin.o" -o "$work/$2" "${links[@]}"
    run "$2" "clang for HIP, c++$1"
}

# By the compiler of HIP, with the code of the device.
with_hipcc() { # NAME
    hipcc --offload-arch=gfx90a -std=c++17 "${compat[@]}" -c "$here/$1.cpp" -o "$work/$1.o" ||
        die "$1 does not compile with hipcc"
    c++ "$work/$1.o" -o "$work/$1" "${links[@]}"
    run "$1" hipcc
}

count=0
command -v clang++ >/dev/null || die "no clang++"
for name in "${programs[@]}"; do
    each=()
    # what -fgpu-default-stream=per-thread defines, which clang 14 does not know
    [ "$name" != per_thread ] || each=(-DHIP_API_PER_THREAD_DEFAULT_STREAM=1)
    if [ "$name" != rocthrust ]; then # it has kernels
        host "${CXX:-c++}" 17 "$name" "${each[@]}"
        host clang++ 17 "$name" "${each[@]}"
    fi
    device 17 "$name" "${each[@]}"
done
host "${CXX:-c++}" 20 resources
if command -v hipcc >/dev/null; then
    with_hipcc resources
    with_hipcc rocthrust
else
    [ -z "${CI:-}" ] || die "no hipcc, which tests/run setup installs"
    echo "no hipcc: clang alone"
fi
echo "$count programs ran"
