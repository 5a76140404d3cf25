#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Limits of users and of a GPU: programs of two users grow at once, and each user reaches his limit
# and never exceeds it; room that one program does not use goes to another; programs that start
# later, are killed, or go on without a daemon.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

other=65534
mib=1048576
export RMM_DRIVER=sim
chmod 1777 "$run"
as() { # USER COMMAND...
    if [ "$1" = root ]; then
        "${@:2}"
    else
        setpriv --reuid "$other" --regid "$other" --clear-groups -- "${@:2}"
    fi
}
start_as() { # USER NAME
    if [ "$1" = root ]; then
        start_program "$2"
    else
        start_program "$2" setpriv --reuid "$other" --regid "$other" --clear-groups --
    fi
    tell "$2" pool 0
}
column() { # KIND NAME GPU COLUMN
    awk -v kind="$1" -v name="$2" -v gpu="$3" -v at="$4" '$1 == kind && $2 == name && $4 == gpu { print $at }' "$mnt/limits"
}
held() { # UID: of his programs, as they show it themselves
    local folder sum=0
    for folder in "$mnt"/proc/[0-9]*; do
        if [ "$(cat "$folder/uid") $(cat "$folder/state")" = "$1 live" ] && [ -e "$folder/gpu0/reserved_bytes" ]; then
            sum=$((sum + $(cat "$folder/gpu0/reserved_bytes")))
        fi
    done
    echo "$sum"
}
reaches() { # UID BYTES: within 2 %, and never more
    local sum
    sum=$(held "$1")
    [ "$sum" -le "$2" ] || fail "user $1 holds $sum, more than $2"
    [ "$sum" -ge $(($2 * 98 / 100)) ] || fail "user $1 holds $sum, of $2: $(cat "$mnt/limits")"
}
all() { # COMMAND... for every program in names, at once
    local name
    for name in "${names[@]}"; do
        echo "$*" >&"${program_in[$name]}"
    done
    for name in "${names[@]}"; do
        hear "$name" "$*"
    done
}
refused() { # USER LINE MESSAGE
    if as "$1" bash -c 'printf "%s\n" "$1" >"$2"' - "$2" "$mnt/limits" 2>"$work/error"; then
        fail "'$2' of $1 was taken"
    fi
    grep -q "$3" "$work/error" || fail "'$2': $(cat "$work/error")"
}
set_limit() { # LINE
    echo "$1" >"$mnt/limits" || fail "cannot set: $1"
}

start_daemon
eventually is limits "#kind name uid gpu limit_bytes held_bytes given_bytes processes set_by"
expect host/limit_bytes max

# Who may what, and the grammar.
refused root "user 0 gpu0 1GiB" "Invalid argument" # no GPU is known yet
start_as root first
refused "$other" "user 0 gpu0 1GiB" "Operation not permitted"
refused "$other" "gpu gpu0 1GiB" "Operation not permitted"
as "$other" sh -c 'echo "user 65534 gpu0 1GiB" >"$1"' - "$mnt/limits" || fail "not his own"
set_limit "user nobody gpu0 500MiB" # the same one: root takes it over
refused "$other" "user 65534 gpu0 1GiB" "Operation not permitted"
refused "$other" "user 65534 gpu0 none" "Operation not permitted"
eventually is limits "#kind name uid gpu limit_bytes held_bytes given_bytes processes set_by
user 65534 65534 gpu0 524288000 0 0 0 0"
for line in "" "user" "user 0 gpu0" "user 0 gpu0 1G" "user 0 gpu0 -1" "user 0 gpu7 1GiB" "user 0 gpux 1GiB" \
    "user no-such-user gpu0 1GiB" "usr 0 gpu0 1GiB" "user 0 gpu0 1GiB more" "gpu all 1GiB" "gpu gpu0" \
    "label a/b gpu0 1GiB" "user 0 gpu0 8589934592GiB" \
    "label $(printf 'x%.0s' $(seq 400)) gpu0 1GiB"; do
    [ -z "$line" ] || refused root "$line" "Invalid argument"
done
set_limit "label none-such gpu0 none"
as "$other" sh -c 'echo "label none-such gpu0 none" >"$1"' - "$mnt/limits" || fail "none of his own"
set_limit "label root-has gpu0 1GiB"
refused "$other" "label root-has gpu0 none" "Operation not permitted" # there is none of his own, but it stays
set_limit "label root-has gpu0 none"
grep -q "limits: no device 'gpu7'" "$log" || fail "no reason in the log"
set_limit "user 65534 gpu0 none"
eventually is limits "#kind name uid gpu limit_bytes held_bytes given_bytes processes set_by"

# 20 programs of two users grow at once, most of them began before the limit, some after.
names=()
for i in $(seq 8); do
    start_as root "r$i"
    start_as "$other" "o$i"
    names+=("r$i" "o$i")
done
set_limit "user 0 gpu0 1000MiB"
set_limit "user $other all 600MiB"
for i in 9 10; do
    start_as root "r$i"
    start_as "$other" "o$i"
    names+=("r$i" "o$i")
done
all fill 0 $((4 * mib))
reaches 0 $((1000 * mib))
reaches "$other" $((600 * mib))
shows_held() { [ "$(column user 0 gpu0 6)" = "$(held 0)" ]; }
eventually shows_held
[ "$(column user 0 gpu0 7)" -le $((1000 * mib)) ] || fail "given: $(cat "$mnt/limits")"
shows_ten() { [ "$(column user "$other" all 8)" = 10 ]; }
eventually shows_ten
# What is not held by one is for the others; and what killed ones held.
all untrack 0
all pool 0
tell first fill 0 $((4 * mib))
reaches 0 $((1000 * mib))
for name in "${names[@]}"; do
    kill_program "$name"
done
kill_program first
start_as root later
start_as "$other" other
tell later fill 0 $((4 * mib))
reaches 0 $((1000 * mib))
tell other fill 0 $((4 * mib))
reaches "$other" $((600 * mib))
grep -q "the limit 1048576000 of user 0 in /rmm/limits" "$mnt/proc/${program_pid[later]}/log" ||
    fail "the log: $(cat "$mnt/proc/${program_pid[later]}/log")"

grep -A1 "^2.* ${program_pid[later]} 0 gpu0 " "$mnt/oom" | grep -q "^  limit 1048576000 user 0$" || fail "oom: $(cat "$mnt/oom")"
python3 - "$mnt" "${program_pid[later]}" <<'END' || fail "json"
import json, sys
tree, pid = sys.argv[1:]
refusals = json.load(open(tree + "/oom.json"))["refusals"]
last = next(one for one in refusals if one["process"] == pid)
assert (last["limit"], last["limit_bytes"]) == ("user 0", 1048576000), last
limits = json.load(open(tree + "/json"))["limits"]
assert [(one["kind"], one["name"], one["uid"], one["device"], one["limit_bytes"], one["set_by"]) for one in limits] == [
    ("user", "0", 0, "gpu0", 1048576000, 0), ("user", "65534", 65534, "all", 629145600, 0)], limits
assert all(one["held_bytes"] <= one["given_bytes"] <= one["limit_bytes"] for one in limits), limits
END
grep -qE '^rmm_limit_bytes\{kind="user",name="0",uid="0",gpu="0"\} 1048576000$' "$mnt/metrics" || fail "metrics"
grep -qE '^rmm_limit_held_bytes\{kind="user",name="65534",uid="65534",gpu="all"\} [1-9]' "$mnt/metrics" || fail "metrics"

# Of a GPU as a whole, below what is held: nothing is taken away, and nothing is added.
echo 1100MiB >"$mnt/gpu0/limit_bytes"
expect gpu0/limit_bytes 1153433600
before=$(held 0)
tell other fill 0 $((4 * mib))
tell later fill 0 $((4 * mib))
[ "$(held 0)" = "$before" ] || fail "root holds $(held 0), before $before"
tell later untrack 0
tell later pool 0
tell later fill 0 $((4 * mib))
sum=$(($(held 0) + $(held "$other")))
[ "$sum" -le $((1100 * mib)) ] && [ "$sum" -ge $((1078 * mib)) ] || fail "both hold $sum: $(cat "$mnt/limits")"
echo max >"$mnt/gpu0/limit_bytes"
expect gpu0/limit_bytes max
tell later fill 0 $((4 * mib))
reaches 0 $((1000 * mib))

# The limit of the program itself stays what it is, and the least counts.
own=proc/${program_pid[later]}/gpu0/limit_bytes
expect "$own" max
tell later return 0
tell later untrack 0
tell later pool 0
echo 100MiB >"$mnt/$own"
tell later fill 0 $((4 * mib))
[ "$(held 0)" -le $((100 * mib)) ] || fail "its own limit: $(held 0)"
echo max >"$mnt/$own"
tell later fill 0 $((4 * mib))
reaches 0 $((1000 * mib))
expect "$own" max

# Changed while it grows.
start_as root more
set_limit "user 0 gpu0 3000MiB"
names=(later more)
for name in "${names[@]}"; do
    echo "fill 0 $((2 * mib))" >&"${program_in[$name]}"
done
for i in 2900 2500 3000 2000 2800; do
    set_limit "user 0 gpu0 ${i}MiB"
done
for name in "${names[@]}"; do
    hear "$name" fill
done
[ "$(held 0)" -le $((3000 * mib)) ] || fail "over the highest limit that there was: $(held 0)"
all fill 0 $((2 * mib))
sum=$(held 0)
[ "$sum" -ge $((2800 * 98 / 100 * mib)) ] || fail "only $sum"
all untrack 0
all pool 0
all fill 0 $((2 * mib))
reaches 0 $((2800 * mib))

# 0, then none.
set_limit "user 0 gpu0 0"
all untrack 0
all pool 0
all fill 0 $mib
[ "$(held 0)" = 0 ] || fail "with a limit of 0: $(held 0)"
set_limit "user 0 gpu0 500MiB"
all fill 0 $mib
reaches 0 $((500 * mib))

# Without a daemon they keep what they have been given, and wait once.
kill_daemon
all fill 0 $mib
start_daemon
reaches 0 $((500 * mib))
[ "$(column user 0 gpu0 5)" = $((500 * mib)) ] || fail "after the restart: $(cat "$mnt/limits")"
all fill 0 $mib
reaches 0 $((500 * mib))
kill_program more
tell later fill 0 $mib
reaches 0 $((500 * mib))

# A daemon that stops.
set_limit "user 0 gpu0 700MiB"
kill -STOP "$daemon"
tell later fill 0 $mib
start_program unasked # it goes on without an answer
tell unasked pool 0
tell unasked borrow 0 $mib 50
kill -CONT "$daemon"
fills() { # until the daemon goes on no program asks again
    tell later fill 0 $mib
    [ "$(held 0)" -ge $((700 * mib * 98 / 100)) ]
}
eventually fills
eventually shows_held # of both: so the daemon has given the other its share as well
# At most what the program took that began meanwhile is above the limit; and nothing is added.
unasked=$(cat "$mnt/proc/${program_pid[unasked]}/gpu0/reserved_bytes")
sum=$(held 0)
[ "$sum" -le $((700 * mib + unasked)) ] || fail "$sum, of which $unasked were taken meanwhile"
tell later fill 0 $mib
tell unasked fill 0 $mib
[ "$(held 0)" = "$sum" ] || [ "$sum" -lt $((700 * mib)) ] || fail "it grows above the limit: $(held 0), $sum"
kill_program unasked
tell later return 0
tell later untrack 0
tell later pool 0
tell later fill 0 $mib
reaches 0 $((700 * mib))

set_limit "user 0 gpu0 none"
tell later borrow 0 $mib 500
set_limit "user $other all none"
[ ! -e "$run/limits.0" ] || fail "the mark is still there"
eventually is limits "#kind name uid gpu limit_bytes held_bytes given_bytes processes set_by"
set_limit "user $other all 1GiB"
[ -e "$run/limits.0" ] || fail "no mark"
stop_daemon
[ ! -e "$run/limits.0" ] || fail "the mark stays"
