#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# /rmm/processes, users, cgroups and top: the largest first, sums over GPUs, users and control
# groups; a header line that `column -t` puts above its columns; and /rmm/gpu* are folders only.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

other=65534
chmod 1777 "$run"
list_gpus 2
start_daemon
start_program small
gpu small 0
tell small alloc 0 1000
start_program large
gpu large 0
gpu large 1
tell large alloc 0 5000
tell large alloc 1 7000
tell large reserve 1 8000
tell large oom 1
start_program his setpriv --reuid "$other" --regid "$other" --clear-groups --
gpu his 1
tell his location 32 host - 0 host
tell his alloc 1 3000
tell his alloc 32 77
eventually is daemon/segments 3

columns() { # FILE COLUMN...: those columns of each row
    local file=$1
    shift
    awk -v names="$*" '
        NR == 1 { sub(/^#/, ""); for (i = 1; i <= NF; i++) at[$i] = i; next }
        { count = split(names, name, " ")
          for (i = 1; i <= count; i++) printf "%s%s", $at[name[i]], i < count ? " " : "\n" }' \
        "$mnt/$file"
}

shows() { # FILE TEXT COLUMN...
    local file=$1 text=$2 seen
    shift 2
    seen=$(columns "$file" "$@")
    [ "$seen" = "$text" ] || fail "$file: $* are '$seen', not '$text'"
}

shows processes "${program_pid[large]} 0 0,1 12000 8000 0 1 rmmfs_program
${program_pid[his]} $other 1 3000 0 77 0 rmmfs_program
${program_pid[small]} 0 0 1000 0 0 0 rmmfs_program" \
    pid uid gpus current_bytes reserved_bytes host_bytes oom_count comm
shows users "0 13000 8000 0 1 2
$other 3000 0 77 0 1" uid current_bytes reserved_bytes host_bytes oom_count processes

# All three are in the group of this test, as the kernel tells it.
group=$(awk -F: '$1 == 0 && $3 != "/" { print $3; exit }' /proc/self/cgroup)
[ -n "$group" ] || group=$(awk -F: '$3 != "/" { print $3; exit }' /proc/self/cgroup)
[ -n "$group" ] || group=/
case $group in
*[\ \\]*) ;; # shown in another way: a unit test has those
*)
    shows cgroups "16000 8000 77 1 3 $group" \
        current_bytes reserved_bytes host_bytes oom_count processes cgroup
    shows processes "$group
$group
$group" cgroup
    ;;
esac

# As many names as columns, and `column -t` keeps them above each other.
for file in processes users cgroups jobs devices gpu0/processes daemon/over_budget; do
    read -r header <"$mnt/$file"
    [[ $header == "#"[a-z]* ]] || fail "$file begins with '$header'"
    awk -v file="$file" 'NR == 1 { columns = NF }
        NF < columns || (NF > columns && file != "devices") { print file ": " $0; bad = 1 }
        END { exit bad }' "$mnt/$file" || fail "$file has rows of another length than its header"
done
for entry in "$mnt"/gpu*; do
    [ -d "$entry" ] || fail "$entry is no folder"
done

# For people: the same order, aligned.
top=$(cat "$mnt/top")
[ "$(awk '/PID/ { below = 1; next } below { print $1, $3, $4 }' <<<"$top")" = \
    "${program_pid[large]} gpu1 6.8K
${program_pid[large]} gpu0 4.9K
${program_pid[his]} gpu1 2.9K
${program_pid[small]} gpu0 1.0K
${program_pid[his]} host 77B" ] || fail "top: $top"
grep -qE '^gpu1 +976.6K +9.8K ' <<<"$top" || fail "top has no line of gpu1: $top"

# A process that has ended holds nothing.
ended=${program_pid[large]}
kill_program large
eventually is "proc/$ended/state" exited
shows users "$other 3000 77
0 1000 0" uid current_bytes host_bytes
stop_daemon
