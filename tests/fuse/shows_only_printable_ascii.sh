#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Strings of programs are shown in printable ASCII in every file of the tree, and in the daemon's own
# log: U+202E would reverse the direction of what follows it on a line, an escape sequence change the
# terminal.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

turn=$(printf '\342\200\256\033[31m"\\')
cp "$RMMFS_PROGRAM" "$work/gpj.$turn"
RMMFS_PROGRAM="$work/gpj.$turn"
start_daemon
start_program a
pid=${program_pid[a]}
tell a location 0 "GPU-$turn" 0000:00:00.0 1000000 "Test ${turn}GPU"
tell a resource 1 "p$turn" "pool$turn" 0 0
tell a track 2 1
tell a borrow 2 100 1
tell a log 3 "before ${turn}after"
tell a oom 0
has() {
    grep -q "$1" "$mnt/$2"
}
eventually has "before ???" log

# Nothing but printable ASCII, newlines and the tabs of tables, in any file or name, and the message
# is there with a ? for each other byte.
if LC_ALL=C grep -raP '[^\x20-\x7e\n\t]' "$mnt" >"$work/seen"; then
    fail "not printable: $(head -n 3 "$work/seen" | od -c | head -n 20)"
fi
if find "$mnt" | LC_ALL=C grep -P '[^\x20-\x7e]' >"$work/seen"; then
    fail "names: $(od -c "$work/seen")"
fi
for file in log "proc/$pid/log"; do
    has 'before ????\[31m"\\after' "$file" || fail "$file: $(cat "$mnt/$file")"
done
for pipe in log_pipe "proc/$pid/log_pipe"; do
    timeout 120 head -n 1 "$mnt/$pipe" | grep -q 'before ????\[31m"\\after' || fail "$pipe"
done
has '^gpj.???' "proc/$pid/comm" || fail "comm: $(cat "$mnt/proc/$pid/comm")"
has 'gpj.????' "proc/$pid/cmdline" || fail "cmdline: $(cat "$mnt/proc/$pid/cmdline")"
python3 - "$mnt/json" <<'END' || fail "json"
import json, sys
process, = json.load(open(sys.argv[1]))["processes"]
assert process["comm"].startswith("gpj.???"), process["comm"]
END
has 'rmm_process_up{.*comm="gpj.???' metrics || fail "metrics"

# The log of the daemon: a word that a user wrote.
! printf '%s' "$turn" >"$mnt/proc/$pid/diag/mode" 2>"$work/error" || fail "that is a mode"
grep -qF '"????[31m"\" is not a mode' "$log" || fail "the word is not in the log"
if LC_ALL=C grep -aP '[^\x20-\x7e\n\t]' "$log" >"$work/seen"; then
    fail "not printable in the log: $(head -n 3 "$work/seen" | od -c | head -n 20)"
fi
stop_daemon
