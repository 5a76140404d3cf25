#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# log_pipe: a read waits for the next message, each reader has them all, a hundred that wait
# hold nobody up, and one that is killed goes at once.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

start_daemon
start_program a
pid=${program_pid[a]}
declare -a readers
reads() { # FILE TEXT
    grep -q "$2" "$work/$1"
}
gone() { # PID
    ! kill -0 "$1" 2>/dev/null
}

tell a log 3 before
cat "$mnt/log_pipe" >"$work/node" &
node=$!
cat "$mnt/proc/$pid/log_pipe" >"$work/process" &
eventually reads node "\[$pid\].*before"
eventually reads process "before"
for i in $(seq 100); do
    cat "$mnt/log_pipe" >"$work/reader.$i" &
    readers[i]=$!
done
eventually reads reader.100 before
expect version 1
tell a log 3 to all
for i in $(seq 100); do
    eventually reads "reader.$i" "to all"
done
eventually reads node "to all"
[ "$(grep -c "to all" "$work/node")" = 1 ] || fail "a line came twice"

# While it waits: killed it is gone, and the file closed; a timeout is obeyed.
kill -KILL "${readers[1]}"
eventually gone "${readers[1]}"
wait "${readers[1]}" 2>/dev/null || true
status=0
timeout -s INT 0.2 cat "$mnt/log_pipe" >/dev/null || status=$?
[ "$status" = 124 ] || fail "interrupted cat ended with $status"
[ "$(head -n 1 "$mnt/log_pipe" | cut -d' ' -f2-)" = before ] || fail "head has another line"

# Without waiting, and by poll.
python3 - "$mnt/log_pipe" <<'END' || fail "O_NONBLOCK or poll"
import os, select, sys
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
poll = select.poll()
poll.register(fd, select.POLLIN)
assert poll.poll(0) != [], "there are old messages"
assert b"before" in os.read(fd, 65536)
try:
    os.read(fd, 65536)
    sys.exit("a read without waiting has nothing to read")
except BlockingIOError:
    pass
assert poll.poll(50) == [], "nothing is there"
END
python3 - "$mnt/log_pipe" >"$work/poll" <<'END' &
import os, select, sys
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
poll = select.poll()
poll.register(fd, select.POLLIN)
os.read(fd, 65536)
print("polls", flush=True)
assert poll.poll(60000) != []
print(os.read(fd, 65536).decode(), flush=True)
END
eventually reads poll polls
tell a log 3 for who polls
eventually reads poll "for who polls"

# Two that wait on one descriptor: the one that the message passes by does not see the end.
python3 - "$mnt/proc/$pid/log_pipe" >"$work/shared" <<'END' &
import os, sys, threading
fd = os.open(sys.argv[1], os.O_RDONLY)
def listen():
    while True:
        bytes_ = os.pread(fd, 65536, 0)
        print("end" if not bytes_ else bytes_.decode(), end="", flush=True)
        if not bytes_ or b"stop" in bytes_:
            os._exit(0)
for _ in range(2):
    threading.Thread(target=listen).start()
END
eventually reads shared "who polls"
for i in $(seq 20); do
    tell a log 3 "shared $i."
    eventually reads shared "shared $i\."
done
tell a log 3 stop
eventually reads shared stop
! reads shared end || fail "a reader was told that it is the end"

# The program ends: so does its pipe, with all that was said.
tell a log 5 the last words
end_program a
eventually reads process "the last words"
eventually gone "$(pgrep -f "cat $mnt/proc/$pid/log_pipe" || echo 999999999)"
kill -0 "$node" || fail "the node's pipe ended with a process"

# The daemon ends with readers waiting: they are let go.
stop_daemon
eventually gone "$node"
