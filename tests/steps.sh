# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The steps of tests/run, in the order of this list. Sourced, in the root of the tree.
. tools/common/setup.sh

steps="setup style dev asan tsan release nocuda bench fuzz mutate"

# Not a step of a complete run: it does a part of the step dev.
quick="setup style quick"

step_title() {
    case "$1" in
    setup) echo "packages and tools that the rest needs" ;;
    style) echo "format, which folder includes which, and the other rules of tests/style" ;;
    quick) echo "debug build of what the logic needs: the suites unit and sim in C" ;;
    dev) echo "debug build with heavy checks: every suite, or those that asan does not run" ;;
    asan) echo "address and undefined behaviour sanitizers, with leaks" ;;
    tsan) echo "thread sanitizer" ;;
    release) echo "optimised build, what is exported and installed, consumers, README" ;;
    nocuda) echo "built without a CUDA toolkit: the simulated GPU only" ;;
    bench) echo "instructions of an operation, against tests/bench/instructions.table" ;;
    fuzz) echo "each fuzzer for some seconds" ;;
    mutate) echo "20 deliberate errors, of which the tests must notice most" ;;
    esac
}

step_names() {
    echo "$steps"
}

is_step() {
    [[ " $steps quick " == *" $1 "* ]]
}

list_steps() {
    local step
    for step in $steps; do
        printf '  %-8s  %s\n' "$step" "$(step_title "$step")"
    done
}

# True if one of these steps is selected, or setup alone: then everything is installed.
needs() { # STEP...
    local step
    [ "${selected[*]}" != setup ] || return 0
    for step in "$@"; do
        is_selected "$step" && return 0
    done
    return 1
}

# What the selected steps need. Ubuntu has no browser but as a snap, Debian 13 no clang-format 14: what
# a release does not offer is left out, and the tests that need it say so.
needed_packages() {
    local offered=()
    echo build-essential cmake ninja-build pkg-config python3 zlib1g-dev libjansson-dev libcmocka-dev
    needs quick dev asan tsan release && echo libfuse3-dev libncurses-dev libmicrohttpd-dev libcurl4-gnutls-dev
    needs style && echo codespell && offered+=(clang-format-14)
    needs nocuda bench && echo valgrind && offered+=(gcc-12)
    if needs dev asan tsan release; then
        echo fuse3 curl libunwind8 gnuplot-nox busybox-static rsync groff-base bsdextrautils \
            python3-prometheus-client systemd tmux python3-dev python3-setuptools python3-wheel python3-pip \
            python3-venv python3-numpy python3-pytest python3-mypy python3-sphinx python3-myst-parser abigail-tools \
            libspdlog-dev
        offered+=(chromium-headless-shell libamdhip64-dev libdw1 libdw1t64)
    fi
    needs dev mutate && offered+=(python3-clang)
    needs dev && echo podman crun runc catatonit python3-yaml apt-utils gnupg gpgv createrepo-c rpm
    needs dev && offered+=(hipcc) # 50 MB, with a clang of its own
    [ ${#offered[@]} -eq 0 ] || rmm_offered "${offered[@]}"
    needs fuzz && echo clang "libclang-rt-$(clang_version)-dev"
}

# The sanitizers' runtime has a package of its own, of clang's version.
clang_version() {
    clang -dumpversion 2>/dev/null | grep -oE '^[0-9]+' ||
        LC_ALL=C apt-cache depends clang 2>/dev/null | sed -nE 's/.*Depends: clang-([0-9]+)$/\1/p' | head -n 1
}

# Beside the system: these packages enable services.
beside=build/beside
PATH=$PWD/$beside/usr/bin:$PATH

unpack_beside() {
    local packages
    needs dev asan tsan release || return 0
    mapfile -t packages < <(rmm_offered prometheus promtool prometheus-node-exporter \
        munge libmunge2 libhwloc15 slurm-wlm-basic-plugins slurm-client slurmd slurmctld)
    rmm_unpack_packages $beside "${packages[@]}"
}

# rocThrust is headers only. Debian 12 has none; that of 13 needs the headers of HIP of the same release.
unpack_rocm() {
    needs dev || return 0
    if [ -n "$(rmm_offered librocthrust-dev)" ]; then
        rmm_unpack_packages $beside/rocm librocthrust-dev librocprim-dev libamdhip64-dev
    else
        rmm_unpack_of_release $beside/rocm trixie librocthrust-dev librocprim-dev libamdhip64-dev
    fi || echo "hip.programs will be skipped: it needs rocThrust" >&2
}

install_packages() {
    local packages
    read -ra packages <<<"$(needed_packages | xargs)"
    rmm_require_packages "${packages[@]}" && unpack_beside && unpack_rocm
}

step_setup() {
    echo "Debian 12 and 13, Ubuntu 24.04 and newer; this is $(rmm_system_name). Packages that are missing are installed first."
    install_packages || { count_failure "packages" "tests/run setup"; return; }
    echo "ok     packages" && count_pass
    check "cmake is 3.24 or newer" cmake_is_new_enough
    gcc --version | head -n 1
    cmake --version | head -n 1
    echo "$(nproc) cores, GPU: $(gpu_there && echo yes || echo no), FUSE: $(fuse_there && echo yes || echo no)"
    configure_selected
}

cmake_is_new_enough() {
    cmake --version | sed -n 's/cmake version //p' | { cat; echo 3.24; } | sort -VC -r ||
        { echo "cmake 3.24 is needed: $(cmake --version | head -n 1)"; return 1; }
}

gpu_there() {
    [ -e /dev/nvidiactl ]
}

fuse_there() {
    [ -w /dev/fuse ]
}

step_style() {
    local line out
    out=$(mktemp)
    tests/style/check | tee "$out"
    while read -r line; do
        case "$line" in
        "ok "*) count_pass ;;
        "skipped "*) count_style_skip "${line#skipped }" ;;
        "FAILED "*) count_failure "style: ${line#FAILED }" "tests/style/check ${line#FAILED }" ;;
        esac
    done <"$out"
    rm -f "$out"
}

count_style_skip() { # NAME: REASON
    if [ -n "${CI:-}" ]; then
        count_failure "style: ${1%%:*} was skipped, which CI does not allow (${1#*: })" "tests/style/check ${1%%:*}"
    else
        count_skip 1 "style: $1"
    fi
}

# Beside its suite a test may have a label that says which steps leave it out:
#   script   runs no code of the library: only the step dev has it
#   slow     needs a compiler of C++, a sweep of half a minute, or more packages: not in quick
#   debug    finds the same in a debug build: not in release
#   no_tsan  its threads meet in another test as well: not in tsan
# The step quick is the logic, within three minutes.
step_quick() {
    local labels="abi|fuse|fuzz|gpu|hip|stress|script|slow" targets=()
    configure dev
    mapfile -t targets < <(tests/targets.py programs build/dev "$labels" '^$' .)
    build dev "${targets[@]}" && run_ctest dev "$labels" '^$' '' RMM_TEST_QUICK=1
}

# The heavy checks cost little beside the address sanitizer. So if the step asan runs too, this one runs
# the scripts, what asan has not or shortens, and forks amid threads, which the sanitizers forbid.
step_dev() {
    local only='' targets=()
    if is_selected asan; then
        configure dev
        configure asan
        only="$(tests/targets.py not_as_well build/dev build/asan)|^sim\.(fork|sim_threads)$"
        mapfile -t targets < <(tests/targets.py programs build/dev "fuse|abi|fuzz" '^$' "$only")
        targets+=(tests/gpu/all) # that they compile
    fi
    build dev "${targets[@]}" && run_ctest dev "abi|fuzz${targets[*]:+|fuse}" '^$' "$only"
}

# The step fuzz runs the fuzzers with the same sanitizers, and for longer.
step_asan() {
    local elsewhere=
    is_selected fuzz && elsewhere="|fuzz"
    build asan || return 0
    run_ctest asan "abi|script$elsewhere"
}

# In a program that starts no thread this sanitizer has nothing to find. Which do, the programs of the step
# asan show; without that step all are built here.
step_tsan() {
    local labels="abi|fuzz|script|no_tsan" names built=tsan targets=()
    configure tsan
    if is_selected asan; then
        built=asan
    else
        build tsan || return 0
    fi
    names=$(tests/targets.py one_thread build/$built)
    mapfile -t targets < <(tests/targets.py programs build/tsan "$labels|gpu" "$names" .)
    build tsan "${targets[@]}" && run_ctest tsan "$labels" "$names"
}

# If the step asan runs too, this one leaves out what an optimiser cannot break in another way; if dev
# does, its sweeps are short.
step_release() {
    local labels="fuzz|script" quick=()
    is_selected asan && labels+="|debug"
    is_selected dev && quick=(RMM_TEST_QUICK=1)
    build release || return 0
    run_ctest release "$labels" '^$' '' "${quick[@]}"
}

step_nocuda() {
    gcc_12_there nocuda || return 0
    build nocuda || return 0
    check "the configuration says that only the simulated GPU is there" \
        grep -q "Real GPUs: switched off" build/nocuda/configure.log
    check "without RMM_DRIVER the first call fails and names the variable" refuses_without_gpu
    run_ctest nocuda "none"
}

# The preset nocuda names the compiler whose instructions are recorded.
gcc_12_there() { # STEP
    command -v gcc-12 >/dev/null && return 0
    if [ -n "${CI:-}" ]; then
        count_failure "$1: no gcc-12, which this release does not offer" "command -v gcc-12"
    else
        count_skip 1 "$1: the step, no gcc-12, which this release does not offer"
    fi
    return 1
}

refuses_without_gpu() {
    local output
    if output=$(env -u RMM_DRIVER RMM_PUBLISH=0 build/nocuda/tools/replay/rmm-replay \
        tests/data/resnet_train.csv.gz 2>&1); then
        echo "it ran: $output"
        return 1
    fi
    echo "$output"
    [[ $output == *RMM_DRIVER=sim* ]]
}

step_bench() {
    gcc_12_there bench || return 0
    check "a count that rises above 5 % is noticed" tests/bench/compare_test.sh
    build nocuda || return 0
    if tests/bench/instructions build/nocuda; then
        count_pass
    else
        count_failure "bench: instructions of an operation" "tests/bench/instructions build/nocuda"
    fi
}

step_fuzz() {
    build fuzz && run_ctest fuzz "none"
}

# The unit tests alone notice seven of ten errors in these folders. Below 30 % it is tests/mutate
# that does not work.
step_mutate() {
    local log=build/mutate.log start=$SECONDS
    mkdir -p build
    if tests/mutate/run --count 20 --seed "$(git rev-parse HEAD)" --floor 30 --labels '^unit$' \
        --only lib/core --only lib/diag --only lib/segment >$log 2>&1 </dev/null; then
        echo "ok     mutate: $(tail -n 1 $log) ($((SECONDS - start)) s)"
        count_pass
    else
        tail -n 40 $log
        count_failure "mutate: too few errors are noticed" "tests/run mutate"
    fi
}

# All presets of the selected steps at once, because cmake works on one core.
declare -A configured
configure_selected() {
    local preset running=()
    for preset in dev asan tsan release nocuda fuzz; do
        is_selected $preset || { [ $preset = dev ] && is_selected quick; } || continue
        [ $preset != nocuda ] || command -v gcc-12 >/dev/null || continue
        mkdir -p build/$preset
        cmake --preset $preset >build/$preset/configure.log 2>&1 </dev/null &
        running+=("$preset $!")
    done
    for preset in "${running[@]}"; do
        wait "${preset#* }" && configured[${preset% *}]=yes
    done
}

# Before it is known what to build. If it fails, build() does it again and says what is wrong.
configure() {
    [ -n "${configured[$1]:-}" ] || cmake --preset "$1" >/dev/null 2>&1
}

# build PRESET [TARGET...]: configure and build, all without a target; counts as one. Output in
# build/PRESET/*.log.
build() {
    local preset=$1 targets=("${@:2}")
    mkdir -p "build/$preset"
    if [ -z "${configured[$preset]:-}" ]; then
        logged "$preset" "configure" configure.log cmake --preset "$preset" || return 1
    fi
    logged "$preset" "build" build.log cmake --build --preset "$preset" -j "$(nproc)" ${targets:+--target "${targets[@]}"}
}

logged() { # PRESET WHAT LOG COMMAND...
    local preset=$1 what=$2 log=build/$1/$3 start=$SECONDS
    shift 3
    if "$@" >"$log" 2>&1 </dev/null; then
        echo "ok     $preset: $what ($((SECONDS - start)) s)"
        count_pass
        return 0
    fi
    if [ "$what" = build ]; then
        grep -vE '^\[[0-9]+/[0-9]+\]' "$log" | tail -n 60
    else
        tail -n 40 "$log"
    fi
    count_failure "$preset: $what (whole log: $log)" "$*"
    return 1
}

# run_ctest PRESET LABELS [NAMES [ONLY [VARIABLE=VALUE...]]]: runs the tests of a preset but for these
# labels and names and, without a GPU, the gpu suite; of the rest those that ONLY matches. Under a fixed
# address layout, which old sanitizers need, and in a temporary folder that must be empty again
# afterwards. More tests at once than there are cores: those of the suite fuse wait for more than half
# of their time.
run_ctest() {
    local preset=$1 excluded=$2 names=${3:-^$} only=(${4:+-R "$4"}) results=$PWD/build/$1/junit.xml fixed=() private
    if ! gpu_there; then
        skip_gpu_tests "$preset"
        excluded="$excluded|gpu"
    fi
    setarch -R true 2>/dev/null && fixed=(setarch -R)
    rm -f "$results"
    private=$(mktemp -d)
    chmod 755 "$private" # some tests act as another user
    mkdir -m 1777 "$private/tmp"
    mkdir -m 700 "$private/run"
    # a shell in the background ignores interrupts, and so would the programs that tests interrupt
    RMM_TEST_RUN=$private TMPDIR=$private/tmp RMM_RUNTIME_DIR=$private/run \
        env --default-signal=INT "${@:5}" "${fixed[@]}" ctest --preset "$preset" -j $(($(nproc) + 2)) -LE "^($excluded)\$" -E "$names" "${only[@]}" \
        --output-junit "$results" --test-output-size-passed 262144 </dev/null
    local status=$? before=$failed
    if [ -s "$results" ]; then
        count_junit "$preset" "$results"
    else
        count_failure "$preset: ctest left no results (exit $status)" "ctest --preset $preset"
    fi
    if [ $status -ne 0 ] && [ "$failed" -eq "$before" ]; then
        count_failure "$preset: ctest (exit $status)" "ctest --preset $preset"
    fi
    check "$preset: the tests left no file, mount or process behind" left_nothing "$private"
    rm -rf "$private"
}

# left_nothing FOLDER: what tests that ran with RMM_TEST_RUN=FOLDER left; ends processes
# and mounts, so that the next step does not suffer.
left_nothing() {
    local bad=0 process mount
    for process in /proc/[0-9]*; do
        grep -qzxF "RMM_TEST_RUN=$1" "$process/environ" 2>/dev/null || continue
        echo "process ${process#/proc/}: $(tr '\0' ' ' <"$process/cmdline")"
        kill -KILL "${process#/proc/}" 2>/dev/null
        bad=1
    done
    while read -r mount; do
        echo "mount $mount"
        umount -l "$mount"
        bad=1
    done < <(awk -v below="$1/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo)
    # the thread sanitizer leaves a file of its own when a process is killed as it starts
    find "$1/tmp" "$1/run" -mindepth 1 ! -name 'tsan.rodata.*' | sed "s|^$1/||" | grep . && bad=1
    return $bad
}

skip_gpu_tests() { # PRESET
    local count
    count=$(ctest --preset "$1" -N -L '^gpu$' 2>/dev/null | sed -n 's/^Total Tests: //p')
    [ "${count:-0}" -eq 0 ] || count_skip "$count" "$1: gpu suite, no GPU here (no /dev/nvidiactl)"
}
