#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: in_private_folder.sh FUZZER CORPUS|"" [ARGUMENT...]
# Runs a fuzzer over a copy of its corpus, so that what it finds new leaves no file here.
# An input that breaks it is printed as base64: "base64 -d >input; FUZZER input" repeats it.
set -eu
fuzzer=$1
corpus=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/corpus" "$work/broken"
[ -z "$corpus" ] || cp -r "$corpus/." "$work/corpus"
cd "$work/broken"
status=0
"$fuzzer" "$@" "$work/corpus" || status=$?
for input in "$work"/broken/*; do
    [ -f "$input" ] || continue
    echo "input ${input##*/}, base64:"
    base64 "$input"
done
exit $status
