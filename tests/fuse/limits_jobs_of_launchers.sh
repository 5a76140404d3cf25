#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# examples/limit_job.sh, under what starts programs: the command itself, bash -c, a launcher of
# several ranks, Python's multiprocessing, programs that follow each other. They hold the limit together,
# within 2 %, and never more; a command without a GPU program is told so.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
limit_job=${test_path%/tests/fuse/*}/examples/limit_job.sh
export RMM_DRIVER=sim RMM_MOUNT=$mnt
mib=1048576

# Fills its pool, says so, and stays until its input ends.
cat >"$work/rank" <<'END'
#!/bin/bash
out=$1.$$.out
exec {in}> >(exec "$RMMFS_PROGRAM" >>"$out" 2>&1)
printf '%s\n' "pool 0" "fill 0 $((2 * 1048576))" >&$in
until [ "$(grep -c ok "$out" 2>/dev/null)" -ge 3 ]; do sleep 0.02; done
echo full >>"$1.full"
cat "$1.go" >/dev/null # a FIFO: until it is opened and closed
END
chmod 755 "$work/rank"

column() { # NAME COLUMN: of the label in limits
    awk -v name="$1" -v at="$2" '$1 == "label" && $2 == name { print $at }' "$mnt/limits"
}
job_of() {
    sed -n 's/^limit_job.sh: label \([^:]*\):.*/\1/p' "$work/$1.err" 2>/dev/null
}
runs() { [ -e "$work/$1.full" ] && [ "$(wc -l <"$work/$1.full")" -ge "$2" ]; }

# Where reading the node takes long, readers get figures that are some milliseconds old.
reaches() { # NAME PROGRAMS
    local held
    held=$(column "$1" 6)
    [ "${held:-0}" -le $((500 * mib)) ] || fail "$1 holds $held: $(cat "$mnt/limits")"
    [ "${held:-0}" -ge $((490 * mib)) ] && [ "$(column "$1" 8)" = "$2" ]
}
has_none() { [ -z "$(column "$1" 1)" ]; }

# check NAME RANKS COMMAND...: under a limit of 500 MiB
check() {
    local name=$1 ranks=$2 pid job status=0
    shift 2
    mkfifo "$work/$name.go"
    sh "$limit_job" 500MiB "$@" </dev/null >"$work/$name.out" 2>"$work/$name.err" &
    pid=$!
    eventually runs "$name" "$ranks"
    job=$(job_of "$name")
    eventually reaches "$job" "$ranks"
    : >"$work/$name.go"
    wait "$pid" || status=$?
    [ "$status" = 0 ] || fail "$name ends with $status: $(cat "$work/$name.err")"
    eventually has_none "$job"
    grep -q "limit_job.sh: at most [1-9][0-9]* bytes were in use" "$work/$name.err" ||
        fail "$name: $(cat "$work/$name.err")"
}

start_daemon
check itself 1 "$work/rank" "$work/itself"
check bash 1 bash -c "'$work/rank' '$work/bash'; true"
check launcher 4 bash -c "for i in 1 2 3 4; do '$work/rank' '$work/launcher' & done; wait"
check nested 2 env -u NOTHING sh -c "bash -c '$work/rank $work/nested' & setsid -w '$work/rank' '$work/nested'; wait"
check python 3 python3 -c "
import multiprocessing, subprocess, sys
def rank(number):
    subprocess.run(sys.argv[1:], check=True)
context = multiprocessing.get_context('fork')
ranks = [context.Process(target=rank, args=(i,)) for i in range(3)]
[one.start() for one in ranks]
sys.exit(max(one.join() or one.exitcode for one in ranks))" "$work/rank" "$work/python"
if command -v mpirun >/dev/null; then
    check mpirun 2 mpirun --allow-run-as-root --oversubscribe -n 2 "$work/rank" "$work/mpirun"
fi

# The status is the command's; without a program in the tree it says so.
status=0
sh "$limit_job" 1GiB bash -c "exit 7" 2>"$work/error" || status=$?
[ "$status" = 7 ] || fail "the status is $status"
grep -q "no program of the command was in the tree" "$work/error" || fail "$(cat "$work/error")"
eventually is limits "#kind name uid gpu limit_bytes held_bytes given_bytes processes set_by"
status=0
sh "$limit_job" 1XB true 2>"$work/error" || status=$?
[ "$status" = 2 ] || fail "a wrong size: $status"
status=0
RMM_JOB=mine sh "$limit_job" 1GiB true 2>"$work/error" || status=$?
[ "$status" = 2 ] || fail "a label within a label: $status"
grep -q "label mine all 1GiB" "$work/error" || fail "$(cat "$work/error")"

# Killed: the limit is removed all the same.
sh "$limit_job" 1GiB sleep 1000 2>"$work/killed.err" &
job=$!
set_by_it() { [ -n "$(job_of killed)" ] && [ -n "$(column "$(job_of killed)" 1)" ]; }
eventually set_by_it
pkill -TERM -P "$job" sleep || fail "no sleep"
kill -TERM "$job" 2>/dev/null || true
wait "$job" 2>/dev/null || true
eventually is limits "#kind name uid gpu limit_bytes held_bytes given_bytes processes set_by"

# A label that is none is as if there was none; those of programs are in jobs.
start_program good env RMM_JOB=a.b-c_9
start_program bad env RMM_JOB='a b'
start_program long env RMM_JOB="$(printf 'x%.0s' $(seq 64))"
for name in good bad long; do
    gpu "$name" 0
done
tell good alloc 0 1000
labels() { [ "$(awk '$1 == "label" && $4 == "live" { print $2 }' "$mnt/jobs")" = a.b-c_9 ]; }
eventually labels
stop_daemon
