#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The kernel kills a process whose control group is full. The daemon refuses before that: a read
# that would need too much fails with ENOMEM, and a new program is not shown, which
# daemon/unshown tells. When memory is free again all is as before.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=1:thread_local_quarantine_size_kb=64:allocator_release_to_os_interval_ms=100
# Root makes the group, and other users read.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

make_memory_group 1024 2>/dev/null || skip "no memory cgroup can be made here"
list_gpus 1
start_daemon
start_programs 300 4 GPU-00000000
eventually is daemon/segments 300
cat "$mnt/metrics" "$mnt/json" >/dev/null
sleep 1.5 # until the texts and the snapshot are freed
limit=$(($(cat "$memory_group/$usage_file") * 8 / 7 + (20 << 20)))
echo $limit >"$memory_group/$limit_file"

# Descriptors keep their texts, long ones and then short ones, until there is memory for none. Each is
# another user's: readers who see the same share a text.
cat >"$work/fill.py" <<'END'
import errno, os, sys
held = []
for name in "metrics", "json", "processes":
    refused = 0
    while refused < 3: # what another text had meanwhile is free again
        try:
            os.seteuid(20000 + len(held))
            held.append(os.open(sys.argv[1] + "/" + name, os.O_RDONLY))
        except OSError as error:
            assert error.errno == errno.ENOMEM, error
            refused += 1
        finally:
            os.seteuid(0)
    print(name, len(held), flush=True)
print("full", flush=True)
sys.stdin.readline()
END
mkfifo "$work/hold"
python3 "$work/fill.py" "$mnt" <"$work/hold" >"$work/filled" 2>&1 &
filler=$!
exec {hold}>"$work/hold"
filled() {
    kill -0 "$filler" 2>/dev/null || fail "the reader: $(cat "$work/filled")"
    grep -q full "$work/filled"
}
eventually filled
expect daemon/segments 300 # values need no memory
expect gpu0/current_bytes $((300 * 16384))

if [ "$(slowness)" != 1 ]; then # a sanitizer keeps memory that is freed
    echo >&"$hold"
    wait "$filler" || fail "the reader: $(cat "$work/filled")"
    expect daemon/segments 300
    end_programs
    stop_daemon
    exit 0
fi
sleep 1.5 # the snapshot is freed, and its memory taken away
echo $(($(cat "$memory_group/$usage_file") + (2 << 20))) >"$memory_group/$limit_file"
for i in $(seq 20); do
    start_program "p$i"
done
unshown() { grep -q "out of memory: raise MemoryMax" "$mnt/daemon/unshown"; }
eventually unshown
[ "$(grep -c "out of memory: segments are not shown" "$log")" = 1 ] || fail "not said once: $(cat "$log")"

echo $limit >"$memory_group/$limit_file"
echo >&"$hold"
wait "$filler" || fail "the reader: $(cat "$work/filled")"
eventually is daemon/segments 320
expect daemon/unshown 0
cat "$mnt/metrics" >"$work/metrics" || fail "metrics"
[ "$(grep -c '^rmm_process_up' "$work/metrics")" -eq 320 ] || fail "not all processes are in metrics"
! grep -qsE '^oom_kill [1-9]' "$memory_group"/memory.{events,oom_control} || fail "the kernel has killed"
end_programs
stop_daemon
