#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a hostile user can do with files and descriptors, one thing after the other: leases on
# segments and side files, which an open without O_NONBLOCK waits for; FIFOs, sockets, directories,
# links and files of 1 TiB under their names; a segment that is cut while it is read; all handles
# that the user may have, polls and splices without a pause; commands in a storm. Meanwhile a read
# of a figure of another user's program never takes long, and the figure is right.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
attack=$(dirname "$0")/attack.py
chmod 1777 "$run"
as=(setpriv --reuid 65534 --regid 65534 --clear-groups --)

start_program model "${as[@]}"
cp "$(find "$run" -regex '.*/65534\.[0-9a-f]*')" "$work/template"
chmod 644 "$work/template"
kill_program model
list_gpus 1
start_daemon
start_program innocent
gpu innocent 0
tell innocent alloc 0 100
start_program owned "${as[@]}" # its files are the user's to write
gpu owned 0
file=$mnt/proc/${program_pid[innocent]}/gpu0/current_bytes

# A second is far more than a read takes; what never answers, or a lease, takes 45.
longest() { # SECONDS
    python3 - "$file" "$1" <<'EOF'
import sys, time
longest, end = 0, time.time() + float(sys.argv[2])
while time.time() < end:
    begin = time.perf_counter()
    with open(sys.argv[1]) as file:
        if file.read() != "100\n":
            sys.exit("not 100")
    longest = max(longest, time.perf_counter() - begin)
    time.sleep(0.002)
print(int(longest * 1000))
EOF
}
bound=$((1000 * $(slowness)))
answers() { # WHAT
    local ms
    ms=$(longest 2.5) || fail "$1: wrong, or no answer"
    echo "$1: the longest read took $ms ms"
    [ "$ms" -le "$bound" ] || fail "$1: a read took $ms ms"
    kill -0 "$daemon" || fail "$1: rmmfs ended"
}
during() { # WHAT ARGUMENTS...
    local what=$1 attacker
    ATTACK_UID=65534 timeout -s KILL 60 python3 "$attack" "$@" >"$work/$what.told" 2>&1 &
    attacker=$!
    answers "$what"
    wait "$attacker" || fail "$what: $(cat "$work/$what.told")"
    eventually remove_files_of_attack
}
remove_files_of_attack() {
    find "$run" -mindepth 1 \( -name '65534.0a77ac*' -o ! -name '*.????????????????*' \) -uid 65534 \
        -exec rm -rf -- {} +
}

# First: of each user a bounded number of refusals is logged.
during lease "$run" 3 "$work/template"
grep -q 'refused: open: Resource temporarily unavailable' "$log" || fail "no lease was met"

mkfifo "$work/odd.in"
exec {odd_in}<>"$work/odd.in"
ATTACK_UID=65534 python3 "$attack" odd "$run" "$work/template" <&"$odd_in" >"$work/odd.told" 2>&1 &
odd=$!
eventually grep -q . "$work/odd.told"
grep -q made "$work/odd.told" || fail "odd: $(cat "$work/odd.told")"
answers odd
timeout -s KILL 60 grep -r no_such_word "$mnt" >"$work/grep.out" 2>&1 || [ $? -lt 124 ] || fail "odd: a read hangs"
timeout -s KILL 60 "$RMMFS_PROGRAM" </dev/null >/dev/null || fail "odd: a program does not start"
echo >&"$odd_in"
wait "$odd" || fail "odd: $(cat "$work/odd.told")"
remove_files_of_attack

during cut "$run" 3 "$work/template"
during hold 3 "$mnt"
[ "$(cut -d ' ' -f 2 "$work/hold.told")" -gt 0 ] || fail "handles without a limit: $(cat "$work/hold.told")"
during poll 3 "$mnt"
during splice 3 "$mnt"
during storm 3 "$mnt"
[ "$(cat "$work/storm.told")" -gt 0 ] || fail "the user had nothing to write to"

start_program late
gpu late 0
tell late alloc 0 11
expect "proc/${program_pid[late]}/gpu0/current_bytes" 11
expect gpu0/current_bytes 111
lines=$(wc -l <"$log")
[ "$lines" -lt $((200 + SECONDS * 20)) ] || fail "$lines lines in the daemon's log after $SECONDS s"
stop_daemon
