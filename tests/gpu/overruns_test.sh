#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/overruns with a program and a compute-sanitizer that this script plays: what each of
# them may do wrong is told apart.
set -euo pipefail
overruns=$(dirname "$0")/overruns
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export MISTAKE=

cat >"$folder/program" <<'END'
#!/usr/bin/env bash
report() { # NUMBER ADDRESS
    printf '========= Invalid __global__ write of size 4 bytes\n=========     at touch()+0x60\n' >&3
    printf '=========     by thread (0,0,0) in block (%d,0,0)\n=========     Access to %s is out of bounds\n' "$1" "$2" >&3
}
errors=0
for number in {0..20}; do
    [ $# -eq 1 ] || [ "$2" = "$number" ] || continue
    echo "case $number name_$number 0x7f$number 4 write"
    if [ "$1" = faulty ] && [ "${RMM_NVTX:-}" != off ] && [ "$MISTAKE" != "misses_$number" ]; then
        report "$number" "0x7f$number"
        errors=1
    fi
    [ "$MISTAKE" != "dies_$number" ] || [ $# -eq 2 ] || [ $errors -eq 0 ] || exit 0
done
case $MISTAKE in
correct | unannotated)
    name=$([ "${RMM_NVTX:-}" = off ] && echo unannotated || echo "$1")
    if [ "$name" = "$MISTAKE" ]; then report 3 0x123; errors=1; fi ;;
esac
echo "========= ERROR SUMMARY: $errors errors" >&3
END
cat >"$folder/sanitizer" <<'END'
#!/usr/bin/env bash
while [ $# -gt 2 ] && [ "${1#--}" != "$1" ]; do
    [ "$1" != --log-file ] || log=$2
    shift 2
done
exec 3>>"$log"
exec "$@"
END
chmod +x "$folder"/*

expect() { # STATUS MISTAKE LINE: is printed, with that exit status
    local status=0
    MISTAKE=$2 "$overruns" "$folder/sanitizer" "$folder/program" "$folder/logs" >"$folder/out" 2>&1 || status=$?
    if [ $status != "$1" ] || ! grep -q -- "$3" "$folder/out"; then
        echo "FAILED '$2': exit status $status, expected $1 and '$3':"
        cat "$folder/out"
        exit 1
    fi
}
expect 0 "" "^ok name_20"
expect 0 dies_11 "^ok name_20"
expect 1 misses_7 "^FAILED name_7: .*reported 'nothing'"
expect 1 correct "^FAILED correct: a correct access is reported"
expect 1 unannotated "^FAILED unannotated"
echo "ok overruns_test"
