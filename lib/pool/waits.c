/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for work of the device: a stream waits for the event of another one; the host waits
 * for a stream of another device, or for the whole device. All of this calls the driver, never
 * under the lock (events.c).
 *
 * Blocks that other threads free while the host waits are kept apart (blocks_boundary.c). So one
 * wait proves all memory that was free when it began.
 *
 * Unproven are blocks whose earlier work may be of any stream of any device: the stream of the
 * free could not be identified, or it was captured and the graph is gone (captures.c). A
 * synchronise of the device makes them clean if no other device's primary context is in use,
 * which holds for most processes that see several devices. Else all devices have to be waited
 * for. That can hang: work of another device may wait for what this thread queues next. So it
 * is done only in place of a refusal, and at the engine's end (engine_life.c) if blocks are
 * unproven or a graph may use some.
 */
#include "pool/streams.h"

#include "pool/engine_figures.h"

#define DONORS_MOST 64 /* streams searched for a block to wait for */

/* --- the host waits for a stream ----------------------------------------------------- */

/*
 * Keep blocks that other threads free meanwhile apart from those that the wait will prove. If
 * two threads wait at once, the stamp of the first one counts. In single-stream
 * mode no blocks are kept apart: the one stream needs no proof for them.
 */
static void set_boundary_locked(engine_t *engine, uint64_t stamp)
{
    engine_streams_t *streams = &engine->streams;

    if (streams->waits_begun++ == 0 && streams->single == NULL) {
        rmm__blocks_merge_boundary_set(engine->blocks, stamp);
        streams->boundary_changes = engine->changes;
    }
}

static void clear_boundary_locked(engine_t *engine)
{
    engine_streams_t *streams = &engine->streams;
    bool any_came;

    if (--streams->waits_begun != 0 || engine->blocks->merge_boundary == 0) {
        return;
    }
    /* frees are changes, and so are moves between heaps that give a new stamp */
    any_came = engine->changes != streams->boundary_changes;
    rmm__blocks_merge_boundary_clear(engine->blocks, any_came);
    if (any_came) {
        rmm__engine_note_all_larger_locked(engine);
    }
}

static uint64_t sync_begin(engine_t *engine)
{
    uint64_t stamp;

    rmm__mutex_lock(&engine->lock);
    stamp = engine->streams.stamp++;
    set_boundary_locked(engine, stamp);
    rmm__mutex_unlock(&engine->lock);
    return stamp;
}

void rmm__engine_close_by_waiting(
    engine_t *engine, const engine_closing_t *closing, rmm_stream_t handle)
{
    /* not the closing's: frees since then may lie beside older ones already */
    uint64_t stamp = sync_begin(engine);
    int error = rmm__driver_wait_stream(engine->driver, handle);
    engine_stream_t *stream;

    rmm__mutex_lock(&engine->lock);
    stream = rmm__engine_stream_find_locked(engine, closing->stream_id);
    if (error == RMM_DRIVER_OK && stream != NULL) {
        (void)rmm__stream_clean_up_to_locked(engine, stream, stamp);
        /* another thread may still wait for later frees; what else is left came from
         * donors (below), and the stream has not used it */
        stream->may_be_foreign &= stream->foreign_stamp > stamp;
    }
    clear_boundary_locked(engine);
    rmm__engine_show_locked(engine);
    rmm__mutex_unlock(&engine->lock);
}

/* --- waiting for another stream ------------------------------------------------------ */

/* Take the oldest batch of a stream with a large enough block, to wait for its event. */
static bool
find_donor_locked(engine_t *engine, const engine_alloc_t *alloc, engine_asked_t *asked)
{
    engine_streams_t *streams = &engine->streams;

    for (uint32_t i = 0; i < DONORS_MOST && streams->with_batches != NULL; i++) {
        engine_stream_t *stream = streams->with_batches;

        streams->with_batches = stream->next;
        if (stream->id != alloc->key.stream_id &&
            rmm__stream_drop_useless_locked(engine, stream) &&
            rmm__blocks_largest_free(engine->blocks, stream->heap) >=
                alloc->block.units) {
            rmm__stream_ask_locked(engine, stream, false, asked);
            return true;
        }
    }
    return false;
}

static bool
wait_on_device(engine_t *engine, rmm_stream_t stream, rmm_driver_event_t event)
{
    rmm_driver_scope_t scope;
    int error;

    if (!rmm__driver_stream_enter(&scope, engine->driver, engine->device, stream)) {
        return false;
    }
    error = engine->driver->stream_wait_event(stream, event);
    rmm__driver_stream_leave(&scope, stream);
    return error == RMM_DRIVER_OK;
}

/* The requesting stream is ordered after the batch, and gets its blocks. */
static bool donor_settle_locked(
    engine_t *engine, const engine_alloc_t *alloc, const engine_asked_t *asked,
    bool waiting)
{
    engine_streams_t *streams = &engine->streams;
    bool is_new;
    engine_stream_t *own =
        waiting ? rmm__engine_stream_get_locked(engine, alloc->key.stream_id, &is_new)
                : NULL;
    engine_stream_t *donor = rmm__engine_stream_find_locked(engine, asked->stream_id);
    uint64_t moved = 0;

    if (donor != NULL && own == NULL) {
        rmm__stream_batch_insert_locked(engine, donor, asked->batch);
        return false;
    }
    rmm__stream_event_spare_locked(engine, asked->batch.event);
    if (donor != NULL) {
        moved = rmm__blocks_transfer(
            engine->blocks, donor->heap, own->heap, asked->batch.stamp, streams->stamp);
        rmm__stream_batches_drop_locked(engine, donor, asked->batch.stamp);
    }
    if (moved != 0) {
        /* no event of this stream covers them yet */
        rmm__stream_open_more_locked(streams, own, moved * RMM_BLOCKS_UNIT, 1);
        rmm__engine_note_larger_locked(engine, own->heap);
        engine->figures.cross_stream_count++;
        rmm__engine_show_locked(engine);
    }
    return moved != 0;
}

static bool fits_own_locked(engine_t *engine, const engine_alloc_t *alloc)
{
    const engine_stream_t *own =
        rmm__engine_stream_find_locked(engine, alloc->key.stream_id);

    return own != NULL &&
           rmm__blocks_largest_free(engine->blocks, own->heap) * RMM_BLOCKS_UNIT >=
               rmm__engine_need(&alloc->block);
}

bool rmm__engine_wait_for_others(engine_t *engine, const engine_alloc_t *alloc)
{
    bool any = false;

    for (;;) {
        engine_asked_t asked;
        bool found;
        bool waiting;

        rmm__mutex_lock(&engine->lock);
        found =
            !fits_own_locked(engine, alloc) && find_donor_locked(engine, alloc, &asked);
        rmm__mutex_unlock(&engine->lock);
        if (!found) {
            return any;
        }
        waiting = wait_on_device(engine, alloc->stream, asked.batch.event);
        rmm__mutex_lock(&engine->lock);
        any |= donor_settle_locked(engine, alloc, &asked, waiting);
        rmm__mutex_unlock(&engine->lock);
        if (!waiting) {
            return any;
        }
    }
}

/* --- synchronise --------------------------------------------------------------------- */

/* A synchronise that began after `stamp` has proven this. */
static void
clean_stream_locked(engine_t *engine, engine_stream_t *stream, uint64_t stamp)
{
    uint64_t left;

    if (stream->may_be_foreign) {
        return;
    }
    (void)rmm__stream_clean_up_to_locked(engine, stream, stamp);
    rmm__stream_batches_drop_locked(engine, stream, stamp);
    /* frees that came since then may be open: no more than all that is left */
    left = rmm__blocks_free_units(engine->blocks, stream->heap) * RMM_BLOCKS_UNIT;
    if (left == 0) {
        rmm__stream_open_forget_locked(&engine->streams, stream);
    } else if (left < stream->open_bytes) {
        engine->streams.open_bytes -= stream->open_bytes - left;
        stream->open_bytes = left;
    }
}

static void clean_all_locked(engine_t *engine, uint64_t stamp, bool others_idle)
{
    engine_streams_t *streams = &engine->streams;

    (void)rmm__engine_captures_settle_locked(engine); /* launches have ended */
    for (uint32_t i = 0; i < streams->capacity; i++) {
        if (streams->table[i] != NULL) {
            clean_stream_locked(engine, streams->table[i], stamp);
        }
    }
    if (others_idle) {
        rmm__blocks_transfer(
            engine->blocks, streams->unproven, engine->clean, stamp,
            rmm__engine_clean_stamp_locked(engine));
    }
    streams->others_work = !others_idle;
}

static void
sync_end(engine_t *engine, uint64_t stamp, bool is_synchronised, bool others_idle)
{
    rmm__mutex_lock(&engine->lock);
    if (is_synchronised) {
        clean_all_locked(engine, stamp, others_idle);
        engine->figures.sync_count++;
    }
    clear_boundary_locked(engine);
    rmm__engine_show_locked(engine);
    rmm__mutex_unlock(&engine->lock);
}

rmm_status_t rmm__engines_synchronise(
    engine_t *const *engines, uint32_t count, bool all, bool *others_idle_out)
{
    const rmm_driver_t *driver = engines[0]->driver;
    uint64_t stamps[ENGINES_MOST];
    rmm_driver_scope_t scope;
    rmm_status_t status = rmm__driver_scope_enter(&scope, driver, engines[0]->device);
    bool others_idle = false;
    int error;

    RMM_ASSERT(count <= ENGINES_MOST);
    *others_idle_out = false;
    if (status != RMM_OK) {
        return status;
    }
    for (uint32_t i = 0; i < count; i++) {
        stamps[i] = sync_begin(engines[i]);
    }
    error = rmm__driver_barrier(driver);
    if (error == RMM_DRIVER_OK) {
        others_idle = rmm__driver_others_idle(driver, engines[0]->device, all);
    }
    for (uint32_t i = 0; i < count; i++) {
        sync_end(engines[i], stamps[i], error == RMM_DRIVER_OK, others_idle);
    }
    *others_idle_out = others_idle;
    rmm__driver_scope_leave(&scope);
    return rmm__driver_status(driver, error, "synchronising the device");
}

rmm_status_t rmm__engine_synchronise(engine_t *engine)
{
    bool others_idle;

    return rmm__engines_synchronise(&engine, 1, false, &others_idle);
}

bool rmm__engine_has_unproven(engine_t *engine)
{
    bool has;

    rmm__mutex_lock(&engine->lock);
    (void)rmm__engine_captures_settle_locked(engine);
    has = rmm__blocks_free_units(engine->blocks, engine->streams.unproven) != 0;
    rmm__mutex_unlock(&engine->lock);
    return has;
}

bool rmm__engine_synchronise_all(engine_t *engine)
{
    bool others_idle;

    return rmm__engine_has_unproven(engine) &&
           rmm__engines_synchronise(&engine, 1, true, &others_idle) == RMM_OK &&
           others_idle;
}
