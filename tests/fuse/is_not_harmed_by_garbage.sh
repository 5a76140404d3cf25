#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files that look like segments and are none: each is refused, counted and logged once with
# the reason, and good programs are shown as before.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

start_daemon
start_program good
gpu good 0
tell good alloc 0 1000
segment=$(segments)
expect gpu0/current_bytes 1000

head -c 100 "$segment" >"$run/$uid.0000000000000001"              # cut
ln -s "$segment" "$run/$uid.0000000000000002"                     # a link
mkfifo "$run/$uid.0000000000000003"                               # nobody writes to it
cp "$segment" "$run/54321.0000000000000004"                    # not of the uid in its name
mkdir "$run/$uid.0000000000000005"
: >"$run/$uid.0000000000000006"                                   # empty
head -c 600000 /dev/urandom >"$run/$uid.0000000000000007"         # large
head -c 147776 /dev/urandom >"$run/$uid.0000000000000008"         # noise
ln "$segment" "$run/$uid.0000000000000009"                        # two names
expect gpu0/current_bytes 1000
rejected=9
[ "$uid" = 0 ] || rejected=8 # a user's daemon does not look at those of others
eventually is daemon/segments_rejected "$rejected"
expect daemon/segments 1
[ "$(grep -c refused "$log")" = "$rejected" ] || fail "$(grep -c refused "$log") lines in the log"
rm -r "$run"/*.000000000000000?
echo "a line" >"$run/notes.txt"
expect gpu0/current_bytes 1000
expect daemon/segments_rejected "$rejected"

# Bits flipped anywhere: whatever the reader makes of them, nothing breaks.
python3 - "$segment" "$run" <<'END'
import os, random, sys
whole = bytearray(open(sys.argv[1], "rb").read())
random.seed(7)
for i in range(150):
    bytes_ = bytearray(whole)
    for _ in range(random.choice([1, 2, 30])):
        at = random.randrange(0, random.choice([448, 4600, 17300, len(whole)]))
        bytes_[at] ^= 1 << random.randrange(8)
    name = "%s/%d.%016x" % (sys.argv[2], os.getuid(), 0x1000 + i)
    with open(name + ".new", "wb") as file:
        file.write(bytes_)
    os.rename(name + ".new", name)
END
grep -r . "$mnt" >/dev/null 2>&1 || true
expect gpu0/current_bytes 1000
expect "proc/${program_pid[good]}/gpu0/current_bytes" 1000
rm "$run"/*.000000000000????

# Somebody holds one that cannot be read: that process is shown as unreadable, in no sum.
python3 - "$run/$uid.00000000000000aa" <<'END' &
import fcntl, os, sys, time
with open(sys.argv[1] + ".new", "wb") as file: # nobody sees it before it is held
    fcntl.flock(file, fcntl.LOCK_EX)
    file.write(b"noise" * 1000)
    file.flush()
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    time.sleep(600)
END
holder=$!
eventually is "proc/$holder/state" unreadable
[ "$(ls "$mnt/proc/$holder" | tr '\n' ' ')" = "state uid " ] || fail "proc/$holder has $(ls "$mnt/proc/$holder")"
expect "proc/$holder/uid" "$(id -u)"
expect gpu0/current_bytes 1000
kill -KILL "$holder"
eventually test ! -e "$mnt/proc/$holder"
rm "$run/$uid.00000000000000aa"

# A segment that its program cuts while it is in use: unreadable, not 0 and not fatal.
start_program cut
gpu cut 0
tell cut alloc 0 5
expect gpu0/current_bytes 1005
# not by the list of the directory: the daemon shortens segments that have no process, and may
# so bring back one of those above after its removal
cut=$(grep -oE "$run/$uid\.[0-9a-f]+\$" "/proc/${program_pid[cut]}/maps" | head -n 1)
truncate -s 1000 "$cut"
expect gpu0/current_bytes 1000
expect "proc/${program_pid[cut]}/state" unreadable
expect_gone "proc/${program_pid[cut]}/gpu0"
cut_pid=${program_pid[cut]}
kill_program cut
eventually test ! -e "$mnt/proc/$cut_pid"

# A report of blocks that is none, and one with bits flipped anywhere.
start_program pool env RMM_DRIVER=sim
tell pool pool 0
tell pool borrow 0 1000 20
tell pool track 1 0
directory=proc/${program_pid[pool]}
files=$(cd "$mnt" && printf '%s ' "$directory"/gpu*/mr/*.pool/{map,map.svg,streams,size_histogram})
fetch_report pool 1 "${files%% *}"
report=$(find "$run" -name '*.blocks')
read_report() { # all of them; prints their errors
    local file
    for file in $files "$directory/allocations"; do
        timeout 120 cat "$mnt/$file" 2>&1 >/dev/null || [ $? != 124 ] || fail "$file hangs"
    done
}
mv "$report" "$work/report"
for kind in empty noise directory fifo link "two names" cut; do
    case $kind in
    empty) : >"$report" ;;
    noise) head -c 3000 /dev/urandom >"$report" ;;
    directory) mkdir "$report" ;;
    fifo) mkfifo "$report" ;;
    link) ln -s "$work/report" "$report" ;;
    "two names") cp "$work/report" "$report" && ln "$report" "$run/second" ;;
    cut) head -c 500 "$work/report" >"$report" ;;
    esac
    read_report >"$work/errors"
    [ "$(grep -cE "Input/output error|Connection timed out" "$work/errors")" = 4 ] ||
        fail "a report that is $kind: $(cat "$work/errors")"
    rm -rf "$report" "$run/second"
done
for i in $(seq 20); do
    python3 - "$work/report" "$report" "$i" <<'END'
import os, random, sys
random.seed(int(sys.argv[3]))
whole = bytearray(open(sys.argv[1], "rb").read())
for _ in range(random.choice([1, 2, 30])):
    whole[random.randrange(random.choice([128, 192, len(whole)]))] ^= 1 << random.randrange(8)
with open(sys.argv[2] + ".new", "wb") as file:
    file.write(whole)
os.rename(sys.argv[2] + ".new", sys.argv[2])
END
    read_report >/dev/null
done
expect gpu0/current_bytes 1000
stop_daemon
