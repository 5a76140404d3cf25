#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A user makes any number of names in /dev/shm, with and without a meaning, and in a folder of
# segments there, and changes one of them without a pause. Another user's figures are read as
# fast as before, give or take, who waits for a log hears of it, and folders of other users are
# found. In a mount namespace with a /run and a /dev/shm of its own.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
enter_own_places
attack=$(dirname "$0")/attack.py
hostile() { # ARGUMENTS...
    ATTACK_UID=65534 python3 "$attack" "$@"
}
start_in_shared() { # NAME UID BYTES
    local as=(setpriv --reuid "$2" --regid "$2" --clear-groups --)
    "${as[@]}" mkdir -m 700 "/dev/shm/rmm-$2"
    RMM_RUNTIME_DIR=/dev/shm/rmm-$2 start_program "$1" "${as[@]}"
    gpu "$1" 0
    tell "$1" alloc 0 "$3"
}

names=300000
[ -z "${RMM_TEST_QUICK:-}" ] || names=60000 # each takes longer under a sanitizer

# At a start all is found, whatever else is there.
hostile names /dev/shm "$names"
start_in_shared early 5 100
list_gpus 1
start_daemon
expect gpu0/current_bytes 100
file=$mnt/proc/${program_pid[early]}/gpu0/peak_bytes

mkdir -m 1777 "$work/elsewhere"
hostile toggle 5 "$work/elsewhere" & # as busy, where the daemon does not look
calm=$(python3 "$attack" read 4 "$file")
wait $!
hostile toggle 8 /dev/shm &
toggling=$!
sleep 1
harassed=$(python3 "$attack" read 4 "$file")
echo "microseconds, median and 99th percentile: calm $calm, harassed $harassed"
# When each look listed all names: 500,000 to 700,000 of a calm 180.
slower=$(slowness)
[ "${harassed% *}" -lt $((60000 * slower)) ] || [ "${harassed% *}" -lt $((100 * slower * ${calm% *})) ] ||
    fail "a read takes $harassed us while another user makes names, else $calm us"
start_in_shared late 6 20
eventually is gpu0/current_bytes 120
wait "$toggling"

# A folder that is made again.
end_program late
rm -r /dev/shm/rmm-6
start_in_shared again 6 3
expect gpu0/current_bytes 103

# Names of segments, which are swept every 10 s.
hostile segment_names /dev/shm/rmm-65534 "$names"
cat "$mnt/proc/${program_pid[early]}/log_pipe" >"$work/heard" 2>/dev/null &
longest=0 number=0
end=$((SECONDS + 12))
while [ "$SECONDS" -lt "$end" ]; do
    tell early log 3 "at $SECONDS $RANDOM $((++number))."
    begin=$(date +%s%N)
    until grep -q " $number\\.$" "$work/heard"; do
        sleep 0.01
    done
    waited=$((($(date +%s%N) - begin) / 1000000))
    longest=$((waited > longest ? waited : longest))
done
echo "milliseconds until a message is heard: $longest at most"
# Two seconds, when all names were swept at once.
[ "$longest" -lt $((1000 * slower)) ] || fail "a message was heard after $longest ms"
stop_daemon
