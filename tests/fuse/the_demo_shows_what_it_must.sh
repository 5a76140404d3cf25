#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/demo, with the programs of this build: it compares what the files say with what
# the trace says, and leaves nothing mounted, also when it is ended in the middle.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "$(dirname "$RMMFS")/.." && pwd)

if [ ! -w /dev/fuse ]; then
    echo "skipped: no /dev/fuse"
    exit 77
fi
if [ ! -x "$build/tools/replay/rmm-replay" ]; then
    echo "skipped: built without rmm-replay (RMM_BUILD_TOOLS=OFF)"
    exit 77
fi
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/rmm-demo-test.XXXXXX")
export TMPDIR RMM_DRIVER=sim
trap 'rm -rf "$TMPDIR"' EXIT

leaves_nothing() {
    if grep -F " $TMPDIR/" /proc/self/mountinfo || [ -n "$(ls -A "$TMPDIR")" ]; then
        ls -A "$TMPDIR"
        echo "FAILED: the demo left something behind"
        exit 1
    fi
}

tools/demo "$build"
leaves_nothing

tools/demo "$build" >/dev/null 2>&1 &
demo=$!
sleep 2
kill -TERM "$demo"
status=0
wait "$demo" || status=$?
# 2: bash 5.2 cannot parse a trap that comes while it reads a command substitution ("unexpected
# EOF"); the script ends with that, and its EXIT trap cleans up all the same.
[ "$status" -eq 143 ] || [ "$status" -eq 2 ] || { echo "FAILED: ended with $status after SIGTERM"; exit 1; }
leaves_nothing
