/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is tried, in this order, when a stream's arena has no block that fits, or the
 * global arena none for a large request:
 *   1 small: a superblock of the global arena
 * and then, one thread at a time,
 *   2 take over what finished events have freed, everywhere; all arenas give back what is
 *     free of their superblocks                                        (asks the driver)
 *   3 let this stream wait, on the device, for others                  (orders streams)
 *   4 wait for the device; all arenas give back what is free           (stops the host)
 * After each of these a small request may be served from any arena: what is clean there
 * is as good as what is clean at home. A capture stops before 3: waits would break it.
 *
 * Nothing here holds an arena's lock during a driver call (see pool_ladder.c).
 */
#include "resources/arena_impl.h"

typedef rmm_status_t (*rung_fn)(
    arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out);

static bool captures(const pool_want_t *want)
{
    return want->key.capture_id != 0;
}

/* Of the global arena; or at home, with a superblock if need be, else wherever. */
static rmm_status_t
take_anywhere(arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out)
{
    uint32_t home = rmm__arena_index(want->key);
    rmm_status_t status;

    if (!rmm__arena_wants_small(self, want)) {
        return rmm__arena_take(self, ARENA_COUNT, want, false, unit_out);
    }
    status = rmm__arena_take(self, home, want, true, unit_out);
    for (uint32_t i = 0; i < ARENA_COUNT && status == RMM_ERR_OUT_OF_MEMORY; i++) {
        if (i != home && rmm__arena_at(self, i) != NULL) {
            status = rmm__arena_take(self, i, want, false, unit_out);
        }
    }
    return status;
}

static void give_back_all(arena_resource_t *self)
{
    for (uint32_t i = 0; i < ARENA_COUNT; i++) {
        rmm__arena_give_back(self, i);
    }
}

static rmm_status_t
reclaim_finished(arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out)
{
    rmm_driver_scope_t scope;

    if (rmm__driver_scope_enter(&scope, self->driver, self->base.device) == RMM_OK) {
        for (uint32_t i = 0; i <= ARENA_COUNT; i++) {
            arena_t *arena = rmm__arena_at(self, i);

            if (arena != NULL) {
                (void)rmm__pool_reclaim_all(&arena->pool, NULL);
            }
        }
        rmm__driver_scope_leave(&scope);
    }
    give_back_all(self);
    return take_anywhere(self, want, unit_out);
}

/* Wait for the streams whose blocks are in one arena; true if that brought any. */
static bool wait_in(arena_resource_t *self, uint32_t index, const pool_want_t *want)
{
    pool_want_t here = *want;
    arena_t *arena = rmm__arena_at(self, index);
    rmm_status_t status;

    if (arena == NULL ||
        (!rmm__arena_wants_small(self, want) && index != ARENA_COUNT)) {
        return false;
    }
    if (rmm__arena_wants_small(self, want) &&
        index == ARENA_COUNT) { /* for a superblock */
        here.units = rmm__arena_whole_granules(want->units + (want->align_units - 1));
        here.align_units = ARENA_GRANULE_UNITS;
    }
    if (!rmm__pool_wait_for_one(&arena->pool, &here, &status)) {
        return false;
    }
    rmm__figure_add(&self->base.books.slot->cross_stream_count, 1);
    return true;
}

static rmm_status_t
wait_for_others(arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out)
{
    uint32_t home = rmm__arena_index(want->key);
    rmm_status_t status = RMM_ERR_OUT_OF_MEMORY;

    if (captures(want)) {
        return status;
    }
    if (wait_in(self, home, want)) {
        status = take_anywhere(self, want, unit_out);
    }
    for (uint32_t i = 0; i <= ARENA_COUNT && status == RMM_ERR_OUT_OF_MEMORY; i++) {
        uint32_t index = ARENA_COUNT - i; /* the global one first */

        if (index != home && wait_in(self, index, want)) {
            status = take_anywhere(self, want, unit_out);
        }
    }
    return status;
}

static bool wait_for_device(arena_resource_t *self)
{
    rmm_driver_scope_t scope;
    int error;

    if (rmm__driver_scope_enter(&scope, self->driver, self->base.device) != RMM_OK) {
        return false;
    }
    for (uint32_t i = 0; i <= ARENA_COUNT; i++) {
        arena_t *arena = rmm__arena_at(self, i);

        if (arena != NULL) {
            rmm__pool_stamps_close(&arena->pool);
        }
    }
    error = rmm__driver_barrier(self->driver);
    for (uint32_t i = 0; i <= ARENA_COUNT; i++) {
        arena_t *arena = rmm__arena_at(self, i);

        if (arena != NULL) { /* one made meanwhile has no stamp to settle */
            rmm__pool_stamps_settle(&arena->pool, error == RMM_DRIVER_OK);
        }
    }
    rmm__driver_scope_leave(&scope);
    return error == RMM_DRIVER_OK;
}

static rmm_status_t
defragment(arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out)
{
    if (captures(want) || !wait_for_device(self)) {
        return RMM_ERR_OUT_OF_MEMORY;
    }
    rmm__figure_add(&self->base.books.slot->sync_count, 1);
    give_back_all(self);
    return take_anywhere(self, want, unit_out);
}

/* One thread at a time: another one's rescue may have made the room that this one needs. */
static rmm_status_t
rescue(arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out)
{
    static const rung_fn ladder[] = {
        take_anywhere, reclaim_finished, wait_for_others, defragment};
    rmm_status_t status = RMM_ERR_OUT_OF_MEMORY;

    rmm__mutex_lock(&self->rescue_lock);
    for (size_t i = 0;
         i < sizeof(ladder) / sizeof(ladder[0]) && status == RMM_ERR_OUT_OF_MEMORY;
         i++) {
        status = ladder[i](self, want, unit_out);
    }
    rmm__mutex_unlock(&self->rescue_lock);
    return status;
}

rmm_status_t rmm__arena_alloc_slow(
    arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out)
{
    uint32_t home = rmm__arena_index(want->key);
    rmm_status_t status = RMM_ERR_OUT_OF_MEMORY;

    if (rmm__arena_wants_small(self, want)) {
        rmm__pool_reclaim_others(&rmm__arena_at(self, home)->pool, want);
        status = rmm__arena_take(self, home, want, true, unit_out);
    }
    if (status == RMM_ERR_OUT_OF_MEMORY) {
        status = rescue(self, want, unit_out);
    }
    if (status != RMM_ERR_OUT_OF_MEMORY) {
        return status; /* a block, or no host memory for its node */
    }
    return rmm__arena_give_up(
        self, want->request,
        captures(want) ? "a capture cannot wait for other streams"
                       : "all streams were waited for");
}
