# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sections, counts and the last line of tests/run. Sourced.

passed=0
failed=0
skipped=0
failures=()   # one line each: what failed
reproduce=()  # and the command that shows it again, at the same place
outputs=()    # and the end of what it printed: of a long run often only the summary is kept
skips=()
times=()

section() {
    printf '\n===== %s =====\n' "$1"
}

count_pass() {
    passed=$((passed + ${1:-1}))
}

count_failure() { # WHAT COMMAND [OUTPUT]
    failed=$((failed + 1))
    failures+=("$1")
    reproduce+=("$2")
    outputs+=("$(tail -n 20 <<<"${3:-}" | cut -c 1-400)")
    echo "FAILED: $1"
}

count_skip() { # NUMBER REASON
    skipped=$((skipped + $1))
    skips+=("$1 skipped: $2")
}

run_step() { # NAME: calls step_NAME
    local before=$failed start=$SECONDS
    section "$1: $(step_title "$1")"
    "step_$1"
    times+=("$(printf '%-8s %4d s' "$1" $((SECONDS - start)))")
    [ "$failed" -eq "$before" ] || echo "===== $1: $((failed - before)) failed ====="
}

# check NAME COMMAND...: runs it, quietly while it succeeds; counts as one.
check() {
    local name=$1 output status
    shift
    output=$("$@" 2>&1 </dev/null)
    status=$?
    if [ $status -eq 0 ]; then
        echo "ok     $name"
        count_pass
        return 0
    fi
    printf '%s\n' "$output"
    count_failure "$name (exit $status)" "$*" "$output"
    return 1
}

# count_junit PRESET FILE: adds ctest's results. A skip is a failure under CI.
count_junit() {
    local name result reason listed seen=0
    listed=$(sed -nE 's/^[[:space:]]*tests="([0-9]+)".*/\1/p' "$2" | head -n 1)
    while IFS=$'\t' read -r name result reason; do
        seen=$((seen + 1))
        case "$result" in
        pass) count_pass ;;
        skip) count_ctest_skip "$1" "$name" "$reason" ;;
        *) count_failure "$1: $name${reason:+ ($reason)}" "ctest --preset $1 -R '^${name//./\\.}\$'" \
            "$(junit_output "$2" "$name")" ;;
        esac
    done < <(junit_results "$2")
    [ "$seen" = "$listed" ] || count_failure "$1: $seen of ${listed:-?} results could be read" "cat $2"
}

count_ctest_skip() { # PRESET NAME REASON
    if [ -n "${CI:-}" ] && [[ $2 != gpu.* ]]; then
        count_failure "$1: $2 was skipped, which CI does not allow ($3)" \
            "ctest --preset $1 --verbose -R '^${2//./\\.}\$'"
    else
        count_skip 1 "$1: $2: $3"
    fi
}

# junit_results FILE: a line "NAME<tab>pass|fail|skip<tab>REASON" for each test. A test that
# passed but skipped some of its cases (cmocka's skip()) counts as skipped.
junit_results() {
    awk '
        function attribute(name) {
            value = $0
            if (!sub(".* " name "=\"", "", value)) return ""
            sub(/".*/, "", value)
            return value
        }
        /<testcase / {
            name = attribute("name"); status = attribute("status")
            result = status == "run" ? "pass" : "fail"; reason = ""; last = ""; inside = 1
        }
        /<skipped / {
            if ($0 ~ /SKIP_RE/) result = "skip"
            else reason = attribute("message")
        }
        /SKIPPED \]/ && result == "pass" && inside { result = "skip"; reason = "some of its cases" }
        inside && !/<\/?testcase|<skipped |<failure |^[ \t]*(<\/system-out>)?$/ {
            last = $0; gsub(/<\/?system-out>/, "", last)
        }
        /<\/testcase>/ {
            if (result == "skip" && reason == "") reason = last == "" ? "it does not say why" : last
            sub(/^[ \t]+/, "", reason)
            print name "\t" result "\t" reason; inside = 0
        }' "$1"
}

# junit_output FILE NAME: what that test printed, but for the lines of cmocka's cases that passed.
junit_output() {
    awk -v name="$2" '
        /<testcase / { inside = index($0, " name=\"" name "\"") > 0 }
        /<\/testcase>/ { inside = 0 }
        inside && !/<\/?testcase|<skipped |<failure / {
            gsub(/<\/?system-out>|^[ \t]+/, "")
            gsub(/&lt;/, "<"); gsub(/&gt;/, ">"); gsub(/&quot;/, "\""); gsub(/&amp;/, "\\&")
            if ($0 == "" || /^\[ (RUN  |      OK) /) next
            print
        }' "$1"
}

print_totals() {
    local i
    section "summary"
    printf '%s\n' "${times[@]}"
    for ((i = 0; i < ${#skips[@]}; i++)); do
        echo "${skips[i]}"
    done
    for ((i = 0; i < ${#failures[@]}; i++)); do
        printf 'FAILED: %s\n        again: %s\n' "${failures[i]}" "${reproduce[i]}"
        [ -z "${outputs[i]}" ] || printf '        | %s\n' "${outputs[i]//$'\n'/$'\n        | '}"
    done
    [ "$passed" -gt 0 ] || [ "$failed" -gt 0 ] || count_failure "no test ran" "tests/run"
    if [ "$skipped" -gt 0 ]; then
        echo "$passed passed, $failed failed, $skipped skipped"
    else
        echo "$passed passed, $failed failed"
    fi
    [ "$failed" -eq 0 ]
}
