#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A long text that is open can be read to its end after its reader's budget for texts is used up.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

list_gpus 1
start_daemon
start_programs 40 4 GPU-00000000
eventually is daemon/segments 40

exec {first}<"$mnt/metrics" {other}<"$mnt/metrics"
opened=("$other")
# fill NAME: opens it until it is refused. Readers of the same figures share a text, so it takes some time.
fill() {
    while [ "${#opened[@]}" -lt 2000 ] && { exec {other}<"$mnt/$1"; } 2>/dev/null; do
        opened+=("$other")
        sleep 0.05
    done
}
fill metrics.all # the largest
fill metrics
[ "${#opened[@]}" -lt 2000 ] || fail "2000 handles are within the budget"
! cat "$mnt/metrics" >/dev/null 2>"$work/why" || fail "one more could be opened"
grep -q "Disk quota exceeded" "$work/why" || fail "no EDQUOT: $(cat "$work/why")"
[ "$(stat -c '%s %b' "$mnt/metrics")" = "25165824 0" ] || fail "stat: $(stat -c '%s %b' "$mnt/metrics")"
echo "${#opened[@]} more were opened"

for size in 1M 4k; do
    dd bs=$size status=none <&"$first" >"$work/text" || fail "cannot be read in parts of $size"
    [ "$(tail -n 1 "$work/text" | cut -d ' ' -f 1)" = rmm_daemon_start_time_seconds ] ||
        fail "ends in $(tail -n 1 "$work/text")"
    exec {first}<&- {first}<&"${opened[0]}"
done

for other in "${opened[@]}"; do
    exec {other}<&-
done
exec {first}<&-
eventually cat "$mnt/metrics" >"$work/text" 2>/dev/null
end_programs
stop_daemon
