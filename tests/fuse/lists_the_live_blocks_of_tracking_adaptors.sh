#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# proc/<pid>/leaks: what tracking adaptors know to be out, and who asked for it.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

header=$'#addr\tsize\tstream\tresource\tdevice\tage_ns\tthread\tstack'
rows() { # FILE: the blocks
    grep -v '^#' "$mnt/$1" || true
}
program=$(basename "$RMMFS_PROGRAM")

# The functions that allocated a block of that size, innermost first, as addr2line finds
# them with nothing but the file's text and the files that it names.
functions() { # FILE SIZE
    local frame path
    for frame in $(rows "$1" | awk -F'\t' -v size="$2" '$2 == size { print $8; exit }' | tr ';' '\n'); do
        path=$(awk -F'\t' -v name="${frame%+*}" '$1 == "# file" && $2 == name { print $3 }' "$mnt/$1")
        [ -z "$path" ] || addr2line -f -e "$path" "${frame##*+}" | head -n 1
    done
}
expect_functions() { # FILE SIZE
    command -v addr2line >/dev/null || return 0
    functions "$1" "$2" | grep -qx do_borrow || fail "no frame of do_borrow: $(cat "$mnt/$1")"
}

start_daemon
start_program a
start_program b
leaks=proc/${program_pid[a]}/leaks
expect "$leaks" "$header"
[ "$(stat -c %a "$mnt/$leaks")" = 400 ] || fail "mode of leaks"

# With stacks and without, of two adaptors; the other process has none.
tell a track 0 1
tell a track 1 0
expect "$leaks" "$header"
tell a borrow 0 1234 2
tell a borrow 1 77 1
[ "$(rows "$leaks" | awk '{ print $2 }' | sort -n | tr '\n' ' ')" = "77 1234 1234 " ] ||
    fail "leaks: $(cat "$mnt/$leaks")"
[ "$(rows "$leaks" | awk '{ print $4 }' | sort -u | wc -l)" = 2 ] || fail "resources: $(cat "$mnt/$leaks")"
rows "$leaks" | awk -v thread="${program_pid[a]}" '$1 !~ /^0x[0-9a-f]+$/ || $3 != "0x0" ||
    $5 != -1 || $6 !~ /^[0-9]+$/ || $6 > 120e9 || $7 != thread { exit 1 }' ||
    fail "columns: $(cat "$mnt/$leaks")"
[ "$(rows "$leaks" | awk '$2 == 77 { print $8 }')" = - ] || fail "a stack that was not captured"
rows "$leaks" | awk -v frame="(^|;)$program[+]0x[0-9a-f]+;" '$2 == 1234 && $8 !~ frame { exit 1 }' ||
    fail "stacks: $(cat "$mnt/$leaks")"
expect "proc/${program_pid[b]}/leaks" "$header"
expect_functions "$leaks" 1234

# Oldest first; times are as fine as the system's clock tick.
sleep 0.05
tell a borrow 0 4321 1
[ "$(rows "$leaks" | awk '{ print $2 }' | tail -n 1)" = 4321 ] || fail "order: $(cat "$mnt/$leaks")"
rows "$leaks" | awk '{ print $6 }' | sort -c -n -r || fail "order: $(cat "$mnt/$leaks")"

# Freed, and gone with the adaptor.
tell a return 0
[ "$(rows "$leaks" | wc -l)" = 1 ] || fail "after the free: $(cat "$mnt/$leaks")"
tell a untrack 1
expect "$leaks" "$header"
grep -q "\\[error\\] tracking 'tracking': 0x[0-9a-f]*: 77 B" "$mnt/proc/${program_pid[a]}/log" ||
    fail "what was out at the end is not in the log: $(cat "$mnt/proc/${program_pid[a]}/log")"

# An open file keeps its text while stat tells the size of a longer one: grep takes no hole for it.
tell a borrow 0 8 2000
exec {opened}<"$mnt/$leaks"
tell a borrow 0 8 2000
grep '^0x' <&"$opened" >"$work/rows" # with -c it would count them all the same
[ "$(wc -l <"$work/rows")" = 2000 ] || fail "grep in a file that was opened before it grew"
exec {opened}<&-
tell a return 0

# More than there are rows: how many more, and all rows are free afterwards.
tell a borrow 0 8 17000
[ "$(rows "$leaks" | grep -c '^0x')" = 16384 ] || fail "rows: $(rows "$leaks" | grep -c '^0x')"
[ "$(tail -n 1 "$mnt/$leaks")" = "# 616 more have no room here" ] || fail "last: $(tail -n 1 "$mnt/$leaks")"
tell a return 0
expect "$leaks" "$header"
tell a borrow 0 99 1
[ "$(rows "$leaks" | awk '{ print $2 }')" = 99 ] || fail "a row used again: $(cat "$mnt/$leaks")"

# Of a program that was killed it is the same, names included.
tell b track 0 1
tell b borrow 0 55 1
b=proc/${program_pid[b]}
without_age() { # FILE
    awk -F'\t' -v OFS='\t' '!/^#/ { $6 = "" } { print }' "$mnt/$1"
}
before=$(without_age "$b/leaks")
kill_program b
eventually grep -qx exited "$mnt/$b/state"
[ "$(without_age "$b/leaks")" = "$before" ] ||
    fail "leaks of what was killed: $(cat "$mnt/$b/leaks"), before: $before"
cp "$mnt/$b/leaks" "$work/leaks_of_b"
expect_functions ../leaks_of_b 55

# Noise: as if there were none.
for segment in $(segments); do
    [ ! -e "$segment.leaks" ] || head -c 300 /dev/urandom >"$segment.leaks"
done
expect "$leaks" "$header"
expect "$b/leaks" "$header"
stop_daemon
