/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps, in this order, when neither the stream's own heap nor the clean one has a block
 * that fits. Each costs more than the one before:
 *   1 join      use clean memory beside the stream's own free blocks
 *   2 reclaim   make clean what finished events cover                (calls the driver)
 *   3 wait      let this stream wait, on the device, for others      (orders streams)
 *   4 compact   map free memory side by side, where much is free     (a range)
 *   5 cover     synchronise, if no event covers much of the memory   (stops the host)
 *   6 grow      take more from the source
 *   7 sync      synchronise the device and merge everything          (stops the host)
 *   8 gather    map free memory elsewhere, then grow by the rest     (a range)
 *   9 rearrange map all free memory in one place, then grow by the rest; or give back free
 *               chunks and take one that is large enough
 * If all fail while blocks are unproven (waits.c), all devices are waited for, and all steps
 * repeated. A capture skips 3, which would invalidate it. A synchronise is a free of a small block
 * (docs/decisions/0004), which invalidates no capture.
 *
 * Threads take turns here: two threads that find no block at the same time do not both grow. A
 * thread that waits too long for the turn proceeds without it (core/turn.h). Then another
 * thread may be moving memory just as this one fails, so it tries again. It also tries again if
 * others freed enough meanwhile: under one lock it would have got that memory too.
 */
#include "pool/source.h"

#include <inttypes.h>

#include "pool/figures.h"

#define RECLAIM_STREAMS 64 /* streams queried before the next rung */
#define ATTEMPTS 8         /* while other threads are on the ladder, or free */
#define JOIN_BLOCKS 4096   /* the stream's free blocks whose neighbours are examined */

/* True: trying again may succeed. False: it did not help, and *status is set. */
typedef bool (*rung_fn)(
    engine_t *engine, const engine_alloc_t *alloc, rmm_status_t *status);

typedef struct rung {
    rung_fn climb;
    bool breaks_captures;
    bool needs_free; /* it only brings free memory together */
    bool then_grows; /* it may bring only part of what is needed */
} rung_t;

static uint64_t bytes_of(const engine_alloc_t *alloc)
{
    return alloc->units * RMM_BLOCKS_UNIT;
}

/* --- the rungs ----------------------------------------------------------------------- */

static bool join(engine_t *engine, const engine_alloc_t *alloc, rmm_status_t *status)
{
    const engine_stream_t *own;
    bool joined = false;

    *status = RMM_ERR_OUT_OF_MEMORY;
    rmm__mutex_lock(&engine->lock);
    own = rmm__engine_stream_find_locked(engine, alloc->key.stream_id);
    if (own != NULL && !rmm__engine_captures(alloc) && engine->block_units == 0) {
        joined = rmm__blocks_join_shared(
            engine->blocks, own->heap, engine->clean,
            rmm__engine_to_units(rmm__engine_need(alloc)), JOIN_BLOCKS);
        rmm__engine_note_larger_locked(engine, own->heap);
    }
    rmm__mutex_unlock(&engine->lock);
    return joined;
}

static bool reclaim(engine_t *engine, const engine_alloc_t *alloc, rmm_status_t *status)
{
    (void)alloc;
    *status = RMM_ERR_OUT_OF_MEMORY;
    return rmm__engine_reclaim(engine, RECLAIM_STREAMS);
}

static bool
wait_for_others(engine_t *engine, const engine_alloc_t *alloc, rmm_status_t *status)
{
    *status = RMM_ERR_OUT_OF_MEMORY;
    return rmm__engine_wait_for_others(engine, alloc);
}

static bool compact(engine_t *engine, const engine_alloc_t *alloc, rmm_status_t *status)
{
    *status = RMM_ERR_OUT_OF_MEMORY;
    return engine->source->compact(engine, rmm__engine_need(alloc));
}

static bool cover(engine_t *engine, const engine_alloc_t *alloc, rmm_status_t *status)
{
    bool is_much;

    (void)alloc;
    *status = RMM_ERR_OUT_OF_MEMORY;
    rmm__mutex_lock(&engine->lock);
    is_much = engine->streams.alone == NULL && rmm__engine_is_open_much_locked(engine);
    rmm__mutex_unlock(&engine->lock);
    return is_much && rmm__engine_synchronise(engine) == RMM_OK;
}

static bool grow(engine_t *engine, const engine_alloc_t *alloc, rmm_status_t *status)
{
    *status = engine->source->grow(engine, rmm__engine_need(alloc));
    return *status == RMM_OK;
}

static bool
synchronise(engine_t *engine, const engine_alloc_t *alloc, rmm_status_t *status)
{
    (void)alloc;
    *status = RMM_ERR_OUT_OF_MEMORY;
    return rmm__engine_synchronise(engine) == RMM_OK;
}

static bool gather(engine_t *engine, const engine_alloc_t *alloc, rmm_status_t *status)
{
    *status = RMM_ERR_OUT_OF_MEMORY;
    return engine->source->gather(engine, rmm__engine_need(alloc), false, status);
}

static bool
rearrange(engine_t *engine, const engine_alloc_t *alloc, rmm_status_t *status)
{
    *status = RMM_ERR_OUT_OF_MEMORY;
    return engine->source->gather(engine, rmm__engine_need(alloc), true, status);
}

/* --- the ladder ---------------------------------------------------------------------- */

static rmm_status_t
try_to_take(engine_t *engine, const engine_alloc_t *alloc, void **ptr_out)
{
    return rmm__engine_take(engine, alloc, true, ptr_out);
}

/* Another thread may take the new memory first: repeat until the source refuses. */
static rmm_status_t take_or_grow(
    engine_t *engine, const engine_alloc_t *alloc, bool then_grows, void **ptr_out,
    rmm_status_t *failure)
{
    rmm_status_t status = try_to_take(engine, alloc, ptr_out);

    while (status == RMM_ERR_OUT_OF_MEMORY && then_grows &&
           grow(engine, alloc, failure)) {
        status = try_to_take(engine, alloc, ptr_out);
    }
    return status;
}

static bool is_enough_free(engine_t *engine, const engine_alloc_t *alloc)
{
    bool is_enough;

    rmm__mutex_lock(&engine->lock);
    is_enough = rmm__engine_free_bytes_locked(engine) >= bytes_of(alloc);
    rmm__mutex_unlock(&engine->lock);
    return is_enough;
}

static rmm_status_t climb(
    engine_t *engine, const engine_alloc_t *alloc, void **ptr_out,
    rmm_status_t *failure)
{
    static const rung_t ladder[] = {
        {.climb = join, .needs_free = true},
        {.climb = reclaim, .needs_free = true},
        {.climb = wait_for_others, .breaks_captures = true, .needs_free = true},
        {.climb = compact},
        {.climb = cover, .needs_free = true},
        {.climb = grow, .then_grows = true},
        {.climb = synchronise},
        {.climb = gather, .then_grows = true},
        {.climb = rearrange, .then_grows = true},
    };
    rmm_status_t status =
        try_to_take(engine, alloc, ptr_out); /* others may have freed memory */

    for (size_t i = 0; i < sizeof(ladder) / sizeof(ladder[0]); i++) {
        rmm_status_t refusal = RMM_ERR_OUT_OF_MEMORY;

        if (status != RMM_ERR_OUT_OF_MEMORY) {
            return status; /* a block, or no host memory for its node */
        }
        if ((ladder[i].breaks_captures && rmm__engine_captures(alloc)) ||
            (ladder[i].needs_free && !is_enough_free(engine, alloc))) {
            continue;
        }
        if (ladder[i].climb(engine, alloc, &refusal)) {
            status =
                take_or_grow(engine, alloc, ladder[i].then_grows, ptr_out, &refusal);
        }
        if (refusal != RMM_OK && refusal != RMM_ERR_OUT_OF_MEMORY) {
            *failure = refusal; /* the source's own reason, if no later rung helps */
        }
    }
    return status;
}

/* --- requests known to fail ---------------------------------------------------------- */

static rmm_status_t no_room(const engine_t *engine, uint64_t room)
{
    return rmm__error(
        RMM_ERR_OUT_OF_MEMORY,
        "its maximum of %" PRIu64 " bytes leaves room for %" PRIu64,
        engine->maximum_bytes, room);
}

/*
 * Neither free memory nor growth can help: the request is larger than both together, or one
 * like it has failed and nothing was freed since.
 */
static bool is_futile(engine_t *engine, const engine_alloc_t *alloc)
{
    const engine_futile_t *futile = &engine->futile;
    uint64_t room, free_bytes;
    bool can_grow;
    bool is_known;

    rmm__mutex_lock(&engine->lock);
    room = rmm__engine_room_locked(engine);
    free_bytes = rmm__engine_free_bytes_locked(engine) +
                 engine->transit_units * RMM_BLOCKS_UNIT + engine->promised_bytes;
    can_grow = engine->source->can_grow_locked(engine, rmm__engine_need(alloc));
    is_known = futile->units != 0 && futile->units <= alloc->units &&
               futile->changes == engine->changes &&
               futile->graphs_gone == rmm__engine_graphs_gone() &&
               !rmm__engine_captures(alloc);
    is_known |= room < bytes_of(alloc) && free_bytes < bytes_of(alloc) - room;
    rmm__mutex_unlock(&engine->lock);
    if (is_known && !can_grow) {
        (void)no_room(engine, room);
        return true;
    }
    return false;
}

/* All rungs. If they fail, the size is known to fail until something is freed. */
static rmm_status_t
attempt(engine_t *engine, const engine_alloc_t *alloc, void **ptr_out)
{
    rmm_status_t failure = RMM_ERR_OUT_OF_MEMORY;
    rmm_status_t status = climb(engine, alloc, ptr_out, &failure);

    if (status == RMM_ERR_OUT_OF_MEMORY && rmm__engine_synchronise_all(engine)) {
        status = climb(engine, alloc, ptr_out, &failure);
    }
    if (status == RMM_ERR_OUT_OF_MEMORY && failure == RMM_ERR_OUT_OF_MEMORY &&
        !rmm__engine_captures(alloc)) {
        /* every rung was tried */
        status = rmm__engine_take_or_note_futile(engine, alloc, ptr_out);
    }
    return status == RMM_ERR_OUT_OF_MEMORY ? failure : status;
}

/* This thread enters the ladder; true: another thread is there. */
static bool begin_climb(engine_t *engine, uint64_t *number_out)
{
    bool is_with_others;

    rmm__mutex_lock(&engine->lock);
    is_with_others = engine->climbing++ != 0;
    *number_out = ++engine->climbs;
    rmm__mutex_unlock(&engine->lock);
    return is_with_others;
}

/* True: another thread entered the ladder meanwhile, is moving memory, or freed memory that
 * the last synchronise does not cover. */
static bool end_climb(engine_t *engine, const engine_alloc_t *alloc, uint64_t number)
{
    bool was_with_others;

    rmm__mutex_lock(&engine->lock);
    engine->climbing--;
    was_with_others = engine->climbs != number || engine->transit_units != 0 ||
                      (rmm__engine_free_bytes_locked(engine) >= bytes_of(alloc) &&
                       !rmm__engine_is_all_clean_locked(engine));
    rmm__mutex_unlock(&engine->lock);
    return was_with_others;
}

rmm_status_t
rmm__engine_alloc_slow(engine_t *engine, const engine_alloc_t *alloc, void **ptr_out)
{
    rmm_status_t status = RMM_ERR_OUT_OF_MEMORY;
    bool is_worth_it = !is_futile(engine, alloc);

    for (int i = 0; i < ATTEMPTS && is_worth_it; i++) {
        bool has_turn = rmm__turn_enter(&engine->turn);
        bool is_with_others;
        uint64_t number;

        is_with_others = begin_climb(engine, &number);
        status = attempt(engine, alloc, ptr_out);
        is_with_others |= end_climb(engine, alloc, number);
        rmm__turn_leave(&engine->turn, has_turn);
        is_worth_it = status == RMM_ERR_OUT_OF_MEMORY && is_with_others;
    }
    return status;
}
