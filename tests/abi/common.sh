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

# A program of the consumers ends with this line; anything else is a failure.
expect_consumer_output() { # PROGRAM
    local output
    output=$("$1") || die "$1 failed: $output"
    [[ $output == *"peak 1048576 bytes, current 0 bytes, driver simulated"* ]] ||
        die "unexpected output of $1: $output"
    echo "$output"
}
