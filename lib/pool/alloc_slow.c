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

#include "pool/engine_figures.h"

#define RECLAIM_STREAMS 64 /* streams queried before the next step */
#define ATTEMPTS 8         /* while other threads are on the slow path, or free */

/* A request on the slow path. */
typedef struct slow_alloc {
    engine_t *engine;
    const engine_alloc_t *alloc;
    void **ptr_out;
    rmm_status_t
        failure; /* if no step helps: the source's own reason, or OUT_OF_MEMORY */
} slow_alloc_t;

typedef struct step {
    bool (*run)(slow_alloc_t *request); /* true: trying again may succeed */
    bool breaks_captures;
    bool needs_free; /* it only brings free memory together */
    bool then_grows; /* it may bring only part of what is needed */
} step_t;

static uint64_t bytes_of(const engine_alloc_t *alloc)
{
    return alloc->block.units * RMM_BLOCKS_UNIT;
}

/* The source's answer: a reason of its own is the request's, if no later step helps. */
static bool note(slow_alloc_t *request, bool has_helped, rmm_status_t status)
{
    if (status != RMM_OK && status != RMM_ERR_OUT_OF_MEMORY) {
        request->failure = status;
    }
    return has_helped;
}

/* --- the steps ----------------------------------------------------------------------- */

static bool reclaim(slow_alloc_t *request)
{
    return rmm__engine_reclaim(request->engine, RECLAIM_STREAMS);
}

static bool wait_for_others(slow_alloc_t *request)
{
    return rmm__engine_wait_for_others(request->engine, request->alloc);
}

static bool synchronise(slow_alloc_t *request)
{
    return rmm__engine_synchronise(request->engine) == RMM_OK;
}

static bool cover(slow_alloc_t *request)
{
    engine_t *engine = request->engine;
    bool is_much;

    rmm__mutex_lock(&engine->lock);
    is_much = engine->streams.single == NULL &&
              rmm__engine_is_worth_synchronising_locked(engine);
    rmm__mutex_unlock(&engine->lock);
    return is_much && synchronise(request);
}

static bool grow(slow_alloc_t *request)
{
    rmm_status_t status = rmm__engine_grow(request->engine, &request->alloc->block);

    return note(request, status == RMM_OK, status);
}

static bool move_together(slow_alloc_t *request, engine_gather_t how)
{
    rmm_status_t status = RMM_ERR_OUT_OF_MEMORY;
    bool any = request->engine->source->gather(
        request->engine, &request->alloc->block, how, &status);

    return note(request, any, status);
}

static bool compact(slow_alloc_t *request)
{
    return move_together(request, ENGINE_GATHER_IF_WORTH);
}

static bool gather(slow_alloc_t *request)
{
    return move_together(request, ENGINE_GATHER_SOME);
}

static bool rearrange(slow_alloc_t *request)
{
    return move_together(request, ENGINE_GATHER_ALL);
}

/* --- all of them ---------------------------------------------------------------------- */

/* Another thread may take the new memory first: repeat until the source refuses. */
static rmm_status_t take_or_grow(slow_alloc_t *request, bool then_grows)
{
    rmm_status_t status;

    do {
        status =
            rmm__engine_take(request->engine, request->alloc, true, request->ptr_out);
    } while (status == RMM_ERR_OUT_OF_MEMORY && then_grows && grow(request));
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
static rmm_status_t run_steps(slow_alloc_t *request)
{
    static const step_t steps[] = {
        {.run = reclaim, .needs_free = true},
        {.run = wait_for_others, .breaks_captures = true, .needs_free = true},
        {.run = compact},
        {.run = cover, .needs_free = true},
        {.run = grow, .then_grows = true},
        {.run = synchronise},
        {.run = gather, .then_grows = true},
        {.run = rearrange, .then_grows = true},
    };
    rmm_status_t status =
        take_or_grow(request, false); /* others may have freed memory */

    for (size_t i = 0;
         i < sizeof(steps) / sizeof(steps[0]) && status == RMM_ERR_OUT_OF_MEMORY; i++) {
        const step_t *step = &steps[i];

        if ((!step->breaks_captures || !rmm__engine_captures(request->alloc)) &&
            (!step->needs_free || is_enough_free(request->engine, request->alloc)) &&
            step->run(request)) {
            status = take_or_grow(request, step->then_grows);
        }
    }
    return status;
}

/* --- requests known to fail ---------------------------------------------------------- */

/*
 * Neither free memory nor growth can help: the request is larger than both together, or one
 * like it has failed and nothing was freed since.
 */
static bool is_known_to_fail(engine_t *engine, const engine_alloc_t *alloc)
{
    const engine_known_failure_t *known = &engine->known_failure;
    uint64_t room, free_bytes;
    bool can_grow;
    bool is_known;

    rmm__mutex_lock(&engine->lock);
    room = rmm__engine_room_locked(engine);
    free_bytes = rmm__engine_free_bytes_locked(engine) +
                 engine->transit_units * RMM_BLOCKS_UNIT + engine->promised_bytes;
    can_grow = engine->source->can_grow_locked(engine, &alloc->block);
    is_known = known->units != 0 && known->units <= alloc->block.units &&
               known->changes == engine->changes &&
               known->graphs_gone == rmm__engine_graphs_gone() &&
               !rmm__engine_captures(alloc);
    is_known |= room < bytes_of(alloc) && free_bytes < bytes_of(alloc) - room;
    rmm__mutex_unlock(&engine->lock);
    if (is_known && !can_grow) {
        (void)rmm__engine_no_room(engine, room);
        return true;
    }
    return false;
}

/* All steps. If they fail, the size is known to fail until something is freed. */
static rmm_status_t
attempt(engine_t *engine, const engine_alloc_t *alloc, void **ptr_out)
{
    slow_alloc_t request = {engine, alloc, ptr_out, RMM_ERR_OUT_OF_MEMORY};
    rmm_status_t status = run_steps(&request);

    if (status == RMM_ERR_OUT_OF_MEMORY && rmm__engine_synchronise_all(engine)) {
        status = run_steps(&request);
    }
    if (status == RMM_ERR_OUT_OF_MEMORY && request.failure == RMM_ERR_OUT_OF_MEMORY &&
        !rmm__engine_captures(alloc)) {
        /* every step was tried */
        status = rmm__engine_take_or_note_failure(engine, alloc, ptr_out);
    }
    return status == RMM_ERR_OUT_OF_MEMORY ? request.failure : status;
}

/* This thread enters the slow path. False: not while the engine sleeps. */
static bool begin_slow(engine_t *engine, uint64_t *number_out, bool *is_with_others_out)
{
    bool begins;

    rmm__mutex_lock(&engine->lock);
    begins = rmm__sleep_move_begin_locked(engine);
    if (begins) {
        *is_with_others_out = engine->slow_threads++ != 0;
        *number_out = ++engine->slow_count;
    }
    rmm__mutex_unlock(&engine->lock);
    return begins;
}

/* True: another thread entered the slow path meanwhile, is moving memory, or freed memory that
 * the last synchronise does not cover. */
static bool end_slow(engine_t *engine, const engine_alloc_t *alloc, uint64_t number)
{
    bool was_with_others;

    rmm__mutex_lock(&engine->lock);
    engine->slow_threads--;
    was_with_others = engine->slow_count != number || engine->transit_units != 0 ||
                      (rmm__engine_free_bytes_locked(engine) >= bytes_of(alloc) &&
                       !rmm__engine_is_all_clean_locked(engine));
    rmm__mutex_unlock(&engine->lock);
    rmm__sleep_move_end(engine);
    return was_with_others;
}

/* False: the engine sleeps. *is_worth_it_out: others were there, so another one may succeed. */
static bool attempt_in_turn(
    engine_t *engine, const engine_alloc_t *alloc, void **ptr_out,
    rmm_status_t *status_out, bool *is_worth_it_out)
{
    RMM_AT_END(rmm__turn_leave)
    rmm_turn_stay_t stay = rmm__turn_enter(&engine->turn);
    bool is_with_others;
    uint64_t number;

    if (!begin_slow(engine, &number, &is_with_others)) {
        return false;
    }
    *status_out = attempt(engine, alloc, ptr_out);
    is_with_others |= end_slow(engine, alloc, number);
    *is_worth_it_out = *status_out == RMM_ERR_OUT_OF_MEMORY && is_with_others;
    return true;
}

rmm_status_t
rmm__engine_alloc_slow(engine_t *engine, const engine_alloc_t *alloc, void **ptr_out)
{
    rmm_status_t status = rmm__sleep_await(engine);
    rmm_status_t awake = status;
    bool is_worth_it = status == RMM_OK;

    if (is_worth_it && is_known_to_fail(engine, alloc)) {
        return RMM_ERR_OUT_OF_MEMORY;
    }
    for (int i = 0; i < ATTEMPTS && is_worth_it;) {
        if (attempt_in_turn(engine, alloc, ptr_out, &status, &is_worth_it)) {
            i++;
        } else {
            awake = rmm__sleep_await(engine);
            is_worth_it = awake == RMM_OK;
        }
    }
    return awake == RMM_OK ? status : awake;
}
