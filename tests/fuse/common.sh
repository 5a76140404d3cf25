# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What every test of the mount begins with: a private folder with a runtime directory and
# a mount point, a daemon, programs to look at, checks that say what they saw. Sourced.
#
#   RMMFS          the daemon (as built in build/dev, unless told otherwise)
#   RMMFS_PROGRAM  tests/fuse/program.c
#   RMMFS_HANG     tests/fuse/hang.c
#   RMMFS_HOSTILE  tests/fuse/hostile.c
#
# The end, however it comes, stops what was started, unmounts and removes the folder.
set -eu

test_name=$(basename "$0" .sh)
test_path=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
unset XDG_RUNTIME_DIR NOTIFY_SOCKET
build=${test_path%/tests/fuse/*}/build/dev
export RMMFS=${RMMFS:-$build/fusefs/rmmfs}
export RMMFS_PROGRAM=${RMMFS_PROGRAM:-$build/tests/fuse/rmmfs_program}
export RMMFS_HANG=${RMMFS_HANG:-$build/tests/fuse/rmmfs_hang}
export RMMFS_HOSTILE=${RMMFS_HOSTILE:-$build/tests/fuse/rmmfs_hostile}

# Where the private folder is made. A test of several users sets test_users=2: then another
# user must be able to come in, which a folder of tests/run does not allow.
base=${TMPDIR:-/tmp}
if [ -n "${test_users:-}" ]; then
    [ "$(id -u)" = 0 ] || { echo "skipped: needs root, to be two users"; exit 77; }
    command -v setpriv >/dev/null || { echo "skipped: no setpriv"; exit 77; }
    setpriv --reuid 65534 --regid 65534 --clear-groups -- test -x "$base" || base=/tmp
fi
work=$(mktemp -d "$base/rmmfs-test.XXXXXX")
chmod 755 "$work"
run=$work/run
mnt=$work/mnt
log=$work/rmmfs.log
mkdir "$run" "$mnt"
export RMM_RUNTIME_DIR=$run RMM_NVIDIA_PROC=$work/nvidia
if [ -n "${test_users:-}" ]; then # the build folder may be closed to others, too
    cp "$RMMFS" "$RMMFS_PROGRAM" "$RMMFS_HANG" "$RMMFS_HOSTILE" "$work"
    RMMFS=$work/${RMMFS##*/}
    RMMFS_PROGRAM=$work/${RMMFS_PROGRAM##*/}
    RMMFS_HANG=$work/${RMMFS_HANG##*/}
    RMMFS_HOSTILE=$work/${RMMFS_HOSTILE##*/}
fi
uid=$(id -u)
daemon=
memory_group= # a cgroup that a test made for the daemon
groups=()     # those that it made for programs; what is in them goes, too
bare=         # tests/fuse/bench_bare, to compare with
declare -A program_pid program_in program_out

reproduce_line="reproduce: RMMFS=$RMMFS RMMFS_PROGRAM=$RMMFS_PROGRAM $test_path"

reproduce() {
    echo "$reproduce_line"
}

fail() {
    echo "FAILED: $test_name: $*"
    echo "daemon's log:"
    sed 's/^/    /' "$log" 2>/dev/null || true
    [ ! -s "$work/said" ] || sed 's/^/    said: /' "$work/said"
    reproduce
    exit 1
}

skip() {
    echo "skipped: $*"
    exit 77
}

finish() { # [STATUS]
    local status=${1:-$?} name
    trap - EXIT
    exec 2>/dev/null # the shell would tell of each that is killed
    for name in "${!program_pid[@]}"; do
        kill -KILL "${program_pid[$name]}" 2>/dev/null || true
    done
    # shellcheck disable=SC2046  (pids)
    kill -KILL $(jobs -p) 2>/dev/null || true
    # shellcheck disable=SC2046  (what they started, under set -m)
    kill -KILL -- $(jobs -p | sed 's/^/-/') 2>/dev/null || true
    [ -z "$daemon" ] || kill -KILL "$daemon" 2>/dev/null || true
    wait 2>/dev/null || true
    [ -z "$memory_group" ] || rmdir "$memory_group"
    for name in "${groups[@]}"; do
        find "$name" -depth -type d -exec rmdir {} \;
    done
    # Each mount in the folder, the last one first; as a user, by the helper.
    awk -v folder="$work/" 'index($5, folder) == 1 { print $5 }' /proc/self/mountinfo | tac | while read -r name; do
        umount -l "$name" || fusermount3 -u -z "$name"
    done
    rm -rf --one-file-system "$work" # never into a mount that could not be cleared
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || reproduce
    exit "$status"
}
trap finish EXIT
trap 'exit 143' TERM INT

[ -e /dev/fuse ] || skip "no /dev/fuse here"
[ -w /dev/fuse ] || skip "/dev/fuse is not writable for uid $(id -u)"

# From here on the script runs in a mount namespace of its own: the same script once more, whose
# status is this one's.
enter_mount_namespace() {
    [ -z "${RMMFS_TEST_INSIDE:-}" ] || return 0
    local status=0
    "$RMMFS_PROGRAM" mounts true 2>/dev/null || skip "no mount namespaces here"
    RMMFS_TEST_INSIDE=1 "$RMMFS_PROGRAM" mounts "$test_path" || status=$?
    exit "$status"
}

# In a mount namespace, with a /run and a /dev/shm of its own, and the usual places of segments.
enter_own_places() {
    enter_mount_namespace
    mount -t tmpfs tmpfs /run
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    unset RMM_RUNTIME_DIR
}

# --- the mount -------------------------------------------------------------------------

# The type of the topmost mount on the mount point; fails if there is none.
mount_type() {
    awk -v at="$mnt" '$5 == at { for (i = 6; i <= NF; i++) if ($i == "-") type = $(i + 1) }
        END { print type; exit type == "" }' /proc/self/mountinfo
}

is_mounted() {
    mount_type >/dev/null
}

# Run a command until it succeeds: for what another process does in its own time. The deadline is
# for what never happens; it is far above what a slow machine under load takes.
eventually() {
    local deadline=$((SECONDS + 120))
    until "$@"; do
        [ "$SECONDS" -lt "$deadline" ] || fail "never true: $*"
        sleep 0.05
    done
}

answers() {
    [ "$(mount_type)" = fuse.rmmfs ] && [ "$(cat "$mnt/version" 2>/dev/null)" = 1 ]
}

start_daemon() {
    "$RMMFS" -f "$@" "$mnt" 2>>"$log" &
    daemon=$!
    eventually daemon_is_up
}

# make_memory_group MIB: a cgroup with that limit, in which the daemon is started. Both hierarchies;
# memory.swap.max is missing in version 1 without swap accounting.
make_memory_group() {
    local root=/sys/fs/cgroup name=rmmfs-test.$$
    if grep -qw memory $root/cgroup.controllers 2>/dev/null; then
        grep -qw memory $root/cgroup.subtree_control || echo +memory >$root/cgroup.subtree_control || return 1
        memory_group=$root/$name limit_file=memory.max usage_file=memory.current peak_file=memory.peak
    else
        memory_group=$root/memory/$name limit_file=memory.limit_in_bytes
        usage_file=memory.usage_in_bytes peak_file=memory.max_usage_in_bytes
    fi
    mkdir "$memory_group" || { memory_group=; return 1; }
    echo $(($1 << 20)) >"$memory_group/$limit_file" || return 1
    [ ! -e "$memory_group/memory.swap.max" ] || echo 0 >"$memory_group/memory.swap.max"
    printf '#!/bin/sh\necho $$ >%s/cgroup.procs && exec %s "$@"\n' "$memory_group" "$RMMFS" >"$work/in_group"
    chmod 755 "$work/in_group"
    RMMFS=$work/in_group
}

# start_bare PROGRAM [DIRECTORIES FILES BYTES]: on $work/bare
start_bare() {
    local program=$1
    shift
    mkdir "$work/bare"
    "$program" "$work/bare" "$@" &
    bare=$!
    eventually test -e "$work/bare/value"
}

stop_bare() {
    umount "$work/bare"
    wait "$bare"
    bare=
}

daemon_is_up() {
    kill -0 "$daemon" 2>/dev/null || fail "rmmfs did not start"
    answers 2>/dev/null
}

# Its exit status must be 0: a sanitizer that found something changes it.
stop_daemon() {
    local status=0
    kill -TERM "$daemon"
    wait "$daemon" || status=$?
    daemon=
    [ "$status" -eq 0 ] || fail "rmmfs ended with $status"
    ! is_mounted || fail "still mounted after the end of rmmfs"
}

kill_daemon() {
    kill -KILL "$daemon"
    wait "$daemon" 2>/dev/null || true
    daemon=
}

# How much longer than usual the daemon may take: a sanitizer is why.
slowness() {
    awk '/^VmSize:/ { print ($2 >= 1073741824 ? 20 : 1) }' "/proc/$daemon/status"
}

# --- programs --------------------------------------------------------------------------

# start_program NAME [COMMAND...]: a process with a segment; tell NAME ... commands it.
start_program() {
    local name=$1 in out
    shift
    mkfifo "$work/$name.in" "$work/$name.out"
    "$@" "$RMMFS_PROGRAM" <"$work/$name.in" >"$work/$name.out" 2>>"$work/programs.log" &
    program_pid[$name]=$!
    exec {in}>"$work/$name.in" {out}<"$work/$name.out"
    program_in[$name]=$in
    program_out[$name]=$out
    rm "$work/$name.in" "$work/$name.out"
    hear "$name" start
}

hear() { # NAME WHAT
    local answer=
    read -r answer <&"${program_out[$1]}" || true
    [ "$answer" = ok ] || fail "program $1 answers '$answer' to: $2"
}

tell() { # NAME COMMAND...
    local name=$1
    shift
    echo "$*" >&"${program_in[$name]}"
    hear "$name" "$*"
}

# fetch_report NAME ID FILE: a file that shows a report, to $work/text, while the program allocates
# through its resource ID. That may come too late on a busy machine: again.
fetch_report() {
    local tries reader
    for tries in $(seq 40); do
        cat "$mnt/$3" >"$work/text" 2>"$work/why" &
        reader=$!
        while kill -0 "$reader" 2>/dev/null; do
            tell "$1" borrow "$2" 10 1
            tell "$1" return "$2"
        done
        ! wait "$reader" || return 0
        grep -q "Connection timed out" "$work/why" || fail "$3: $(cat "$work/why")"
        sleep 1.1 # until it may be asked again
    done
    fail "no report in $tries tries"
}

# start_programs PROCESSES POOLS UUID [COMMAND...]: processes with a segment each, until
# end_programs.
start_programs() {
    local count=$1 pools=$2 uuid=$3
    shift 3
    : >"$work/programs.out"
    "$@" "$RMMFS_PROGRAM" many "$count" "$pools" "$uuid" >"$work/programs.out" &
    programs=$!
    eventually programs_are_there "$count"
}

programs_are_there() {
    ! grep -q failed "$work/programs.out" || fail "a program could not make its pools"
    [ "$(grep -c ok "$work/programs.out")" -eq "$1" ]
}

end_programs() {
    kill -KILL "$programs"
    wait "$programs" 2>/dev/null || true
}

forget_program() {
    local in=${program_in[$1]} out=${program_out[$1]}
    exec {in}>&- {out}<&-
    unset "program_pid[$1]" "program_in[$1]" "program_out[$1]"
}

end_program() { # NAME: as it would itself
    echo quit >&"${program_in[$1]}"
    wait "${program_pid[$1]}"
    forget_program "$1"
}

kill_program() {
    kill -KILL "${program_pid[$1]}"
    wait "${program_pid[$1]}" 2>/dev/null || true
    forget_program "$1"
}

# The driver's list has N GPUs: then gpu0 is gpu0 whichever program is seen first.
list_gpus() { # N
    local i
    for ((i = 0; i < $1; i++)); do
        mkdir -p "$RMM_NVIDIA_PROC/0000:0$i:00.0"
        printf 'Model: \t\t Test GPU %s\nGPU UUID: \t GPU-0000000%s\n' "$i" "$i" \
            >"$RMM_NVIDIA_PROC/0000:0$i:00.0/information"
    done
}

# The daemon removes files of programs that ended, too: find may miss what it has listed.
remove_files_of() { # UID: a question, for eventually
    find "$run" -user "$1" -delete 2>/dev/null || true
    [ -z "$(find "$run" -user "$1" 2>/dev/null)" ]
}

# The segments that there are, by name.
segments() {
    find "$run" -regex ".*/$uid\\.[0-9a-f]*"
}

# A GPU of a test, number N: location N in every program.
gpu() { # NAME N
    tell "$1" location "$2" "GPU-0000000$2" "0000:0$2:00.0" 1000000 "Test GPU $2"
}

# --- checks ----------------------------------------------------------------------------

expect() { # FILE VALUE
    local seen
    seen=$(cat "$mnt/$1" 2>&1) || fail "cannot read $1: $seen"
    [ "$seen" = "$2" ] || fail "$1 is '$seen', not '$2'"
}

is() { # FILE VALUE: the same as a question
    [ "$(cat "$mnt/$1" 2>/dev/null)" = "$2" ]
}

expect_key() { # FILE KEY VALUE
    local seen
    seen=$(awk -v key="$2" '$1 == key { print $2 }' "$mnt/$1")
    [ "$seen" = "$3" ] || fail "$2 in $1 is '$seen', not '$3'"
}

# The kernel may answer from its cache until the daemon's notice has reached it.
expect_gone() { # PATH
    eventually test ! -e "$mnt/$1"
}
