#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Limits of the kernel's controller dmem, in a made-up tree of control groups: a pool takes no more
# of an AMD GPU than the groups of its program leave, and `dmem` shows them.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
: "${RMM_HIP_STANDIN:?the stand-in}" "${RMM_REPLAY:?rmm-replay}"
if [ "${RMMFS_TEST_INSIDE:-}" != mounts ]; then
    [ "$(id -u)" = 0 ] || skip "needs root, for a mount namespace"
    cgroups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    group=$cgroups/rmmfs-test.$$
    [ -n "$cgroups" ] && mkdir -p "$group/job" 2>/dev/null || skip "no cgroup of version 2 can be made here"
    status=0
    (
        echo "$BASHPID" >"$group/job/cgroup.procs"
        RMMFS_TEST_INSIDE=mounts exec unshare --mount --propagation private "$test_path" "/${group##*/}"
    ) || status=$?
    until_gone() { rmdir "$group/job" "$group" 2>/dev/null; }
    eventually until_gone
    exit $status
fi
group=$(awk -F: '$1 == 0 { print $3 }' /proc/self/cgroup)
group=${group%/job}
made=$work/cgroup
mkdir -p "$made$group/job"
mount --bind "$made" /sys/fs/cgroup
export RMM_DRIVER=hip LD_LIBRARY_PATH=${RMM_HIP_STANDIN%/*}
gpu=drm/0000:43:00.0
MiB=$((1 << 20))

# limit FOLDER MAX LOW CURRENT: of a group, beside another GPU and another kind of memory.
limit() {
    local name value=("$2" "$3" "$4")
    for name in max low current; do
        printf 'drm/0000:44:00.0/vram0 1\n%s/stolen 2\n%s/vram0 %s\n' $gpu $gpu "${value[0]}" >"$made$1/dmem.$name"
        value=("${value[@]:1}")
    done
}
printf 'Thread,Time,Action,Pointer,Size,Stream\n1,00:00:00.000000,allocate,0x10,5000,0\n' >"$work/log.csv"
# pool_of_all: the MiB of a pool of all that is free.
pool_of_all() {
    "$RMM_REPLAY" --json --resource pool:100% "$work/log.csv" >"$work/out" 2>&1 || fail "rmm-replay: $(cat "$work/out")"
    echo $(($(grep -o '"reserved_bytes": [0-9]*' "$work/out" | tr -dc 0-9) / MiB))
}
is() { [ "$2" = "$3" ] || fail "$1: $2, not $3"; }

free=$(pool_of_all)
[ "$free" -gt 80000 ] || fail "without the controller: $free MiB of 80 GiB"
limit "$group/job" max 0 0
is "no limit" "$(pool_of_all)" "$free"
limit "$group/job" $((1000 * MiB)) 0 $((200 * MiB))
is "the group's" "$(pool_of_all)" 800
limit "$group" $((700 * MiB)) 0 $((300 * MiB))
is "that of the group above" "$(pool_of_all)" 400
limit "$group" $((100 * MiB)) 0 $((300 * MiB)) # lowered below what is in use
is "nothing is left" "$(pool_of_all)" 2        # it grows by what is needed, which the real driver refuses

start_daemon
header="#gpu current_bytes low_bytes max_bytes processes cgroup"
expect dmem "$header"
limit "$group" $((700 * MiB)) $((50 * MiB)) $((300 * MiB))
start_program a
gpu a 0
tell a alloc 0 40
eventually_expect() { [ "$(cat "$mnt/dmem")" = "$1" ]; }
eventually eventually_expect "$header
gpu0 $((300 * MiB)) $((50 * MiB)) $((700 * MiB)) 1 $group
gpu0 $((200 * MiB)) 0 $((1000 * MiB)) 1 $group/job"
limit "$group" max 0 0
expect dmem "$header
gpu0 $((200 * MiB)) 0 $((1000 * MiB)) 1 $group/job"
stop_daemon
