#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rmm-top --mount over the tree alone: what it prints is what the programs publish, and live, in
# tmux, it outlives a daemon that is killed, hangs, and is started again.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
enter_mount_namespace
command -v tmux >/dev/null || skip "no tmux"

server=1 # a socket for each: one that has just ended may still be on its old one
screen() {
    tmux -S "$work/tmux.$server" -f /dev/null "$@"
}

shown() { # REGULAR EXPRESSION: a question, for eventually
    screen capture-pane -p >"$work/screen"
    grep -qE "$1" "$work/screen"
}

wait_shown() { # REGULAR EXPRESSION
    local deadline=$((SECONDS + 60))
    until shown "$1"; do
        [ "$SECONDS" -lt "$deadline" ] || fail "never shown: $1: $(cat "$work/screen")"
        sleep 0.05
    done
}

top() { # OPTION...: without the runtime directory
    RMM_RUNTIME_DIR=/proc/none LC_ALL=C.UTF-8 "$RMM_TOP" --mount "$mnt" "$@"
}

one_line() { # STATUS TEXT COMMAND...
    local status=0 expected=$1 text=$2
    shift 2
    "$@" >"$work/out" 2>"$work/said" </dev/null || status=$?
    [ "$status $(wc -l <"$work/said") $(wc -c <"$work/out")" = "$expected 1 0" ] || fail "$*: $status: $(cat "$work/said")"
    grep -qF "$text" "$work/said" || fail "$*: $(cat "$work/said")"
}

list_gpus 1
one_line 1 "rmmfs is not mounted there" top --json
start_daemon
start_program a
gpu a 0
tell a resource 1 cuda device 0 0
tell a resource 2 pool mine 0 1
tell a take 2 5000
tell a alloc 0 5000
start_program b
gpu b 0
tell b alloc 0 70
expect gpu0/peak_bytes 5070

# Which program asked the driver last is not known: the least that one was told is free.
free_of_gpu() {
    "$RMM_TOP" --json "$@" | python3 -c 'import json, sys; print(json.load(sys.stdin)["devices"][0]["device_free_bytes"])'
}
for least in "a 3000 b 2000" "a 1000 b 2000"; do
    read -r one bytes other more <<<"$least"
    tell "$one" devfree 0 "$bytes"
    tell "$other" devfree 0 "$more"
    [ "$(free_of_gpu)" = $((bytes < more ? bytes : more)) ] || fail "$least bytes are free, told: $(free_of_gpu)"
done
end_program b

# Figures, and all that the segments tell directly.
top --json >"$work/by_mount"
"$RMM_TOP" --json >"$work/by_segments"
cat >"$work/compare.py" <<'END'
import json, sys
mount, segments = (json.load(open(name, encoding="utf-8")) for name in sys.argv[1:3])
# The daemon alone knows the peaks of a device, and totals of those that ended.
for node in (mount, segments):
    for device in node["devices"]:
        for key in [key for key in device if "peak" in key or key.startswith(("total_", "freed_"))]:
            device.pop(key)
assert mount == segments, (mount, segments)
assert len(mount["processes"]) == 1 and len(mount["processes"][0]["resources"]) == 2
END
python3 "$work/compare.py" "$work/by_mount" "$work/by_segments" || fail "not the same by the mount"
[ "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["devices"][0]["peak_bytes"])' <"$work/by_mount")" = 5070 ] ||
    fail "the peak of the GPU: $(cat "$work/by_mount")"
top --html "$work/page.html"
grep -q "<b[^>]*>${program_pid[a]}</b>" "$work/page.html" || fail "the page: $(cat "$work/page.html")"
one_line 2 "exclude each other" top --replay "$work/by_mount"
one_line 1 "is not mounted there" "$RMM_TOP" --json --mount "$work"
one_line 1 "No such file or directory" "$RMM_TOP" --json --mount "$work/none"
one_line 1 "too long" "$RMM_TOP" --json --mount "$(printf '%0300d' 0)"

# A tree that somebody made.
mkdir "$work/forged"
echo 1 >"$work/forged/version"
for text in '' '{' '[]' '{"schema_version": 2}' '{"schema_version": 1, "processes": [], "devices": []}' \
    '{"schema_version": 1, "devices": [{"device": "host"}], "processes": [{"state": "live", "uid": -1}]}' \
    '{"schema_version": 1, "devices": [{"device": "host"}], "processes": [{"state": "live", "uid": 0, "devices": [{"device": "gpu9"}]}]}'; do
    printf '%s' "$text" >"$work/forged/json"
    one_line 1 "json is" "$RMM_TOP" --json --mount "$work/forged"
done
rm "$work/forged/json"
one_line 1 "json: No such file" "$RMM_TOP" --json --mount "$work/forged"
truncate -s 100M "$work/forged/json"
one_line 1 "json is too long" "$RMM_TOP" --json --mount "$work/forged"

# Live, without the daemon: a GPU that the program uses later.
screen -u new-session -d -x 100 -y 24 "LC_ALL=C.UTF-8 TERM=screen \
    '$RMM_TOP' --interval 0.1; printf '\r\nended with %d' \$?; exec sleep 600"
wait_shown "${program_pid[a]} .* 4.9K "
gpu a 1
tell a alloc 1 700
wait_shown "^gpu1 +700B"
tell a free 1 700

# A program that has another number for gpu0: the request is for its location of that GPU.
start_program c
tell c location 1 GPU-00000000 0000:00:00.0 1000000 "Test GPU 0"
tell c resource 1 cuda device 1 0
tell c alloc 1 900
tell c free 1 800
wait_shown "${program_pid[c]} .* gpu0 +100B"
screen send-keys Down Enter
wait_shown "pid ${program_pid[c]} "
screen send-keys P
wait_shown "peak of the program on gpu0: reset"
tell c alloc 1 1
"$RMM_TOP" --json >"$work/by_segments"
python3 -c 'import json, sys
peaks = {each["pid"]: [use["peak_bytes"] for use in each["devices"] if use["device"] == "gpu0"]
         for each in json.load(sys.stdin)["processes"]}
assert peaks[int(sys.argv[1])] == [5000] and peaks[int(sys.argv[2])] == [101], peaks
' "${program_pid[a]}" "${program_pid[c]}" <"$work/by_segments" || fail "not the peak of that program"
end_program c
screen send-keys q # not by a signal: LeakSanitizer can hang, and use a processor, if one comes at its end
wait_shown "ended with 0"
screen kill-server

live() { # OPTION...
    server=$((server + 1))
    screen -u new-session -d -x 100 -y 24 "RMM_RUNTIME_DIR=/proc/none LC_ALL=C.UTF-8 TERM=screen \
        '$RMM_TOP' --mount '$mnt' --interval 0.1 $* 2>'$work/errors'; printf '\r\nended with %d' \$?; exec sleep 600"
}

# Live: killed, started again.
live "--record '$work/record'"
wait_shown "1 program  RECORDS"
wait_shown "${program_pid[a]} .* 4.9K "
kill_daemon
wait_shown "1 program  NO ANSWER FOR [0-9]+ s: Transport endpoint is not connected"
shown "${program_pid[a]} .* 4.9K " || fail "the last figures are gone: $(cat "$work/screen")"
tell a alloc 0 5000
lines=$(wc -l <"$work/record")
screen send-keys Enter
wait_shown "2.*mine"
screen send-keys p
wait_shown "with --mount, programs cannot be changed"
screen send-keys Escape
[ "$(wc -l <"$work/record")" = "$lines" ] || fail "old figures are recorded again"
start_daemon
wait_shown "1 program  RECORDS"
wait_shown "${program_pid[a]} .* 9.8K "

# One that hangs: keys go on.
kill -STOP "$daemon"
wait_shown "NO ANSWER FOR [0-9]+ s: rmmfs does not answer"
screen send-keys h
wait_shown "sort by the next column"
screen send-keys x
start_program c
gpu c 0
tell c alloc 0 99
kill -CONT "$daemon"
wait_shown "2 programs  RECORDS"
wait_shown "${program_pid[c]} .* 99B "
kill -STOP "$daemon"
wait_shown "NO ANSWER"
screen send-keys q
wait_shown "ended with" # also where it was stopped amid a read
kill -CONT "$daemon"
shown "ended with 0" || fail "$(cat "$work/screen" "$work/errors")"
[ ! -s "$work/errors" ] || fail "$(cat "$work/errors")"
screen kill-server

# One that goes on in the moment in which rmm-top ends.
for ((i = 0; i < 3; i++)); do
    live
    wait_shown "2 programs"
    kill -STOP "$daemon"
    wait_shown "NO ANSWER"
    screen send-keys q
    sleep 0.01
    kill -CONT "$daemon"
    wait_shown "ended with"
    shown "ended with 0" || fail "$(cat "$work/screen" "$work/errors")"
    [ ! -s "$work/errors" ] || fail "$(cat "$work/errors")"
    screen kill-server
done
stop_daemon
finish
