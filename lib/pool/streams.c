/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which stream freed which memory, and which event covers it (engine.h).
 *
 * Streams are identified by their id, which is never reused, not by their handle, which the
 * driver reuses. The table drops entries without memory before it grows, and each new stream
 * queries events of some others. So a program that keeps creating streams does not make the
 * table grow.
 *
 * Single-stream mode. As long as only one stream has used the engine, no other stream can use its
 * blocks: they stay in the clean heap, where they merge with all free memory. When another stream
 * comes, or clean memory is to be returned, that heap becomes the stream's own, and the blocks
 * that are known to be clean move to a new clean heap.
 *
 * A batch may be missing (no event could be created or recorded). Then the next one covers
 * its frees as well, because events of one stream finish in order.
 */
#include "pool/streams.h"

#include <string.h>

#include "core/hash.h"
#include "core/host_memory.h"
#include "pool/engine_figures.h"

#define CAPACITY_LEAST 16

/* --- the table ----------------------------------------------------------------------- */

/* Index of the stream's entry, or of the empty entry where it would go. */
static uint32_t index_of(const engine_streams_t *streams, uint64_t id)
{
    uint32_t mask = streams->capacity - 1;
    uint32_t index = (uint32_t)(rmm__hash(id) >> 32) & mask;

    while (streams->table[index] != NULL && streams->table[index]->id != id) {
        index = (index + 1) & mask;
    }
    return index;
}

engine_stream_t *rmm__engine_stream_search_locked(engine_t *engine, uint64_t id)
{
    engine_streams_t *streams = &engine->streams;
    engine_stream_t *stream;

    if (streams->capacity == 0) {
        return NULL;
    }
    stream = streams->table[index_of(streams, id)];
    if (stream != NULL) {
        streams->last = stream;
    }
    return stream;
}

static void ring_insert(engine_streams_t *streams, engine_stream_t *stream)
{
    engine_stream_t *first = streams->with_batches;

    if (first == NULL) {
        stream->next = stream;
        stream->previous = stream;
        streams->with_batches = stream;
        return;
    }
    stream->next = first;
    stream->previous = first->previous;
    first->previous->next = stream;
    first->previous = stream;
}

static void ring_remove(engine_streams_t *streams, engine_stream_t *stream)
{
    if (stream->next == stream) {
        streams->with_batches = NULL;
        return;
    }
    stream->next->previous = stream->previous;
    stream->previous->next = stream->next;
    if (streams->with_batches == stream) {
        streams->with_batches = stream->next;
    }
}

void rmm__stream_event_spare_locked(engine_t *engine, rmm_driver_event_t event)
{
    engine_streams_t *streams = &engine->streams;
    uint32_t capacity = streams->spare_capacity;

    if (streams->spare_count == capacity) {
        uint32_t wanted = capacity != 0 ? 2 * capacity : 64;
        rmm_driver_event_t *grown = rmm__resize(
            streams->spare_events, capacity * sizeof(event), wanted * sizeof(event));

        if (grown == NULL) {
            /* this calls the driver under the lock, as nothing else does: without host
             * memory the alternative is a leak */
            engine->driver->event_destroy(event);
            return;
        }
        streams->spare_events = grown;
        streams->spare_capacity = wanted;
    }
    streams->spare_events[streams->spare_count++] = event;
}

rmm_driver_event_t rmm__stream_event_take_locked(engine_t *engine)
{
    engine_streams_t *streams = &engine->streams;

    return streams->spare_count > 0 ? streams->spare_events[--streams->spare_count]
                                    : NULL;
}

/* Remove the oldest `gone` batches; their events are the caller's. */
static void
batches_shift_locked(engine_t *engine, engine_stream_t *stream, uint32_t gone)
{
    if (gone == 0) {
        return;
    }
    stream->batch_count -= gone;
    if (stream->batch_count == 0) {
        ring_remove(&engine->streams, stream);
    }
    memmove(
        &stream->batches[0], &stream->batches[gone],
        stream->batch_count * sizeof(stream->batches[0]));
}

void rmm__stream_batches_drop_locked(
    engine_t *engine, engine_stream_t *stream, uint64_t up_to)
{
    uint32_t gone = 0;

    while (gone < stream->batch_count && stream->batches[gone].stamp <= up_to) {
        rmm__stream_event_spare_locked(engine, stream->batches[gone].event);
        gone++;
    }
    batches_shift_locked(engine, stream, gone);
}

void rmm__stream_batch_insert_locked(
    engine_t *engine, engine_stream_t *stream, engine_batch_t batch)
{
    uint32_t index;

    if (stream->batch_count == STREAM_BATCHES) { /* the next event covers these too */
        rmm__stream_event_spare_locked(engine, stream->batches[0].event);
        batches_shift_locked(engine, stream, 1);
    }
    if (stream->batch_count == 0) {
        ring_insert(&engine->streams, stream);
    }
    index = stream->batch_count++;
    while (index > 0 && stream->batches[index - 1].stamp > batch.stamp) {
        stream->batches[index] = stream->batches[index - 1];
        index--;
    }
    stream->batches[index] = batch;
}

bool rmm__stream_drop_useless_locked(engine_t *engine, engine_stream_t *stream)
{
    uint64_t oldest = rmm__blocks_oldest_stamp(engine->blocks, stream->heap);

    if (oldest != 0) {
        rmm__stream_batches_drop_locked(engine, stream, oldest - 1);
    }
    return stream->batch_count != 0;
}

void rmm__stream_ask_locked(
    engine_t *engine, engine_stream_t *stream, bool newest, engine_asked_t *asked)
{
    asked->stream_id = stream->id;
    asked->is_done = false;
    asked->batch = stream->batches[newest ? stream->batch_count - 1 : 0];
    if (newest && stream->batch_count > 1) {
        stream->batch_count--;
    } else {
        batches_shift_locked(engine, stream, 1);
    }
}

uint64_t rmm__stream_clean_up_to_locked(
    engine_t *engine, const engine_stream_t *stream, uint64_t stamp)
{
    if (stream == engine->streams.single) {
        engine->streams.proven_stamp = stamp;
        return 0;
    }
    return rmm__blocks_transfer(engine->blocks, stream->heap, engine->clean, stamp, 0);
}

bool rmm__stream_is_idle_locked(const engine_t *engine, const engine_stream_t *stream)
{
    return stream != engine->streams.single &&
           rmm__blocks_free_units(engine->blocks, stream->heap) == 0;
}

static void stream_free_locked(engine_t *engine, engine_stream_t *stream)
{
    rmm__stream_open_forget_locked(&engine->streams, stream);
    rmm__stream_batches_drop_locked(engine, stream, UINT64_MAX);
    rmm__blocks_heap_destroy(engine->blocks, stream->heap);
    rmm__free(stream);
}

/* Rebuild the table without idle streams, twice as large if necessary. */
static bool rehash_locked(engine_t *engine)
{
    engine_streams_t *streams = &engine->streams;
    engine_stream_t **old = streams->table;
    uint32_t old_capacity = streams->capacity;
    uint32_t capacity = CAPACITY_LEAST;
    uint32_t busy = 0;
    engine_stream_t **fresh;

    for (uint32_t i = 0; i < old_capacity; i++) {
        busy += old[i] != NULL && !rmm__stream_is_idle_locked(engine, old[i]);
    }
    while (capacity < 4 * (busy + 1)) {
        capacity *= 2;
    }
    fresh = rmm__calloc(capacity, sizeof(*fresh));
    if (fresh == NULL) {
        return false;
    }
    streams->table = fresh;
    streams->capacity = capacity;
    streams->count = busy;
    streams->last = NULL;
    for (uint32_t i = 0; i < old_capacity; i++) {
        if (old[i] != NULL && rmm__stream_is_idle_locked(engine, old[i])) {
            stream_free_locked(engine, old[i]);
        } else if (old[i] != NULL) {
            fresh[index_of(streams, old[i]->id)] = old[i];
        }
    }
    rmm__free(old);
    return true;
}

static engine_stream_t *stream_create_locked(engine_t *engine, uint64_t id)
{
    engine_stream_t *stream = rmm__calloc(1, sizeof(*stream));

    if (stream == NULL) {
        return NULL;
    }
    rmm__engine_single_stream_end_locked(engine, engine->streams.count != 0);
    if (rmm__blocks_heap_create(engine->blocks, &stream->heap) != RMM_BLOCKS_OK) {
        rmm__free(stream);
        return NULL;
    }
    engine->blocks->heaps[stream->heap].tag = HEAP_OF_STREAM(id);
    stream->id = id;
    /* the legacy default stream is the one of the engine's device, by
     * rmm__driver_stream_enter() */
    stream->is_native = id == 0 || engine->streams.is_only_device;
    return stream;
}

engine_stream_t *
rmm__engine_stream_get_locked(engine_t *engine, uint64_t id, bool *is_new_out)
{
    engine_streams_t *streams = &engine->streams;
    engine_stream_t *stream = rmm__engine_stream_find_locked(engine, id);

    *is_new_out = stream == NULL;
    if (stream != NULL) {
        return stream;
    }
    if (2 * (streams->count + 1) > streams->capacity && !rehash_locked(engine)) {
        return NULL;
    }
    stream = stream_create_locked(engine, id);
    if (stream != NULL) {
        streams->table[index_of(streams, id)] = stream;
        streams->count++;
        streams->last = stream;
        rmm__engine_single_stream_begin_locked(engine);
    }
    return stream;
}

/* --- single-stream mode -------------------------------------------------------------- */

void rmm__engine_single_stream_end_locked(engine_t *engine, bool for_good)
{
    engine_streams_t *streams = &engine->streams;
    engine_stream_t *stream = streams->single;

    streams->is_multi_stream |= for_good;
    if (stream == NULL) {
        return;
    }
    streams->single = NULL;
    engine->clean = streams->spare_heap; /* the stream keeps the old one */
    rmm__blocks_transfer(
        engine->blocks, stream->heap, engine->clean, streams->proven_stamp, 0);
    rmm__engine_note_larger_locked(engine, stream->heap);
    rmm__engine_show_locked(engine);
}

void rmm__engine_single_stream_begin_locked(engine_t *engine)
{
    engine_streams_t *streams = &engine->streams;
    engine_stream_t *stream = streams->last;

    if (streams->is_multi_stream || streams->suspensions != 0 ||
        streams->single != NULL || streams->count != 1 || stream == NULL ||
        !stream->is_native || stream->may_be_foreign) {
        return;
    }
    /* not a later stamp than any there: what an event covers stays covered; 0 where nothing
     * is there: all stays clean */
    rmm__blocks_transfer(
        engine->blocks, engine->clean, stream->heap, UINT64_MAX,
        rmm__blocks_newest_stamp(engine->blocks, stream->heap));
    streams->spare_heap = engine->clean;
    engine->clean = stream->heap;
    streams->single = stream;
    streams->proven_stamp = 0;
    streams->stamp++;
    rmm__engine_show_locked(engine);
}

void rmm__engine_single_stream_suspend(engine_t *engine)
{
    rmm__mutex_lock(&engine->lock);
    engine->streams.suspensions++;
    rmm__engine_single_stream_end_locked(engine, false);
    rmm__mutex_unlock(&engine->lock);
}

void rmm__engine_single_stream_resume(engine_t *engine)
{
    rmm__mutex_lock(&engine->lock);
    engine->streams.suspensions--;
    rmm__engine_single_stream_begin_locked(engine);
    rmm__mutex_unlock(&engine->lock);
}

rmm_status_t rmm__engine_streams_init(engine_t *engine)
{
    engine_streams_t *streams = &engine->streams;
    int devices;

    streams->stamp = 1;
    rmm__engine_bound_open_locked(engine);
    streams->is_only_device =
        engine->driver->device_count(&devices) == RMM_DRIVER_OK && devices == 1;
    return rmm__blocks_heap_create(engine->blocks, &streams->unproven) ==
                       RMM_BLOCKS_OK &&
                   rmm__blocks_heap_create(engine->blocks, &streams->spare_heap) ==
                       RMM_BLOCKS_OK
               ? RMM_OK
               : RMM_ERR_OUT_OF_HOST_MEMORY;
}

void rmm__engine_streams_fini(engine_t *engine)
{
    engine_streams_t *streams = &engine->streams;
    rmm_driver_scope_t scope;
    bool entered =
        rmm__driver_scope_enter(&scope, engine->driver, engine->device) == RMM_OK;

    for (uint32_t i = 0; i < streams->capacity; i++) {
        engine_stream_t *stream = streams->table[i];

        for (uint32_t j = 0; stream != NULL && j < stream->batch_count; j++) {
            engine->driver->event_destroy(stream->batches[j].event);
        }
        rmm__free(stream);
    }
    for (uint32_t i = 0; i < streams->spare_count; i++) {
        engine->driver->event_destroy(streams->spare_events[i]);
    }
    if (entered) {
        rmm__driver_scope_leave(&scope);
    }
    rmm__free(streams->table);
    rmm__free(streams->spare_events);
}
