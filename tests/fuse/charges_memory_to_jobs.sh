#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# /rmm/jobs: what Slurm jobs and steps, pods, containers, units and users hold, their peaks, and
# what is left of them after the end. The groups are real ones, made as the managers make them.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
enter_mount_namespace

unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
top=rmmfs-test.$$
[ -n "$unified" ] && mkdir "$unified/$top" 2>/dev/null || skip "no cgroup of version 2 can be made here"
groups+=("$unified/$top")
other=65534
id=$(printf 'ab%.0s' $(seq 32))
pod=4a163a05-439d-484b-8e53-2968bc15824f

# What kubelet makes before the containers of a pod start.
mount -t tmpfs tmpfs /var/log
mkdir -p "/var/log/pods/team-a_train-0_$pod/main" "/var/log/pods/kube-system_etcd_${pod//4/5}" /var/log/pods/other

cat >"$work/enter" <<'END'
#!/bin/sh
# enter GROUP... -- COMMAND...: runs it in these
while [ "$1" != -- ]; do
    mkdir -p "$1" && echo $$ >"$1/cgroup.procs" || exit 1
    shift
done
shift
exec "$@"
END
chmod 755 "$work/enter"
as_other=(setpriv --reuid "$other" --regid "$other" --clear-groups --)

row() { # KIND NAME UID: state, current, reserved, host, peak, oom, processes
    awk -v kind="$1" -v name="$2" -v uid="$3" \
        '$1 == kind && $2 == name && $3 == uid { print $4, $5, $6, $7, $8, $10, $11 }' "$mnt/jobs"
}
is_row() { [ "$(row "$1" "$2" "$3")" = "$4" ]; }
# Where reading the node takes long, readers get figures that are some milliseconds old.
shows() { # KIND NAME UID TEXT
    eventually is_row "$@"
}

chmod 1777 "$run"
list_gpus 2
start_daemon
slurm=$unified/$top/system.slice/slurmstepd.scope
start_program first "$work/enter" "$slurm/job_7/step_0/user/task_0" --
start_program second "$work/enter" "$slurm/job_7/step_1/user/task_0" --
start_program batch "$work/enter" "$slurm/job_8/step_batch/user/task_0" --
start_program pod "$work/enter" "$unified/$top/kubepods/burstable/pod$pod/$id" --
start_program unit "$work/enter" "$unified/$top/system.slice/rmm-test.service" --
# A user who may make groups takes another's name.
start_program forger "$work/enter" "$slurm/job_7/step_0/user/task_1" -- "${as_other[@]}"
for name in first second batch pod unit forger; do
    gpu "$name" 0
done
gpu first 1
tell first location 32 host - 0 host
tell first alloc 0 1000
tell first alloc 1 200
tell first alloc 32 30
tell second alloc 0 5000
tell second reserve 0 8000
tell second oom 0
tell batch alloc 0 70
tell pod alloc 0 600
tell unit alloc 0 900
tell forger alloc 0 12345
eventually is daemon/segments 6

shows slurm_job 7 0 "live 6200 8000 30 6200 1 2"
shows slurm_step 7.0 0 "live 1200 0 30 1200 0 1"
shows slurm_step 7.1 0 "live 5000 8000 0 5000 1 1"
shows slurm_job 8 0 "live 70 0 0 70 0 1"
shows slurm_step 8.batch 0 "live 70 0 0 70 0 1"
shows pod "$pod" 0 "live 600 0 0 600 0 1"
shows container "$id" 0 "live 600 0 0 600 0 1"
shows unit rmm-test.service 0 "live 900 0 0 900 0 1"
shows user 0 0 "live 7770 8000 30 7770 1 5"
shows slurm_job 7 "$other" "live 12345 0 0 12345 0 1"
shows user "$other" "$other" "live 12345 0 0 12345 0 1"
[ "$(awk '$1 == "unit" { print $2 }' "$mnt/jobs")" = rmm-test.service ] || fail "units: $(cat "$mnt/jobs")"
grep -q "$id /$top/kubepods/burstable/pod$pod/$id" "$mnt/processes" || fail "processes: $(cat "$mnt/processes")"

# The same in metrics, in 12 series for a program in a pod, and in json.
tell pod resource 1 cuda cuda 0 0
tell pod resource 2 pool pool 0 1
tell pod hole 2 1000 600
has() { # FILE TEXT
    eventually grep -qF "$2" "$mnt/$1"
}
has metrics "slurm_job=\"7\",slurm_step=\"0\"} 1"
eventually grep -qF ",pod_uid=\"$pod\",namespace=\"team-a\",pod=\"train-0\",container=\"$id\"} 1" "$mnt/metrics"
[ "$(awk '$1 == "pod" { print $2, $13 }' "$mnt/jobs")" = "$pod team-a/train-0" ] || fail "pods: $(cat "$mnt/jobs")"
has metrics ",unit=\"rmm-test.service\"} 1"
has metrics "rmm_job_current_bytes{kind=\"slurm_step\",name=\"7.1\",uid=\"0\"} 5000"
has metrics "rmm_job_peak_bytes{kind=\"slurm_job\",name=\"7\",uid=\"$other\"} 12345"
grep -qE " slurm 7\.1 +rmmfs_program$" "$mnt/top" || fail "top: $(cat "$mnt/top")"
grep -q ">pod ${pod%%-*}</span>" "$mnt/index.html" || fail "the page has no pod at its program"
grep -q '<tr><td class="t">pod</td><td class="t" title="team-a/train-0">team-a/train-0</td>' "$mnt/index.html" ||
    fail "the page has no pod among the jobs"
grep -q '<tr><td class="t">slurm_job</td><td class="t">7</td>' "$mnt/index.html" || fail "the page has no Slurm job"
has metrics.all "rmm_job_reserved_bytes{kind=\"slurm_job\",name=\"7\",uid=\"0\"} 8000"
has metrics.all "rmm_job_host_peak_bytes{kind=\"slurm_job\",name=\"7\",uid=\"0\"} 30"
series=$(grep -cE "pid=\"${program_pid[pod]}\"|name=\"($pod|$id)\"" "$mnt/metrics")
[ "$series" = 12 ] || fail "$series series: $(grep "pid=\"${program_pid[pod]}\"" "$mnt/metrics")"
python3 - "$mnt/json" "${program_pid[first]}" "${program_pid[pod]}" "$pod" "$id" <<'END' || fail "json"
import json, sys
node = json.load(open(sys.argv[1]))
first, pod = (next(one for one in node["processes"] if one["pid"] == pid) for pid in sys.argv[2:4])
keys = "slurm_job", "slurm_step", "pod_uid", "pod", "container", "unit"
assert [first[key] for key in keys] == ["7", "0", None, None, None, None], first
assert [pod[key] for key in keys] == [None, None, sys.argv[4], "team-a/train-0", sys.argv[5], None], pod
job = next(one for one in node["jobs"] if (one["kind"], one["name"], one["uid"]) == ("slurm_job", "7", 0))
assert job == {"kind": "slurm_job", "name": "7", "pod": None, "uid": 0, "state": "live", "ended_ns_ago": None, "processes": 2,
               "current_bytes": 6200, "reserved_bytes": 8000, "host_bytes": 30, "peak_bytes": 6200,
               "host_peak_bytes": 30, "oom_count": 1}, job
END

# The peak stays when the memory goes, and when the job ends, to the byte of its last process.
tell second free 0 5000
tell first free 0 1000
shows slurm_job 7 0 "live 200 8000 30 6200 1 2"
tell batch alloc 0 30
tell batch free 0 100
end_program batch
shows slurm_job 8 0 "ended 0 0 0 100 0 0"
shows slurm_step 8.batch 0 "ended 0 0 0 100 0 0"
end_program first
shows slurm_step 7.0 0 "ended 0 0 0 1200 0 0"
shows slurm_job 7 0 "live 0 8000 0 6200 1 1"
kill_program second
shows slurm_job 7 0 "ended 0 0 0 6200 0 0"
has metrics 'rmm_job_peak_bytes{kind="slurm_job",name="7",uid="0"} 6200'
! grep -q 'rmm_job_current_bytes{kind="slurm_job",name="7",uid="0"}' "$mnt/metrics" || fail "it holds something still"
shows slurm_job 7 "$other" "live 12345 0 0 12345 0 1"
[ "$(awk '$1 == "slurm_job" && $2 == 7 && $3 == 0 { print ($12 >= 0 && $12 < 600) }' "$mnt/jobs")" = 1 ] ||
    fail "ended_seconds: $(cat "$mnt/jobs")"

# One that begins again under its name goes on.
start_program again "$work/enter" "$slurm/job_7/step_2/user/task_0" --
gpu again 0
tell again alloc 0 40
shows slurm_job 7 0 "live 40 0 0 6200 0 1"

# A process that goes to another group goes to another job.
mkdir -p "$slurm/job_9/step_0"
echo "${program_pid[again]}" >"$slurm/job_9/step_0/cgroup.procs"
shows slurm_job 9 0 "live 40 0 0 40 0 1"
shows slurm_job 7 0 "ended 0 0 0 6200 0 0"

# Version 1 beside it, as on RHEL 8: slurmd's service in the one, the job in the other.
memory=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts)
if [ -n "$memory" ] && mkdir "$memory/$top"; then
    groups+=("$memory/$top")
    for job in 11 12; do
        start_program "job_$job" "$work/enter" "$unified/$top/system.slice/slurmd.service" \
            "$memory/$top/slurm/uid_0/job_$job/step_0/task_0" --
        gpu "job_$job" 0
        tell "job_$job" alloc 0 "$job"
        shows slurm_job "$job" 0 "live $job 0 0 $job 0 1"
        grep -q " /$top/slurm/uid_0/job_$job/step_0/task_0$" "$mnt/cgroups" ||
            fail "cgroups: $(cat "$mnt/cgroups")"
    done
fi
stop_daemon

# A daemon that is killed after the program has become another one finds the ended segment first.
start_daemon
tell unit exec
gpu unit 0
tell unit alloc 0 800
unit_holds() { [[ $(row unit rmm-test.service 0) == "live $1 "*" 1" ]]; }
eventually unit_holds 800
kill_daemon
start_daemon
eventually unit_holds 800
kill_daemon

# With hidepid a user sees his own jobs, and none of those of others.
start_daemon -o hidepid=invisible
"${as_other[@]}" cat "$mnt/jobs" >"$work/seen"
[ "$(awk 'NR > 1 { print $3 }' "$work/seen" | sort -u)" = "$other" ] || fail "hidden: $(cat "$work/seen")"
grep -q "^slurm_job 7 $other live 12345 " "$work/seen" || fail "not his own: $(cat "$work/seen")"
eventually unit_holds 800
stop_daemon
