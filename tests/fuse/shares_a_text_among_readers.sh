#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sixty-four readers have the figures of a node with many programs open at once. Together that is
# more text than a user may have, but those who see the same share one, and none is refused.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

list_gpus 1
start_daemon
start_programs 150 10 GPU-00000000
eventually is daemon/segments 150
python3 - "$mnt" <<'END' || fail "see above"
import os, sys

mnt = sys.argv[1]
budget = 96 << 20  # of root and of the daemon's user
kept, sizes = [], []
for _ in range(64):
    kept.append(os.open(mnt + "/metrics.all", os.O_RDONLY))
for fd in kept:
    text = b""
    while part := os.read(fd, 1 << 20):
        text += part
    assert text.endswith(b"\n") and text.count(b"rmm_resource_current_bytes{") == 150 * 11, len(text)
    sizes.append(len(text))
print(len(kept), "readers,", sum(sizes), "bytes")
assert sum(sizes) > 2 * budget
again = os.pread(kept[0], 1 << 20, 0)  # renders once more, or shares again
assert again.startswith(b"#")
END
[ "$(awk '$2 == "text_bytes"' "$mnt/daemon/over_budget" | wc -l)" = 0 ] ||
    fail "$(cat "$mnt/daemon/over_budget")"
end_programs
stop_daemon
