#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# poll for POLLPRI on a file `events` waits until a counter in it is another than this handle read
# last, as on cgroup v2's memory.events: of a GPU, and of a process on it.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

list_gpus 2
start_daemon
start_program a
start_program b
gpu a 0
gpu b 1
pid=${program_pid[a]}
reads() { # FILE TEXT
    grep -q "$2" "$work/$1" 2>/dev/null
}
cat >"$work/poll.py" <<'END'
import os, select, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
poll = select.poll()
poll.register(fd, select.POLLPRI)
def read():
    return dict(line.split() for line in os.pread(fd, 4096, 0).decode().splitlines())
while True:
    assert poll.poll(0) == [], "nothing has changed since the last read"
    counts = read()
    assert poll.poll(0) == [], "nothing has changed since this read"
    print("waits", counts["oom"], counts["limit"], counts["invalid_free"], flush=True)
    ready = poll.poll(600000)
    if not ready or ready[0][1] & (select.POLLERR | select.POLLHUP):
        print("gone" if ready else "timeout", flush=True)
        break
    assert ready == [(fd, select.POLLPRI)], ready
    assert poll.poll(0) != [], "until it is read"
    changed = read()
    assert changed != counts, changed
END
python3 "$work/poll.py" "$mnt/gpu0/events" >"$work/gpu0" 2>&1 &
python3 "$work/poll.py" "$mnt/gpu1/events" >"$work/gpu1" 2>&1 &
python3 "$work/poll.py" "$mnt/proc/$pid/gpu0/events" >"$work/process" 2>&1 &
for waits in gpu0 gpu1 process; do
    eventually reads "$waits" "waits 0 0 0"
done
for i in 1 2 3; do
    tell a oom 0
    eventually reads gpu0 "waits $i 0 0"
    eventually reads process "waits $i 0 0"
done
[ "$(cat "$work/gpu1")" = "waits 0 0 0" ] || fail "a poll of another GPU woke: $(cat "$work/gpu1")"
tell b oom 1
eventually reads gpu1 "waits 1 0 0"

# A handle that has polled before it ever read reads what it was woken for.
python3 - "$mnt/gpu0/events" >"$work/first" <<'END' &
import os, select, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
poll = select.poll()
poll.register(fd, select.POLLPRI)
print("opened", flush=True)
assert poll.poll(600000) == [(fd, select.POLLPRI)]
print(os.read(fd, 4096).decode(), flush=True)
END
eventually reads first opened
sleep 0.3
tell a oom 0
eventually reads first "oom 4"

# A hundred that wait hold nobody up, and all wake.
python3 - "$mnt/gpu1/events" >"$work/many" 2>&1 <<'END' &
import os, select, sys, threading
def wait():
    fd = os.open(sys.argv[1], os.O_RDONLY)
    poll = select.poll()
    poll.register(fd, select.POLLPRI)
    os.pread(fd, 4096, 0)
    os.write(1, b"waits\n")
    poll.poll(600000)
    os.write(1, b"woke " + os.pread(fd, 4096, 0).splitlines()[0] + b"\n")
for _ in range(100):
    threading.Thread(target=wait).start()
END
all_say() { # TEXT
    [ "$(grep -c "$1" "$work/many")" = 100 ]
}
eventually all_say waits
expect version 1
tell b oom 1
eventually all_say "woke oom 2"

# What ends with the process does not change the sums; a value that has no counters never wakes.
python3 - "$mnt/gpu0/current_bytes" <<'END' || fail "poll of a value"
import os, select, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
poll = select.poll()
poll.register(fd, select.POLLPRI)
assert poll.poll(100) == []
poll.register(fd, select.POLLIN)
assert poll.poll(0) != []
END
stop_daemon
