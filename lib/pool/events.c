/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: recorded after a stream's frees, and queried. Both call the driver, never under the
 * lock. Meanwhile the batch is out of its stream, so that no other thread uses its event;
 * afterwards the stream is looked up again.
 *
 * While a batch is out of its stream, a thread that finds no block must not miss it: it would
 * grow or synchronise for memory that an event covers. So a thread that queries owns the turn
 * of the slow path. A request that only wants a better place queries nothing while another thread
 * owns it.
 */
#include "pool/streams.h"

#include "pool/engine_figures.h"

/* Streams whose events are queried for each new stream: some, and a share of all. */
#define ASKED_FOR_NEW 2
#define ASKED_SHARE 8
#define ASKED_MOST 64
#define ASKED_AT_ONCE 16 /* whose batches are out of their streams together */
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
        stream->may_be_foreign = false;
        rmm__engine_single_stream_begin_locked(engine);
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
        rmm__engine_close_by_waiting(engine, closing, handle);
    }
}

/* --- querying events ----------------------------------------------------------------- */

/* Take the newest batch of the next stream that has one to query. */
static bool ask_next_locked(engine_t *engine, engine_asked_t *asked)
{
    engine_streams_t *streams = &engine->streams;

    while (streams->with_batches != NULL) {
        engine_stream_t *stream = streams->with_batches;

        streams->with_batches = stream->next;
        if (rmm__stream_drop_useless_locked(engine, stream)) {
            rmm__stream_ask_locked(engine, stream, true, asked);
            return true;
        }
    }
    return false;
}

/* After a query: blocks of a finished batch become clean; an unfinished one goes back. The
 * stream if it has older batches, which may be finished. */
static engine_stream_t *
settle_locked(engine_t *engine, const engine_asked_t *asked, bool *any)
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
        *any |= rmm__stream_clean_up_to_locked(engine, stream, asked->batch.stamp) != 0;
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
    bool any;            /* found: memory moved */
    uint32_t there;      /* streams that could be queried */
    uint64_t held_bytes; /* by the engine */
    uint32_t count;      /* of asked[], the events to query */
    engine_asked_t asked[ASKED_AT_ONCE];
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
    asking->there = streams->single == NULL ? streams->count : 0;
    asking->held_bytes = engine->figures.reserved_bytes;
    if (asking->there == 0) {
        return;
    }
    most = most < ASKED_AT_ONCE ? most : ASKED_AT_ONCE;
    while (asking->count < most && !is_around_locked(engine, asking) &&
           ask_next_locked(engine, &asking->asked[asking->count])) {
        asking->count++;
    }
}

/* and_older: of the streams whose newest batch is not done, take the oldest. */
static void settle_some_locked(engine_t *engine, asking_t *asking, bool and_older)
{
    uint32_t count = asking->count;

    asking->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        engine_stream_t *left = settle_locked(engine, &asking->asked[i], &asking->any);

        if (left != NULL && and_older) {
            rmm__stream_ask_locked(
                engine, left, false, &asking->asked[asking->count++]);
        }
    }
}

static void query(const engine_t *engine, asking_t *asking)
{
    for (uint32_t i = 0; i < asking->count; i++) {
        engine_asked_t *asked = &asking->asked[i];

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

/* Returns how many streams were queried. */
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

    asking.any = false;
    do {
        asked = ask_some(engine, &asking, most - done);
        done += asked;
    } while (asked == ASKED_AT_ONCE && done < most && done < asking.there);
    return asking.any;
}

void rmm__engine_reclaim_for_new(engine_t *engine)
{
    RMM_AT_END(rmm__turn_leave) rmm_turn_stay_t stay = rmm__turn_try(&engine->turn);
    uint32_t count;

    if (stay.turn == NULL) {
        return;
    }
    rmm__mutex_lock(&engine->lock);
    count = engine->streams.count;
    rmm__mutex_unlock(&engine->lock);
    count = ASKED_FOR_NEW + count / ASKED_SHARE;
    (void)rmm__engine_reclaim(engine, count < ASKED_MOST ? count : ASKED_MOST);
}

/*
 * A huge block in a bad place makes a later one fail. So for a huge request up to
 * PATIENCE events are queried in all, some 10 us. Not until all are done: that would hang if
 * the streams' work waits for this thread. Without it 12 logs of several busy streams
 * (tests/capacity, replayed with --verify) need 1.24 of their peak instead of 1.20.
 */
void rmm__engine_reclaim_patiently(engine_t *engine, const engine_alloc_t *alloc)
{
    RMM_AT_END(rmm__turn_leave) rmm_turn_stay_t stay = rmm__turn_try(&engine->turn);
    asking_t asking;
    uint32_t queries = 0;
    uint32_t asked;

    if (stay.turn == NULL) {
        return;
    }
    asking.any = false;
    do {
        asked = ask_some(engine, &asking, ASKED_FOR_LARGE);
        queries += 1 + asking.there;
    } while (asked != 0 && queries < PATIENCE &&
             alloc->block.units * RMM_BLOCKS_UNIT >= asking.held_bytes / HUGE_SHARE);
}
