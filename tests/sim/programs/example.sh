#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: example.sh PAGE PROGRAM
# A program of examples/ prints, on the simulated GPU, what the page shows; blocks that read /rmm are
# those of abi.examples_page.
set -euo pipefail
page=$1 program=$2 name=${2##*/}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RMM_RUNTIME_DIR=$work/run RMM_SIM_VIOLATION=exit
mkdir -m 700 "$RMM_RUNTIME_DIR"
unset RMM_RESOURCE RMM_DRIVER RMM_LOG_FILE # the page says what it needs

awk -v command="./$name\$|./$name " '
    /^```console/ { block = $0; wanted = 0; inside = 1; next }
    inside { block = block "\n" $0; if ($0 ~ /^\$/ && $0 ~ command) wanted = 1 }
    inside && /^```$/ { if (wanted && block !~ "/rmm") print block; inside = 0 }' "$page" >"$work/page.md"
[ -s "$work/page.md" ] || { echo "${page##*/} does not show ./$name without a mount"; exit 1; }
transcript=$(cd "$(dirname "$0")" && pwd)/../../abi/transcript.py
cd "${program%/*}"
"$transcript" "$work/page.md"
