/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: recorded after a stream's frees, queried, and waited for on the device by another
 * stream; and the synchronise, which needs none. All of this calls the driver, never under
 * the lock. Meanwhile the batch is out of its stream, so that no other thread uses its
 * event; afterwards the stream is looked up again.
 */
#include "pool/streams.h"

/* Streams whose events are queried when a new stream has come: some, and a share of all. */
#define ASKED_FOR_NEW 2
#define ASKED_SHARE 8
#define ASKED_MOST 64
#define ASKED_AT_ONCE 16 /* whose batches are out of their streams together */
#define DONORS_MOST 64   /* streams searched for a block to wait for */
/* A request is huge from this share of what is held on; see below. */
#define HUGE_SHARE 64
#define PATIENCE 64u /* event queries, some 150 ns each */

/* --- recording ----------------------------------------------------------------------- */

/* An event of the engine's device, or NULL: then the next event covers the frees. */
static rmm_driver_event_t event_make(engine_t *engine)
{
    rmm_driver_event_t event;
    rmm_driver_scope_t scope;

    if (rmm__driver_scope_enter(&scope, engine->driver, engine->device) != RMM_OK) {
        return NULL;
    }
    if (engine->driver->event_create(&event) != RMM_DRIVER_OK) {
        event = NULL;
    }
    rmm__driver_scope_leave(&scope);
    return event;
}

/* False: no event was recorded; *error_out is why, or OK if event_record() was not called. */
static bool
record(engine_t *engine, rmm_stream_t stream, rmm_driver_event_t *event, int *error_out)
{
    rmm_driver_scope_t scope;

    *error_out = RMM_DRIVER_OK;
    if (*event == NULL) {
        *event = event_make(engine);
    }
    if (*event == NULL ||
        !rmm__driver_stream_enter(&scope, engine->driver, engine->device, stream)) {
        return false;
    }
    *error_out = engine->driver->event_record(*event, stream);
    rmm__driver_stream_leave(&scope, stream);
    return *error_out == RMM_DRIVER_OK;
}

/*
 * Keep what other threads free meanwhile apart from what the wait will prove. If two run at
 * once, the stamp of the first one counts. The blocks of a stream alone are not kept apart:
 * that stream needs no proof for them.
 */
static void seal_locked(engine_t *engine, uint64_t stamp)
{
    engine_streams_t *streams = &engine->streams;

    if (streams->waits_begun++ == 0 && streams->alone == NULL) {
        rmm__blocks_seal(engine->blocks, stamp);
        streams->is_sealed = true;
    }
}

static void unseal_locked(engine_t *engine)
{
    engine_streams_t *streams = &engine->streams;

    if (--streams->waits_begun != 0 || !streams->is_sealed) {
        return;
    }
    rmm__blocks_unseal(engine->blocks);
    streams->is_sealed = false;
    rmm__engine_note_all_larger_locked(engine);
}

/* For a stream that is or may be another device's: only to synchronise it now proves that
 * its work is done. */
static void
close_by_waiting(engine_t *engine, const engine_closing_t *closing, rmm_stream_t handle)
{
    engine_stream_t *stream;
    int error;

    rmm__mutex_lock(&engine->lock);
    seal_locked(engine, closing->stamp);
    rmm__mutex_unlock(&engine->lock);
    error = rmm__driver_wait_stream(engine->driver, handle);
    rmm__mutex_lock(&engine->lock);
    stream = rmm__engine_stream_find_locked(engine, closing->stream_id);
    if (error == RMM_DRIVER_OK && stream != NULL) {
        rmm__blocks_transfer(
            engine->blocks, stream->heap, engine->clean, closing->stamp, 0);
        /* another thread may still wait for later frees */
        stream->is_doubtful =
            !stream->is_native && !rmm__stream_is_idle_locked(engine, stream);
    }
    unseal_locked(engine);
    rmm__engine_show_locked(engine);
    rmm__mutex_unlock(&engine->lock);
}

/* After the attempt to record the event. error: why not, or OK if the driver was not
 * called. */
static void settle_record_locked(
    engine_t *engine, const engine_closing_t *closing, rmm_driver_event_t event,
    bool is_recorded, int error)
{
    engine_stream_t *stream =
        rmm__engine_stream_find_locked(engine, closing->stream_id);

    if (stream != NULL && is_recorded && !rmm__stream_is_idle_locked(engine, stream)) {
        rmm__stream_batch_insert_locked(
            engine, stream, (engine_batch_t){closing->stamp, event});
    } else if (event != NULL) {
        rmm__stream_event_spare_locked(engine, event);
    }
    if (stream != NULL && is_recorded) {
        stream->is_native = true;
        stream->is_doubtful = false;
        rmm__engine_rejoin_locked(engine);
        engine->changes += !closing->is_native; /* others can wait for it from now on */
    } else if (stream != NULL) {
        stream->is_foreign |= error == RMM_DRIVER_INVALID_HANDLE && !closing->is_native;
        rmm__stream_open_more_locked(
            &engine->streams, stream, closing->open_bytes, closing->open_frees);
    }
}

void rmm__engine_record(
    engine_t *engine, const engine_closing_t *closing, rmm_stream_t handle)
{
    rmm_driver_event_t event = closing->event;
    int error = RMM_DRIVER_OK;
    bool is_recorded = !closing->is_foreign && record(engine, handle, &event, &error);

    rmm__mutex_lock(&engine->lock);
    settle_record_locked(engine, closing, event, is_recorded, error);
    rmm__mutex_unlock(&engine->lock);
    if (!is_recorded && !closing->is_native) {
        close_by_waiting(engine, closing, handle);
    }
}

/* --- querying events ----------------------------------------------------------------- */

/* A batch that is out of its stream, so that no other thread uses its event meanwhile. */
typedef struct asked {
    uint64_t stream_id;
    engine_batch_t batch;
    bool is_done; /* what the query said */
} asked_t;

/* Drop batches that no longer cover a free block; false: none is left. */
static bool drop_useless_locked(engine_t *engine, engine_stream_t *stream)
{
    uint64_t oldest = rmm__blocks_oldest_stamp(engine->blocks, stream->heap);

    if (oldest != 0) {
        rmm__stream_batches_drop_locked(engine, stream, oldest - 1);
    }
    return stream->batch_count != 0;
}

static void
ask_locked(engine_t *engine, engine_stream_t *stream, bool newest, asked_t *asked)
{
    asked->stream_id = stream->id;
    asked->is_done = false;
    asked->batch = stream->batches[newest ? stream->batch_count - 1 : 0];
    if (newest && stream->batch_count > 1) {
        stream->batch_count--;
    } else {
        rmm__stream_batches_shift_locked(engine, stream, 1);
    }
}

/* Take the newest batch of the next stream that has one to query. */
static bool ask_next_locked(engine_t *engine, asked_t *asked)
{
    engine_streams_t *streams = &engine->streams;

    while (streams->with_batches != NULL) {
        engine_stream_t *stream = streams->with_batches;

        streams->with_batches = stream->next;
        if (drop_useless_locked(engine, stream)) {
            ask_locked(engine, stream, true, asked);
            return true;
        }
    }
    return false;
}

/* The device is done with what the stream freed up to this stamp. */
static uint64_t
clean_up_to_locked(engine_t *engine, const engine_stream_t *stream, uint64_t stamp)
{
    if (stream == engine->streams.alone) {
        engine->streams.proven_stamp = stamp;
        return 0;
    }
    return rmm__blocks_transfer(engine->blocks, stream->heap, engine->clean, stamp, 0);
}

/* After a query: blocks of a finished batch become clean; an unfinished one goes back. The
 * stream if it has older batches, which may be finished. */
static engine_stream_t *settle_locked(engine_t *engine, const asked_t *asked, bool *any)
{
    engine_stream_t *stream = rmm__engine_stream_find_locked(engine, asked->stream_id);
    bool is_left;

    if (stream == NULL || asked->is_done) {
        rmm__stream_event_spare_locked(engine, asked->batch.event);
    }
    if (stream == NULL) {
        return NULL;
    }
    if (asked->is_done) {
        rmm__stream_batches_drop_locked(engine, stream, asked->batch.stamp);
        *any |= clean_up_to_locked(engine, stream, asked->batch.stamp) != 0;
        rmm__engine_show_locked(engine);
        return NULL;
    }
    is_left = stream->batch_count != 0;
    rmm__stream_batch_insert_locked(engine, stream, asked->batch);
    return is_left ? stream : NULL;
}

/* The batches of several streams, out of them while their events are queried. The lock is
 * taken twice for all, not for each: threads that want it cost more than the queries. */
typedef struct asking {
    bool gives_way;      /* ask none while another thread does */
    bool any;            /* found: memory moved */
    uint32_t there;      /* streams that could be asked */
    uint64_t held_bytes; /* by the engine */
    uint32_t count;      /* of asked[] */
    asked_t asked[ASKED_AT_ONCE];
} asking_t;

/* Once around the ring. */
static bool is_around_locked(const engine_t *engine, const asking_t *asking)
{
    const engine_stream_t *next = engine->streams.with_batches;

    return asking->count != 0 && next != NULL && next->id == asking->asked[0].stream_id;
}

/* Take the newest batches of up to `most` streams. */
static void ask_some_locked(engine_t *engine, asking_t *asking, uint32_t most)
{
    engine_streams_t *streams = &engine->streams;

    asking->count = 0;
    asking->any |= rmm__engine_captures_settle_locked(engine);
    asking->there = streams->alone == NULL ? streams->count : 0;
    asking->held_bytes = engine->figures.reserved_bytes;
    if (asking->there == 0 || (asking->gives_way && streams->asking != 0)) {
        return;
    }
    most = most < ASKED_AT_ONCE ? most : ASKED_AT_ONCE;
    while (asking->count < most && !is_around_locked(engine, asking) &&
           ask_next_locked(engine, &asking->asked[asking->count])) {
        asking->count++;
    }
    streams->asking += asking->count != 0;
}

/* and_older: of the streams whose newest batch is not done, take the oldest. */
static void settle_some_locked(engine_t *engine, asking_t *asking, bool and_older)
{
    uint32_t count = asking->count;

    asking->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        engine_stream_t *left = settle_locked(engine, &asking->asked[i], &asking->any);

        if (left != NULL && and_older) {
            ask_locked(engine, left, false, &asking->asked[asking->count++]);
        }
    }
    engine->streams.asking -= asking->count == 0;
}

static void query(const engine_t *engine, asking_t *asking)
{
    for (uint32_t i = 0; i < asking->count; i++) {
        asked_t *asked = &asking->asked[i];

        asked->is_done =
            engine->driver->event_query(asked->batch.event) == RMM_DRIVER_OK;
    }
}

/* Events of one stream finish in order. So the newest is queried first, which suffices for
 * an idle stream; for a busy one the oldest is next. */
static void query_and_settle(engine_t *engine, asking_t *asking)
{
    rmm_driver_scope_t scope; /* without it a query breaks a capture of this thread */
    bool entered =
        rmm__driver_scope_enter(&scope, engine->driver, engine->device) == RMM_OK;

    for (bool is_newest = true; asking->count != 0; is_newest = false) {
        if (entered) {
            query(engine, asking);
        }
        rmm__mutex_lock(&engine->lock);
        settle_some_locked(engine, asking, is_newest);
        rmm__mutex_unlock(&engine->lock);
    }
    if (entered) {
        rmm__driver_scope_leave(&scope);
    }
}

/* How many streams were asked. */
static uint32_t ask_some(engine_t *engine, asking_t *asking, uint32_t most)
{
    uint32_t asked;

    rmm__mutex_lock(&engine->lock);
    ask_some_locked(engine, asking, most);
    rmm__mutex_unlock(&engine->lock);
    asked = asking->count;
    if (asked != 0) {
        query_and_settle(engine, asking);
    }
    return asked;
}

bool rmm__engine_reclaim(engine_t *engine, uint32_t most)
{
    asking_t asking;
    uint32_t done = 0;
    uint32_t asked;

    asking.gives_way = false;
    asking.any = false;
    do {
        asked = ask_some(engine, &asking, most - done);
        done += asked;
    } while (asked == ASKED_AT_ONCE && done < most && done < asking.there);
    return asking.any;
}

void rmm__engine_reclaim_for_new(engine_t *engine)
{
    uint32_t count;

    rmm__mutex_lock(&engine->lock);
    count = engine->streams.count;
    rmm__mutex_unlock(&engine->lock);
    count = ASKED_FOR_NEW + count / ASKED_SHARE;
    (void)rmm__engine_reclaim(engine, count < ASKED_MOST ? count : ASKED_MOST);
}

/*
 * A huge block in a bad place is what makes the next one fail. So for a huge request up to
 * PATIENCE events are queried in all, some 10 us. Not until all are done: that would hang if
 * the streams' work waits for this thread.
 */
void rmm__engine_reclaim_patiently(engine_t *engine, const engine_want_t *want)
{
    asking_t asking;
    uint32_t queries = 0;
    uint32_t asked;

    asking.gives_way = true;
    asking.any = false;
    do {
        asked = ask_some(engine, &asking, ASKED_FOR_LARGE);
        queries += 1 + asking.there;
    } while (asked != 0 && queries < PATIENCE &&
             want->units * RMM_BLOCKS_UNIT >= asking.held_bytes / HUGE_SHARE);
}

/* --- waiting for another stream ------------------------------------------------------ */

/* Take the oldest batch of a stream with a large enough block, to wait for its event. */
static bool
find_donor_locked(engine_t *engine, const engine_want_t *want, asked_t *asked)
{
    engine_streams_t *streams = &engine->streams;

    for (uint32_t i = 0; i < DONORS_MOST && streams->with_batches != NULL; i++) {
        engine_stream_t *stream = streams->with_batches;

        streams->with_batches = stream->next;
        if (stream->id != want->key.stream_id && drop_useless_locked(engine, stream) &&
            rmm__blocks_largest_free(engine->blocks, stream->heap) >= want->units) {
            ask_locked(engine, stream, false, asked);
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
    engine_t *engine, const engine_want_t *want, const asked_t *asked, bool waiting)
{
    engine_streams_t *streams = &engine->streams;
    bool is_new;
    engine_stream_t *own =
        waiting ? rmm__engine_stream_get_locked(engine, want->key.stream_id, &is_new)
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
        own->is_doubtful |= !own->is_native;
        rmm__engine_note_larger_locked(engine, own->heap);
        engine->figures.cross_stream_count++;
        rmm__engine_show_locked(engine);
    }
    return moved != 0;
}

static bool fits_own_locked(engine_t *engine, const engine_want_t *want)
{
    const engine_stream_t *own =
        rmm__engine_stream_find_locked(engine, want->key.stream_id);

    return own != NULL &&
           rmm__blocks_largest_free(engine->blocks, own->heap) * RMM_BLOCKS_UNIT >=
               rmm__engine_need(want);
}

bool rmm__engine_wait_for_others(engine_t *engine, const engine_want_t *want)
{
    bool any = false;

    for (;;) {
        asked_t asked;
        bool found;
        bool waiting;

        rmm__mutex_lock(&engine->lock);
        found =
            !fits_own_locked(engine, want) && find_donor_locked(engine, want, &asked);
        rmm__mutex_unlock(&engine->lock);
        if (!found) {
            return any;
        }
        waiting = wait_on_device(engine, want->stream, asked.batch.event);
        rmm__mutex_lock(&engine->lock);
        any |= donor_settle_locked(engine, want, &asked, waiting);
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

    if (stream->is_doubtful) {
        return;
    }
    (void)clean_up_to_locked(engine, stream, stamp);
    rmm__stream_batches_drop_locked(engine, stream, stamp);
    /* open frees came meanwhile: they are no more than all that is left */
    left = rmm__blocks_free_units(engine->blocks, stream->heap) * RMM_BLOCKS_UNIT;
    if (left == 0) {
        rmm__stream_open_forget_locked(&engine->streams, stream);
    } else if (left < stream->open_bytes) {
        engine->streams.open_bytes -= stream->open_bytes - left;
        stream->open_bytes = left;
    }
}

static void clean_all_locked(engine_t *engine, uint64_t stamp)
{
    engine_streams_t *streams = &engine->streams;

    for (uint32_t i = 0; i < streams->capacity; i++) {
        if (streams->table[i] != NULL) {
            clean_stream_locked(engine, streams->table[i], stamp);
        }
    }
    rmm__blocks_transfer(
        engine->blocks, streams->unproven, engine->clean, stamp,
        rmm__engine_clean_stamp_locked(engine));
    (void)rmm__engine_captures_settle_locked(engine); /* launches have ended */
}

uint64_t rmm__engine_sync_begin(engine_t *engine)
{
    uint64_t stamp;

    rmm__mutex_lock(&engine->lock);
    /* memory on the shelves of graphs that are gone becomes clean by this synchronise */
    (void)rmm__engine_captures_settle_locked(engine);
    stamp = engine->streams.stamp++;
    seal_locked(engine, stamp);
    rmm__mutex_unlock(&engine->lock);
    return stamp;
}

void rmm__engine_sync_end(engine_t *engine, uint64_t stamp, bool is_synchronised)
{
    rmm__mutex_lock(&engine->lock);
    if (is_synchronised) {
        clean_all_locked(engine, stamp);
        engine->figures.sync_count++;
    }
    unseal_locked(engine);
    rmm__engine_show_locked(engine);
    rmm__mutex_unlock(&engine->lock);
}

rmm_status_t rmm__engine_synchronise(engine_t *engine)
{
    rmm_driver_scope_t scope;
    rmm_status_t status =
        rmm__driver_scope_enter(&scope, engine->driver, engine->device);
    uint64_t stamp;
    int error;

    if (status != RMM_OK) {
        return status;
    }
    stamp = rmm__engine_sync_begin(engine);
    error = rmm__driver_barrier(engine->driver);
    rmm__engine_sync_end(engine, stamp, error == RMM_DRIVER_OK);
    rmm__driver_scope_leave(&scope);
    return error == RMM_DRIVER_OK
               ? RMM_OK
               : rmm__driver_error(engine->driver, error, "synchronising the device");
}
