#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A user who renames, links or copies a segment, while its program runs, after it ended and over a
# restart of the daemon, adds nothing to any sum.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

start_daemon
start_program one
gpu one 0
tell one alloc 0 1000
expect gpu0/current_bytes 1000
segment=$(segments)

# A live one, by many names, one after the other; each is seen before the next.
name=$segment
for i in $(seq 40); do
    next=$run/$uid.$(printf 'aaaa%012x' "$i")
    mv "$name" "$next"
    name=$next
    expect gpu0/current_bytes 1000
done
expect gpu0/total_bytes 1000
expect daemon/segments 1
[ "$(ls "$mnt/proc" | wc -l)" = 1 ] || fail "proc has $(ls "$mnt/proc" | tr '\n' ' ')"
grep -q "refused: it is another name or a copy of segment" "$log" || fail "no reason in the log"

# Its own name again: it is no copy of itself. Away once more, it is refused once more.
rejected=$(cat "$mnt/daemon/segments_rejected")
mv "$name" "$segment"
expect gpu0/current_bytes 1000
mv "$segment" "$name"
expect gpu0/current_bytes 1000
eventually is daemon/segments_rejected $((rejected + 1))

# Two names for one file, and then the first one goes; a copy; a copy of other content.
ln "$name" "$run/$uid.bbbb000000000001"
expect gpu0/current_bytes 1000
rm "$name"
mv "$run/$uid.bbbb000000000001" "$name"
cp "$name" "$run/$uid.bbbb000000000002"
expect gpu0/current_bytes 1000
expect gpu0/total_bytes 1000

# The program ends: once in the totals, whatever is renamed and brought back then.
cp -p "$name" "$work/kept"
kill_program one
expect gpu0/current_bytes 0
expect gpu0/total_bytes 1000
cp -p "$work/kept" "$run/$uid.cccc000000000001"
expect gpu0/total_bytes 1000
for left in $(segments); do
    mv "$left" "$run/$uid.dddd${left: -12}"
    expect gpu0/total_bytes 1000
done

# Nor when the daemon was away meanwhile.
stop_daemon
rm -f "$run/$uid".????????????????
cp -p "$work/kept" "$run/$uid.eeee000000000001"
start_daemon
expect gpu0/total_bytes 1000
expect gpu0/total_count 1

# Another program is another segment.
start_program two
gpu two 0
tell two alloc 0 10
expect gpu0/current_bytes 10
kill_program two
expect gpu0/total_bytes 1010
stop_daemon
