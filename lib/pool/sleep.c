/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an engine falls asleep and wakes (engine.h). All contents are in host memory before the
 * first piece is given back, and stay there until the last one is back and filled: so whatever
 * fails, nothing is lost. The pieces keep their sizes and places. So a wake needs no plan, and an
 * undone sleep is a wake.
 *
 * Cost, beside the copies: on an H200 about 25 us for each piece on the way out and 80 us on the
 * way in, of which the copies of other pieces hide most.
 *
 * Locking: the state is changed under the engine's lock, by one thread at a time; then
 * those that wait for a state are told.
 */
#include <inttypes.h>

#include "core/gate.h"
#include "core/host_memory.h"
#include "core/uncancelled.h"
#include "pool/engine_figures.h"
#include "pool/range.h"
#include "pool/saved.h"

#define SETTLE_SECONDS                                                                 \
    10 /* for a growth or a trim: a callback in it may be the caller's */

struct engine_sleep {
    rmm_gate_t changed; /* threads that wait for a state; around the engine's lock */
    bool lets_wait;     /* under the engine's lock */
    bool keeps_host;    /* this and `saved`: of the thread that changes the state */
    saved_t saved;
};

/* --- states --------------------------------------------------------------------------- */

typedef enum outcome {
    NOT_YET = RMM_GATE_WAIT,
    BEGUN,   /* the state is this thread's to change */
    ALREADY, /* it is as it should be */
    REFUSED
} outcome_t;

/* Looks at the state, and may change it. Called with the lock. */
typedef outcome_t (*look_fn)(engine_t *engine);

typedef struct looker {
    engine_t *engine;
    look_fn look;
} looker_t;

static int look_locked(void *context)
{
    const looker_t *looker = context;
    outcome_t outcome;

    rmm__mutex_lock(&looker->engine->lock);
    outcome = looker->look(looker->engine);
    rmm__mutex_unlock(&looker->engine->lock);
    return (int)outcome;
}

/* NOT_YET only after so many seconds; 0: never. */
static outcome_t wait_until(engine_t *engine, look_fn look, unsigned most_seconds)
{
    looker_t looker = {engine, look};

    return (outcome_t)rmm__gate_wait(
        &engine->sleep->changed, look_locked, &looker, most_seconds);
}

static void change_state(engine_t *engine, engine_sleep_state_t state)
{
    rmm__mutex_lock(&engine->lock);
    engine->figures.sleep_count +=
        state == ENGINE_ASLEEP && engine->sleep_state == ENGINE_FALLING;
    engine->figures.wake_count +=
        state == ENGINE_AWAKE && engine->sleep_state == ENGINE_WAKING;
    engine->sleep_state = state;
    rmm__engine_show_locked(engine);
    rmm__mutex_unlock(&engine->lock);
    rmm__gate_tell(&engine->sleep->changed);
}

engine_sleep_state_t rmm__engine_sleep_state(engine_t *engine)
{
    engine_sleep_state_t state;

    rmm__mutex_lock(&engine->lock);
    state = engine->sleep_state;
    rmm__mutex_unlock(&engine->lock);
    return state;
}

static outcome_t begin_to_settle(engine_t *engine)
{
    switch (engine->sleep_state) {
    case ENGINE_AWAKE:
        if (rmm__engine_exported_bytes(engine) != 0) {
            return REFUSED; /* none can be exported from here on */
        }
        engine->sleep_state = ENGINE_SETTLING;
        return BEGUN;
    case ENGINE_ASLEEP:
        return ALREADY;
    default:
        return NOT_YET;
    }
}

static outcome_t begin_to_fall(engine_t *engine)
{
    if (engine->movers != 0) {
        return NOT_YET;
    }
    engine->sleep_state = ENGINE_FALLING;
    rmm__engine_show_locked(engine);
    return BEGUN;
}

static outcome_t begin_to_wake(engine_t *engine)
{
    switch (engine->sleep_state) {
    case ENGINE_ASLEEP:
        engine->sleep_state = ENGINE_WAKING;
        rmm__engine_show_locked(engine);
        return BEGUN;
    case ENGINE_AWAKE:
        return ALREADY;
    default:
        return NOT_YET;
    }
}

static outcome_t look_if_awake(engine_t *engine)
{
    if (engine->sleep_state == ENGINE_AWAKE) {
        return ALREADY;
    }
    return engine->sleep_state == ENGINE_SETTLING || engine->sleep->lets_wait ? NOT_YET
                                                                              : REFUSED;
}

bool rmm__sleep_move_begin_locked(engine_t *engine)
{
    bool begins = engine->sleep_state == ENGINE_AWAKE;

    engine->movers += begins ? 1 : 0;
    return begins;
}

bool rmm__sleep_move_begin(engine_t *engine)
{
    bool begins;

    rmm__mutex_lock(&engine->lock);
    begins = rmm__sleep_move_begin_locked(engine);
    rmm__mutex_unlock(&engine->lock);
    return begins;
}

void rmm__sleep_move_end(engine_t *engine)
{
    bool is_awaited;

    rmm__mutex_lock(&engine->lock);
    engine->movers--;
    is_awaited = engine->movers == 0 && engine->sleep_state == ENGINE_SETTLING;
    rmm__mutex_unlock(&engine->lock);
    if (is_awaited) {
        rmm__gate_tell(&engine->sleep->changed);
    }
}

rmm_status_t rmm__sleep_await(engine_t *engine)
{
    RMM_UNCANCELLED;

    return rmm__engine_sleep_state(engine) == ENGINE_AWAKE ||
                   wait_until(engine, look_if_awake, 0) == ALREADY
               ? RMM_OK
               : rmm__error(
                     RMM_ERR_ASLEEP,
                     "the pool is asleep: rmm_pool_wake() gives it its memory again");
}

/* --- pieces --------------------------------------------------------------------------- */

/* The memory of so many pieces went back, or came. */
static void count_moved(engine_t *engine, int64_t bytes)
{
    rmm__mutex_lock(&engine->lock);
    engine->figures.reserved_bytes += (uint64_t)bytes;
    engine->figures.asleep_bytes -= (uint64_t)bytes;
    rmm__engine_show_locked(engine);
    rmm__mutex_unlock(&engine->lock);
}

/* A list of the blocks looks at it, too. */
static void mark(engine_t *engine, engine_piece_t *piece, bool absent, bool forbidden)
{
    rmm__mutex_lock(&engine->lock);
    piece->is_absent = absent;
    piece->is_forbidden = forbidden;
    rmm__mutex_unlock(&engine->lock);
}

static bool is_there(const engine_piece_t *piece)
{
    return !piece->is_absent && !piece->is_forbidden;
}

/* Give back the memory of every piece, or of those before the first that fails. */
static int lower(engine_t *engine)
{
    engine_range_t *range = &engine->range;
    int64_t bytes = 0;
    int error = RMM_DRIVER_OK;

    for (uint32_t i = 0; i < range->piece_count && error == RMM_DRIVER_OK; i++) {
        engine_piece_t *piece = &range->pieces[i];

        if (piece->is_stuck || piece->is_absent) {
            continue;
        }
        error = rmm__piece_end(engine, piece);
        if (error == RMM_DRIVER_OK) {
            bytes += is_there(piece) ? (int64_t)rmm__piece_bytes(piece) : 0;
            mark(engine, piece, true, false);
        }
    }
    count_moved(engine, -bytes);
    return error;
}

/* New memory for one piece, where the old was. After a failure it may stay mapped: forbidden. */
static int raise_piece(engine_t *engine, engine_piece_t *piece)
{
    const rmm_driver_t *driver = engine->driver;
    char *address = rmm__range_address(piece->unit);
    uint64_t bytes = rmm__piece_bytes(piece);
    int error = RMM_DRIVER_OK;

    if (piece->is_absent) {
        error = driver->physical_create(
            bytes, engine->range.physical_flags, &piece->physical);
        if (error != RMM_DRIVER_OK) {
            return error;
        }
        error = driver->address_map(address, bytes, piece->physical);
        if (error != RMM_DRIVER_OK) {
            rmm__piece_release(engine, piece);
            return error;
        }
        mark(engine, piece, false, true);
    }
    error = rmm__piece_let_in(engine, piece);
    if (error == RMM_DRIVER_OK) {
        mark(engine, piece, false, false);
    } else if (rmm__piece_end(engine, piece) == RMM_DRIVER_OK) {
        mark(engine, piece, true, false);
    }
    return error;
}

static int raise_pieces(engine_t *engine, rmm_stream_t stream, int64_t *bytes_out)
{
    engine_range_t *range = &engine->range;
    saved_cursor_t cursor = {0};
    int error = RMM_DRIVER_OK;

    *bytes_out = 0;
    for (uint32_t i = 0; i < range->piece_count && error == RMM_DRIVER_OK; i++) {
        engine_piece_t *piece = &range->pieces[i];

        if (!is_there(piece)) {
            error = raise_piece(engine, piece);
            *bytes_out += error == RMM_DRIVER_OK ? (int64_t)rmm__piece_bytes(piece) : 0;
        }
        if (error == RMM_DRIVER_OK) {
            error = rmm__saved_copy_in(
                &engine->sleep->saved, engine, &cursor, piece->unit + piece->units,
                stream);
        }
    }
    return error;
}

/* All memory and all contents are there again, or what came went back. In a driver scope. */
static rmm_status_t raise_all(engine_t *engine, rmm_stream_t stream)
{
    int64_t bytes;
    int error = raise_pieces(engine, stream, &bytes);
    int synchronised = engine->driver->stream_synchronize(stream);

    count_moved(engine, bytes);
    error = error == RMM_DRIVER_OK ? synchronised : error;
    if (error != RMM_DRIVER_OK && synchronised == RMM_DRIVER_OK) {
        rmm_status_t status = rmm__driver_error(engine->driver, error, "waking");

        (void)lower(engine);
        return status;
    }
    return rmm__driver_status(engine->driver, error, "waking");
}

/* --- sleep ---------------------------------------------------------------------------- */

/* Importers would keep the memory, and the pool would wake with other. */
static rmm_status_t refuse_exported(const engine_t *engine)
{
    return rmm__error(
        RMM_ERR_IN_USE,
        "other processes may have %" PRIu64 " bytes of the pool mapped, in pieces of "
        "which a block was exported: free all blocks in these pieces, also those that "
        "were not exported, and trim the pool",
        rmm__engine_exported_bytes(engine));
}

/* Begin, with all threads out of the way. */
static rmm_status_t settle(engine_t *engine, bool lets_wait)
{
    switch (wait_until(engine, begin_to_settle, 0)) {
    case ALREADY:
        return rmm__error(RMM_ERR_ASLEEP, "the pool is asleep already");
    case REFUSED:
        return refuse_exported(engine);
    default:
        break;
    }
    rmm__mutex_lock(&engine->lock);
    engine->sleep->lets_wait = lets_wait; /* before the first request meets it */
    rmm__mutex_unlock(&engine->lock);
    if (wait_until(engine, begin_to_fall, SETTLE_SECONDS) != BEGUN) {
        change_state(engine, ENGINE_AWAKE);
        return rmm__error(
            RMM_ERR_IN_USE,
            "another call of the pool, which grows or is trimmed, has not returned for "
            "%d s: is this call made from inside a callback?",
            SETTLE_SECONDS);
    }
    return RMM_OK;
}

static rmm_status_t check_captures(const engine_t *engine)
{
    int is_open;
    int error = engine->driver->legacy_is_open(&is_open);

    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(engine->driver, error, "looking for a capture");
    }
    return is_open != 0
               ? RMM_OK
               : rmm__error(
                     RMM_ERR_IN_USE,
                     "a stream captures a graph: the pool can sleep when the capture "
                     "has ended");
}

static rmm_status_t fall(engine_t *engine)
{
    rmm_stream_t stream;
    rmm_status_t status = check_captures(engine);
    int error;

    if (status == RMM_OK && rmm__engine_exported_bytes(engine) != 0) {
        status = refuse_exported(engine); /* meanwhile; from here on nothing more is */
    }
    if (status == RMM_OK) {
        status = rmm__driver_wait_all_devices(engine->driver, engine->device);
    }
    if (status != RMM_OK) {
        return status;
    }
    error = engine->driver->stream_create(RMM_STREAM_NON_BLOCKING, &stream);
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(engine->driver, error, "creating a stream");
    }
    status = rmm__saved_copy_out(&engine->sleep->saved, engine, stream);
    if (status == RMM_OK) {
        error = lower(engine);
        status = rmm__driver_status(engine->driver, error, "unmapping memory");
        if (status != RMM_OK) {
            (void)raise_all(engine, stream);
            status = rmm__driver_error(engine->driver, error, "unmapping memory");
        }
    }
    (void)engine->driver->stream_destroy(stream);
    return status;
}

/* Of its pieces' memory, what the device has. */
static uint64_t absent_bytes(const engine_t *engine)
{
    const engine_range_t *range = &engine->range;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < range->piece_count; i++) {
        bytes += range->pieces[i].is_absent ? rmm__piece_bytes(&range->pieces[i]) : 0;
    }
    return bytes;
}

/* Is all memory where it was, so that the engine can be awake? */
static bool is_complete(const engine_t *engine)
{
    const engine_range_t *range = &engine->range;
    bool is_whole = true;

    for (uint32_t i = 0; i < range->piece_count; i++) {
        is_whole = is_whole && is_there(&range->pieces[i]);
    }
    return is_whole;
}

static rmm_status_t fall_in_scope(engine_t *engine, const engine_sleep_plan_t *plan)
{
    engine_sleep_t *sleep = engine->sleep;
    rmm_driver_scope_t scope;
    rmm_status_t status = rmm__saved_find(&sleep->saved, engine, plan);

    if (status == RMM_OK) {
        status = rmm__driver_scope_enter(&scope, engine->driver, engine->device);
    }
    if (status == RMM_OK) {
        status = fall(engine);
        rmm__driver_scope_leave(&scope);
    }
    return status;
}

rmm_status_t rmm__engine_sleep(engine_t *engine, const engine_sleep_plan_t *plan)
{
    RMM_UNCANCELLED;
    engine_sleep_t *sleep = engine->sleep;
    rmm_status_t status = settle(engine, plan->lets_wait);

    if (status != RMM_OK) {
        plan->host->close(plan->host_context);
        return status;
    }
    rmm__saved_open(&sleep->saved, plan);
    sleep->keeps_host = plan->keeps_host;
    status = fall_in_scope(engine, plan);
    if (status != RMM_OK && is_complete(engine)) {
        rmm__saved_drop(&sleep->saved, false);
        change_state(engine, ENGINE_AWAKE);
        return status;
    }
    change_state(engine, ENGINE_ASLEEP);
    return status;
}

/* --- wake ----------------------------------------------------------------------------- */

/* The device has so much, which spares it to map and unmap a part. */
static rmm_status_t check_room(const engine_t *engine, uint64_t bytes)
{
    uint64_t free_bytes;
    rmm_status_t status =
        rmm__driver_free_memory(engine->driver, engine->device, &free_bytes);

    return status != RMM_OK || bytes <= free_bytes
               ? status
               : rmm__error(
                     RMM_ERR_OUT_OF_MEMORY,
                     "to wake, the pool needs %" PRIu64
                     " bytes, and the device has %" PRIu64 ": it is still asleep",
                     bytes, free_bytes);
}

static rmm_status_t wake_in_scope(engine_t *engine)
{
    uint64_t bytes = absent_bytes(engine);
    rmm_stream_t stream;
    rmm_status_t status = check_room(engine, bytes);
    int error;

    if (status != RMM_OK) {
        return status;
    }
    error = engine->driver->stream_create(RMM_STREAM_NON_BLOCKING, &stream);
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(engine->driver, error, "creating a stream");
    }
    status = raise_all(engine, stream);
    if (status != RMM_OK) {
        status = rmm__error_cuda(
            status, rmm__error_native(),
            "%s: to wake, the pool needs %" PRIu64 " bytes, and it is still asleep",
            rmm__error_message(), bytes);
    }
    (void)engine->driver->stream_destroy(stream);
    return status;
}

/* As a growth: limits apply. */
static rmm_status_t wake(engine_t *engine)
{
    const engine_owner_t *ops = engine->owner_ops;
    uint64_t promised = 0;
    uint64_t bytes;
    rmm_driver_scope_t scope;
    rmm_status_t status = RMM_OK;

    rmm__mutex_lock(&engine->lock);
    bytes = engine->figures.asleep_bytes;
    rmm__mutex_unlock(&engine->lock);
    if (ops->begin_growth != NULL) {
        status = ops->begin_growth(engine->owner, bytes, &promised);
    }
    if (status != RMM_OK) {
        return status;
    }
    status = rmm__driver_scope_enter(&scope, engine->driver, engine->device);
    if (status == RMM_OK) {
        status = wake_in_scope(engine);
        rmm__driver_scope_leave(&scope);
    }
    if (promised != 0) {
        ops->end_growth(engine->owner, promised);
    }
    return status;
}

rmm_status_t rmm__engine_wake(engine_t *engine)
{
    RMM_UNCANCELLED;
    rmm_status_t status;

    if (wait_until(engine, begin_to_wake, 0) == ALREADY) {
        return RMM_OK;
    }
    status = wake(engine);
    if (status == RMM_OK) {
        rmm__saved_drop(&engine->sleep->saved, engine->sleep->keeps_host);
    }
    change_state(engine, status == RMM_OK ? ENGINE_AWAKE : ENGINE_ASLEEP);
    return status;
}

/* --- creation and end ----------------------------------------------------------------- */

rmm_status_t rmm__sleep_init(engine_t *engine)
{
    engine_sleep_t *sleep = rmm__calloc(1, sizeof(*sleep));

    if (sleep == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    rmm__gate_init(&sleep->changed);
    engine->sleep = sleep;
    return RMM_OK;
}

void rmm__sleep_fini(engine_t *engine)
{
    engine_sleep_t *sleep = engine->sleep;

    if (sleep != NULL) {
        rmm__saved_drop(&sleep->saved, false);
        rmm__gate_fini(&sleep->changed);
        rmm__free(sleep);
        engine->sleep = NULL;
    }
}
