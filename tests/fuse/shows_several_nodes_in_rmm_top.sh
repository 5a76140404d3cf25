#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rmm-top --host over three nodes, each with a daemon and an exporter of its own: figures, filter, order, JSON
# and the live page. A node whose daemon or exporter hangs, or is gone, is shown as such within the
# time-out, and delays no other. Whatever an exporter answers costs one line. 50 nodes with 200
# programs each.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
enter_mount_namespace
# shellcheck source=tests/fuse/exporter.sh
. "${test_path%/*}/exporter.sh"
command -v tmux >/dev/null || skip "no tmux"
as_user=() uid=0 # another user could not come into the folder
unset http_proxy HTTP_PROXY all_proxy ALL_PROXY

top() {
    RMM_RUNTIME_DIR=/proc/none LC_ALL=C.UTF-8 timeout 30 "$RMM_TOP" "$@" </dev/null
}

one_line() { # STATUS TEXT OPTION...
    local status=0 expected=$1 text=$2
    shift 2
    top "$@" >"$work/out" 2>"$work/said" || status=$?
    [ "$status $(wc -l <"$work/said") $(wc -c <"$work/out")" = "$expected 1 0" ] ||
        fail "$*: $status: $(cat "$work/said" "$work/out")"
    grep -qF -- "$text" "$work/said" || fail "$*: $(cat "$work/said")"
}

one_line 2 'unexpected argument "node"' --once node
one_line 2 "exclude --mount, --record, --replay and --html" --host node --html page
for address in a,b 'a b' ftp://a file:///etc/passwd '' http:// "$(printf '%0600d' 0)"; do
    one_line 1 "is not the address of a node" --once --host "$address"
done
port=$(free_ports 1)
one_line 1 "127.0.0.1: nothing listens there" --once --host "127.0.0.1:$port"
one_line 1 "its name is not known" --json --host rmm.invalid

# --- three nodes ------------------------------------------------------------------------

daemons=() exporters=() ports=()
long_name=$(printf '%0120d' 0) # the texts of an exporter begin with the path of its tree
start_node() { # N: with a program N that has N000 bytes
    run=$work/run$1 mnt=$work/$long_name/mnt$1 log=$work/log$1
    export RMM_RUNTIME_DIR=$run
    mkdir -p "$run" "$mnt"
    start_daemon
    start_program "$1"
    gpu "$1" 0
    tell "$1" resource 1 cuda device 0 0
    tell "$1" resource 2 pool "pool$1" 0 1
    tell "$1" take 2 "$1"000
    tell "$1" alloc 0 "$1"000
    start_exporter --timeout 1
    daemons[$1]=$daemon exporters[$1]=$exporter ports[$1]=$port
    daemon=
}
list_gpus 1
for node in 1 2 3; do
    start_node $node
done
addresses=("127.0.0.1:${ports[1]}" "http://127.0.0.1:${ports[2]}/metrics" "http://127.0.0.1:${ports[3]}/json")
nodes=(--host "${addresses[0]}" --from "${addresses[1]}" "${addresses[2]}")

sizes=(0B 1000B 2.0K 2.9K)
# On a busy machine a node may need longer than its time-out: again.
page_has() { # REGULAR EXPRESSION: a question
    top --once "${nodes[@]}" >"$work/page" 2>"$work/said"
    grep -q "$1" "$work/page"
}
eventually page_has "^rmm-top  3 programs  3 nodes$"
for node in 1 2 3; do
    grep -Eq "^127.0.0.1:${ports[$node]} +gpu0 +${sizes[$node]} " "$work/page" || fail "no GPU of node $node: $(cat "$work/page")"
    grep -Eq "^rmmfs_program .*127.0.0.1:${ports[$node]} +${program_pid[$node]} " "$work/page" || fail "no program of node $node: $(cat "$work/page")"
done
[ "$(grep ^rmmfs_program "$work/page" | awk '{ print $3 }' | xargs)" = "${program_pid[3]} ${program_pid[2]} ${program_pid[1]}" ] ||
    fail "order: $(cat "$work/page")"
programs_are() { # PIDS OPTION...: a question
    local pids=$1
    shift
    [ "$(top --once "$@" "${nodes[@]}" | grep ^rmmfs_program | awk '{ print $3 }' | xargs)" = "$pids" ]
}
eventually programs_are "${program_pid[1]} ${program_pid[2]} ${program_pid[3]}" --sort node
eventually programs_are "${program_pid[2]}" --filter ":${ports[2]}"
for width in 40 60 80 120 200; do
    COLUMNS=$width top --once "${nodes[@]}" >"$work/page"
    [ "$(wc -L <"$work/page")" -le $width ] || fail "wider than $width: $(cat "$work/page")"
    grep -q "^COMMAND .*NODE" "$work/page" || fail "no node at $width: $(cat "$work/page")"
done

cat >"$work/check.py" <<'END'
import json, sys
found = json.load(sys.stdin)
silent = dict(word.split('=') for word in sys.argv[1:])
names = [each['node'] for each in found['nodes']]
assert len(names) == 3 and len(set(names)) == 3, names
for number, each in enumerate(found['nodes'], 1):
    name, reason = each['node'], silent.get(str(number))
    assert (each['error'] is None) == (reason is None), each
    assert reason is None or reason.replace('_', ' ') in each['error'], each
    devices = [device for device in found['devices'] if device['node'] == name]
    programs = [program for program in found['processes'] if program['node'] == name]
    if reason:
        assert not devices and not programs, name
        continue
    assert [device['device'] for device in devices] == ['gpu0', 'host'], devices
    assert devices[0]['current_bytes'] == number * 1000, devices
    assert len(programs) == 1 and programs[0]['devices'][0]['current_bytes'] == number * 1000
    assert programs[0]['resources'][1]['name'] == f'pool{number}', programs
END
json_has() { # NODE=REASON...: a question
    top --json "${nodes[@]}" | python3 "$work/check.py" "$@" 2>"$work/said"
}
eventually json_has

# A daemon that hangs, an exporter that hangs, one that is gone: the others are shown.
kill -STOP "${daemons[2]}"
eventually json_has 2=rmmfs_does_not_answer # within 1 s; after some attempts: readers still wait for it
COLUMNS=300 eventually page_has "^rmm-top  2 programs  3 nodes  1 has no figures$"
grep -q "^127.0.0.1:${ports[2]} .*: rmmfs does not answer" "$work/page" || fail "$(cat "$work/page")"
kill -CONT "${daemons[2]}"
kill -STOP "${exporters[3]}"
eventually json_has 3=does_not_answer_within_3_s
kill -CONT "${exporters[3]}"
eventually json_has

# --- live -------------------------------------------------------------------------------

screen() {
    tmux -S "$work/tmux" -f /dev/null "$@"
}
wait_shown() { # REGULAR EXPRESSION
    local deadline=$((SECONDS + 60))
    until screen capture-pane -p >"$work/screen" && grep -qE "$1" "$work/screen"; do
        [ "$SECONDS" -lt "$deadline" ] || fail "never shown: $1: $(cat "$work/screen")"
        sleep 0.05
    done
}
screen -u new-session -d -x 100 -y 30 "RMM_RUNTIME_DIR=/proc/none LC_ALL=C.UTF-8 TERM=screen \
    '$RMM_TOP' --interval 0.1 ${nodes[*]} 2>'$work/errors'; printf '\r\nended with %d' \$?; exec sleep 600"
wait_shown "3 programs  3 nodes"
kill -STOP "${exporters[2]}"
wait_shown "2 programs  3 nodes  1 has no figures"
wait_shown "^127.0.0.1:${ports[2]} +does not answer within 3 s"
tell 1 alloc 0 7000
wait_shown "^rmmfs_program .*127.0.0.1:${ports[1]} .* 7.8K "
screen send-keys h
wait_shown "sort by the next column"
screen send-keys x
kill -CONT "${exporters[2]}"
wait_shown "3 programs  3 nodes"
screen send-keys / "${ports[3]}" Enter Enter
wait_shown "^127.0.0.1:${ports[3]}  pid ${program_pid[3]}"
wait_shown "2.pool3"
screen send-keys p
wait_shown "programs of other nodes cannot be changed"
kill -STOP "${exporters[1]}"
screen send-keys q
wait_shown "ended with 0"
kill -CONT "${exporters[1]}"
[ ! -s "$work/errors" ] || fail "$(cat "$work/errors")"
screen kill-server
tell 1 free 0 7000

# --- what answers may be ----------------------------------------------------------------

start_odd() { # [JSON]
    odd_port=$(free_ports 1)
    python3 "${test_path%/*}/odd_exporter.py" "$odd_port" "$@" >"$work/odd" &
    odd=$!
    eventually grep -q listens "$work/odd"
}
start_odd
is_refused() { # PATH TEXT: a question
    local status=0
    top --once --from "http://127.0.0.1:$odd_port/$1" >"$work/out" 2>"$work/said" || status=$?
    [ "$status $(wc -l <"$work/said") $(wc -c <"$work/out")" = "1 1 0" ] || fail "$1: $status: $(cat "$work/said" "$work/out")"
    grep -qF -- "127.0.0.1: $2" "$work/said"
}
odd() { # PATH TEXT
    eventually is_refused "$@"
}
for path in empty text list other twice nobody nowhere deep cut bomb; do
    odd $path "its answer is not the json of a node"
done
for path in redirect redirect_to_file; do
    odd $path "redirects, which is not followed: HTTP status 30"
done
odd none "HTTP status 404"
odd error "rmmfs does ?[2Jnot answer"
odd huge "its answer is too long"
odd endless "its answer is too long"
odd noise ""
odd head ""
odd gone ""
odd drip "does not answer within 3 s"
odd silent "does not answer within 3 s"
top --once --from "http://127.0.0.1:$odd_port/escapes" >"$work/page"
grep -q '^a?\[2Jb ' "$work/page" || fail "$(cat "$work/page")"
# All at once beside one that answers.
odd_addresses=()
for path in silent drip endless noise deep redirect huge head gone; do
    odd_addresses+=("http://127.0.0.1:$odd_port/$path")
done
nodes=(--from "${addresses[0]}" "${odd_addresses[@]}")
eventually page_has "^rmm-top  1 program  10 nodes  9 have no figures"
kill "$odd"

# --- 50 nodes of 200 programs -----------------------------------------------------------

has_programs() {
    curl -s "http://127.0.0.1:${ports[1]}/json" -o "$work/json" &&
        [ "$(grep -o '"state": "live"' "$work/json" | wc -l)" -ge 200 ]
}
run=$work/run1 mnt=$work/$long_name/mnt1
RMM_RUNTIME_DIR=$run start_programs 200 1 GPU-00000000
eventually has_programs
start_odd "$work/json"
many=${RMM_TEST_QUICK:+4}
fleet=()
for node in $(seq "${many:-50}"); do
    fleet+=("127.0.0.$node:$odd_port")
done
python3 - "$work/json" "$RMM_TOP" "${fleet[@]}" >"$work/cost" 2>&1 <<'END' || fail "many nodes: $(cat "$work/cost")"
import json, os, resource, subprocess, sys, time
programs = [each for each in json.load(open(sys.argv[1]))['processes'] if each['state'] == 'live']
nodes = len(sys.argv) - 3
rows = nodes * sum(len(each['devices']) for each in programs)
assert rows >= nodes * 200, rows
for _ in range(40): # on a busy machine some may need more than their 3 s
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    found = subprocess.run([sys.argv[2], '--once', '--host', *sys.argv[3:]], capture_output=True, text=True,
                           check=False, env=dict(os.environ, COLUMNS='120', LC_ALL='C.UTF-8'))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = found.stdout.splitlines()
    print(found.stderr, *lines[:3], sep='\n')
    if lines and lines[0] == f'rmm-top  {nodes * len(programs)} programs  {nodes} nodes':
        break
else:
    sys.exit('never all nodes')
assert len([line for line in lines if line.startswith('rmmfs_program')]) == rows
print(f'{time.monotonic() - began:.2f} s, {used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime:.2f} s of a processor, {used.ru_maxrss >> 10} MiB')
END
tail -n 1 "$work/cost"
kill "$odd"
end_programs
for node in 1 2 3; do
    exporter=${exporters[$node]}
    stop_exporter
    end_program $node
    daemon=${daemons[$node]} mnt=$work/$long_name/mnt$node
    stop_daemon
done
