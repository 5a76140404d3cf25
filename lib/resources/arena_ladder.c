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
 * How each is done over all arenas is in pool_front_ladder.c.
 */
#include "resources/arena_impl.h"

typedef rmm_status_t (*rung_fn)(
    arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out);

static bool captures(const pool_want_t *want)
{
    return want->key.capture_id != 0;
}

static rmm_status_t
take_anywhere(arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out)
{
    return rmm__front_take_anywhere(&self->front, want, unit_out);
}

/* What another thread's rescue may have brought. */
static rmm_status_t
take_home(arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out)
{
    return rmm__front_take_home(&self->front, want, unit_out);
}

static rmm_status_t
reclaim_finished(arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out)
{
    rmm__front_reclaim(&self->front);
    return take_anywhere(self, want, unit_out);
}

static rmm_status_t
wait_for_others(arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out)
{
    return rmm__front_wait_for_others(&self->front, want, unit_out);
}

static bool wait_for_device(arena_resource_t *self)
{
    rmm_driver_scope_t scope;
    int error;

    if (rmm__driver_scope_enter(&scope, self->driver, self->base.device) != RMM_OK) {
        return false;
    }
    rmm__front_stamps_close(&self->front);
    error = rmm__driver_barrier(self->driver);
    rmm__front_stamps_settle(&self->front, error == RMM_DRIVER_OK);
    rmm__driver_scope_leave(&scope);
    return error == RMM_DRIVER_OK;
}

static rmm_status_t
defragment(arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out)
{
    if (captures(want) || !wait_for_device(self)) {
        return RMM_ERR_OUT_OF_MEMORY;
    }
    self->is_synchronised = true;
    rmm__front_give_back(&self->front);
    return take_anywhere(self, want, unit_out);
}

/* One thread at a time: another one's rescue may have made the room that this one needs. */
static rmm_status_t
rescue(arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out)
{
    static const rung_fn ladder[] = {
        take_home, reclaim_finished, wait_for_others, defragment};
    rmm_status_t status = RMM_ERR_OUT_OF_MEMORY;
    uint64_t word;

    rmm__mutex_lock(&self->front.rescue_lock);
    self->is_synchronised = false;
    word = rmm__pool_try_begin(self->front.back, want);
    for (size_t i = 0;
         i < sizeof(ladder) / sizeof(ladder[0]) && status == RMM_ERR_OUT_OF_MEMORY;
         i++) {
        status = ladder[i](self, want, unit_out);
    }
    rmm__pool_try_end(
        self->front.back, word,
        self->is_synchronised && status == RMM_ERR_OUT_OF_MEMORY);
    rmm__mutex_unlock(&self->front.rescue_lock);
    return status;
}

rmm_status_t rmm__arena_alloc_slow(
    arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out)
{
    rmm_status_t status = RMM_ERR_OUT_OF_MEMORY;

    if (!rmm__pool_is_hopeless(self->front.back, want)) {
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
