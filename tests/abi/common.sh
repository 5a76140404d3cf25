# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the abi tests: a private folder, the simulated GPU, and no trace of either.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RMM_DRIVER=sim RMM_RUNTIME_DIR="$work/run"
mkdir -m 700 "$RMM_RUNTIME_DIR"
cmake=${CMAKE:-cmake}

die() {
    echo "$*" >&2
    exit 1
}

library_folder() { # PREFIX: where it keeps librmm-c
    local found
    found=$(find "$1" -name 'librmm-c.*' ! -type d | head -n 1)
    [ -n "$found" ] || die "no librmm-c below $1"
    dirname "$found"
}

page_block() { # PAGE TAG: its fenced blocks that begin with ```TAG
    awk -v open="\`\`\`$2" '$0 == "```" { inside = 0 } inside { print } $0 == open { inside = 1 }' "$1"
}

check_links() { # PAGE: each relative one outside of code leads somewhere
    local path
    while read -r path; do
        [ -e "$(dirname "$1")/$path" ] || die "${1##*/} names $path, which is not there"
    done < <(awk '/^```/ { code = !code } !code' "$1" | grep -oE '\]\([^)#:]+' | cut -c 3-)
}

wait_for_end() { # PID of a daemon: it writes into $work to the end
    while [ -e "/proc/$1/exe" ]; do sleep 0.1; done
}

unmount_tree() { # FOLDER
    local pid
    pid=$(cat "$1/daemon/pid")
    umount "$1" || fusermount3 -u "$1"
    wait_for_end "$pid"
}

# A program of the consumers ends with this line; anything else is a failure.
expect_consumer_output() { # PROGRAM
    local output
    output=$("$1") || die "$1 failed: $output"
    [[ $output == *"peak 1048576 bytes, current 0 bytes, driver simulated"* ]] ||
        die "unexpected output of $1: $output"
    echo "$output"
}

# RMM's header names of $compat and ours of $include, with every warning.
compile() { # COMPILER STANDARD FILE FLAGS...
    # shellcheck disable=SC2086
    $1 -std=c++"$2" -Wall -Wextra -Wshadow -Wconversion -Wundef -Werror -I"$compat" -I"$include" "${@:4}" \
        -fsyntax-only -x c++ "$3"
}

# The program for RMM 26.10, as each compiler and standard has it, on the simulated GPU.
run_26_10() { # SOURCE LIBRARIES FLAG...
    local compiler standard output
    for compiler in "${CXX:-c++}" clang++; do
        command -v "${compiler%% *}" >/dev/null || continue
        for standard in 17 20; do
            # shellcheck disable=SC2086
            $compiler -std=c++$standard -Wall -Wextra -Wshadow -Wconversion -Wundef -Werror -I"$compat" -I"$include" \
                "${@:3}" "$1/tests/abi/compat_26_10.cpp" -o "$work/26_10" -L"$libraries" -lrmm-c $2
            output=$(RMM_LOG_LEVEL=off "$work/26_10")
            [ "$output" = "RMM 26.10.0: 1 1 1 1" ] || die "$compiler, C++$standard: $output"
        done
    done
}
