/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is tried, over all shards and the back, when a shard has no block that fits and
 * gets no superblock, or the back has none for a large request. The order is that of the
 * resource's own ladder (arena_ladder.c, pool_ladder.c).
 *
 * Nothing here holds a shard's or the back's lock during a driver call (pool_ladder.c).
 */
#include "resources/pool_front.h"

rmm_status_t
rmm__front_refill(pool_front_t *front, const pool_want_t *want, uint32_t *unit_out)
{
    uint32_t home = rmm__front_home(front, want->key);
    pool_t *pool = rmm__front_make(front, home);
    rmm_status_t status = RMM_ERR_OUT_OF_HOST_MEMORY;

    if (pool != NULL) {
        if (rmm__pool_others_have_batches(pool, &want->key)) {
            rmm__pool_reclaim_others(pool, want);
        }
        status = rmm__front_take(front, home, want, true, unit_out);
    }
    return status == RMM_ERR_OUT_OF_HOST_MEMORY
               ? rmm__front_take(front, FRONT_BACK, want, false, unit_out)
               : status;
}

rmm_status_t
rmm__front_take_home(pool_front_t *front, const pool_want_t *want, uint32_t *unit_out)
{
    uint32_t home = rmm__front_home(front, want->key);

    if (!rmm__front_wants_small(front, want)) {
        return rmm__front_take(front, FRONT_BACK, want, false, unit_out);
    }
    return rmm__front_make(front, home) != NULL
               ? rmm__front_take(front, home, want, true, unit_out)
               : RMM_ERR_OUT_OF_HOST_MEMORY;
}

rmm_status_t rmm__front_take_anywhere(
    pool_front_t *front, const pool_want_t *want, uint32_t *unit_out)
{
    uint32_t home = rmm__front_home(front, want->key);
    rmm_status_t status = RMM_ERR_OUT_OF_MEMORY;

    if (rmm__front_wants_small(front, want)) {
        status = rmm__front_take_home(front, want, unit_out);
        for (uint32_t i = 0; i < FRONT_SHARDS && status == RMM_ERR_OUT_OF_MEMORY; i++) {
            if (i != home && rmm__front_at(front, i) != NULL) {
                status = rmm__front_take(front, i, want, false, unit_out);
            }
        }
    }
    /* what the back has left may be less than a granule */
    return status == RMM_ERR_OUT_OF_MEMORY
               ? rmm__front_take(front, FRONT_BACK, want, false, unit_out)
               : status;
}

void rmm__front_reclaim(pool_front_t *front)
{
    const pool_t *back = front->back;
    rmm_driver_scope_t scope;

    if (rmm__driver_scope_enter(&scope, back->driver, back->base.device) == RMM_OK) {
        for (uint32_t i = 0; i <= FRONT_BACK; i++) {
            pool_t *pool = rmm__front_at(front, i);

            if (pool != NULL) {
                (void)rmm__pool_reclaim_all(pool, NULL);
            }
        }
        rmm__driver_scope_leave(&scope);
    }
    rmm__front_give_back(front);
}

/* Wait for the streams whose blocks are in one shard or the back; true if that brought
 * any. */
static bool wait_in(pool_front_t *front, uint32_t index, const pool_want_t *want)
{
    pool_want_t here = *want;
    pool_t *pool = rmm__front_at(front, index);
    bool is_small = rmm__front_wants_small(front, want);
    rmm_status_t status;

    if (pool == NULL || (!is_small && index != FRONT_BACK)) {
        return false;
    }
    if (is_small && index == FRONT_BACK) { /* for a superblock */
        here.units = rmm__front_whole_granules(want->units + (want->align_units - 1));
        here.align_units = FRONT_GRANULE_UNITS;
    }
    if (!rmm__pool_wait_for_one(pool, &here, &status)) {
        return false;
    }
    if (index != FRONT_BACK) { /* the back counts by itself */
        rmm__figure_add(&front->mr->books.slot->cross_stream_count, 1);
    }
    return true;
}

rmm_status_t rmm__front_wait_for_others(
    pool_front_t *front, const pool_want_t *want, uint32_t *unit_out)
{
    uint32_t home = rmm__front_home(front, want->key);
    rmm_status_t status = RMM_ERR_OUT_OF_MEMORY;

    if (want->key.capture_id != 0) {
        return status; /* a wait for outside work would break the capture */
    }
    if (wait_in(front, home, want)) {
        status = rmm__front_take_anywhere(front, want, unit_out);
    }
    for (uint32_t i = 0; i <= FRONT_BACK && status == RMM_ERR_OUT_OF_MEMORY; i++) {
        uint32_t index = FRONT_BACK - i; /* the back first */

        if (index != home && wait_in(front, index, want)) {
            status = rmm__front_take_anywhere(front, want, unit_out);
        }
    }
    return status;
}

void rmm__front_stamps_close(pool_front_t *front)
{
    for (uint32_t i = 0; i <= FRONT_BACK; i++) {
        pool_t *pool = rmm__front_at(front, i);

        if (pool != NULL) {
            rmm__pool_stamps_close(pool);
        }
    }
}

void rmm__front_stamps_settle(pool_front_t *front, bool synchronised)
{
    for (uint32_t i = 0; i <= FRONT_BACK; i++) {
        pool_t *pool = rmm__front_at(front, i);

        if (pool != NULL) { /* one made meanwhile has no stamp to settle */
            rmm__pool_stamps_settle(pool, synchronised);
        }
    }
}
