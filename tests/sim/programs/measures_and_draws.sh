#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: measures_and_draws.sh SOURCE BUILD
# What docs/benchmarks says how to repeat, with less of it: rmm-bench and rmm-replay on the
# simulated GPU, the table of targets and the pictures.
set -euo pipefail
source=$1 build=$2

for command in python3 gnuplot; do
    command -v $command >/dev/null || { echo "$command is not here"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RMM_DRIVER=sim RMM_RUNTIME_DIR=$work/run
mkdir -m 700 "$RMM_RUNTIME_DIR"

die() {
    echo "$1" >&2
    exit 1
}

awk 'BEGIN {
    print "Thread,Time,Action,Pointer,Size,Stream"
    for (i = 1; i <= 40; i++) printf "1,10:00:00.000000,allocate,0x%x,1048576,0\n", i * 1048576
    for (i = 1; i <= 20; i++) printf "1,10:00:01.000000,free,0x%x,1048576,0\n", i * 1048576
}' | gzip >"$work/some.csv.gz"

"$source/tools/bench/measure" --quick --repetitions 1 --build "$build" \
    --filter pair-created,threads-own-2,threads-one-2 "$work/out" "$work/some.csv.gz" >"$work/lines"

expected="bench.json held-some.svg latency.svg replay.json some.async.csv some.pool.csv
some.pool_virtual.csv targets.md threads.svg"
[ "$(ls "$work/out")" = "$(tr ' ' '\n' <<<"$expected")" ] || die "not what was expected: $(ls "$work/out")"
for resource in cuda async pool pool_virtual arena binning; do
    grep -qE "^some"$'\t'"$resource"$'\t'"[0-9.]+ ns an operation$" "$work/lines" ||
        die "no line of $resource: $(cat "$work/lines")"
done
grep -qE $'^some\tpool_virtual\tof the peak: smallest capacity 1\.0[0-9]*, reserved 1\.' "$work/lines" || die "no capacity: $(cat "$work/lines")"

# What is recorded stays short: one line for each result and each replay.
[ "$(grep -o '"workload"' "$work/out/bench.json" | wc -l)" = "$(grep -c '^    {"workload": ' "$work/out/bench.json")" ] ||
    die "bench.json has several results on one line, or one on several"
[ "$(wc -l <"$work/out/replay.json")" = 12 ] || die "replay.json has not one line for each replay"

# The rows that a run on a GPU prints of it.
rows=$(cd "$source" && . tests/gpu/steps.sh && bench_medians "$work/out/bench.json")
number='(-|[0-9.]+\*?)'
grep -qE $'^pair-created\tns a pair:'" cuda $number async $number pool $number pool_virtual $number" <<<"$rows" ||
    die "no row of the pair: $rows"
[ "$(wc -l <<<"$rows")" = 3 ] || die "not a row for each workload: $rows"

# The series of each picture, and a table with figures of this run.
for name in threads latency; do
    for title in cudaMalloc cudaMallocAsync pool pool_virtual arena binning fixed_size; do
        grep -qE ">(<tspan[^>]*>)? *$title" "$work/out/$name.svg" || die "$name.svg has no series $title"
    done
done
for title in live pool pool_virtual cudaMallocAsync; do
    grep -qE ">(<tspan[^>]*>)? *$title" "$work/out/held-some.svg" || die "held-some.svg has no series $title"
done
for picture in "$work"/out/*.svg; do
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$picture"
done
grep -qE '^\| hot pair, created stream, ns \| <= 90, 4x RMM \| [0-9.,]+ \(' "$work/out/targets.md" ||
    die "no figure of the pair: $(cat "$work/out/targets.md")"
grep -qE '^\| some: reserved, growing from nothing \| <= 1\.15 \| [0-9.]+ \|' "$work/out/targets.md" ||
    die "no figure of the trace: $(cat "$work/out/targets.md")"

# What is wrong is said in one line.
said=$("$source/tools/bench/measure" --build "$work" "$work/out" 2>&1) && die "it ran without programs"
[ "$said" = "measure: $work/tools/replay/rmm-replay is not there" ] || die "it said: $said"
said=$("$source/tools/bench/report" "$work" 2>&1) && die "it reported nothing"
[ "$said" = "report: $work/bench.json is not there: run tools/bench/measure" ] || die "it said: $said"
echo "measured, judged and drew"
