# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The steps of tests/gpu/run. Each adds rows to the table with attempt or row. Sourced.

steps="machine build suite resources adaptors driver replay bench demo diagnosis frameworks overhead torch python jobs faults peers models sanitizer"
build=${RMM_GPU_BUILD:-build/gpu}
replay=$build/tools/replay/rmm-replay

# --- the machine ---------------------------------------------------------------------

step_machine() {
    if [ ! -e /dev/nvidiactl ]; then
        row machine FAILED "no GPU here (no /dev/nvidiactl)"
        return
    fi
    attempt machine 30 machine_facts
}
machine_facts() {
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$work/figure"
    uname -r
    nproc
    nvcc --version | tail -n 2
    echo "toolkit: ${CUDAToolkit_ROOT:-as CMake finds it}"
    cmake --version | head -n 1
    gcc --version | head -n 1
}

# --- build -----------------------------------------------------------------------------

step_build() {
    attempt configure 60 configure
    attempt build 240 build_all
}
configure() {
    local prefix=()
    if [ -d .carry/lib ]; then
        prefix=("-DCMAKE_PREFIX_PATH=$root/.carry")
    fi
    cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DRMM_CUDA=ON -DRMM_BUILD_FUSEFS=ON -DRMM_BUILD_INJECT=ON -DRMM_BUILD_TESTS=ON "${prefix[@]}"
}

# Another compiler than CI's: its warnings are counted, they do not stop the tests.
build_all() {
    cmake --build $build -j "$(nproc)" --target all cxx_gpu_programs 2>&1 | tee "$work/build"
    local status=$?
    echo "$(grep -c 'warning:' "$work/build") warnings" >"$work/figure"
    return $status
}

# --- the gpu suite -----------------------------------------------------------------------

# What runs for each resource and adaptor is a step of its own.
each_resource='^gpu\.(conformance|contract|exit|capture|devices)\.'

step_suite() {
    attempt suite 420 suite
}
suite() {
    gpu_tests suite.xml -E "$each_resource"
}
gpu_tests() { # RESULTS ARGUMENT...
    local results=$root/$build/$1
    shift
    rm -f "$results"
    ctest --test-dir $build -L '^gpu$' --output-on-failure --no-tests=error \
        --output-junit "$results" --test-output-size-passed 262144 "$@"
    local status=$?
    cp "$results" "$logs/" # what tests that pass print: facts about the machine
    return $status
}

# --- every resource and adaptor through the shared suites --------------------------------

step_resources() {
    attempt resources 560 resources
    resource_rows
}
# Side by side, as far as the memory of a GPU goes; children that start CUDA take long.
resources() {
    local status=0
    gpu_tests conformance.xml -R '^gpu\.(conformance|contract)\.' -j 4 || status=1
    gpu_tests hazards.xml -R '^gpu\.(exit|capture|devices)\.' -j 8 || status=1
    return $status
}
# A row for each. The whole table, with the simulated GPU's half:
# tests/conformance/table build/dev/junit.xml build/gpu/*.xml
resource_rows() {
    local name matrix own contract exit capture devices result
    while read -r name _ _ _ _ _ _ _ matrix own contract exit capture devices; do
        result=passed
        [ "$matrix" != skipped ] || result=skipped
        case " $matrix $contract $exit $capture $devices " in
        *FAILED* | *" . "*) result=FAILED ;;
        esac
        row "$name" $result "matrix $matrix, contract $contract, exit $exit, capture $capture, devices $devices"
    done < <(tests/conformance/table $build/conformance.xml $build/hazards.xml | tail -n +3)
}

# --- RMM's cases of the adaptors, by name --------------------------------------------------

# Programs of the sim suite that ask nothing of the simulator. Prefetching, which does, is in
# gpu.gpu_adaptors; which stream a kept free means is in sim.thread_safe_streams alone.
step_adaptors() {
    local adaptor
    for adaptor in aligned failure_callback limiting logging statistics thread_safe tracking; do
        attempt "cases of $adaptor" 60 adaptor_cases $adaptor
    done
}
adaptor_cases() {
    local unwinder=backtrace
    ldconfig -p | grep -q 'libunwind\.so\.8' && unwinder=libunwind
    RMM_LOG_LEVEL=off RMM_PUBLISH=0 RMM_TEST_UNWINDER=$unwinder \
        $build/tests/sim/adaptors/test_"$1"_adaptor 2>&1 | tee "$work/cases"
    local status=${PIPESTATUS[0]}
    echo "$(grep -c '       OK ' "$work/cases") cases" >"$work/figure"
    return "$status"
}

# --- proof that the real driver was used ---------------------------------------------------

step_driver() {
    attempt "driver is cuda" 60 driver_is_cuda
}
driver_is_cuda() {
    local mount=$work/rmm program
    mkdir -p "$mount"
    trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
    $build/fusefs/rmmfs -f "$mount" &
    wait_for "$mount/version" || return 1
    $replay --hold 60 --resource pool tests/data/resnet_train.csv.gz &
    program=$!
    wait_for "$mount/proc/$program/gpu0/current_bytes" || return 1
    wait_until_still "$mount/proc/$program/gpu0/total_count"
    grep -H . "$mount/gpu0/uuid" "$mount/gpu0/name" "$mount/gpu0/capacity_bytes" \
        "$mount/proc/$program/gpu0/reserved_bytes"
    # the simulated GPU's identity is SIM-0, and what it holds is on no GPU-...
    [[ $(cat "$mount/gpu0/uuid") == GPU-* ]] || { echo "gpu0 is not a real GPU"; return 1; }
    [ "$(cat "$mount/proc/$program/gpu0/reserved_bytes")" -gt 0 ] || { echo "nothing is held there"; return 1; }
    cat "$mount/gpu0/name" >"$work/figure"
}
wait_for() { # FILE: until it is there, 20 s at most
    local i
    for ((i = 0; i < 200; i++)); do
        [ -e "$1" ] && return 0
        sleep 0.1
    done
    echo "$1 did not appear" >&2
    return 1
}

traces() {
    find tests/data .carry/traces shared/traces -name '*.csv.gz' 2>/dev/null |
        awk -F/ '!seen[$NF]++'
}

# --- replay: every trace on these resources, each byte checked ------------------------------

replayed_on="cuda async pool pool_virtual arena binning"
step_replay() {
    local trace resource
    while read -r trace; do
        for resource in $replayed_on; do
            attempt "verify $(basename "$trace" .csv.gz) $resource" 90 verified "$resource" "$trace"
        done
    done < <(traces)
}
verified() { # RESOURCE TRACE
    $replay --json --verify --resource "$1" "$2" >"$work/replay.json"
    local status=$?
    cat "$work/replay.json"
    [ $status -eq 0 ] || return $status
    [ "$(json driver)" = '"cuda"' ] || { echo "not on the real GPU"; return 1; }
    [ "$(json failed_allocations)" = 0 ] || { echo "allocations failed"; return 1; }
    [ "$(json verify_mismatches)" = 0 ] || { echo "data was overwritten"; return 1; }
    echo "$(json operations) operations, 0 words differ, reserved $(json reserved_bytes)" >"$work/figure"
}
json() { # FIELD of $work/replay.json
    sed -nE "s/.*\"$1\": (\"[^\"]*\"|[^,}]*).*/\1/p" "$work/replay.json"
}

# --- all that docs/performance.md has figures of; what is raw stays in the logs, in bench/ -----

step_bench() {
    rm -rf "$logs/bench"
    attempt bench 480 bench_all
    [ ! -s "$logs/bench/bench.json" ] || bench_rows
}
bench_all() {
    local files
    readarray -t files < <(traces)
    tools/bench/measure --build $build "$logs/bench" "${files[@]}" | tee "$work/replays"
    local status=$?
    grep -q '^  "driver": "cuda",' "$logs/bench/bench.json" || { echo "not on the real GPU"; return 1; }
    grep -E '^  "(cpu|cores|gpu|gpu_driver|clock_ns)"' "$logs/bench/bench.json"
    echo "$(grep -c '"workload"' "$logs/bench/bench.json") figures, $(basename "$logs")/bench" >"$work/figure"
    return $status
}
# A row for each workload: the median on every resource, and what adaptors and the reader add;
# and one for each trace.
bench_rows() {
    local name resource figures
    while IFS=$'\t' read -r name figures; do
        row "$name" passed "$figures"
    done < <(bench_medians "$logs/bench/bench.json")
    while IFS=$'\t' read -r name resource figures; do
        row "$name $resource" passed "$figures"
    done <"$work/replays"
}
bench_medians() { # FILE
    awk '
        function field(name) {
            if (!match($0, "\"" name "\": (\"[^\"]*\"|[^,}]*)")) { return "" }
            name = substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 4)
            gsub(/"/, "", name)
            return name
        }
        /"workload": / {
            workload = field("workload")
            unit[workload] = field("unit")
            median = field("median")
            difference = field("difference")
            value = median == "null" ? "-" : sprintf(median + 0 < 10 ? "%.3f" : "%.1f", median)
            mark = field("cut") == "true" ? "*" : ""
            more = difference == "null" ? "" : sprintf(" (%+.1f)", difference)
            if (!(workload in figures)) { order[++count] = workload }
            figures[workload] = figures[workload] " " field("resource") " " value mark more
        }
        END {
            for (i = 1; i <= count; i++) {
                printf "%s\t%s:%s\n", order[i], unit[order[i]], figures[order[i]]
            }
        }' "$1"
}

# --- the demo, as a user sees it --------------------------------------------------------------

step_demo() {
    attempt demo 120 tools/demo $build
}

# --- diagnosis: who used what, as the mount shows it; what it costs -------------------------

step_diagnosis() {
    attempt "planted faults and twins" 400 planted_faults
    attempt "diag/usage of a replay" 90 diagnosed_replay
    if python3 -c 'import torch' 2>/dev/null; then
        attempt "no finding in PyTorch" 150 diagnosed_training
        attempt "timeline of PyTorch" 150 timeline_of_training
    else
        row "no finding in PyTorch" skipped "no PyTorch on this machine"
        row "timeline of PyTorch" skipped "no PyTorch on this machine"
    fi
    attempt "launch cost" 120 launch_cost
}
planted_faults() { # each is a process: 16 of them share the GPU
    tests/gpu/faults/run $build/tools/run/rmm-run $build/tests/gpu/faults_cuda --jobs 16 | tee "$work/planted"
    local status=${PIPESTATUS[0]}
    tail -n 1 "$work/planted" >"$work/figure"
    return "$status"
}
diagnosed_training() { # a correct program, its library included, has none
    local mount=$work/rmm-diag-torch program diag
    mkdir -p "$mount"
    trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
    $build/fusefs/rmmfs -f "$mount" &
    wait_for "$mount/version" || return 1
    CUBLAS_WORKSPACE_CONFIG=:4096:8 RMM_RESOURCE=pool:1GiB $build/tools/run/rmm-run --no-summary -- \
        python3 tests/gpu/torch_train.py "$work/diagnosed.pt" "$root/$build/lib/librmm-c.so" &
    program=$!
    wait $program || return 1
    diag=$mount/proc/$program/diag
    cat "$diag/cupti" "$diag/mode" "$diag/stat" "$diag/findings"
    [ "$(cat "$diag/cupti")" = active ] || { echo "CUPTI is not active"; return 1; }
    echo "$(cat "$diag/findings_total") findings, $(awk '$1 == "launches" { print $2 }' "$diag/stat") launches" | tee "$work/figure"
    [ "$(cat "$diag/findings_total")" = 0 ]
}
timeline_of_training() { # the page and the trace stay in the logs, to be opened in a browser
    CUBLAS_WORKSPACE_CONFIG=:4096:8 RMM_RESOURCE=pool:1GiB $build/tools/run/rmm-run \
        --timeline "$logs/timeline.html" --trace "$logs/timeline.json" -- \
        python3 tests/gpu/torch_train.py "$work/timeline.pt" "$root/$build/lib/librmm-c.so" || return 1
    python3 - "$logs/timeline.json" "$logs/timeline.html" >"$work/figure" <<'END'
import json
import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    events = json.load(file)["traceEvents"]
blocks = {event["id"] for event in events if event["ph"] == "b"}
calls = [event for event in events if event.get("cat") == "call"]
with open(sys.argv[2], encoding="utf-8") as file:
    page = file.read()
assert blocks and calls, "the trace has no block or no call"
assert not re.search(r"(src|href)=[\"']https?:", page), "the page loads something from elsewhere"
print(f"{len(blocks)} blocks, {len(calls)} launches and copies, a page of {len(page)} bytes")
END
}
diagnosed_replay() {
    local mount=$work/rmm-diag program diag
    mkdir -p "$mount"
    trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
    $build/fusefs/rmmfs -f "$mount" &
    wait_for "$mount/version" || return 1
    $build/tools/run/rmm-run --no-summary -- \
        $replay --verify --hold 60 --resource pool tests/data/resnet_train.csv.gz &
    program=$!
    diag=$mount/proc/$program/diag
    wait_for "$mount/proc/$program/gpu0/current_bytes" || return 1
    wait_until_still "$mount/proc/$program/gpu0/total_count"
    cat "$diag/cupti" "$diag/kernels"
    head -n 5 "$diag/usage"
    [ "$(cat "$diag/cupti")" = active ] || { echo "CUPTI is not active"; return 1; }
    [ "$(cat "$diag/findings_total")" = 0 ] || { cat "$diag/findings"; return 1; }
    # whatever the log leaves live was written once by the verification's kernel
    awk -F '\t' '!/^#/ && $8 < 1 { bad++ } !/^#/ { n++ } END { print n " live blocks, " bad + 0 " never launched on"; exit bad > 0 || n == 0 }' \
        "$diag/usage" | tee "$work/figure"
}
wait_until_still() { # FILE: until its figure stays the same for half a second
    local last=-1 now i
    for ((i = 0; i < 60; i++)); do
        now=$(cat "$1")
        [ "$now" != "$last" ] || return 0
        last=$now
        sleep 0.5
    done
}
# In turns; the least of three rounds, with 1000 live blocks.
launch_cost() {
    local mode
    for _ in 1 2 3; do
        for mode in plain subscribed usage order bounds usage,bounds,order; do
            in_mode $mode $build/tests/gpu/bench_launch >"$work/launches" || return 1
            sed "s/^/$mode /" "$work/launches" | tee -a "$work/bench"
        done
    done
    awk '
        $3 == 1000 && !($1 in least) { modes[++n] = $1; least[$1] = $5 }
        $3 == 1000 && $5 < least[$1] { least[$1] = $5 }
        END { for (i = 1; i <= n; i++) { printf "%s %d%s", modes[i], least[modes[i]], i < n ? ", " : " ns\n" } }
    ' "$work/bench" | tee "$work/figure"
}
# in_mode MODE COMMAND...: diagnosed; or plain; or with a subscriber to the launches that does
# nothing, which is what CUPTI costs.
in_mode() {
    local mode=$1
    shift
    case $mode in
    plain) "$@" ;;
    subscribed) CUDA_INJECTION64_PATH=$root/$build/tests/gpu/libempty_subscriber.so "$@" ;;
    *) $build/tools/run/rmm-run --no-summary --diag "$mode" -- "$@" ;;
    esac
}

# --- programs of frameworks, unchanged, in each mode: the same result and no finding -----------

step_frameworks() {
    local framework
    for framework in torch expandable async graph cupy jax numba; do
        if python3 tests/gpu/frameworks.py $framework >"$work/$framework.plain" 2>"$work/$framework.err"; then
            attempt "$framework unchanged" 150 framework_unchanged $framework
        elif [ $? -eq 77 ]; then
            row "$framework unchanged" skipped "$(tail -n 1 "$work/$framework.err")"
        else
            row "$framework unchanged" FAILED "without rmm-run: $(tail -n 1 "$work/$framework.err")"
        fi
    done
}
framework_unchanged() { # FRAMEWORK
    local mode report launches=0
    for mode in off usage,driver bounds,driver order,driver usage,bounds,order,driver; do
        report=(--report "$work/report.json" --fail-on-finding)
        [ $mode != off ] || report=() # of a program without this library there is none
        $build/tools/run/rmm-run --diag $mode "${report[@]}" -- \
            python3 tests/gpu/frameworks.py "$1" >"$work/$1.diagnosed" ||
            { echo "$mode: exit $?"; cat "$work/report.json"; return 1; }
        cmp "$work/$1.plain" "$work/$1.diagnosed" || { echo "$mode: another result"; return 1; }
        [ $mode != off ] || continue
        launches=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["launches"])' "$work/report.json")
    done
    [ "$launches" -gt 0 ] || { echo "no launch was seen"; return 1; }
    echo "5 modes, the same result, no finding, $launches launches" >"$work/figure"
}

# --- what the diagnosis costs a training, in turns with the plain run -------------------------

# Other modes: RMM_OVERHEAD_MODES="order usage,bounds,driver,guards" tests/gpu/run overhead

step_overhead() {
    if ! python3 -c 'import torch' 2>/dev/null; then
        row overhead skipped "no PyTorch on this machine"
        return
    fi
    : >"$logs/overhead.txt"
    attempt "overhead on a pool" 300 overhead "$root/$build/lib/librmm-c.so"
    local network figures
    while read -r network figures; do
        row "overhead, $network" passed "$figures"
    done <"$logs/overhead.txt"
}
overhead() { # LIBRMM_C
    local mode modes=()
    for mode in ${RMM_OVERHEAD_MODES:-usage order,driver usage,bounds,driver}; do
        modes+=("$mode=$build/tools/run/rmm-run --diag $mode --")
    done
    RMM_RESOURCE=pool:8GiB python3 tests/gpu/overhead.py --library "$1" plain= \
        "subscribed=env CUDA_INJECTION64_PATH=$root/$build/tests/gpu/libempty_subscriber.so" \
        "${modes[@]}" | tee "$logs/overhead.txt"
}

# --- the Python package: its own program, and each framework that allocates through it ---------

step_python() {
    local program
    attempt "Python package built" 120 python_built
    for program in core torch torch_mempool jax cupy numba cuda_core example_torch example_torch_sleep example_cupy; do
        if ! python_program $program >"$work/python.out" 2>"$work/python.err"; then
            if [ "$(cat "$work/python.rc")" = 77 ]; then
                row "rmm_c: $program" skipped "$(tail -n 1 "$work/python.err")"
            else
                row "rmm_c: $program" FAILED "$(tail -n 1 "$work/python.err")"
            fi
        else
            row "rmm_c: $program" passed "$(tail -n 1 "$work/python.out")"
        fi
    done
}
python_built() {
    (cd python && RMM_C_LIBRARY=$root/$build/lib/librmm-c.so python3 setup.py --quiet build \
        --build-base "$root/$build/python" --build-lib "$root/$build/python/package")
}
python_program() { # NAME
    PYTHONPATH=$root/$build/python/package timeout 120 python3 tests/gpu/python_frameworks.py "$1"
    echo $? >"$work/python.rc"
    [ "$(cat "$work/python.rc")" = 0 ]
}

# --- whole jobs: what rmm-run tells of the ranks that torchrun starts ---------------------------

step_jobs() {
    if ! command -v torchrun >/dev/null; then
        row jobs skipped "no torchrun on this machine"
        return
    fi
    attempt "Python package built" 120 python_built
    attempt "a fault in one rank" 100 ranks_are 86 bad 0 1
    attempt "no fault in any rank" 100 ranks_are 0 good 0 0
}
ranks_are() { # STATUS PROGRAM FINDINGS...: of each rank
    local wanted=$1 program=$2 status=0 found
    shift 2
    PYTHONPATH=$root/$build/python/package $build/tools/run/rmm-run --summary --report "$logs/ranks_$program.json" \
        --fail-on-finding --diag order -- torchrun --nproc-per-node $# tests/gpu/torch_ranks.py "$program" || status=$?
    [ $status -eq "$wanted" ] || return 1
    found=$(python3 -c 'import json, sys
print(*(process["findings_total"] for process in json.load(open(sys.argv[1]))["processes"]))' "$logs/ranks_$program.json")
    echo "findings: $found" >"$work/figure"
    [ "$found" = "$*" ]
}

# --- planted faults in programs of PyTorch: which tool finds which ------------------------------

# Found or missed is a figure; what fails is a finding in a correct twin, or a twin that does not end.

step_faults() {
    local name figures
    if ! python3 -c 'import torch' 2>/dev/null; then
        row faults skipped "no PyTorch on this machine"
        return
    fi
    attempt "Python package built" 120 python_built
    attempt "planted faults of PyTorch" 420 torch_faults
    while IFS=: read -r name figures; do
        row "faults, $name" passed "$figures"
    done < <(sed -n 's/^# //p' "$logs/torch_faults.tsv" 2>/dev/null)
}
torch_faults() { # the logs keep the table, a row for each fault
    PYTHONPATH=$root/$build/python/package python3 tests/gpu/torch_faults_table.py --seconds 300 \
        $build/tools/run/rmm-run "$logs/torch_faults.tsv"
    local status=$?
    echo "$(grep -vc '^#\|^fault' "$logs/torch_faults.tsv") faults, $(basename "$logs")/torch_faults.tsv" >"$work/figure"
    return $status
}

# --- several GPUs: what peers can use, what it costs, PyTorch across them -----------------------

step_peers() {
    local fact name figures
    if [ "$(nvidia-smi --list-gpus | wc -l)" -lt 2 ]; then
        row peers skipped "fewer than two GPUs here"
        return
    fi
    attempt "memory between GPUs" 240 ctest --test-dir $build -R '^gpu\.gpu_(peers|container_multidevice)$' \
        --output-on-failure --no-tests=error
    attempt "facts about peers" 120 peer_facts
    while read -r fact; do
        row fact passed "$fact"
    done < <(cat "$work/peers" 2>/dev/null)
    if ! python3 -c 'import torch' 2>/dev/null; then
        row "PyTorch across GPUs" skipped "no PyTorch on this machine"
        return
    fi
    attempt "Python package built" 120 python_built
    attempt "PyTorch across GPUs" 560 torch_across
    while IFS=: read -r name figures; do
        row "$name" passed "$figures"
    done < <(cat "$work/across" 2>/dev/null)
}
peer_facts() {
    $build/tests/gpu/peer_facts | tee "$work/peers"
}
torch_across() {
    PYTHONPATH=$root/$build/python/package python3 tests/gpu/torch_peers.py all | tee "$work/across"
}

# --- three models in PyTorch: time and bytes beside PyTorch's own allocators -------------------

step_models() {
    local name figures
    if ! python3 -c 'import torch' 2>/dev/null; then
        row models skipped "no PyTorch on this machine"
        return
    fi
    rm -rf "$logs/models"
    attempt "Python package built" 120 python_built
    attempt models 235 models
    while IFS=$'\t' read -r name figures; do
        row "$name" passed "$figures"
    done <"$work/models"
}
models() { # the logs keep the samples; tools/bench/plot draws them
    PYTHONPATH=$root/$build/python/package python3 tests/gpu/torch_pairs.py 190 "$logs/models" | tee "$work/models"
    local status=${PIPESTATUS[0]}
    echo "$(wc -l <"$logs/models/models.jsonl") runs, $(basename "$logs")/models" >"$work/figure"
    return "$status"
}

# --- PyTorch on our allocator: the same training, its bytes in the tree, a clean end ------------

step_torch() {
    if ! python3 -c 'import torch' 2>/dev/null; then
        row "PyTorch trains on a pool" skipped "no PyTorch on this machine"
        return
    fi
    attempt "PyTorch trains on a pool" 240 torch_trains
    attempt "Python package built" 120 python_built
    attempt "PyTorch's own allocator is shown" 120 torch_watched
}
torch_watched() {
    PYTHONPATH=$root/$build/python/package python3 tests/gpu/torch_watched.py | tee "$work/figure"
    return "${PIPESTATUS[0]}"
}
torch_trains() {
    local mount=$work/rmm-torch
    export CUBLAS_WORKSPACE_CONFIG=:4096:8
    mkdir -p "$mount"
    trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
    $build/fusefs/rmmfs -f "$mount" &
    wait_for "$mount/version" || return 1
    python3 tests/gpu/torch_train.py "$work/theirs.pt" || return 1
    RMM_RESOURCE=pool:1GiB python3 tests/gpu/torch_train.py "$work/ours.pt" \
        "$root/$build/lib/librmm-c.so" 2>"$work/torch.err"
    local status=$?
    cat "$work/torch.err"
    [ $status -eq 0 ] || return $status
    # one line for the allocation that had to fail, none for a refused free
    [ "$(grep -c 'for PyTorch on device 0: out of memory' "$work/torch.err")" = 1 ] || return 1
    ! grep -q 'refused free' "$work/torch.err" || return 1
    python3 tests/gpu/torch_compare.py "$work/theirs.pt" "$work/ours.pt" | tee "$work/figure" || return 1
    [ "$(cat "$mount/gpu0/peak_bytes")" -gt 1000000 ] || { echo "gpu0/peak_bytes: $(cat "$mount/gpu0/peak_bytes")"; return 1; }
}

step_sanitizer() {
    local tool
    tool=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
    if [ ! -x "$tool" ]; then
        row "compute-sanitizer" skipped "not on this machine"
        return
    fi
    attempt "overruns in pools" 100 overruns "$tool"
    attempt "compute-sanitizer memcheck" 180 "$tool" --tool memcheck --error-exitcode 9 \
        $replay --verify --resource pool tests/data/resnet_train.csv.gz
    # of mapped memory: virtual pools that are not exportable take chunks under a tool
    attempt "memcheck of sharing" 120 "$tool" --tool memcheck --target-processes all \
        --report-api-errors no --error-exitcode 9 $build/tests/gpu/test_gpu_sharing
}
overruns() { # SANITIZER
    tests/gpu/overruns "$1" $build/tests/gpu/nvtx_overruns "$work/overruns" | tee "$work/verdicts"
    local status=${PIPESTATUS[0]}
    echo "$(grep -c '^ok ' "$work/verdicts") ok, $(grep -c '^FAILED ' "$work/verdicts") failed" >"$work/figure"
    return "$status"
}
