#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a command with a limit on what it and all programs that it starts take together from each
# GPU: limit_job.sh BYTES COMMAND... BYTES is 8GiB, 500MiB, ... Above it their allocations fail with
# out of memory. The programs need not be changed, and the command may be a launcher: bash -c,
# torchrun, mpirun, or srun for tasks on this node. They carry the label RMM_JOB, for which the
# limit is set in the tree of rmmfs, mounted at $RMM_MOUNT or /rmm.
rmm=${RMM_MOUNT:-/rmm}
[ $# -ge 2 ] || { echo "usage: limit_job.sh BYTES COMMAND..." >&2; exit 2; }
[ -e "$rmm/limits" ] ||
    { echo "limit_job.sh: $rmm shows no GPU memory: mount it with rmmfs $rmm" >&2; exit 2; }
[ -z "$RMM_JOB" ] || # another label would take the programs out of that job's limit
    { echo "limit_job.sh: this is in job $RMM_JOB: echo 'label $RMM_JOB all $1' > $rmm/limits" >&2; exit 2; }
limit=$1
RMM_JOB=limit_job.$$
export RMM_JOB
shift
end() {
    trap '' HUP INT TERM # another one would leave the limit there
    awk -v job="$RMM_JOB" '$1 == "label" && $2 == job { found = 1; peak = $8 }
        END { print "limit_job.sh: " (found ? "at most " peak " bytes were in use" : \
              "no program of the command was in the tree, so nothing was limited") }' "$rmm/jobs" >&2
    echo "label $RMM_JOB all none" >"$rmm/limits"
}
echo "label $RMM_JOB all $limit" >"$rmm/limits" ||
    { echo "limit_job.sh: cannot set $limit: the last lines of rmmfs's log say why" >&2; exit 2; }
trap 'end; exit 143' HUP INT TERM
echo "limit_job.sh: label $RMM_JOB: at most $limit on each GPU" >&2
"$@"
status=$?
end
exit $status
