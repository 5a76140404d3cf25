/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creation and destruction of the engine, growth, trim, and queries of its owner. See engine.h.
 */
#include "pool/source.h"

#include "core/host_memory.h"
#include "pool/engine_figures.h"

/* --- growth, and the block for barriers ---------------------------------------------- */

static void keep_barrier(engine_t *engine)
{
    bool keeps;

    rmm__mutex_lock(&engine->lock);
    keeps = engine->keeps_barrier;
    engine->keeps_barrier = true;
    rmm__mutex_unlock(&engine->lock);
    if (keeps) {
        rmm__driver_barrier_refill(engine->driver, engine->device);
    } else {
        rmm__driver_barrier_keep(engine->driver, engine->device);
    }
}

/* An engine without memory needs no barrier, unless another thread lets it grow. */
static void drop_barrier_if_empty(engine_t *engine)
{
    bool drops;

    rmm__mutex_lock(&engine->lock);
    drops = engine->keeps_barrier && engine->figures.reserved_bytes == 0 &&
            engine->promised_bytes == 0;
    engine->keeps_barrier = engine->keeps_barrier && !drops;
    rmm__mutex_unlock(&engine->lock);
    if (drops) {
        rmm__driver_barrier_drop(engine->driver, engine->device);
    }
}

static bool yield_barrier(engine_t *engine, rmm_status_t status, uint64_t bytes)
{
    return status == RMM_ERR_OUT_OF_MEMORY && rmm__engine_reserved(engine) == 0 &&
           rmm__driver_barrier_yield(engine->driver, engine->device, bytes);
}

rmm_status_t rmm__engine_grow(engine_t *engine, const rmm_blocks_request_t *request)
{
    rmm_status_t status;

    keep_barrier(engine);
    status = engine->source->grow(engine, request);
    if (yield_barrier(engine, status, rmm__engine_need(request))) {
        status = engine->source->grow(engine, request);
    }
    drop_barrier_if_empty(engine);
    return status;
}

static rmm_status_t fill(engine_t *engine, uint64_t bytes)
{
    rmm_status_t status;

    keep_barrier(engine);
    status = engine->source->fill(engine, bytes);
    if (yield_barrier(engine, status, bytes)) {
        status = engine->source->fill(engine, bytes);
    }
    return status;
}

/* --- trim and figures ---------------------------------------------------------------- */

rmm_status_t rmm__engine_trim(engine_t *engine, uint64_t keep_bytes)
{
    RMM_AT_END(rmm__turn_leave) rmm_turn_stay_t stay = rmm__turn_enter(&engine->turn);
    rmm_status_t status;

    if (!rmm__sleep_move_begin(engine)) {
        return RMM_OK; /* it has nothing to give back */
    }
    rmm__engine_single_stream_suspend(engine);
    status = rmm__engine_synchronise(engine);
    if (status == RMM_OK) {
        status = engine->source->trim(engine, keep_bytes);
    }
    rmm__engine_single_stream_resume(engine);
    rmm__sleep_move_end(engine);
    drop_barrier_if_empty(engine);
    return status;
}

void rmm__engine_figures(engine_t *engine, engine_figures_t *out)
{
    rmm__mutex_lock(&engine->lock);
    if (!rmm__engine_is_shut_locked(engine)) {
        engine->figures.free_bytes = rmm__engine_free_bytes_locked(engine);
    }
    *out = engine->figures;
    rmm__mutex_unlock(&engine->lock);
}

bool rmm__engine_has_news(const engine_t *engine)
{
    return (atomic_load_explicit(&engine->grown_bytes, memory_order_relaxed) |
            atomic_load_explicit(&engine->stuck_bytes, memory_order_relaxed) |
            atomic_load_explicit(&engine->shut_out, memory_order_relaxed)) != 0;
}

engine_news_t rmm__engine_news(engine_t *engine)
{
    return (engine_news_t){
        .grown_bytes =
            atomic_exchange_explicit(&engine->grown_bytes, 0, memory_order_relaxed),
        .stuck_bytes =
            atomic_exchange_explicit(&engine->stuck_bytes, 0, memory_order_relaxed),
        .shut_out =
            atomic_exchange_explicit(&engine->shut_out, 0, memory_order_relaxed),
        .shut_out_error =
            atomic_load_explicit(&engine->shut_out_error, memory_order_relaxed)};
}

rmm_mutex_t *rmm__engine_mutex(engine_t *engine)
{
    return &engine->lock;
}

/* --- creation and destruction -------------------------------------------------------- */

static bool is_live(const rmm_block_info_t *info)
{
    return info->heap == RMM_HEAP_NONE && info->tag < TAG_SUPERBLOCK;
}

static bool look_for_live(void *context, const rmm_block_info_t *info)
{
    bool *has_live = context;

    *has_live = is_live(info);
    return !*has_live;
}

/* Perhaps: blocks are unproven or live, or a graph that is there uses some. */
static bool is_used_by_other_devices(engine_t *engine)
{
    bool has_unproven = rmm__engine_has_unproven(engine);
    bool has_captures;
    bool has_live = false;

    rmm__mutex_lock(&engine->lock);
    has_captures = engine->captures.first != NULL;
    rmm__blocks_walk(engine->blocks, look_for_live, &has_live);
    rmm__mutex_unlock(&engine->lock);
    return has_unproven || has_captures || has_live;
}

/* Queued work may still use the blocks, and the source may reuse the memory at once. */
static engine_end_t wait_until_idle(engine_t *engine)
{
    bool and_others = is_used_by_other_devices(engine);
    bool others_idle;
    rmm_driver_scope_t scope;
    int error;

    if (rmm__driver_scope_enter(&scope, engine->driver, engine->device) != RMM_OK) {
        return ENGINE_END_UNKNOWN;
    }
    others_idle =
        !and_others || rmm__driver_others_idle(engine->driver, engine->device, true);
    error = rmm__driver_barrier(engine->driver);
    rmm__driver_scope_leave(&scope);
    if (!others_idle) {
        return ENGINE_END_USED_ELSEWHERE;
    }
    return error == RMM_DRIVER_OK ? ENGINE_END_IDLE : ENGINE_END_UNKNOWN;
}

typedef struct left_walk {
    const engine_t *engine;
    void (*left)(void *owner, void *ptr, uint64_t bytes);
} left_walk_t;

static bool look_at_left(void *context, const rmm_block_info_t *info)
{
    const left_walk_t *walk = context;

    if (is_live(info)) {
        walk->left(
            walk->engine->owner, (void *)(uintptr_t)(info->unit * RMM_BLOCKS_UNIT),
            info->units * RMM_BLOCKS_UNIT - info->tag);
    }
    return true;
}

bool rmm__engine_close(
    engine_t *engine, bool is_used,
    void (*left)(void *owner, void *ptr, uint64_t bytes))
{
    left_walk_t walk = {engine, left};
    engine_end_t end = ENGINE_END_IDLE;

    if (engine->figures.reserved_bytes != 0 || engine->figures.asleep_bytes != 0) {
        end = wait_until_idle(engine);
        end = is_used ? ENGINE_END_USED_ELSEWHERE : end;
        if (left != NULL) {
            rmm__blocks_walk(engine->blocks, look_at_left, &walk);
        }
    }
    if (engine->source != NULL) {
        engine->source->fini(engine, end);
    }
    if (engine->keeps_barrier) {
        rmm__driver_barrier_drop(engine->driver, engine->device);
    }
    rmm__engine_captures_fini(engine);
    rmm__engine_streams_fini(engine);
    rmm__blocks_destroy(engine->blocks);
    return end != ENGINE_END_USED_ELSEWHERE;
}

uint64_t rmm__engine_addresses(const engine_t *engine, void **address_out)
{
    *address_out = engine->range.address;
    return engine->range.bytes;
}

void rmm__engine_destroy(engine_t *engine)
{
    rmm__turn_fini(&engine->turn);
    rmm__mutex_fini(&engine->lock);
    rmm__free(engine);
}

static void *
storage_resize(void *context, void *old, size_t old_bytes, size_t new_bytes)
{
    (void)context;
    if (new_bytes == 0) {
        rmm__free(old);
        return NULL;
    }
    return rmm__resize(old, old_bytes, new_bytes);
}

static rmm_status_t blocks_init(engine_t *engine)
{
    static const rmm_blocks_storage_t storage = {.resize = storage_resize};
    rmm_status_t status;

    engine->blocks = rmm__blocks_create(&storage);
    if (engine->blocks == NULL ||
        rmm__blocks_heap_create(engine->blocks, &engine->clean) != RMM_BLOCKS_OK) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    status = rmm__engine_captures_init(engine);
    return status == RMM_OK ? rmm__engine_streams_init(engine) : status;
}

rmm_status_t rmm__engine_create(const engine_plan_t *plan, engine_t **out)
{
    engine_t *engine = rmm__calloc(1, sizeof(*engine));

    if (engine == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    engine->driver = plan->driver;
    engine->device = plan->device;
    engine->owner = plan->owner;
    engine->owner_ops = plan->owner_ops;
    engine->upstream = plan->upstream;
    engine->maximum_bytes = plan->maximum_bytes;
    engine->block_units = plan->block_units;
    engine->growth_bytes = plan->growth_bytes;
    engine->streams.is_multi_stream = plan->is_shared;
    rmm__turn_init(&engine->turn);
    rmm__mutex_init(&engine->lock);
    *out = engine;
    return RMM_OK;
}

rmm_status_t rmm__engine_open(engine_t *engine, const engine_plan_t *plan)
{
    rmm_status_t status = blocks_init(engine);

    if (status == RMM_OK && (plan->is_range || plan->upstream != NULL)) {
        engine->source = plan->is_range ? &rmm__engine_range : &rmm__engine_chunks;
        status = engine->source->open(engine, plan);
    }
    return status == RMM_OK && plan->initial_bytes != 0
               ? fill(engine, plan->initial_bytes)
               : status;
}
