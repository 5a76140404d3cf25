/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes allocation events into the ring; see trace.h, ring.h.
 *
 * Locking: `opening` lets one thread make the ring; others drop their event meanwhile.
 */
#include "publish/trace.h"

#include <time.h>

#include "core/assert.h"
#include "core/clock.h"
#include "core/thread_id.h"
#include "log/log.h"
#include "publish/accounting.h"
#include "segment/segment_events.h"

static const _Atomic(uint32_t) no_request;
const _Atomic(uint32_t) *rmm__trace_request = &no_request;

static _Atomic(rmm_events_layout_t *) ring;
static atomic_flag opening = ATOMIC_FLAG_INIT; /* set for good if it cannot be made */

static void fill_header(rmm_events_header_t *header)
{
    header->magic = RMM_EVENTS_MAGIC;
    header->version_major = RMM_SEGMENT_MAJOR;
    header->version_minor = RMM_SEGMENT_MINOR;
    header->header_bytes = sizeof(*header);
    header->file_bytes = sizeof(rmm_events_layout_t);
    header->records_offset = offsetof(rmm_events_layout_t, records);
    header->records_stride = sizeof(rmm_events_record_t);
    header->records_count = RMM_EVENTS_RECORDS;
    /* release: a thread that sees it ready sees the rest */
    atomic_store_explicit(&header->ready, 1, memory_order_release);
}

/* NULL: not there (yet), or never. */
RMM_COLD static rmm_events_layout_t *open_ring(void)
{
    rmm_events_layout_t *layout = NULL;
    void *memory;

    if (atomic_flag_test_and_set_explicit(&opening, memory_order_relaxed)) {
        return NULL;
    }
    if (rmm__publish_side_file(
            RMM_EVENTS_SUFFIX, sizeof(rmm_events_layout_t), &memory) != RMM_OK) {
        rmm__log_warn(
            "allocation events are not recorded: %s", rmm_last_error_message());
        return NULL;
    }
    layout = memory;
    fill_header(&layout->header);
    /* release: pairs with the acquire in rmm__trace_put() */
    atomic_store_explicit(&ring, layout, memory_order_release);
    return layout;
}

void rmm__trace_put(const rmm_event_t *event, int device, uint32_t resource_id)
{
    rmm_events_layout_t *layout = atomic_load_explicit(&ring, memory_order_acquire);
    rmm_events_record_t *record;
    uint64_t number, now_ns;

    if (layout == NULL && (layout = open_ring()) == NULL) {
        return;
    }
    now_ns = rmm__clock_ns(CLOCK_REALTIME);
    number = atomic_fetch_add_explicit(&layout->header.next, 1, memory_order_relaxed);
    record = &layout->records[number % RMM_EVENTS_RECORDS];
    if (!rmm__ring_take(&record->commit, number)) {
        atomic_fetch_add_explicit(&layout->header.lost, 1, memory_order_relaxed);
        return;
    }
    record->time_ns = now_ns;
    record->pointer = event->pointer;
    record->bytes = event->bytes;
    record->stream = event->stream;
    record->thread = rmm__thread_id();
    record->action = event->action;
    record->device = device;
    record->resource_id = resource_id;
    rmm__ring_give(&record->commit, number);
}
