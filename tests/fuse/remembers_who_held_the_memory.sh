#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# /rmm/oom and oom.json have the last refused allocations, each with who held what at that time:
# also of programs that are killed at once, of a burst, and whatever other users are refused.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

chmod 1777 "$run"
list_gpus 1
other=(setpriv --reuid 1002 --regid 1002 --clear-groups --)

refusals() { # of a process
    grep -c "^[0-9TZ:.-]* $1 " "$mnt/oom" || true
}
has_refusals() { # PROCESS N
    [ "$(refusals "$1")" = "$2" ]
}

start_daemon
start_program holder
gpu holder 0
tell holder alloc 0 5000
tell holder reserve 0 70000
holder=${program_pid[holder]}
[ "$(wc -l <"$mnt/oom")" = 3 ] || fail "nothing was refused: $(cat "$mnt/oom")"

# Killed at once.
for i in $(seq 50); do
    start_program "victim$i"
    gpu "victim$i" 0
    tell "victim$i" resource 1 pool main 0 0
    tell "victim$i" take 1 300
    tell "victim$i" refuse 1 $((1000000 + i))
    victim=${program_pid[victim$i]}
    kill_program "victim$i"
    eventually has_refusals "$victim" 1
    grep -q "^[^ ]* $victim $uid gpu0 $((1000000 + i)) -1 300 0 1.main - rmmfs_program$" "$mnt/oom" ||
        fail "not as it was: $(grep " $victim " "$mnt/oom")"
    grep -A2 " $victim $uid gpu0 " "$mnt/oom" | grep -q "^  held $holder $uid 70000 5000 rmmfs_program$" ||
        fail "the holder is not there: $(cat "$mnt/oom")"
done

# A burst, more than the ring of a program has: the newest 16 are there.
start_program burst
gpu burst 0
tell burst resource 1 pool main 0 0
for i in $(seq 40); do
    tell burst refuse 1 $((2000000 + i))
done
burst=${program_pid[burst]}
newest_of_burst() {
    [ "$(awk -v process="$burst" '$2 == process { print $5; exit }' "$mnt/oom")" = 2000040 ]
}
eventually newest_of_burst
[ "$(refusals "$burst")" -ge 16 ] || fail "$(refusals "$burst") of a burst"

# Another user's many refusals displace none of ours below half of the list.
start_program others "${other[@]}"
gpu others 0
tell others resource 1 pool theirs 0 0
for i in $(seq 100); do
    tell others refuse 1 $((3000000 + i))
    [ $((i % 10)) != 0 ] || sleep 0.05
done
newest_of_others() {
    [ "$(awk '/^[0-9]/ { print $5; exit }' "$mnt/oom")" = 3000100 ]
}
eventually newest_of_others
[ "$(grep -c '^[0-9]' "$mnt/oom")" = 64 ] || fail "not 64: $(cat "$mnt/oom")"
[ "$(grep -c "^[^ ]* [0-9]* $uid " "$mnt/oom")" -ge 32 ] || fail "ours were displaced"

python3 - "$mnt/oom.json" "$holder" <<'END' || fail "oom.json: $(head -c 2000 "$mnt/oom.json")"
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    tree = json.load(file)
assert tree["schema_version"] == 1 and len(tree["refusals"]) == 64
newest = tree["refusals"][0]
assert newest["bytes"] == 3000100 and newest["resource"] == "theirs", newest
holder = [one for one in newest["holders"] if one["process"] == sys.argv[2]]
assert holder[0]["held_bytes"] == 70000 and holder[0]["current_bytes"] == 5000, newest
END

# What programs were refused before this daemon began is nobody's news.
stop_daemon
start_daemon
[ "$(wc -l <"$mnt/oom")" = 3 ] || fail "old refusals are there: $(cat "$mnt/oom")"
tell burst refuse 1 4000000
eventually has_refusals "$burst" 1
