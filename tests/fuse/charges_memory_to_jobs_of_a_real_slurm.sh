#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A real Slurm: two jobs of two users, one with two steps. /rmm/jobs has what each holds, and the
# TaskEpilog keeps the peak of a job in its Comment.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
source=${test_path%/tests/fuse/*}
srun=$(command -v srun) || skip "no Slurm (Debian: slurmctld slurmd slurm-client munge)"
prefix=${srun%/bin/srun}
libraries=$prefix/lib/x86_64-linux-gnu
PATH=$PATH:$prefix/sbin:/usr/sbin
export LD_LIBRARY_PATH=$libraries:$libraries/slurm-wlm

# Debian's names of the programs, and those that an installed package links to them.
program() {
    command -v "$1-wlm" || command -v "$1" || skip "no $1 (Debian: $1)"
}
controller=$(program slurmctld) || { echo "$controller"; exit 77; }
manager=$(program slurmd) || { echo "$manager"; exit 77; }
stepd=$(PATH=$prefix/sbin:$PATH program slurmstepd) || { echo "$stepd"; exit 77; }

other=65534
as_other=(setpriv --reuid "$other" --regid "$other" --clear-groups --)
node=rmm$$
read -r controller_port manager_port < <(python3 -c '
import socket
sockets = [socket.socket() for _ in range(2)]
for one in sockets:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))')

export SLURM_CONF=$work/slurm.conf
cat >"$SLURM_CONF" <<END
ClusterName=$node
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CredType=cred/munge
PluginDir=$libraries/slurm-wlm
SlurmctldPort=$controller_port
SlurmdPort=$manager_port
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
TaskEpilog=$work/task_epilog
NodeName=$node NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$manager_port CPUs=8
PartitionName=all Nodes=$node Default=YES MaxTime=INFINITE State=UP
END
printf 'CgroupPlugin=autodetect\nIgnoreSystemd=yes\nConstrainRAMSpace=yes\n' >"$work/cgroup.conf"
cat >"$work/task_epilog" <<END
#!/bin/sh
export RMM_TREE=$mnt
exec $source/packaging/slurm/rmm-task-epilog
END
chmod 755 "$work/task_epilog"

slurm_ends() {
    local status=$? group
    for group in /sys/fs/cgroup{,/*}/{,system.slice/}{"slurm_$node","${node}_slurmstepd.scope"}; do
        [ ! -d "$group" ] || groups+=("$group")
    done
    for group in "${groups[@]}"; do
        find "$group" -name cgroup.procs -exec cat {} + | xargs -r kill -KILL 2>/dev/null || true
    done
    finish "$status"
}
trap slurm_ends EXIT

dd if=/dev/urandom of="$work/munge.key" bs=1024 count=1 status=none
chmod 400 "$work/munge.key"
munged --force --foreground --key-file="$work/munge.key" --socket="$work/munge.socket" \
    --pid-file="$work/munged.pid" --log-file="$work/munged.log" --seed-file="$work/munge.seed" \
    >"$work/munged.out" 2>&1 &
eventually test -S "$work/munge.socket"
mkdir "$work/state" "$work/spool"
"$controller" -D -f "$SLURM_CONF" >"$work/slurmctld.log" 2>&1 &
"$manager" -D -N "$node" -d "$stepd" -f "$SLURM_CONF" >"$work/slurmd.log" 2>&1 &
node_is_idle() { [ "$(sinfo -h -o %t 2>/dev/null)" = idle ]; }
eventually node_is_idle

chmod 1777 "$run"
list_gpus 1
start_daemon
allocate() { # COMMAND...: prints the number of a new job
    "$@" salloc --no-shell -n 4 2>&1 | sed -n 's/.*Granted job allocation \([0-9]*\)$/\1/p'
}
row() { # KIND NAME UID: state, current, peak, processes
    awk -v kind="$1" -v name="$2" -v uid="$3" '$1 == kind && $2 == name && $3 == uid { print $4, $5, $8, $11 }' "$mnt/jobs"
}
is_row() { [ "$(row "$1" "$2" "$3")" = "$4" ]; }
shows() { # KIND NAME UID TEXT
    eventually is_row "$@"
}

mine=$(allocate env)
his=$(allocate "${as_other[@]}")
[ -n "$mine" ] && [ -n "$his" ] || fail "no jobs: $(cat "$work/slurmctld.log")"
for step in first second; do
    start_program $step srun --jobid="$mine" -n 1 --exact
    gpu $step 0
done
start_program his "${as_other[@]}" srun --jobid="$his" -n 1
gpu his 0
tell first alloc 0 1000
tell second alloc 0 5000
tell his alloc 0 70
shows slurm_job "$mine" 0 "live 6000 6000 2"
shows slurm_step "$mine.0" 0 "live 1000 1000 1"
shows slurm_step "$mine.1" 0 "live 5000 5000 1"
shows slurm_job "$his" "$other" "live 70 70 1"
shows slurm_step "$his.0" "$other" "live 70 70 1"

comment_of() { scontrol show job "$1" | sed -n 's/ *$//; s/^ *Comment=//p'; }
comment_is() { [ "$(comment_of "$1")" = "$2" ]; }
scontrol update "JobId=$his" "Comment=seen by many"
tell second free 0 5000
end_program second
eventually comment_is "$mine" "rmm_peak_bytes[$node]=6000"
tell first alloc 0 9000
end_program first
eventually comment_is "$mine" "rmm_peak_bytes[$node]=10000" # its entry is not there twice
end_program his
eventually comment_is "$his" "seen by many rmm_peak_bytes[$node]=70"
shows slurm_step "$mine.0" 0 "ended 0 10000 0"

# A limit of a job is for steps that start later; one of a label for all that srun starts here.
limit_of() { # KIND NAME: held_bytes processes
    awk -v kind="$1" -v name="$2" '$1 == kind && $2 == name { print $6, $8 }' "$mnt/limits"
}
reaches() { # KIND NAME MIB PROGRAMS: within 2 %
    local held programs
    read -r held programs <<<"$(limit_of "$1" "$2")"
    [ -n "$held" ] || return 1
    [ "$held" -le $(($3 << 20)) ] || fail "$1 $2 holds $held"
    [ "$held" -ge $((($3 << 20) * 98 / 100)) ] && [ "$programs" = "$4" ]
}
echo "slurm_job $mine all 100MiB" >"$mnt/limits"
for step in third fourth; do
    start_program $step env RMM_DRIVER=sim srun --jobid="$mine" -n 1 --exact
    tell $step pool 0
done
for step in third fourth; do
    tell $step fill 0 2000000
done
eventually reaches slurm_job "$mine" 100 2
end_program third
tell fourth fill 0 2000000
eventually reaches slurm_job "$mine" 100 1
end_program fourth
mkfifo "$work/go"
cat >"$work/task" <<END
#!/bin/sh
{ echo "pool 0"; echo "fill 0 2000000"; cat "$work/go"; } | $RMMFS_PROGRAM
END
chmod 755 "$work/task"
RMM_DRIVER=sim RMM_MOUNT=$mnt sh "$source/examples/limit_job.sh" 60MiB srun --jobid="$mine" -n 3 "$work/task" \
    </dev/null >"$work/tasks.out" 2>&1 &
tasks=$!
label_reaches() { reaches label "limit_job.$tasks" 60 3; }
eventually label_reaches
: >"$work/go"
wait "$tasks" || fail "srun under limit_job.sh: $(cat "$work/tasks.out")"
echo "slurm_job $mine all none" >"$mnt/limits"

# A step without GPU memory changes nothing; without a daemon its job goes on, and is told.
"${as_other[@]}" srun --jobid="$his" -n 1 true
stop_daemon
"${as_other[@]}" srun --jobid="$his" -n 1 sh -c 'echo did what it should' >"$work/out" 2>&1 || fail "a job failed: $(cat "$work/out")"
grep -q "did what it should" "$work/out" || fail "a job said: $(cat "$work/out")"
scancel "$mine" "$his"
eventually node_is_idle
