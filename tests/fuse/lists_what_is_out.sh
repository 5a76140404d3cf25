#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# proc/<pid>/leaks: what tracking adaptors know to be out, and who asked for it.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

header="# addr size resource age_ns stack"
rows() { # FILE: without the header
    tail -n +2 "$mnt/$1"
}

start_daemon
start_program a
start_program b
leaks=proc/${program_pid[a]}/leaks
expect "$leaks" "$header"
[ "$(stat -c %a "$mnt/$leaks")" = 440 ] || fail "mode of leaks"

# With stacks and without, of two adaptors; the other process has none.
tell a track 0 1
tell a track 1 0
expect "$leaks" "$header"
tell a borrow 0 1234 2
tell a borrow 1 77 1
[ "$(rows "$leaks" | awk '{ print $2 }' | sort -n | tr '\n' ' ')" = "77 1234 1234 " ] ||
    fail "leaks: $(cat "$mnt/$leaks")"
[ "$(rows "$leaks" | awk '{ print $3 }' | sort -u | wc -l)" = 2 ] || fail "resources: $(cat "$mnt/$leaks")"
rows "$leaks" | awk '$1 !~ /^0x[0-9a-f]+$/ || $4 !~ /^[0-9]+$/ || $4 > 120e9 { exit 1 }' ||
    fail "addresses and ages: $(cat "$mnt/$leaks")"
[ "$(rows "$leaks" | awk '$2 == 77 { print $5 }')" = - ] || fail "a stack that was not captured"
program=$(basename "$RMMFS_PROGRAM")
rows "$leaks" | awk -v frame="(^|;)$program\\+0x[0-9a-f]+" '$2 == 1234 && $5 !~ frame { exit 1 }' ||
    fail "stacks: $(cat "$mnt/$leaks")"
expect "proc/${program_pid[b]}/leaks" "$header"

# A frame's offset is what addr2line takes.
if command -v addr2line >/dev/null; then
    for frame in $(rows "$leaks" | awk '$2 == 1234 { print $5; exit }' | tr ';' '\n' | grep "^$program+"); do
        addr2line -f -e "$RMMFS_PROGRAM" "${frame#*+}"
    done | grep -qx do_borrow || fail "no frame of do_borrow: $(cat "$mnt/$leaks")"
fi

# Freed, and gone with the adaptor.
tell a return 0
[ "$(rows "$leaks" | wc -l)" = 1 ] || fail "after the free: $(cat "$mnt/$leaks")"
tell a untrack 1
expect "$leaks" "$header"

# More than there are rows: how many more, and all rows are free afterwards.
tell a borrow 0 8 17000
[ "$(rows "$leaks" | grep -c '^0x')" = 16384 ] || fail "rows: $(rows "$leaks" | grep -c '^0x')"
[ "$(tail -n 1 "$mnt/$leaks")" = "# 616 more have no room here" ] || fail "last: $(tail -n 1 "$mnt/$leaks")"
tell a return 0
expect "$leaks" "$header"
tell a borrow 0 99 1
[ "$(rows "$leaks" | awk '{ print $2 }')" = 99 ] || fail "a row used again: $(cat "$mnt/$leaks")"

# Of a program that ended, as addresses: nobody knows any more what was mapped where.
tell b track 0 1
tell b borrow 0 55 1
b=proc/${program_pid[b]}
kill_program b
eventually grep -qx exited "$mnt/$b/state"
rows "$b/leaks" | awk '$2 != 55 || $5 !~ /^0x[0-9a-f]+(;0x[0-9a-f]+)*$/ { exit 1 }' ||
    fail "leaks of what has ended: $(cat "$mnt/$b/leaks")"
[ "$(rows "$b/leaks" | wc -l)" = 1 ] || fail "leaks of what has ended: $(cat "$mnt/$b/leaks")"

# Noise: as if there were none.
for segment in $(segments); do
    [ ! -e "$segment.leaks" ] || head -c 300 /dev/urandom >"$segment.leaks"
done
expect "$leaks" "$header"
expect "$b/leaks" "$header"
stop_daemon
