#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# limit_bytes of a resource and of a process on a GPU: the program obeys from its next
# allocation or growth, the refusals are counted and logged, the limit outlives the daemon and
# ends with the program.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

refuses() { # NAME COMMAND...: as tell, but the program cannot
    local name=$1 answer=
    shift
    echo "$*" >&"${program_in[$name]}"
    read -r answer <&"${program_out[$name]}" || true
    [ "$answer" != ok ] || fail "program $name could: $*"
}
read_only() {
    [ "$(stat -c %a "$mnt/$1")" = 444 ]
}
gone() { # the kernel may keep a name for a second
    [ ! -e "$mnt/$1" ]
}
key() { # FILE KEY
    awk -v key="$2" '$1 == key { print $2 }' "$mnt/$1"
}
invalid() { # FILE WORD
    if printf '%s' "$2" >"$mnt/$1" 2>"$work/error"; then
        fail "$1 takes '$2'"
    fi 2>"$work/error"
    grep -q "Invalid argument" "$work/error" || fail "$1 at '$2': $(cat "$work/error")"
}

start_daemon
start_program a env RMM_DRIVER=sim
tell a pool 0
tell a borrow 0 1000 3
process=proc/${program_pid[a]}/gpu0
resource=$(cd "$mnt" && echo "$process"/mr/*.pool)

expect "$resource/limit_bytes" max
expect "$process/limit_bytes" max
[ "$(stat -c %a "$mnt/$process/limit_bytes")" = 644 ] || fail "mode of limit_bytes"

# A resource: what it hands out.
echo 4000 >"$mnt/$resource/limit_bytes"
expect "$resource/limit_bytes" 4000
expect "$process/limit_bytes" max
tell a borrow 0 1000 1
refuses a borrow 0 1000 1
refuses a borrow 0 1 1
expect "$resource/current_bytes" 4000
expect "$resource/limit_count" 2
expect_key "$process/events" limit 2
expect_key gpu0/events limit 2
[ "$(grep -c 'mr/.*limit_bytes 4000 is reached' "$mnt/proc/${program_pid[a]}/log")" = 1 ] ||
    fail "the log: $(cat "$mnt/proc/${program_pid[a]}/log")"
echo 1000 >"$mnt/$resource/limit_bytes" # less than it has: nothing is taken away
expect "$resource/current_bytes" 4000
refuses a borrow 0 1 1
tell a return 0
tell a borrow 0 1000 1
echo max >"$mnt/$resource/limit_bytes"
expect "$resource/limit_bytes" max
tell a borrow 0 1000 10

# A process: what it holds from the GPU.
reserved=$(cat "$mnt/$process/reserved_bytes")
echo "$reserved" >"$mnt/$process/limit_bytes"
expect "$process/limit_bytes" "$reserved"
refuses a borrow 0 67108864 1
expect "$process/reserved_bytes" "$reserved"
[ "$(key "$process/events" limit)" -gt 2 ] || fail "no growth was refused"
grep -q "/gpu\*/limit_bytes $reserved is reached" "$mnt/proc/${program_pid[a]}/log" ||
    fail "the log: $(cat "$mnt/proc/${program_pid[a]}/log")"

# It stays without a daemon, and the next one shows it.
kill_daemon
refuses a borrow 0 67108864 1
start_daemon
expect "$process/limit_bytes" "$reserved"
refuses a borrow 0 67108864 1
printf 1GiB >"$mnt/$process/limit_bytes"
expect "$process/limit_bytes" 1073741824
tell a borrow 0 67108864 1

# The grammar. What is no command changes nothing.
for word in 0=0 17=17 3KiB=3072 8MiB=8388608 2GiB=2147483648 8589934591GiB=9223372035781033984; do
    echo "${word%=*}" >"$mnt/$process/limit_bytes"
    expect "$process/limit_bytes" "${word#*=}"
done
for word in -1 ' 5' 5K 5G 1e3 0x10 max1 maxmax KiB 5MiB5 8589934592GiB \
    9223372036854775808 99999999999999999999 all; do
    invalid "$process/limit_bytes" "$word"
    invalid "$resource/limit_bytes" "$word"
done
expect "$process/limit_bytes" 9223372035781033984

# A limit is of one resource: the next one in its slot has none.
echo 0 >"$mnt/$resource/limit_bytes"
tell a return 0
tell a untrack 0
eventually gone "$resource"
tell a pool 0
resource=$(cd "$mnt" && echo "$process"/mr/*.pool)
expect "$resource/limit_bytes" max
tell a borrow 0 1000 1

end_program a
eventually is "${process%/gpu0}/state" exited
eventually read_only "$process/limit_bytes"
for file in "$process/limit_bytes" "$resource/limit_bytes" "$process/trim"; do
    if echo 5 >"$mnt/$file"; then
        fail "$file of an exited process took a command"
    fi 2>/dev/null
done
stop_daemon
