#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# -o no_inotify: programs that come and go are seen all the same.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

start_daemon -o no_inotify
for name in a b c; do
    start_program "$name"
    gpu "$name" 0
    tell "$name" alloc 0 100
done
expect gpu0/current_bytes 300
kill_program b
expect gpu0/current_bytes 200
eventually rm -rf "${run:?}" # while the daemon may write its state there
mkdir "$run"
start_program d
gpu d 0
tell d alloc 0 5
eventually is gpu0/current_bytes 205
stop_daemon
