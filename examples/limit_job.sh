#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs an unchanged program with a limit on what it takes from each GPU: limit_job.sh BYTES COMMAND...
# BYTES is 8GiB, 500MiB, ... Above it the program's allocations fail with out of memory. It applies
# from the moment when the program appears in the tree, which is mounted at $RMM_MOUNT or /rmm.
limit=$1
shift
"$@" &
job=$!
files=${RMM_MOUNT:-/rmm}/proc/$job
while kill -0 "$job" 2>/dev/null && [ ! -e "$files" ]; do
    sleep 0.1 # the program has not used a GPU so far
done
for file in "$files"/gpu*/limit_bytes; do
    [ -w "$file" ] && echo "$limit" >"$file" && echo "${file%/*}: at most $limit" >&2
done
wait "$job"
