#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: python.sh PYTHON TESTS
# Runs the tests of the Python package. pytest keeps its temporary folders; this removes them.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" -m pytest -q --basetemp="$work/pytest" "$2"
