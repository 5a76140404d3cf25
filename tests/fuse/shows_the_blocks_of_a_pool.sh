#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What lies in a pool: the program makes a report at its next allocation, one for all files
# that show it. One that is idle costs the reader a moment, once; of one that has reported the
# last report is shown, with its age.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

age() { # FILE
    sed -n 's/^# taken_ns_ago //p' "$mnt/$1"
}

start_daemon
start_program a env RMM_DRIVER=sim
tell a pool 0
tell a borrow 0 1000 3
tell a pool 2
process=proc/${program_pid[a]}
pools=("$mnt/$process"/gpu0/mr/*.pool)
[ "${#pools[@]}" = 2 ] || fail "pools: ${pools[*]}"
pool=${pools[0]#"$mnt/"}
[ "$(cat "$mnt/$pool/current_count")" = 3 ] || pool=${pools[1]#"$mnt/"}

# Idle, and never looked at: an error, after a moment; and at once when it is asked again.
! cat "$mnt/$pool/map" 2>"$work/why" || fail "a map without a report"
grep -q "Connection timed out" "$work/why" || fail "no report: $(cat "$work/why")"
expect "$pool/current_count" 3

fetch_report a 2 "$pool/map"
[ "$(head -n 1 "$work/text")" = "#addr bytes state stream" ] || fail "map: $(cat "$work/text")"
grep -q "^# taken_ns_ago [0-9]" "$work/text" || fail "no age: $(cat "$work/text")"
sum() { # STATE
    awk -v state="$1" '!/^#/ && (state == "" || $3 == state) { bytes += $2 } END { print bytes + 0 }' "$work/text"
}
[ "$(sum '')" = "$(cat "$mnt/$pool/reserved_bytes")" ] || fail "sum of the map: $(cat "$work/text")"
held=$(($(cat "$mnt/$pool/current_bytes") + $(cat "$mnt/$pool/padding_bytes")))
[ "$(sum used)" = "$held" ] || fail "used in the map: $(cat "$work/text")"
[ "$(awk '/^# chunk/ { bytes += $4 } END { print bytes }' "$work/text")" = "$(sum '')" ] ||
    fail "chunks of the map: $(cat "$work/text")"
[ "$(grep -c ' used ' "$work/text")" = 3 ] || fail "blocks of the map: $(cat "$work/text")"
grep -v '^#' "$work/text" | sort -c -k1,1 || fail "not by address: $(cat "$work/text")"


# The others show the same report, as long as it is young.
fetch_report a 2 "$pool/size_histogram"
[ "$(awk '!/^#/ { n += $2; bytes += $3 } END { print n, bytes }' "$work/text")" = "3 $held" ] ||
    fail "size_histogram: $(cat "$work/text")"
fetch_report a 2 "$pool/streams"
[ "$(awk '$1 == -1 { print $2, $3 }' "$work/text")" = "$held 3" ] || fail "streams: $(cat "$work/text")"
fetch_report a 2 "$pool/map.svg"
cp "$work/text" "$work/map.svg"
python3 - "$work/map.svg" <<'END' || fail "map.svg: $(cat "$work/map.svg")"
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
space = "{http://www.w3.org/2000/svg}"
assert root.tag == space + "svg", root.tag
assert not [e for e in root.iter() if e.tag == space + "script"]
titles = [e.text for e in root.iter(space + "title")]
assert any("bytes used" in title for title in titles), titles
END
! command -v xmllint >/dev/null || xmllint --noout "$work/map.svg" || fail "xmllint refuses map.svg"

# What lives in the process: the chunks that its pools took are no allocations. Tracking tells
# of stream and age, too.
tell a track 3 0
tell a borrow 3 500 2
fetch_report a 2 "$process/allocations"
tab=$(printf '\t')
[ "$(head -n 1 "$work/text")" = "#addr${tab}size${tab}stream${tab}resource${tab}device${tab}age_ns${tab}first_use${tab}last_use${tab}uses" ] ||
    fail "allocations: $(cat "$work/text")"
[ "$(awk -F'\t' '$2 == 1000 && $3 == -1 && $5 == 0 && $6 == -1 && $9 == -1' "$work/text" | wc -l)" = 3 ] ||
    fail "allocations of the pool: $(cat "$work/text")"
[ "$(awk -F'\t' '$2 == 500 && $5 == -1 && $6 >= 0' "$work/text" | wc -l)" = 2 ] ||
    fail "allocations that are tracked: $(cat "$work/text")"
[ "$(grep -vc '^#' "$work/text")" -le 6 ] || fail "allocations: $(cat "$work/text")"

# Idle now: the last report with its age.
sleep 1.1
[ "$(age "$pool/map")" -gt 1000000000 ] || fail "an idle program has reported again"

# A file stays as it was opened, and stat asks for no report.
for file in map map.svg streams size_histogram; do
    [ "$(stat -c '%a %u %s' "$mnt/$pool/$file")" = "400 $uid 25165824" ] || fail "attributes of $file"
done
tell a borrow 0 700 300
# The last report is shown where one comes too late, and for a second.
all_are_shown() {
    fetch_report a 2 "$pool/map"
    [ "$(grep -c ' used ' "$work/text")" = 303 ]
}
eventually all_are_shown
python3 - "$mnt/$pool/map" <<'END' || fail "what an open map shows"
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
text = b""
while part := os.pread(file, 1000, len(text)):
    text += part
assert os.fstat(file).st_size == len(text) > 8192, (os.fstat(file), len(text))
assert os.pread(file, 1 << 20, 0) == text
END
cp "$mnt/$pool/map" "$work/map"
tar -C "$mnt/$pool" -cf - map | tar -C "$work" -xOf - map >"$work/map.tar" || fail "tar of a map"
cp -r "$mnt/$process" "$work/copy" || fail "cp -r of a process"
for copy in "$work/map.tar" "$work/copy/gpu0/mr/${pool##*/}/map"; do
    diff <(grep -v '^# t' "$work/map") <(grep -v '^# t' "$copy") >/dev/null || fail "$copy differs"
done
[ "$(grep -c used "$mnt/$pool/map")" = 303 ] || fail "grep in a map"
! : 2>/dev/null >"$mnt/$pool/map" || [ "$uid" = 0 ] || fail "a map may be written"

# No such files where there are no blocks, and none of a process that has ended: its memory is gone.
for other in "$mnt/$process"/gpu0/mr/*.cuda "$mnt/$process"/host/mr/*; do
    [ -d "$other" ] || fail "no $other"
    [ -z "$(find "$other/" -name 'map*' -o -name streams -o -name size_histogram)" ] || fail "$other has blocks"
done
kill_program a
expect_gone "$pool/map"
[ -z "$(find "$run" -name '*.tmp')" ] || fail "left behind: $(ls -A "$run")"
stop_daemon
