/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps, in this order, when a stream's arena has no block that fits, or the global
 * one has none for a large request:
 *   1 small: a superblock of the global arena, after finished events of the own arena were used
 * and then, one thread at a time (core/turn.h),
 *   2 use finished events everywhere; all arenas give back the free parts of their
 *     superblocks                                                      (queries the driver)
 *   3 let this stream wait, on the device, for others                  (orders streams)
 *   4 wait for the device; all arenas give back their free memory      (stops the host)
 *   5 the same for all devices, if blocks are unproven (pool/waits.c)
 * After each step any arena may serve a small request, because every stream may use
 * clean memory of every arena. A capture leaves out step 3, which would break it.
 */
#include "resources/arena_impl.h"

#include "pool/engine_figures.h"

#define ASKED_IN_OWN_SHARD                                                             \
    4            /* streams that are queried before the shard gets a superblock */
#define ASKED 64 /* streams of each arena that are queried */

typedef rmm_status_t (*step_fn)(
    arena_resource_t *self, const engine_alloc_t *alloc, void **ptr_out);

/* --- taking -------------------------------------------------------------------------- */

/* From one engine; a shard gets a superblock if it has nothing. */
static rmm_status_t take_from(
    arena_resource_t *self, uint32_t index, const engine_alloc_t *alloc, bool refills,
    void **ptr_out)
{
    engine_t *engine = rmm__arena_at(self, index);
    rmm_status_t status = rmm__engine_take(engine, alloc, true, ptr_out);
    rmm_blocks_result_t refilled;

    if (status != RMM_ERR_OUT_OF_MEMORY || !refills) {
        return status;
    }
    refilled = rmm__arena_refill(self, index, alloc);
    if (refilled == RMM_BLOCKS_NO_STORAGE) {
        return rmm__error(
            RMM_ERR_OUT_OF_HOST_MEMORY, "no host memory for another superblock");
    }
    return refilled == RMM_BLOCKS_OK ? rmm__engine_take(engine, alloc, true, ptr_out)
                                     : RMM_ERR_OUT_OF_MEMORY;
}

static rmm_status_t
take_from_own(arena_resource_t *self, const engine_alloc_t *alloc, void **ptr_out)
{
    uint32_t own = rmm__arena_own_shard(alloc->key);

    if (!rmm__arena_is_small(self, alloc)) {
        return take_from(self, ARENA_GLOBAL, alloc, false, ptr_out);
    }
    return rmm__arena_make(self, own) != NULL
               ? take_from(self, own, alloc, true, ptr_out)
               : RMM_ERR_OUT_OF_HOST_MEMORY;
}

static rmm_status_t
take_anywhere(arena_resource_t *self, const engine_alloc_t *alloc, void **ptr_out)
{
    uint32_t own = rmm__arena_own_shard(alloc->key);
    rmm_status_t status = take_from_own(self, alloc, ptr_out);

    for (uint32_t i = 0; i < ARENA_SHARDS && rmm__arena_is_small(self, alloc) &&
                         status == RMM_ERR_OUT_OF_MEMORY;
         i++) {
        if (i != own && rmm__arena_at(self, i) != NULL) {
            status = take_from(self, i, alloc, false, ptr_out);
        }
    }
    /* what the global one has left may be less than a granule */
    return status == RMM_ERR_OUT_OF_MEMORY
               ? take_from(self, ARENA_GLOBAL, alloc, false, ptr_out)
               : status;
}

/* --- steps --------------------------------------------------------------------------- */

static rmm_status_t
reclaim(arena_resource_t *self, const engine_alloc_t *alloc, void **ptr_out)
{
    engine_t *engines[ARENA_GLOBAL + 1];
    uint32_t count = rmm__arena_engines(self, engines);

    for (uint32_t i = 0; i < count; i++) {
        (void)rmm__engine_reclaim(engines[i], ASKED);
    }
    rmm__arena_give_back(self);
    return take_anywhere(self, alloc, ptr_out);
}

/* Wait for the streams whose blocks are in one engine; true if that brought any. */
static bool wait_in(arena_resource_t *self, uint32_t index, const engine_alloc_t *alloc)
{
    engine_t *engine = rmm__arena_at(self, index);
    engine_alloc_t here = *alloc;

    if (engine == NULL ||
        (!rmm__arena_is_small(self, alloc) && index != ARENA_GLOBAL)) {
        return false;
    }
    if (rmm__arena_is_small(self, alloc) && index == ARENA_GLOBAL) { /* a superblock */
        here.block.units = REFILL_GRANULE_UNITS + alloc->block.units;
        here.block.align_units = REFILL_GRANULE_UNITS;
    }
    if (!rmm__engine_wait_for_others(engine, &here)) {
        return false;
    }
    rmm__figure_add(&self->pool.base.accounting.slot->cross_stream_count, 1);
    return true;
}

static rmm_status_t
wait_for_others(arena_resource_t *self, const engine_alloc_t *alloc, void **ptr_out)
{
    uint32_t own = rmm__arena_own_shard(alloc->key);
    rmm_status_t status = RMM_ERR_OUT_OF_MEMORY;

    if (rmm__engine_captures(alloc)) {
        return status;
    }
    for (uint32_t i = 0; i <= ARENA_GLOBAL + 1 && status == RMM_ERR_OUT_OF_MEMORY;
         i++) {
        uint32_t index = i == 0 ? own : ARENA_GLOBAL + 1 - i; /* then from the back */

        if ((i == 0 || index != own) && wait_in(self, index, alloc)) {
            status = take_anywhere(self, alloc, ptr_out);
        }
    }
    return status;
}

/* One synchronise for all engines. */
rmm_status_t rmm__arena_synchronise(arena_resource_t *self, bool and_others)
{
    engine_t *engines[ARENA_GLOBAL + 1];
    uint32_t count = rmm__arena_engines(self, engines);
    bool others_idle;

    atomic_store_explicit(&self->late_bytes, 0, memory_order_relaxed);
    return rmm__engines_synchronise(engines, count, and_others, &others_idle);
}

static rmm_status_t defragment_behind(
    arena_resource_t *self, bool and_others, const engine_alloc_t *alloc,
    void **ptr_out)
{
    if (rmm__arena_synchronise(self, and_others) != RMM_OK) {
        return RMM_ERR_OUT_OF_MEMORY;
    }
    rmm__arena_give_back(self);
    return take_anywhere(self, alloc, ptr_out);
}

static rmm_status_t
defragment(arena_resource_t *self, const engine_alloc_t *alloc, void **ptr_out)
{
    return defragment_behind(self, false, alloc, ptr_out);
}

/* It may hang (rmm__driver_others_idle()), so only in place of a refusal. */
static rmm_status_t defragment_behind_others(
    arena_resource_t *self, const engine_alloc_t *alloc, void **ptr_out)
{
    engine_t *engines[ARENA_GLOBAL + 1];
    uint32_t count = rmm__arena_engines(self, engines);
    bool has_unproven = false;

    for (uint32_t i = 0; i < count && !has_unproven; i++) {
        has_unproven = rmm__engine_has_unproven(engines[i]);
    }
    return has_unproven ? defragment_behind(self, true, alloc, ptr_out)
                        : RMM_ERR_OUT_OF_MEMORY;
}

/* --- what is known to fail ----------------------------------------------------------- */

/* Rises with everything that may let a request succeed. *is_all_clean_out: nothing that is
 * free waits for a synchronise. */
static uint64_t count_changes(const arena_resource_t *self, bool *is_all_clean_out)
{
    engine_t *engines[ARENA_GLOBAL + 1];
    uint32_t count = rmm__arena_engines(self, engines);
    uint64_t changes = 0;

    *is_all_clean_out = true;
    for (uint32_t i = 0; i < count; i++) {
        rmm__mutex_lock(&engines[i]->lock);
        changes += engines[i]->changes;
        *is_all_clean_out &= rmm__engine_is_all_proven_locked(engines[i]);
        rmm__mutex_unlock(&engines[i]->lock);
    }
    return changes;
}

static bool is_known_to_fail(arena_resource_t *self, const engine_alloc_t *alloc)
{
    engine_t *global = self->pool.engine;
    engine_known_failure_t failure;
    bool is_all_clean;

    if (rmm__engine_captures(alloc)) {
        return false;
    }
    rmm__mutex_lock(&global->lock);
    failure = global->known_failure;
    rmm__mutex_unlock(&global->lock);
    return failure.units != 0 && failure.units <= alloc->block.units &&
           failure.graphs_gone == rmm__engine_graphs_gone() &&
           failure.changes == count_changes(self, &is_all_clean);
}

/* All was tried, and nothing changed since `changes`, when all that is free was clean. */
static void
note_failure(arena_resource_t *self, const engine_alloc_t *alloc, uint64_t changes)
{
    engine_t *global = self->pool.engine;
    bool is_all_clean;

    if (rmm__engine_captures(alloc) || changes != count_changes(self, &is_all_clean)) {
        return;
    }
    rmm__mutex_lock(&global->lock);
    global->known_failure = (engine_known_failure_t){
        rmm__engine_to_units(rmm__engine_need(&alloc->block)), changes,
        rmm__engine_graphs_gone()};
    rmm__mutex_unlock(&global->lock);
}

/* --- all steps ----------------------------------------------------------------------- */

static rmm_status_t
rescue(arena_resource_t *self, const engine_alloc_t *alloc, void **ptr_out)
{
    static const step_fn steps[] = {
        take_from_own, reclaim, wait_for_others, defragment, defragment_behind_others};
    RMM_AT_END(rmm__turn_leave)
    rmm_turn_stay_t stay = rmm__turn_enter(&self->pool.engine->turn);
    rmm_status_t status = RMM_ERR_OUT_OF_MEMORY;

    for (size_t i = 0;
         i < sizeof(steps) / sizeof(steps[0]) && status == RMM_ERR_OUT_OF_MEMORY; i++) {
        status = steps[i](self, alloc, ptr_out);
    }
    if (status == RMM_ERR_OUT_OF_MEMORY) {
        bool is_all_clean;
        uint64_t changes = count_changes(self, &is_all_clean);

        status = take_anywhere(self, alloc, ptr_out);
        if (status == RMM_ERR_OUT_OF_MEMORY && is_all_clean) {
            note_failure(self, alloc, changes);
        }
    }
    return status;
}

/* From the own shard again: what its finished events cover, or from a superblock. */
static rmm_status_t
refill(arena_resource_t *self, const engine_alloc_t *alloc, void **ptr_out)
{
    engine_t *shard = rmm__arena_make(self, rmm__arena_own_shard(alloc->key));

    if (shard == NULL) {
        return take_from(self, ARENA_GLOBAL, alloc, false, ptr_out);
    }
    (void)rmm__engine_reclaim(shard, ASKED_IN_OWN_SHARD);
    return take_from_own(self, alloc, ptr_out);
}

rmm_status_t rmm__arena_alloc_slow(
    arena_resource_t *self, const rmm_request_t *request, const engine_alloc_t *alloc,
    void **ptr_out)
{
    bool may_succeed = !is_known_to_fail(self, alloc);
    rmm_status_t status = RMM_ERR_OUT_OF_MEMORY;

    if (may_succeed && rmm__arena_is_small(self, alloc)) {
        status = refill(self, alloc, ptr_out);
    }
    if (may_succeed && status == RMM_ERR_OUT_OF_MEMORY) {
        status = rescue(self, alloc, ptr_out);
    }
    if (status != RMM_ERR_OUT_OF_MEMORY) {
        return status; /* a block, or no host memory for its node */
    }
    return rmm__arena_give_up(self, request, "the device was waited for");
}
