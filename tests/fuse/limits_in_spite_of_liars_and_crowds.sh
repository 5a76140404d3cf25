#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Limits of groups with hundreds of programs and with threads that race, and what a program can do that
# writes lies into its segment and its control page: it takes room from groups of its own user, and
# from a limit of the whole GPU, until it ends; from no other group.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
other=65534
mib=1048576
export RMM_DRIVER=sim
chmod 1777 "$run"
as_other=(setpriv --reuid "$other" --regid "$other" --clear-groups --)

# lie WORD VALUE [TIMES]: in every segment of the other user; each time 1 more
lie() {
    python3 - "$run" "$other" "$@" <<'END'
import os, re, struct, sys
folder, uid, word, value = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
at = {"promised": 168, "wanted": 176, "number": 184}
paths = [os.path.join(folder, name) for name in os.listdir(folder)
         if re.fullmatch(fr"{uid}\.[0-9a-f]{{16}}(\.control)?", name)]
for i in range(int(sys.argv[5]) if len(sys.argv) > 5 else 1):
    for path in paths:
        with open(path, "r+b", buffering=0) as file:
            if word == "share" and path.endswith(".control"):
                file.seek(4752)
                file.write(struct.pack("<Q", value + i))
            elif word != "share" and not path.endswith(".control"):
                file.seek(68)
                locations, = struct.unpack("<I", file.read(4))
                file.seek(locations + at[word])
                file.write(struct.pack("<Q" if word != "number" else "<I", value + i))
        os.utime(path)
END
}
held() { # KIND NAME
    awk -v kind="$1" -v name="$2" '$1 == kind && $2 == name { print $6 }' "$mnt/limits"
}
# Where reading the node takes long, readers get figures that are some milliseconds old.
is_reached() {
    local sum
    sum=$(held "$1" "$2")
    [ "$sum" -le $(($3 * mib)) ] || fail "$1 $2 holds $sum: $(cat "$mnt/limits")"
    [ "$sum" -ge $(($3 * mib * 98 / 100)) ]
}
reaches() { # KIND NAME MIB
    eventually is_reached "$@"
}
anew() { # NAME: without its memory
    tell "$1" return 0
    tell "$1" untrack 0
    tell "$1" pool 0
}

start_daemon
start_program one
tell one pool 0
tell one borrow 0 $mib 1
echo "user 0 gpu0 400MiB" >"$mnt/limits"
echo "user $other gpu0 300MiB" >"$mnt/limits"

# Threads of two programs.
start_program two
tell two pool 0
for name in one two; do
    echo "race 0 1000000" >&"${program_in[$name]}"
done
for name in one two; do
    hear "$name" race
done
reaches user 0 400
kill_program two
kill_program one

# A crowd, which holds nothing: the limit is whose who want it.
start_programs 300 1 SIM-0
start_program one
tell one pool 0
tell one fill 0 $mib
reaches user 0 400
start_program two
tell two pool 0
tell two fill 0 $mib
[ "$(held user 0)" -le $((400 * mib)) ] || fail "too much: $(cat "$mnt/limits")"
kill_program one
tell two fill 0 $mib
reaches user 0 400
end_programs

# A liar in the other user's group, and one that is honest.
start_program liar "${as_other[@]}"
tell liar pool 0
tell liar borrow 0 $mib 1
lie promised $((1 << 50))
start_program honest "${as_other[@]}"
tell honest pool 0
tell honest fill 0 $mib
[ "$(held user "$other")" -le $((300 * mib)) ] || fail "$(cat "$mnt/limits")"
anew two
tell two fill 0 $mib
reaches user 0 400
lie promised $(((1 << 63) - 1)) # cannot be true: counts nothing
tell honest fill 0 $mib
[ "$(held user "$other")" -le $((300 * mib)) ] || fail "$(cat "$mnt/limits")"
lie promised $((1 << 50))
lie share $((1 << 62))
echo "gpu gpu0 2GiB" >"$mnt/limits"
anew two
tell two fill 0 $mib # of the GPU's limit the liar may have all, as of the GPU itself
[ "$(held user 0)" -le $((400 * mib)) ] || fail "$(cat "$mnt/limits")"
lie number 1000 20000 &
flood=$!
echo "gpu gpu0 none" >"$mnt/limits"
anew two
tell two fill 0 $mib
reaches user 0 400
wait "$flood"
lie wanted $(((1 << 62) + 5))
lie number 4000000000
kill_program liar
kill_program honest
start_program honest "${as_other[@]}"
tell honest pool 0
tell honest fill 0 $mib
reaches user "$other" 300
anew two
tell two fill 0 $mib
reaches user 0 400

# A user's limits are bounded, and he has no other's.
for i in $(seq 70); do
    "${as_other[@]}" bash -c 'echo "label l$1 gpu0 1GiB" >"$2"' - "$i" "$mnt/limits" 2>"$work/error" || break
done
grep -q "Disk quota exceeded" "$work/error" || fail "$i limits of a user"
all_64() { [ "$(grep -c "^label .* $other gpu0 " "$mnt/limits")" = 64 ]; }
eventually all_64
echo "label mine gpu0 1GiB" >"$mnt/limits" || fail "root has none left"
stop_daemon

# The same with hidepid: he sees his own.
start_daemon -o hidepid=invisible
"${as_other[@]}" cat "$mnt/limits" >"$work/seen"
! grep -qE "^(user 0|label mine)" "$work/seen" || fail "hidden: $(cat "$work/seen")"
grep -q "^user $other " "$work/seen" || fail "not his own: $(cat "$work/seen")"
stop_daemon
