#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs an unchanged program with a limit on what it takes from each GPU: limit_job.sh BYTES COMMAND...
# BYTES is 8GiB, 500MiB, ... Above it the program's allocations fail with out of memory. It applies
# from the moment when the program appears in the tree, which is mounted at $RMM_MOUNT or /rmm.
rmm=${RMM_MOUNT:-/rmm}
[ $# -ge 2 ] || { echo "usage: limit_job.sh BYTES COMMAND..." >&2; exit 2; }
[ -e "$rmm/version" ] ||
    { echo "limit_job.sh: $rmm shows no GPU memory: mount it with rmmfs $rmm" >&2; exit 2; }
limit=$1
shift
"$@" &
job=$!
files=$rmm/proc/$job
while kill -0 "$job" 2>/dev/null && [ ! -e "$files" ]; do
    sleep 0.1 # the program has not used a GPU so far
done
for file in "$files"/gpu*/limit_bytes; do
    [ -w "$file" ] && echo "$limit" >"$file" && echo "${file%/*}: at most $limit" >&2
done
wait "$job"
