#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The GPUs and the ten largest processes, again and again: dashboard.sh [MOUNT [SECONDS]]
rmm=${1:-/rmm}
while [ -e "$rmm/version" ]; do
    printf '\033[H\033[J%-8s %12s %12s %12s %6s\n' GPU CURRENT_MIB PEAK_MIB RESERVED_MIB FRAG
    for gpu in "$rmm"/gpu*; do
        [ -d "$gpu" ] || continue # no program has used a GPU
        read -r current <"$gpu/current_bytes" && read -r peak <"$gpu/peak_bytes" &&
            read -r reserved <"$gpu/reserved_bytes" && read -r fragmentation <"$gpu/fragmentation" &&
            printf '%-8s %12d %12d %12d %6s\n' "${gpu##*/}" \
                $((current >> 20)) $((peak >> 20)) $((reserved >> 20)) "$fragmentation"
    done
    printf '\n%-8s %-6s %15s %15s  %s\n' PID UID CURRENT_BYTES RESERVED_BYTES COMMAND
    sed -n 2,11p "$rmm/processes" | while read -r pid uid gpus current reserved rest; do
        printf '%-8s %-6s %15d %15d  %s\n' "$pid" "$uid" "$current" "$reserved" "${rest#* * * * }"
    done
    sleep "${2:-1}"
done
echo "dashboard.sh: $rmm shows no GPU memory: mount it with rmmfs $rmm" >&2
exit 1
