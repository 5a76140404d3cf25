/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost: 64 bytes written for each event, and what the caller's reading of the clock costs. No
 * system call: the ring's pages are there from the start.
 */
#include "diag/timeline.h"

#include <time.h>

#include "core/clock.h"
#include "diag/row.h"
#include "diag/stream_key.h"

size_t rmm__timeline_file_bytes(uint32_t event_count)
{
    return sizeof(rmm_timeline_header_t) +
           (size_t)event_count * sizeof(rmm_timeline_event_t);
}

void rmm__timeline_init(rmm_timeline_t *timeline, void *memory, uint32_t event_count)
{
    rmm_timeline_header_t *header = memory;

    *timeline = (rmm_timeline_t){.header = header};
    if (header == NULL) {
        return;
    }
    timeline->events = (void *)((unsigned char *)memory + sizeof(*header));
    header->magic = RMM_TIMELINE_MAGIC;
    header->version_major = RMM_TIMELINE_MAJOR;
    header->version_minor = RMM_TIMELINE_MINOR;
    header->header_bytes = sizeof(*header);
    header->file_bytes = rmm__timeline_file_bytes(event_count);
    header->events_offset = sizeof(*header);
    header->events_stride = sizeof(rmm_timeline_event_t);
    header->events_count = event_count;
    header->started_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    /* release: all that does not change is written; pairs with timeline_reader.c */
    atomic_store_explicit(&header->ready, 1, memory_order_release);
}

static void put(rmm_timeline_t *timeline, const rmm_timeline_event_t *event)
{
    rmm_timeline_header_t *header = timeline->header;
    uint64_t written = RMM_ROW_GET(header, written);

    timeline->events[written % header->events_count] = *event;
    /* release: the event is written; pairs with timeline_reader.c */
    atomic_store_explicit(&header->written, written + 1, memory_order_release);
}

/* --- streams ----------------------------------------------------------------------- */

static rmm_timeline_stream_t *entry_of(rmm_timeline_t *timeline, uint64_t key)
{
    uint64_t hash = key * 0x9e3779b97f4a7c15ull;

    return &timeline->streams[(hash >> 32) % RMM_TIMELINE_STREAMS];
}

/* A handle that comes back for a new stream is known again from its first block on. */
void rmm__timeline_allocated(rmm_timeline_t *timeline, const rmm_diag_block_v1_t *block)
{
    uint64_t key = rmm__stream_key(block->stream);

    if (key != RMM_STREAM_KEY_LEGACY && block->stream_id != UINT64_MAX) {
        *entry_of(timeline, key) = (rmm_timeline_stream_t){key, block->stream_id};
    }
}

static void
name_stream(rmm_timeline_t *timeline, rmm_stream_t handle, rmm_timeline_event_t *event)
{
    uint64_t key = rmm__stream_key(handle);
    const rmm_timeline_stream_t *known = entry_of(timeline, key);

    if (key == RMM_STREAM_KEY_LEGACY) {
        event->stream_id = 0;
    } else if (known->key == key) {
        event->stream_id = known->id;
    } else {
        event->stream_id = (uint64_t)(uintptr_t)handle;
        event->flags |= RMM_TIMELINE_STREAM_IS_HANDLE;
    }
}

/* --- events ------------------------------------------------------------------------ */

void rmm__timeline_freed(
    rmm_timeline_t *timeline, const rmm_diag_row_t *row, uint64_t now_ns)
{
    const rmm_timeline_event_t event = {
        .kind = RMM_TIMELINE_BLOCK,
        .begin_ns = RMM_ROW_GET(row, allocated_ns),
        .end_ns = now_ns,
        .address = RMM_ROW_GET(row, address),
        .bytes = RMM_ROW_GET(row, bytes),
        .stream_id = RMM_ROW_GET(row, stream_id),
        .resource_id = RMM_ROW_GET(row, resource_id),
        .device = RMM_ROW_GET(row, device),
        .first_user = RMM_ROW_GET(row, first_user),
        .last_user = RMM_ROW_GET(row, last_user)};

    put(timeline, &event);
}

/* 0: it is not shown. */
static uint32_t kind_of(const rmm_diag_event_v1_t *event)
{
    switch (event->kind) {
    case RMM_DIAG_LAUNCH:
        return RMM_TIMELINE_LAUNCH;
    case RMM_DIAG_COPY:
        return RMM_TIMELINE_COPY;
    case RMM_DIAG_SET:
        return RMM_TIMELINE_FILL;
    case RMM_DIAG_PREFETCH:
        return RMM_TIMELINE_PREFETCH;
    case RMM_DIAG_GRAPH_LAUNCH:
        return RMM_TIMELINE_GRAPH;
    default:
        return 0;
    }
}

void rmm__timeline_called(
    rmm_timeline_t *timeline, const rmm_diag_event_v1_t *event, uint32_t user,
    uint64_t now_ns)
{
    bool has_range = event->kind == RMM_DIAG_COPY || event->kind == RMM_DIAG_SET ||
                     event->kind == RMM_DIAG_PREFETCH;
    rmm_timeline_event_t entry = {
        .kind = kind_of(event),
        .flags = event->capturing != 0 ? RMM_TIMELINE_CAPTURED : 0,
        .begin_ns = now_ns,
        .end_ns = now_ns,
        .address = has_range && event->word_count > 0 ? event->words[0] : 0,
        .bytes = event->bytes,
        .device = event->device,
        .first_user = user,
        .last_user = user};

    if (entry.kind != 0) {
        name_stream(timeline, event->stream, &entry);
        put(timeline, &entry);
    }
}
