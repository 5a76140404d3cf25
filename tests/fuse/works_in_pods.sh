#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The DaemonSet of packaging/kubernetes in real pods of podman (kube play), with an image of this build:
# pods of two users with read-only roots and 64 MB of shared memory, a container in a user namespace, one
# that gets the folder from the CDI file; a killed daemon, one that hangs, an upgrade under open files, and
# a daemon that does not see the machine's pids. The machine's /run is a folder of the test's.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
[ "$(id -u)" = 0 ] || skip "needs root, for containers"
enter_mount_namespace
unset RMM_RUNTIME_DIR
source=${test_path%/tests/*}
host=$work/host
mkdir "$host"
mount -t tmpfs -o mode=755 host "$host"
mount --make-rshared "$host"

# Storage of its own, and limits that this machine allows. kube play of podman 4 does not know hostPID.
runtime=
configure() { # RUNTIME
    cat >"$work/containers.conf" <<END
[containers]
default_ulimits = ["nofile=$(ulimit -Sn):$(ulimit -Sn)", "nproc=10000:10000"]
pidns = "host"
netns = "none"
log_driver = "k8s-file"
[engine]
runtime = "$1"
events_logger = "none"
cgroup_manager = "cgroupfs"
END
    printf '[storage]\ndriver = "vfs"\ngraphroot = "%s"\nrunroot = "%s"\n' "$work/images" "$work/containers" \
        >"$work/storage.conf"
}
export CONTAINERS_CONF=$work/containers.conf CONTAINERS_STORAGE_CONF=$work/storage.conf
finish_pods() {
    local status=$?
    set +e
    podman pod rm -f -a >/dev/null 2>&1
    podman rm -f -a >/dev/null 2>&1
    umount -l /etc "$work/etc" "$work/images" "$work/images/vfs" 2>/dev/null
    umount -R -l "$host" 2>/dev/null
    finish $status
}
trap finish_pods EXIT

# The image, and one with the program of the tests and a shell, for its users.
configure crun
"$source/packaging/container/build" "${RMMFS_BUILD:-$source/build/dev}" localhost/rmm-node >"$work/out" 2>&1 ||
    fail "no image: $(cat "$work/out")"
"$source/packaging/container/build" --with "$RMMFS_PROGRAM" --with "$(command -v busybox)" \
    "${RMMFS_BUILD:-$source/build/dev}" localhost/program >"$work/out" 2>&1 || fail "no image: $(cat "$work/out")"
podman image ls --format '{{.Repository}} {{.Size}}'

# crun refuses a hybrid hierarchy of control groups, runc some other machines.
for runtime in crun runc; do
    configure $runtime
    podman run --rm localhost/rmm-node --version >"$work/out" 2>&1 && break
    runtime=
done
[ -n "$runtime" ] || skip "no container runs here: $(tail -n 1 "$work/out")"
echo "with $runtime"

# pod_of NAME: the pod that the DaemonSet makes, with the machine's /run in the test's folder.
port=$((20000 + $$ % 10000))
pod_of() {
    python3 - "$source/packaging/kubernetes/daemonset.yaml" "$host" "$port" "$1" <<'END'
import sys, yaml
path, host, port, name = sys.argv[1:]
spec = yaml.safe_load(open(path))["spec"]["template"]["spec"]
spec["hostNetwork"] = True
for volume in spec["volumes"]:
    assert volume["hostPath"]["path"].startswith("/run")
    volume["hostPath"]["path"] = host + volume["hostPath"]["path"].removeprefix("/run")
rmmfs, exporter = spec["containers"]
for container in spec["containers"]:
    container["image"] = "localhost/rmm-node"
    for probe in "startupProbe", "livenessProbe": # need systemd: the test runs them
        container.pop(probe, None)
exporter.pop("ports")
exporter["command"][-1] = "127.0.0.1:" + port
print(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}))
END
}
probe() { # the liveness probe of the DaemonSet
    local command
    command=$(python3 -c 'import sys, yaml
spec = yaml.safe_load(open(sys.argv[1]))["spec"]["template"]["spec"]
print(*spec["containers"][0]["livenessProbe"]["exec"]["command"])' "$source/packaging/kubernetes/daemonset.yaml")
    # shellcheck disable=SC2086  (words)
    timeout 60 podman exec "$1-rmmfs" $command >"$work/probe" 2>&1
}
play() { # NAME
    pod_of "$1" >"$work/$1.yaml"
    podman kube play "$work/$1.yaml" >"$work/out" 2>&1 || fail "kube play: $(cat "$work/out")"
    eventually probe "$1"
}
tree=$host/rmm-node/rmm
in_tree() { [ "$(cat "$tree/$1" 2>/dev/null)" = "$2" ]; }
pid_of() { podman inspect --format '{{.State.Pid}}' "$1"; }

play first
podman logs first-rmmfs >"$log" 2>&1
grep -q "rmm .*size=524288k" /proc/self/mountinfo || fail "no bounded /run/rmm on the machine: $(cat "$log")"
! grep -q '\[warn\]' "$log" || fail "the daemon warns"

# Pods of two users.
gpu_pod() { # NAME UID BYTES
    cat >"$work/$1.yaml" <<END
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  hostNetwork: true
  containers:
  - name: main
    image: localhost/program
    command: [/usr/bin/busybox, sh, -c]
    args: ["(echo location 0 GPU-00000000 0000:00:00.0 1000000 Test; echo alloc 0 $3; sleep 100000) | rmmfs_program"]
    securityContext: {runAsUser: $2, runAsGroup: $2, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
    volumeMounts:
    - {name: rmm, mountPath: /run/rmm}
  volumes:
  - name: rmm
    hostPath: {path: $host/rmm, type: DirectoryOrCreate}
END
    podman kube play "$work/$1.yaml" >"$work/out" 2>&1 || fail "kube play: $(cat "$work/out")"
}
gpu_pod alice 1000 7
gpu_pod bob 2000 70
eventually in_tree gpu0/current_bytes 77
uids() { awk '!/^#/ { print $2 }' "$tree/gpu0/processes" | sort -n | xargs; }
[ "$(uids)" = "1000 2000" ] || fail "users: $(cat "$tree/gpu0/processes")"
[ "$(podman exec alice-main /usr/bin/busybox df -k /dev/shm | awk 'END { print $2 }')" -le 65536 ] || fail "shared memory is not 64 MB"
alice=$(awk '$2 == 1000 { print $1 }' "$tree/gpu0/processes")
podman exec first-rmmfs /usr/bin/rmmfs --check "$alice" /run/rmm-node/rmm >"$work/out" 2>&1 ||
    fail "--check $alice: $(cat "$work/out")"
grep -q "^ok      process $alice has the segment /run/rmm/1000\..*, in another mount namespace" "$work/out" || fail "$(cat "$work/out")"

# A user namespace; and the folder by CDI.
words="(echo location 0 GPU-00000000 0000:00:00.0 1000000 Test; echo alloc 0 700; sleep 100000) | rmmfs_program"
podman run -d --name mapped --uidmap 0:100000:65536 --volume "$host/rmm:/run/rmm" --entrypoint /usr/bin/busybox \
    localhost/program sh -c "$words" >"$work/out" 2>&1 || fail "user namespace: $(cat "$work/out")"
eventually in_tree gpu0/current_bytes 777
[ "$(uids)" = "1000 2000 100000" ] || fail "users: $(cat "$tree/gpu0/processes")"
mkdir "$work/etc"
mount -t tmpfs tmpfs "$work/etc"
mkdir "$work/etc/upper" "$work/etc/work"
mount -t overlay -o "lowerdir=/etc,upperdir=$work/etc/upper,workdir=$work/etc/work" overlay /etc
mkdir -p /etc/cdi
sed "s|\"/run/rmm\"|\"$host/rmm\"|" "$source/packaging/kubernetes/cdi.json" | sed "s|\"containerPath\": .*|\"containerPath\": \"/run/rmm\",|" \
    >/etc/cdi/rmm.json
podman run -d --name by_cdi --device rmm-c.io/segments=all --entrypoint /usr/bin/busybox \
    localhost/program sh -c "${words/alloc 0 700/alloc 0 7000}" >"$work/out" 2>&1 || fail "CDI: $(cat "$work/out")"
eventually in_tree gpu0/current_bytes 7777

# The exporter in the pod.
up() { [ "$(curl -s "http://127.0.0.1:$port/metrics" | awk '$1 == "rmm_up" { print $2 }')" = "$1" ]; }
eventually up 1

# Killed: the pod starts it again over what it left, with the same figures, also for the exporter.
kill -KILL "$(pid_of first-rmmfs)"
eventually probe first
eventually in_tree gpu0/current_bytes 7777
eventually up 1

# One that hangs: the probe fails in its time, and kubelet's kill then helps.
kill -STOP "$(pid_of first-rmmfs)"
! probe first || fail "the probe of a daemon that hangs succeeds"
grep -q "does not answer within 3 s" "$work/probe" || fail "the probe: $(cat "$work/probe")"
kill -KILL "$(pid_of first-rmmfs)"
eventually probe first
eventually in_tree gpu0/current_bytes 7777

# An upgrade: an open file fails at once, what is opened then works; totals are kept.
exec 9<"$tree/gpu0/current_bytes"
podman pod stop --time 20 first >"$work/out" 2>&1 || fail "the pod does not end: $(cat "$work/out")"
left=$(ls "$tree" 2>&1) && [ -z "$left" ] || fail "a pod that ended leaves its mount: $left; $(grep rmm-node /proc/self/mountinfo; podman logs first-rmmfs 2>&1 | tail -n 5)"
! timeout 20 cat <&9 >"$work/out" 2>&1 || fail "a file of a daemon that is gone can be read"
exec 9<&-
podman pod rm -f first bob >/dev/null 2>&1 || fail "the pods are not removed"
play second
eventually in_tree gpu0/current_bytes 7707
in_tree gpu0/total_bytes 7777 || fail "totals are lost: $(cat "$tree/gpu0/total_bytes")"

# Without the machine's pids the daemon mounts nothing over a folder that it was given, and says why.
mkdir "$host/apart"
mount -t tmpfs apart "$host/apart"
podman run -d --name apart --pid private --privileged --volume "$host/apart:/run" localhost/rmm-node \
    -f -o mkdir /run/tree >"$work/out" 2>&1 || fail "$(cat "$work/out")"
said() { podman logs apart 2>&1 | grep -q "cannot know who else uses /run/rmm"; }
eventually said
