#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Side files of 16 and 64 MiB, read by many at once, do not take the daemon's memory: a text ends
# with a line that says what is left out, a user who keeps too much open is refused, another
# one is not.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

other=65534
as=(setpriv --reuid "$other" --regid "$other" --clear-groups --)
forge=$(dirname "$0")/forge_side_files.py
chmod 1777 "$run"
start_daemon
start_program hostile "${as[@]}"
gpu hostile 0
tell hostile alloc 0 1000
segment=$(find "$run" -regex ".*/$other\.[0-9a-f]*")
dir=$mnt/proc/${program_pid[hostile]}
rows=$(python3 "$forge" "$segment" leaks)
python3 "$forge" "$segment" diag >/dev/null
chown "$other:$other" "$segment.leaks" "$segment.diag"

memory() { # KEY: of /proc/<pid>/status, in KiB
    awk -v key="$1:" '$1 == key { print $2 }' "/proc/$daemon/status"
}
limit=$((8 << 20))

ended_early() { # FILE: what is read ends with the line and is not longer than it may be
    "${as[@]}" cat "$dir/$1" >"$work/text" || fail "cannot read $1"
    tail -n 1 "$work/text" | grep -qE '^# [0-9]+ more rows are not shown: over budget$' ||
        fail "$1 ends with $(tail -n 1 "$work/text" | head -c 200)"
    [ "$(stat -c %s "$work/text")" -le $((limit + 100)) ] || fail "$1 has $(stat -c %s "$work/text") bytes"
    [ "$(grep -vc '^#' "$work/text")" -gt 1000 ] || fail "$1 has only $(grep -vc '^#' "$work/text") rows"
}
ended_early leaks
shown=$(grep -vc '^#' "$work/text")
left_out=$(tail -n 1 "$work/text" | awk '{ print $2 }')
modules=$(grep -c '^# file' "$work/text" || true)
[ $((shown + left_out + modules)) -ge "$rows" ] && [ $((shown + left_out)) -le $((rows + 16)) ] ||
    fail "leaks shows $shown of $rows rows and leaves out $left_out"
ended_early diag/usage
"${as[@]}" cat "$dir/diag/kernels" | tail -n 1 | grep -q kkk || fail "no kernels"

# Many readers at once, who keep what they have opened.
cat >"$work/keep.py" <<'END'
import errno, os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
if len(sys.argv) > 4:
    os.setgid(int(sys.argv[4]))
    os.setuid(int(sys.argv[4]))
kept = refused = 0
for i in range(int(sys.argv[1])):
    try:
        fd = os.open(sys.argv[2], os.O_RDONLY)
        os.read(fd, 4096)
        kept += 1
    except OSError as error:
        if error.errno != errno.EDQUOT:
            raise
        refused += 1
print(kept, refused, flush=True)
if sys.argv[3] == "wait":
    sys.stdin.readline()
END
for reader in 1 2 3 4; do
    python3 "$work/keep.py" 8 "$dir/leaks" end "$other" >"$work/kept.$reader" &
    readers[$reader]=$!
done
wait "${readers[@]}" || fail "a reader met another error than EDQUOT"
mkfifo "$work/end" "$work/kept"
python3 "$work/keep.py" 12 "$dir/diag/usage" wait "$other" <"$work/end" >"$work/kept" &
keeper=$!
exec {end}>"$work/end" {told}<"$work/kept"
read -r kept refused <&"$told" || fail "the reader ended"
rm "$work/kept"
[ "$kept" -ge 1 ] && [ "$refused" -ge 6 ] || fail "$kept of 12 texts are open"
grep -qE "^$other text_bytes [0-9]+ [0-9]+ [0-9]+$" "$mnt/daemon/over_budget" ||
    fail "over_budget: $(cat "$mnt/daemon/over_budget")"
expect gpu0/current_bytes 1000
[ "$("${as[@]}" cat "$mnt/gpu0/current_bytes")" = 1000 ] || fail "the user reads no value"
cat "$dir/leaks" >"$work/text" || fail "root cannot read leaks"
echo >&"$end"
wait "$keeper"
eventually grep -qE "^$other text_bytes 0 " "$mnt/daemon/over_budget"
ended_early leaks

# Handles, too.
python3 "$work/keep.py" 5000 "$mnt/gpu0/current_bytes" end "$other" >"$work/kept"
[ "$(cat "$work/kept")" = "4096 904" ] || fail "kept and refused: $(cat "$work/kept")"
grep -q "^$other handles " "$mnt/daemon/over_budget" || fail "over_budget: $(cat "$mnt/daemon/over_budget")"

most=$(memory VmHWM)
now=$(memory VmRSS)
echo "most $most KiB, now $now KiB"
# What a sanitizer keeps says nothing.
[ "$(memory VmSize)" -lt $((1 << 30)) ] || limit_kib=$((4 << 20))
[ "$most" -lt "${limit_kib:-$((160 << 10))}" ] || fail "the daemon took $most KiB"
[ "$now" -lt "${limit_kib:-$((48 << 10))}" ] || fail "the daemon keeps $now KiB"
stop_daemon
