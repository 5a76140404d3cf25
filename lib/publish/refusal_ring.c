/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts refused allocations into the segment's ring, so that the daemon can tell later what was
 * refused, and who held the memory at that moment. ring.h says how a record is taken and given.
 *
 * The daemon watches the directory of the segments by inotify, which tells nothing of what is
 * stored through a mapping. So the file's times are changed, by its name: a descriptor that was
 * kept open would be closed by programs that close all.
 */
#include "publish/refusal_ring.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "core/clock.h"
#include "core/uncancelled.h"
#include "publish/publisher.h"
#include "segment/ring.h"

#define NOTIFY_EVERY_NS 1000000u

static void
fill(rmm_segment_refusal_t *record, const rmm_accounting_t *accounting, uint64_t bytes)
{
    const rmm_segment_slot_t *slot = accounting->slot;

    record->time_ns = rmm__clock_ns(CLOCK_REALTIME);
    record->bytes = bytes;
    record->device_free_bytes = rmm__figure_get(&accounting->record->device_free_bytes);
    record->current_bytes = rmm__figure_get(&slot->current_bytes);
    record->reserved_bytes = rmm__figure_get(&slot->reserved_bytes);
    record->location = accounting->location;
    record->instance_id = slot->instance_id;
    memcpy(record->type, slot->type, sizeof(record->type));
    memcpy(record->name, slot->name, sizeof(record->name));
}

/* True at most once in NOTIFY_EVERY_NS, over all threads. */
static bool is_due(void)
{
    static _Atomic(uint64_t) last_ns;
    uint64_t last = atomic_load_explicit(&last_ns, memory_order_relaxed);
    uint64_t now = rmm__clock_ns(CLOCK_MONOTONIC);

    return now - last >= NOTIFY_EVERY_NS &&
           atomic_compare_exchange_strong_explicit(
               &last_ns, &last, now, memory_order_relaxed, memory_order_relaxed);
}

/* A segment that has lost its name has no reader: nothing to do. */
void rmm__segment_touch(void)
{
    RMM_UNCANCELLED;
    char path[2 * RMM_RUNTIME_DIR_BYTES];

    if (rmm__publisher.state == RMM_PUBLISH_SHARED) {
        snprintf(
            path, sizeof(path), "%s/%s", rmm__publisher.directory, rmm__publisher.name);
        (void)utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
    }
}

void rmm__refusal_put(
    const rmm_accounting_t *accounting, uint64_t bytes, const rmm_refused_by_t *by)
{
    rmm_segment_layout_t *segment = rmm__publisher.segment;
    rmm_segment_refusal_t *record;
    uint64_t number;

    if (!rmm__segment_back(
            &segment->refusals,
            sizeof(segment->refusals) + sizeof(segment->refusal_records))) {
        return;
    }
    number =
        atomic_fetch_add_explicit(&segment->refusals.next, 1, memory_order_relaxed);
    record = &segment->refusal_records[number % RMM_REFUSAL_RECORDS];
    if (!rmm__ring_take(&record->commit, number)) {
        return;
    }
    fill(record, accounting, bytes);
    record->limit_of = by->of;
    record->limit_bytes = by->limit_bytes;
    rmm__ring_give(&record->commit, number);
    if (is_due()) {
        rmm__segment_touch();
    }
}
