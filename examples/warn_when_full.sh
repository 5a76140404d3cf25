#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Names the GPUs that programs hold more than PERCENT of, and who holds most of them; for cron:
# warn_when_full.sh [PERCENT [MOUNT]]. Exit status 1 if there is one, 2 without rmmfs.
percent=${1:-90} rmm=${2:-/rmm} status=0
[ -e "$rmm/version" ] ||
    { echo "warn_when_full.sh: $rmm shows no GPU memory: mount it with rmmfs $rmm" >&2; exit 2; }
for gpu in "$rmm"/gpu*; do
    [ -d "$gpu" ] || continue # no program has used a GPU
    read -r capacity <"$gpu/capacity_bytes" && read -r reserved <"$gpu/reserved_bytes" || continue
    [ "$capacity" -gt 0 ] && [ $((reserved / (capacity / 100))) -ge "$percent" ] || continue
    echo "${gpu##*/}: $((reserved >> 20)) of $((capacity >> 20)) MiB are held"
    grep -v '^#' "$gpu/processes" | sort -k 6 -n -r | head -n 3 |
        while read -r pid uid state current peak held command; do
            echo "  $((held >> 20)) MiB by $command (pid $pid), $((current >> 20)) MiB in use"
        done
    status=1
done
exit $status
