#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A log grows, and others ask for its size all the time, and keep an older text of it open: every
# tool still reads whole lines, and the last one that was written when it began.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

command -v busybox >/dev/null || skip "no busybox"
start_daemon
start_program a
log_of_a=$mnt/proc/${program_pid[a]}/log
for number in $(seq 100); do # of a ring's 128
    tell a log 3 "number $number"
done
cd "$work"

# Each asks from a thread of its own, which is told its own size.
cat >rival.py <<'END'
import os, sys
old = os.open(sys.argv[1], os.O_RDONLY)
while os.path.exists("go_on"):
    for _ in range(50):
        os.fstat(old)
        os.stat(sys.argv[1])
        try:
            os.lseek(old, 0, os.SEEK_END)
        except OSError:
            pass
END
touch go_on
rivals=()
for _ in 1 2; do
    python3 rival.py "$log_of_a" &
    rivals+=($!)
done

last_is() { # NUMBER COMMAND...
    local seen
    seen=$("${@:2}" 2>&1 | tail -n 1 | cut -d ' ' -f 2-) || true
    [ "$seen" = "number $1" ] || fail "${*:2} ends with '$seen', not 'number $1'"
}
first_is() { # NUMBER COMMAND...
    local seen
    seen=$("${@:2}" 2>&1 | head -n 1 | cut -d ' ' -f 2-) || true
    [ "$seen" = "number $1" ] || fail "${*:2} begins with '$seen', not 'number $1'"
}
for number in $(seq 101 150); do
    tell a log 3 "number $number"
    last_is "$number" tail -n 1 "$log_of_a"
    last_is "$number" tail -n 3 "$log_of_a"
    last_is "$number" tail -c 60 "$log_of_a"
    last_is "$number" busybox tail -n 1 "$log_of_a"
    last_is "$((number - 1))" head -n -1 "$log_of_a"
    last_is "$number" dd if="$log_of_a" bs=100 status=none
    first_is "$number" tac "$log_of_a"
    last_is "$number" python3 -Sc "import sys; print(open('$log_of_a').read(), end='')"
done
rm go_on
wait "${rivals[@]}"
stop_daemon
