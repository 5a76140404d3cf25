#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Only its owner and root make a program report its blocks. Reading all files of many idle
# programs asks each at most once a second and waits once for all of its files; opens that wait
# stop no reader, whatever becomes of the program or the daemon.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

as_a=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
as_b=(setpriv --reuid 1002 --regid 1002 --clear-groups --)
chmod 1777 "$run"
control_of() { # PID: the name of its control page
    basename "$(readlink "/proc/$1/map_files"/* 2>/dev/null | grep -E "^$run/[0-9]+\.[0-9a-f]*\.control$" | head -n 1)"
}
requests() { # PID: how often the daemon asked it
    local segment
    segment=$(control_of "$1")
    od -An -tu4 -j64 -N4 "$run/$segment" | tr -d ' '
}
programs="one two three four five six"
start_daemon
for name in $programs; do
    start_program "$name" "${as_a[@]}" env RMM_DRIVER=sim
    tell "$name" pool 0
    tell "$name" borrow 0 1000 3
    tell "$name" pool 1
    tell "$name" borrow 1 1000 3
    tell "$name" track 2 0
done
pid=${program_pid[one]}
pool=$(cd "$mnt" && printf '%s\n' "proc/$pid/gpu0/mr"/*.pool | head -n 1)
files="$pool/map $pool/map.svg $pool/streams $pool/size_histogram proc/$pid/allocations"

# Another user: refused, and no program is asked. Nor does a look at attributes ask one.
for file in $files; do
    ! "${as_b[@]}" cat "$mnt/$file" 2>"$work/why" || fail "another user reads $file"
    grep -q "Permission denied" "$work/why" || fail "$file for another user: $(cat "$work/why")"
    [ "$(stat -c '%a %u' "$mnt/$file")" = "400 65534" ] || fail "attributes of $file"
done
ls -lR "$mnt/proc/$pid" >/dev/null
[ "$(requests "$pid")" = 0 ] || fail "asked $(requests "$pid") times, by a user who may not"

# Root reads everything of all idle programs.
began=$SECONDS
cp -r "$mnt/proc" "$work/copy" 2>"$work/why" || true
[ "$(grep -c "Connection timed out" "$work/why")" = 48 ] || fail "cp: $(cat "$work/why")"
! grep -v "Connection timed out" "$work/why" || fail "cp: $(cat "$work/why")"
for name in $programs; do
    asked=$(requests "${program_pid[$name]}")
    [ "$asked" -ge 1 ] && [ "$asked" -le $((SECONDS - began + 2)) ] ||
        fail "$name was asked $asked times in $((SECONDS - began)) s"
done

# The owner, and root.
fetch_report one 2 "$pool/map"
cp "$work/text" "$work/map"
"${as_a[@]}" cat "$mnt/$pool/map" >"$work/text" || fail "the owner cannot read a map"
grep -q used "$work/text" || fail "the owner's map: $(cat "$work/text")"
if command -v xmllint >/dev/null; then
    xmllint --noout "$mnt/$pool/map.svg" || fail "xmllint refuses map.svg"
fi

# Opens that wait for a program that is stopped: the user has few of them, the others go on.
sleep 1.1
rm "$run"/65534.*.blocks
kill -STOP "$pid"
for i in $(seq 30); do
    "${as_a[@]}" cat "$mnt/$pool/map" >/dev/null 2>"$work/many.$i" &
    readers[$i]=$!
done
expect "$pool/current_count" 3
[ "$("${as_b[@]}" cat "$mnt/proc/${program_pid[two]}/gpu0/current_count")" = 6 ] ||
    fail "another user cannot read a figure"
wait "${readers[@]}" || true
! cat "$work"/many.* | grep -vE "Connection timed out|Disk quota exceeded" ||
    fail "answers: $(sort -u "$work"/many.*)"
grep -q "Connection timed out" "$work"/many.* || fail "no reader waited"
kill -CONT "$pid"
tell one borrow 2 10 1 # what was withdrawn is not made
[ -z "$(find "$run" -name '*.blocks')" ] || fail "a report that was withdrawn is there"

# The daemon is killed while one waits: its successor sees to it that the program, whose
# allocations would all look for the request, need not.
wanted() { # PID: the word that they look at
    local segment
    segment=$(control_of "$1")
    od -An -tu4 -j44 -N4 "$run/$segment" | tr -d ' '
}
is_wanted() { # while one waits, which is not for long; else it may be asked again in a second
    cat "$mnt/$pool/map" >/dev/null 2>&1 &
    reader=$!
    while kill -0 "$reader" 2>/dev/null; do
        [ "$(wanted "$pid")" != 1 ] || return 0
    done
    sleep 1.1
    return 1
}
sleep 1.1
kill -STOP "$pid"
eventually is_wanted
kill_daemon
wait "$reader" || true
start_daemon
expect "$pool/current_count" 3
[ "$(wanted "$pid")" = 0 ] || fail "the program still looks for the request of a daemon that was killed"
kill -CONT "$pid"

# The program, and then the daemon, end while one waits.
sleep 1.1
cat "$mnt/$pool/map" >/dev/null 2>"$work/why" &
reader=$!
kill_program one
! wait "$reader" || fail "a map of a killed program"
grep -qE "No such|Connection timed out|Permission denied" "$work/why" || fail "killed: $(cat "$work/why")"
two=${program_pid[two]}
cat "$mnt/proc/$two/gpu0/mr/"*.pool/map >/dev/null 2>"$work/why" &
reader=$!
stop_daemon
! wait "$reader" || fail "a map without a daemon"
tell two borrow 2 10 1
start_daemon
fetch_report two 2 "$(cd "$mnt" && printf '%s\n' "proc/$two/gpu0/mr"/*.pool/map | head -n 1)"
stop_daemon

# A program whose control page is gone cannot be asked.
start_program mute env RMM_DRIVER=sim
tell mute pool 0
tell mute borrow 0 1000 1
mute=${program_pid[mute]}
rm "$run/$(control_of "$mute")"
start_daemon
! cat "$mnt/proc/$mute/gpu0/mr/"*.pool/map 2>"$work/why" || fail "a map without a request"
grep -q "Operation not supported" "$work/why" || fail "without a control page: $(cat "$work/why")"
stop_daemon
