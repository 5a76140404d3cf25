#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# diag/mode of a program that runs under rmm-run is written by its owner and root: what is looked
# for changes with the next call, blocks are known from before, modes that are not available are refused.
test_users=2
built=${RMMFS:-} # common.sh copies the daemon
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
built=${built%/fusefs/rmmfs}
built=${built:-$build}
[ -x "$built/tools/run/rmm-run" ] && [ -x "$built/tests/sim/diag/rmm_diag_program" ] ||
    skip "built without rmm-run or its test program"
cp -L "$built"/tools/run/rmm-run "$built"/tests/sim/diag/rmm_diag_program \
    "$built"/tools/inject/librmm-inject.so "$built"/lib/librmm-*.so* "$work"
export LD_LIBRARY_PATH=$work RMM_INJECT_LIBRARY=$work/librmm-inject.so RMM_DRIVER=sim

as() { # UID COMMAND...
    setpriv --reuid "$1" --regid "$1" --clear-groups -- "${@:2}"
}
diagnosed() { # NAME MODES [COMMAND...]: a program that takes steps
    RMMFS_PROGRAM=$work/rmm_diag_program start_program "$1" "${@:3}" "$work/rmm-run" --no-summary --diag "$2" -- \
        "$work/steps"
}
cat >"$work/steps" <<END
#!/bin/sh
exec "$work/rmm_diag_program" steps
END
chmod 755 "$work/steps"
writes() { # UID FILE WORD: "ok", or the errno's words
    if as "$1" bash -c "echo '$3' >$mnt/$2" 2>"$work/error"; then
        echo ok
    else
        sed 's/.*: //' "$work/error"
    fi
}
answers_to() { # UID FILE WORD ANSWER
    local answer
    answer=$(writes "$1" "$2" "$3")
    [ "$answer" = "$4" ] || fail "uid $1 writes '$3' to $2: $answer"
}
logs() {
    grep -q "$1" "$log" || fail "the log does not say: $1"
}

chmod 1777 "$run"
start_daemon
start_program plain
gpu plain 0
diagnosed theirs off setpriv --reuid 1001 --regid 1001 --clear-groups --
diag=proc/${program_pid[theirs]}/diag
eventually test -e "$mnt/$diag/mode"
expect "$diag/cupti" active
expect "$diag/mode" off
[ "$(stat -c '%a %u' "$mnt/$diag/mode")" = "644 1001" ] || fail "mode of mode"

# Off: nothing is looked for, but the blocks are known.
tell theirs launch
tell theirs overrun
expect_key "$diag/stat" launches 0
expect "$diag/findings_total" 0
[ "$(grep -vc '^#' "$mnt/$diag/usage")" = 3 ] || fail "blocks: $(cat "$mnt/$diag/usage")"

# Switched: the write returns when it is in force, or while the program makes no call, late; the
# second line says so.
answers_to 1001 "$diag/mode" bounds ok
[ "$(cat "$mnt/$diag/mode")" = "off
pending bounds" ] || fail "mode that waits: $(cat "$mnt/$diag/mode")"
tell theirs overrun
expect "$diag/mode" bounds
expect "$diag/findings_total" 1
tell theirs launch
expect_key "$diag/stat" launches 0
answers_to 0 "$diag/mode" usage,bounds ok
tell theirs launch
expect "$diag/mode" usage,bounds
expect_key "$diag/stat" launches 1
answers_to 1001 "$diag/mode" off ok
tell theirs overrun
expect "$diag/mode" off
expect "$diag/findings_total" 1

# A write that the program applies meanwhile has returned when it is in force. The program may be
# too late for that on a busy machine: again.
switches_at_once() {
    local mode
    for mode in usage bounds usage,bounds off; do
        answers_to 1001 "$diag/mode" "$mode" ok
        is "$diag/mode" "$mode" || { eventually is "$diag/mode" "$mode" && return 1; }
    done
}
(while :; do echo launch; done >&"${program_in[theirs]}") 2>/dev/null &
feeder=$!
(cat <&"${program_out[theirs]}" >/dev/null) &
drain=$!
eventually switches_at_once
# order was not on from the start; what else was written is in force.
answers_to 1001 "$diag/mode" usage,order "Operation not supported"
logs "diag/mode: not available: order (order and guards can only be on from the start; driver is fixed at the start)"
eventually is "$diag/mode" usage
# As fast as one can write: the program runs on, and the last word counts.
python3 - "$mnt/$diag/mode" <<'END' || fail "500 writes"
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
for i in range(500):
    os.write(fd, (b"usage", b"bounds", b"off", b"usage,bounds")[i % 4])
END
eventually is "$diag/mode" usage,bounds
kill "$feeder" "$drain"
wait "$feeder" "$drain" 2>/dev/null || true

# Refused: others' programs, words that are no mode, programs without a diagnosis.
answers_to 1002 "$diag/mode" usage "Permission denied"
answers_to 1001 "$diag/mode" sunshine "Invalid argument"
logs "diag/mode: \"sunshine\" is not a mode; write off, or a comma-separated list of usage, bounds"
answers_to 1001 "$diag/mode" "usage bounds" "Invalid argument"
answers_to 1001 "$diag/mode" "" "Invalid argument"
! grep -q 'diag/mode: "?"' "$log" || fail "the log takes an empty line for a word"
answers_to 0 "proc/${program_pid[plain]}/diag/mode" usage "Operation not supported"
logs "process ${program_pid[plain]}: diag/mode: the program is not diagnosed: start it with rmm-run"
expect "$diag/mode" usage,bounds

# The diagnosis of a forked child ends with the fork; that of its parent goes on.
diagnosed parent usage
parent=proc/${program_pid[parent]}/diag
tell parent fork
answers_to 0 "$parent/mode" bounds ok
tell parent overrun
expect "$parent/mode" bounds
expect "$parent/findings_total" 1

# A program that has ended applies nothing, also with a descriptor from before.
exec {kept}>"$mnt/$parent/mode"
kill_program parent
ended() { grep -qx exited "$mnt/${parent%/diag}/state"; }
eventually ended
! echo usage >&"$kept" 2>/dev/null || fail "a program that has ended is switched"
exec {kept}>&-
is_closed() { [ "$(stat -c %a "$mnt/$parent/mode")" = 444 ]; }
eventually is_closed
expect "$parent/mode" bounds

# Hidden from others, not from its owner.
stop_daemon
start_daemon -o hidepid=2
! as 1002 test -e "$mnt/$diag/mode" || fail "a hidden process is shown"
answers_to 1001 "$diag/mode" off ok
stop_daemon
