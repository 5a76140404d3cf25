#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A mount that cannot be: one line that says what is wrong, exit status 1, or 2 after wrong
# usage, nothing mounted.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

refuses() { # PATTERN ARGUMENT...
    local pattern=$1 status=0
    shift
    "$RMMFS" "$@" >"$work/out" 2>&1 || status=$?
    [ "$status" = "${expected:-1}" ] || fail "rmmfs $*: exit status $status"
    [ "$(wc -l <"$work/out")" = 1 ] || fail "rmmfs $*: not one line: $(cat "$work/out")"
    grep -q -- "$pattern" "$work/out" || fail "rmmfs $*: $(cat "$work/out")"
    [ "$(grep -c "$work" /proc/self/mountinfo)" = "${mounts:-0}" ] || fail "rmmfs $* left a mount"
}

refuses "$work/nowhere does not exist: .mkdir" "$work/nowhere"
refuses "No such file or directory: name an empty directory" "$work/nowhere/deeper"
refuses "no?\[31m? does not exist" "$work/no"$'\e[31m\a'
refuses "$work/nowhere does not exist: nothing is mounted there" --clear "$work/nowhere"
refuses "No such file or directory" -c "$work/nowhere/deeper"
[ ! -e "$work/nowhere" ] || fail "rmmfs made a directory that somebody named"
"$RMMFS" -c "$mnt" || fail "nothing is mounted there: nothing to clear, and no failure"
expected=2 refuses "unknown option -o no?\[31m?;" -o $'no\e[31m\a' "$mnt"
expected=2 refuses "option --no?\[31m?;" $'--no\e[31m\a'
touch "$work/file"
refuses "is not a directory" "$work/file"
mkdir "$work/full"
touch "$work/full/something"
refuses "is not empty" "$work/full"
refuses "it would hide the segments in" "$run"
refuses "it would hide the segments in" -f "$work" -o nonempty
expected=2 refuses "unknown option -o no_such;" -o no_such "$mnt"
for option in max_read=131072 max_read=many max_background=5 blksize=4096 user_id=5 fd=3 rootmode=40000 \
    default_permissions subtype=x fsname=x auto_unmount allow_root sync dirsync remount; do
    expected=2 refuses "unknown option -o $option;" -o "ro,$option" "$mnt"
done
expected=2 refuses "one mount point only, not also '$work/full'" "$mnt" "$work/full"
expected=2 refuses '-o gid: "0x" is not a group' -o gid=0x "$mnt"
expected=2 refuses '-o hidepid: "3" is not off' -o hidepid=3 "$mnt"
for span in 11 604801 "" 1h; do
    expected=2 refuses "-o history: \"$span\" is not 12 to 604800 seconds" -o "history=$span" "$mnt"
done
expected=2 refuses "-o noatime takes no value" -o noatime=1 "$mnt"
RMM_RUNTIME_DIR=$work/file/run refuses "RMM_RUNTIME_DIR\|cannot make" "$mnt"
RMM_RUNTIME_DIR=relative refuses "absolute path" "$mnt"
expected=2 refuses "option --no-such; see --help" --no-such
expected=2 refuses "option -x; see --help" -x
expected=2 refuses "options needs a value: OPTS" -o
"$RMMFS" --help | grep -q "^Usage: rmmfs" || fail "no --help"
"$RMMFS" --version | grep -qE '^rmmfs [0-9]+\.[0-9]+\.[0-9]+$' || fail "no --version"
for option in --help --version; do
    ! "$RMMFS" $option >/dev/full 2>"$work/out" || fail "$option: a full disk is no failure"
    [ "$(cat "$work/out")" = "rmmfs: cannot write to standard output: No space left on device" ] ||
        fail "$option: $(cat "$work/out")"
done

# What is accepted works: the daemon answers, and ends with 0.
for option in ro rw dev nodev suid nosuid exec noexec atime noatime noatime,atime \
    "$(printf 'noatime,%.0s' {1..40})" allow_other nonempty no_inotify; do
    [ "$option" != allow_other ] || [ "$(id -u)" = 0 ] || continue
    start_daemon -o "$option"
    cat "$mnt/metrics" >/dev/null || fail "-o $option: the daemon does not answer"
    stop_daemon
done

# Twice on one directory.
start_daemon
mounts=1
refuses "mounted on $mnt already (pid $daemon)" "$mnt"
refuses "mounted on $mnt already" "$mnt/"
(cd "$work" && refuses "mounted on $mnt already" mnt)
answers || fail "the first daemon does not answer any more"
stop_daemon

# Root that may not mount, as in most containers.
mounts=0
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    real=$RMMFS
    printf '#!/bin/sh\nexec setpriv --bounding-set -sys_admin --inh-caps -sys_admin -- %s "$@"\n' \
        "$real" >"$work/unable"
    chmod +x "$work/unable"
    RMMFS=$work/unable
    refuses "cannot mount on $mnt: .*Operation not permitted: a container needs CAP_SYS_ADMIN" "$mnt"
    RMMFS=$real
fi
