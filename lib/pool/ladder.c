/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps, in this order, when neither the stream's own heap nor the clean one has a block
 * that fits. Each costs more than the one before:
 *   1 reclaim   make clean what finished events cover                (calls the driver)
 *   2 wait      let this stream wait, on the device, for others      (orders streams)
 *   3 compact   map free memory side by side, where much is free     (a range)
 *   4 cover     synchronise, if no event covers much of the memory   (stops the host)
 *   5 grow      take more from the source
 *   6 sync      synchronise the device and merge everything          (stops the host)
 *   7 gather    map free memory elsewhere, then grow by the rest     (a range)
 *   8 rearrange map all free memory in one place, then grow by the rest; or give back free
 *               chunks and take one that is large enough
 * If all fail while blocks are unproven (waits.c), all devices are waited for, and all steps
 * repeated. A capture skips 2, which would invalidate it. A synchronise is a free of a small block
 * (docs/decisions/0004), which invalidates no capture.
 *
 * Threads take turns here: two threads that find no block at the same time do not both grow. A
 * thread that waits too long for the turn proceeds without it (core/turn.h). Then another
 * thread may be moving memory just as this one fails, so it tries again. It also tries again if
 * others freed enough meanwhile: under one lock it would have got that memory too.
 */
#include "pool/source.h"

#include "pool/figures.h"

#define RECLAIM_STREAMS 64 /* streams queried before the next rung */
#define ATTEMPTS 8         /* while other threads are on the ladder, or free */

/* A request on its way up. */
typedef struct climb {
    engine_t *engine;
    const engine_alloc_t *alloc;
    void **ptr_out;
    rmm_status_t
        failure; /* if no rung helps: the source's own reason, or OUT_OF_MEMORY */
} climb_t;

typedef struct rung {
    bool (*step)(climb_t *climb); /* true: trying again may succeed */
    bool breaks_captures;
    bool needs_free; /* it only brings free memory together */
    bool then_grows; /* it may bring only part of what is needed */
} rung_t;

static uint64_t bytes_of(const engine_alloc_t *alloc)
{
    return alloc->block.units * RMM_BLOCKS_UNIT;
}

/* The source's answer: a reason of its own is the request's, if no later rung helps. */
static bool note(climb_t *climb, bool has_helped, rmm_status_t status)
{
    if (status != RMM_OK && status != RMM_ERR_OUT_OF_MEMORY) {
        climb->failure = status;
    }
    return has_helped;
}

/* --- the rungs ----------------------------------------------------------------------- */

static bool reclaim(climb_t *climb)
{
    return rmm__engine_reclaim(climb->engine, RECLAIM_STREAMS);
}

static bool wait_for_others(climb_t *climb)
{
    return rmm__engine_wait_for_others(climb->engine, climb->alloc);
}

static bool synchronise(climb_t *climb)
{
    return rmm__engine_synchronise(climb->engine) == RMM_OK;
}

static bool cover(climb_t *climb)
{
    engine_t *engine = climb->engine;
    bool is_much;

    rmm__mutex_lock(&engine->lock);
    is_much = engine->streams.alone == NULL && rmm__engine_is_open_much_locked(engine);
    rmm__mutex_unlock(&engine->lock);
    return is_much && synchronise(climb);
}

static bool grow(climb_t *climb)
{
    rmm_status_t status = rmm__engine_grow(climb->engine, &climb->alloc->block);

    return note(climb, status == RMM_OK, status);
}

static bool move_together(climb_t *climb, engine_gather_t how)
{
    rmm_status_t status = RMM_ERR_OUT_OF_MEMORY;
    bool any = climb->engine->source->gather(
        climb->engine, &climb->alloc->block, how, &status);

    return note(climb, any, status);
}

static bool compact(climb_t *climb)
{
    return move_together(climb, ENGINE_GATHER_IF_WORTH);
}

static bool gather(climb_t *climb)
{
    return move_together(climb, ENGINE_GATHER_SOME);
}

static bool rearrange(climb_t *climb)
{
    return move_together(climb, ENGINE_GATHER_ALL);
}

/* --- the ladder ---------------------------------------------------------------------- */

/* Another thread may take the new memory first: repeat until the source refuses. */
static rmm_status_t take_or_grow(climb_t *climb, bool then_grows)
{
    rmm_status_t status;

    do {
        status = rmm__engine_take(climb->engine, climb->alloc, true, climb->ptr_out);
    } while (status == RMM_ERR_OUT_OF_MEMORY && then_grows && grow(climb));
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

/* A block, or no host memory for its node; or RMM_ERR_OUT_OF_MEMORY. */
static rmm_status_t climb_all(climb_t *climb)
{
    static const rung_t ladder[] = {
        {.step = reclaim, .needs_free = true},
        {.step = wait_for_others, .breaks_captures = true, .needs_free = true},
        {.step = compact},
        {.step = cover, .needs_free = true},
        {.step = grow, .then_grows = true},
        {.step = synchronise},
        {.step = gather, .then_grows = true},
        {.step = rearrange, .then_grows = true},
    };
    rmm_status_t status = take_or_grow(climb, false); /* others may have freed memory */

    for (size_t i = 0;
         i < sizeof(ladder) / sizeof(ladder[0]) && status == RMM_ERR_OUT_OF_MEMORY;
         i++) {
        const rung_t *rung = &ladder[i];

        if ((!rung->breaks_captures || !rmm__engine_captures(climb->alloc)) &&
            (!rung->needs_free || is_enough_free(climb->engine, climb->alloc)) &&
            rung->step(climb)) {
            status = take_or_grow(climb, rung->then_grows);
        }
    }
    return status;
}

/* --- requests known to fail ---------------------------------------------------------- */

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
    can_grow = engine->source->can_grow_locked(engine, &alloc->block);
    is_known = futile->units != 0 && futile->units <= alloc->block.units &&
               futile->changes == engine->changes &&
               futile->graphs_gone == rmm__engine_graphs_gone() &&
               !rmm__engine_captures(alloc);
    is_known |= room < bytes_of(alloc) && free_bytes < bytes_of(alloc) - room;
    rmm__mutex_unlock(&engine->lock);
    if (is_known && !can_grow) {
        (void)rmm__engine_no_room(engine, room);
        return true;
    }
    return false;
}

/* All rungs. If they fail, the size is known to fail until something is freed. */
static rmm_status_t
attempt(engine_t *engine, const engine_alloc_t *alloc, void **ptr_out)
{
    climb_t climb = {engine, alloc, ptr_out, RMM_ERR_OUT_OF_MEMORY};
    rmm_status_t status = climb_all(&climb);

    if (status == RMM_ERR_OUT_OF_MEMORY && rmm__engine_synchronise_all(engine)) {
        status = climb_all(&climb);
    }
    if (status == RMM_ERR_OUT_OF_MEMORY && climb.failure == RMM_ERR_OUT_OF_MEMORY &&
        !rmm__engine_captures(alloc)) {
        /* every rung was tried */
        status = rmm__engine_take_or_note_futile(engine, alloc, ptr_out);
    }
    return status == RMM_ERR_OUT_OF_MEMORY ? climb.failure : status;
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
        RMM_AT_END(rmm__turn_leave)
        rmm_turn_stay_t stay = rmm__turn_enter(&engine->turn);
        bool is_with_others;
        uint64_t number;

        is_with_others = begin_climb(engine, &number);
        status = attempt(engine, alloc, ptr_out);
        is_with_others |= end_climb(engine, alloc, number);
        is_worth_it = status == RMM_ERR_OUT_OF_MEMORY && is_with_others;
    }
    return status;
}
