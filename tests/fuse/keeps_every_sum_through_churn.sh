#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# While programs, jobs and daemons come and go, every sum is right each time that all is still: churn.py.
# RMMFS_CHURN_SECONDS=3600 is a long run, RMMFS_CHURN_SEED repeats one.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
enter_mount_namespace
unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
group=$unified/rmmfs-test.$$
[ -n "$unified" ] && mkdir "$group" 2>/dev/null || skip "no cgroup of version 2 can be made here"
groups+=("$group")
chmod 1777 "$run"
list_gpus 4
export CHURN_MOUNT=$mnt CHURN_LOG=$log CHURN_GROUPS=$group
seed=${RMMFS_CHURN_SEED:-$$}
PYTHONDONTWRITEBYTECODE=1 python3 "${test_path%/*}/churn.py" "${RMMFS_CHURN_SECONDS:-5}" "$seed" ||
    fail "RMMFS_CHURN_SEED=$seed repeats it"
! is_mounted || fail "still mounted after the end of rmmfs"
