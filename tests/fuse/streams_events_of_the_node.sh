#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# /rmm/events_pipe: what happens on the node as lines of JSON. A read waits without a thread of the
# daemon; every reader has a position of its own; users see what they may see.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

chmod 1777 "$run"
list_gpus 1
a=(setpriv --reuid 1001 --regid 1001 --clear-groups --)
b=(setpriv --reuid 1002 --regid 1002 --clear-groups --)
reads() { # FILE TEXT
    grep -qE "$2" "$work/$1" 2>/dev/null
}
gone() { # PID
    ! kill -0 "$1" 2>/dev/null
}

start_program early
gpu early 0
tell early oom 0
start_daemon
# By its name only, so that cp -r and grep -r end.
! ls "$mnt" | grep -q events_pipe || fail "the pipe is listed"
timeout 300 cp -r "$mnt" "$work/copy" || fail "cp -r ended with $?"
[ "$(stat -c %a "$mnt/events_pipe")" = 400 ] || fail "mode of the pipe"

cat "$mnt/events_pipe" >"$work/root" 2>/dev/null &
"${a[@]}" cat "$mnt/events_pipe" >"$work/a" 2>/dev/null &
"${b[@]}" cat "$mnt/events_pipe" >"$work/b" 2>/dev/null &
start_program theirs "${a[@]}"
pid=${program_pid[theirs]}
gpu theirs 0
of_theirs() { # TYPE REST
    echo "\"type\": \"$1\", \"pid\": $pid, \"uid\": 1001, $2"
}
eventually reads root "$(of_theirs start '"gpu": null.*"text": "rmmfs_program"')"

# Counters: how much they rose between two looks, of which resource, and what is held.
tell theirs resource 1 cuda cuda 0 0
tell theirs resource 2 pool mypool 0 1
tell theirs reserve 0 5000
tell theirs refuse 2 0
tell theirs oom 0
eventually reads root "$(of_theirs oom '"gpu": "gpu0", "resource": "2.mypool", "bytes": 5000, "count": 1')"
tell theirs alloc 0 4000
eventually reads root "$(of_theirs peak '"gpu": "gpu0", "resource": null, "bytes": 4000')"
eventually reads root '"type": "peak", "pid": null, "uid": null, "gpu": "gpu0", .*"bytes": 4000'
tell theirs log 4 "secret of A"
eventually reads root "$(of_theirs error '.*"text": "secret of A"')"
eventually reads a "secret of A"
echo not a segment >"$run/0.00000000000000aa"
eventually reads root '"type": "unreadable", "pid": null, "uid": 0,.*"text": "'
end_program theirs
eventually reads root "$(of_theirs exit '.*"bytes": 4000')"
eventually reads b "$(of_theirs exit '')"

# The last events of a program that is killed are seen; what was before the daemon is none.
start_program short
short=${program_pid[short]}
eventually reads root "\"start\", \"pid\": $short," # if it dies before, nobody can prove its pid
gpu short 0
tell short oom 0
kill_program short
eventually reads root "\"exit\", \"pid\": $short,"
reads root "\"oom\", \"pid\": $short," || fail "the last events of a killed program are missing"
! reads root "\"pid\": ${program_pid[early]}," || fail "an event from before the daemon"
! reads b secret || fail "B sees the message of A's program"

# Each line is an object with all keys, of rising times, in UTC.
python3 - "$work/root" <<'END' || fail "lines of the pipe"
import datetime, json, sys
keys = ["time", "type", "pid", "uid", "gpu", "resource", "bytes", "count", "process", "text"]
lines = [json.loads(line) for line in open(sys.argv[1])]
assert all(list(line) == keys for line in lines), "keys"
times = [line["time"] for line in lines]
assert times == sorted(times), times
now = datetime.datetime.now(datetime.timezone.utc)
last = datetime.datetime.fromisoformat(times[-1][:26] + "+00:00")
assert len(times[-1]) == 30 and abs((now - last).total_seconds()) < 600, times[-1]
assert {"start", "oom", "peak", "error", "unreadable", "exit"} <= {line["type"] for line in lines}
END

# A hundred that wait occupy no thread; one that does not wait is told so; a killed one is gone.
for i in $(seq 100); do
    cat "$mnt/events_pipe" >"$work/reader.$i" 2>/dev/null &
    last=$!
done
eventually reads reader.100 '"exit"'
expect version 1
start_program for_all
for i in $(seq 100); do
    eventually reads "reader.$i" "\"start\", \"pid\": ${program_pid[for_all]},"
done
kill -KILL "$last" 2>/dev/null
eventually gone "$last"
wait "$last" 2>/dev/null || true
python3 - "$mnt/events_pipe" <<'END' || fail "O_NONBLOCK or poll"
import os, select, sys
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
poll = select.poll()
poll.register(fd, select.POLLIN)
assert poll.poll(0) != []
while True:
    try:
        os.read(fd, 65536)
    except BlockingIOError:
        break
assert poll.poll(50) == []
END

# A user who makes events without end: they are counted, and those of others are there. By files
# that are no segments, which also a slow machine makes faster than events may come.
python3 - "$run" <<'END' || fail "the flood"
import os, sys
os.setgroups([])
os.setresgid(1001, 1001, 1001)
os.setresuid(1001, 1001, 1001)
for i in range(2000):
    with open("%s/1001.%016x" % (sys.argv[1], 0xf100d << 32 | i), "w") as file:
        file.write("not a segment\n")
END
start_program after "${b[@]}"
eventually reads root "\"start\", \"pid\": ${program_pid[after]},"
eventually reads root '"type": "over_budget", "pid": null, "uid": 1001,.*"count": [1-9]'

# Hidden processes have no events for others.
stop_daemon
remove_files_of 1001 || fail "files of the flood are left: $(ls "$run" | head -n 3)"
start_daemon -o hidepid=2
"${b[@]}" cat "$mnt/events_pipe" >"$work/b" 2>/dev/null &
cat "$mnt/events_pipe" >"$work/root" 2>/dev/null &
start_program theirs "${a[@]}"
start_program ours "${b[@]}"
eventually reads b "\"start\", \"pid\": ${program_pid[ours]},"
eventually reads root "\"start\", \"pid\": ${program_pid[theirs]},"
! reads b "\"pid\": ${program_pid[theirs]}," || fail "B sees a hidden process: $(cat "$work/b")"
stop_daemon
