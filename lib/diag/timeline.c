/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes what happened, event by event, into a ring (timeline_format.h) for a picture of the
 * program's memory over time.
 *
 * Cost: 64 bytes written for each event, and what the caller's reading of the clock costs. No
 * system call: the ring's pages are there from the start.
 */
#include "diag/checker.h"

#include <time.h>

#include "core/clock.h"
#include "core/hash.h"
#include "diag/row.h"
#include "diag/stream_key.h"

enum { STREAMS = 64 };

/* A stream that blocks were allocated on: events name it by its handle only. */
typedef struct stream {
    uint64_t key; /* of its handle; 0: none */
    uint64_t id;
} stream_t;

typedef struct state {
    rmm_diag_engine_t *engine;
    rmm_timeline_header_t *header; /* borrowed, as the next */
    rmm_timeline_event_t *events;
    stream_t streams[STREAMS]; /* at the hash of its key */
} state_t;

size_t rmm__timeline_file_bytes(uint32_t event_count)
{
    return sizeof(rmm_timeline_header_t) +
           (size_t)event_count * sizeof(rmm_timeline_event_t);
}

static bool is_wanted(const rmm_diag_engine_desc_t *desc)
{
    return desc->timeline != NULL;
}

static bool
init(void *state, rmm_diag_engine_t *engine, const rmm_diag_engine_desc_t *desc)
{
    state_t *self = state;
    rmm_timeline_header_t *header = desc->timeline;
    uint32_t event_count = desc->timeline_events;

    self->engine = engine;
    self->header = header;
    self->events = (void *)((unsigned char *)desc->timeline + sizeof(*header));
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
    return true;
}

static void put(state_t *self, const rmm_timeline_event_t *event)
{
    rmm_timeline_header_t *header = self->header;
    uint64_t written = RMM_ROW_GET(header, written);

    self->events[written % header->events_count] = *event;
    /* release: the event is written; pairs with timeline_reader.c */
    atomic_store_explicit(&header->written, written + 1, memory_order_release);
}

/* --- streams ----------------------------------------------------------------------- */

static stream_t *entry_of(state_t *self, uint64_t key)
{
    return &self->streams[(rmm__hash(key) >> 32) % STREAMS];
}

/* A handle that comes back for a new stream is known again from its first block on. */
static void allocated(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;
    const rmm_diag_block_v1_t *block = call->block;
    uint64_t key = rmm__stream_key(block->stream);

    if (key != RMM_STREAM_KEY_LEGACY && block->stream_id != UINT64_MAX) {
        *entry_of(self, key) = (stream_t){key, block->stream_id};
    }
}

static void name_stream(state_t *self, rmm_stream_t handle, rmm_timeline_event_t *event)
{
    uint64_t key = rmm__stream_key(handle);
    const stream_t *known = entry_of(self, key);

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

static void ended(void *state, uint32_t index, const rmm_diag_block_v1_t *by)
{
    state_t *self = state;
    const rmm_diag_row_t *row = &self->engine->blocks.rows[index];
    const rmm_timeline_event_t event = {
        .kind = RMM_TIMELINE_BLOCK,
        .begin_ns = RMM_ROW_GET(row, allocated_ns),
        .end_ns = rmm__live_blocks_now(&self->engine->blocks),
        .address = RMM_ROW_GET(row, address),
        .bytes = RMM_ROW_GET(row, bytes),
        .stream_id = RMM_ROW_GET(row, stream_id),
        .resource_id = RMM_ROW_GET(row, resource_id),
        .device = RMM_ROW_GET(row, device),
        .first_user = RMM_ROW_GET(row, first_user),
        .last_user = RMM_ROW_GET(row, last_user)};

    (void)by;
    put(self, &event);
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

/* Times do not fall from event to event. */
static void after(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;
    const rmm_diag_event_v1_t *event = call->event;
    bool has_range = rmm__event_has_range(event) && event->word_count > 0;
    rmm_timeline_event_t entry = {
        .kind = kind_of(event),
        .flags = event->capturing != 0 ? RMM_TIMELINE_CAPTURED : 0,
        .address = has_range ? event->words[0] : 0,
        .bytes = event->bytes,
        .device = event->device,
        .first_user = call->user,
        .last_user = call->user};

    if (entry.kind != 0 && (call->modes & RMM_DIAG_MODES_WITH_USES) != 0) {
        entry.begin_ns = entry.end_ns = rmm__live_blocks_now(&self->engine->blocks);
        name_stream(self, event->stream, &entry);
        put(self, &entry);
    }
}

const rmm_checker_t rmm__timeline_checker = {
    .state_bytes = sizeof(state_t),
    .is_wanted = is_wanted,
    .init = init,
    .allocated = allocated,
    .ended = ended,
    .after = after};
