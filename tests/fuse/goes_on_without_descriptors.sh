#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# More programs than the daemon has descriptors for: it says once which limit is too low, counts
# in daemon/unshown what it does not show, answers readers all the time, shows the others when
# there is room again, and ends cleanly.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

list_gpus 1
real=$RMMFS
printf '#!/bin/bash\nulimit -n 160\nexec %s "$@"\n' "$real" >"$work/limited"
chmod +x "$work/limited"
RMMFS=$work/limited
start_daemon
expect daemon/unshown 0
for i in $(seq 60); do
    start_program "p$i"
    gpu "p$i" 0
    tell "p$i" alloc 0 1
done
shown() { cat "$mnt/daemon/segments"; }
all_told() { [ "$(($(shown) + $(awk '{ print $1 }' "$mnt/daemon/unshown")))" = 60 ]; }
eventually all_told
[ "$(shown)" -lt 60 ] || fail "all are shown: the limit is not at work"
[ "$(shown)" -ge 20 ] || fail "only $(shown) are shown"
grep -q "descriptors (limit 160): raise LimitNOFILE" "$mnt/daemon/unshown" || fail "$(cat "$mnt/daemon/unshown")"
[ "$(grep -c "out of descriptors" "$log")" = 1 ] || fail "not said once: $(cat "$log")"
for i in $(seq 30); do # readers have descriptors of their own here
    cat "$mnt/metrics" >"$work/metrics.$i" &
    readers[$i]=$!
done
wait "${readers[@]}" || fail "a reader failed"
for i in $(seq 40); do
    kill_program "p$i"
done
all_shown() { is daemon/segments 20 && is daemon/unshown 0; }
eventually all_shown
expect gpu0/current_bytes 20

# When none at all is left, the directory is not taken for gone: its programs would be met again as
# copies of themselves when it came back.
prlimit --pid "$daemon" --nofile=3:160
sleep 2.5 # two looks for directories
expect daemon/segments 20
prlimit --pid "$daemon" --nofile=160:160
start_program late
eventually is daemon/segments 21 # at a look after that for directories
sleep 1.5
expect daemon/segments_rejected 0
! grep "is another name or a copy" "$log" || fail "its programs were refused"
kill_program late
for i in $(seq 61 100); do
    start_program "p$i"
done
eventually grep -q limit "$mnt/daemon/unshown"
stop_daemon

for i in $(seq 41 100); do # the daemon inherits the descriptors of their pipes
    kill_program "p$i"
done

# With so few that none is left while it runs it still ends cleanly. How many it needs to start
# depends on what this script inherited.
ended_or_answers() { answers 2>/dev/null || ! kill -0 "$daemon" 2>/dev/null; }
started=0
for limit in $(seq 8 60); do
    [ "$started" -lt 4 ] || break
    printf '#!/bin/bash\nulimit -n %s\nexec %s "$@"\n' "$limit" "$real" >"$work/limited"
    "$RMMFS" -f "$mnt" 2>>"$log" &
    daemon=$!
    eventually ended_or_answers
    if kill -0 "$daemon" 2>/dev/null; then
        started=$((started + 1))
        stop_daemon
    else
        wait "$daemon" || true
    fi
done
[ "$started" -gt 0 ] || fail "it never starts with at most 60 descriptors: nothing is tested"
daemon=
