#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: stopped_again_and_again.sh PROGRAM [ARGUMENT]...
#
# Runs the program and stops it for 250 of each 300 ms, as a debugger, a container's quota or
# a machine with other work does: what waits for a time then loses most of that time.
# Exits with the program's status.
set -euo pipefail

"$@" &
program=$!
trap 'kill -KILL "$program" 2>/dev/null || true' EXIT
while kill -0 "$program" 2>/dev/null; do
    sleep 0.05
    kill -STOP "$program" 2>/dev/null || break
    sleep 0.25
    kill -CONT "$program" 2>/dev/null || break
done
status=0
wait "$program" || status=$?
trap - EXIT
exit "$status"
