#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: python.sh PYTHON TESTS
# Runs the tests of the Python package that PYTHONPATH names. pytest keeps its temporary folders;
# this removes them. RMM_TEST_PRELOAD: the runtimes of the sanitizers that it was built with.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
preload=() chosen=()
if [ -n "${RMM_TEST_PRELOAD:-}" ]; then
    preload=(env "LD_PRELOAD=$RMM_TEST_PRELOAD")
    for module in _core _segments; do
        nm -D "$PYTHONPATH/rmm_c/$module".*.so | grep __asan_report_ >"$work/symbols" ||
            { echo "$module is not built with the sanitizer"; exit 1; }
    done
    # mypy reads declarations for four fifths of the time: what it finds, it finds without the sanitizer
    chosen=(-k "not test_the_types_are_consistent and not test_the_types_of_the_c_half_are_those_at_run_time")
fi
"${preload[@]}" "$1" -m pytest -q --basetemp="$work/pytest" "${chosen[@]}" "$2"
