#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The runtime directory removed and made again: who was there stays (the segment is open),
# who comes is found, and marks are kept in the new one.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

start_daemon
start_program a
gpu a 0
tell a alloc 0 100
expect gpu0/current_bytes 100
eventually rm -rf "${run:?}" # while the daemon may write its state there
mkdir "$run"
expect gpu0/current_bytes 100
start_program b
gpu b 0
tell b alloc 0 11
expect gpu0/current_bytes 111
kill_program a
expect gpu0/current_bytes 11
expect gpu0/total_bytes 111
eventually test -e "$run/rmmfs.state"
kill_daemon
start_daemon
expect gpu0/total_bytes 111
expect gpu0/peak_bytes 111
stop_daemon
