#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SIGTERM and SIGINT end the daemon at once while another process has a file and a directory open.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

for signal in TERM INT HUP; do
    start_daemon
    exec {file}<"$mnt/host/current_bytes"
    (cd "$mnt/proc" && exec sleep 600) &
    sitter=$!
    eventually test "/proc/$sitter/cwd" -ef "$mnt/proc"
    kill -"$signal" "$daemon"
    status=0
    wait "$daemon" || status=$?
    daemon=
    [ "$status" = 0 ] || fail "SIG$signal: exit status $status"
    ! is_mounted || fail "SIG$signal: still mounted"
    if cat <&"$file" 2>"$work/error"; then
        fail "SIG$signal: the open file still answers"
    fi
    exec {file}<&-
    kill "$sitter"
    wait "$sitter" 2>/dev/null || true
done
