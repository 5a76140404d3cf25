/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool in a crowd: when threads wait for each other at its lock, it opens a front
 * (pool_front.h), and its requests and frees go through that, each thread's to a shard.
 *
 * Alone a pool packs tighter than shards can, so it opens one on evidence only: who had to
 * wait for the lock says so. It stays open until the pool ends: lock-free readers may be
 * anywhere in it.
 *
 * The switch is made under the pool's lock, once: from then on its books are shared, and
 * whoever finds no front yet goes to the pool as before, under the lock.
 *
 * Not for captures: what they leave behind would keep superblocks for ever. Not for blocks
 * of one size unless they divide a granule: superblocks would leave gaps.
 */
#include "resources/pool_front.h"

#include <inttypes.h>

#include "core/host_memory.h"
#include "log/log.h"

/* So many that waited among so many allocations. Few, because the lock is not fair: of 16
 * threads that all want it one may have it for a hundred times in a row. */
#define CROWD_WAITS 64
#define CROWD_WINDOW 8192
/* Chunks of so many bytes begin with a granule, whatever the driver is. */
#define ALIGNED_CHUNK_BYTES ((uint64_t)2 * 1024 * 1024)

/* --- opening ------------------------------------------------------------------------ */

/* A superblock is divided without a rest. */
static bool suits(const pool_t *self)
{
    return self->block_units == 0 || (FRONT_GRANULE_UNITS % self->block_units == 0 &&
                                      self->growth_bytes % ALIGNED_CHUNK_BYTES == 0);
}

void rmm__pool_note_wait_locked(pool_t *self)
{
    pool_crowd_t *crowd = &self->crowd;
    uint64_t now = RMM_BOOKS_GET(&self->base.books, total_count);

    RMM_ASSERT_LOCKED(&self->lock);
    if (now - crowd->since > CROWD_WINDOW) {
        crowd->since = now;
        crowd->waits = 0;
    }
    crowd->waits++;
    crowd->is_crowded = crowd->waits >= CROWD_WAITS && suits(self);
}

/* From here on others than who holds the lock write the books as well. */
static void publish_front_locked(pool_t *self, pool_front_t *front)
{
    rmm__front_init(front, &self->base, self);
    rmm__books_begin_exclusive(&self->base.books);
    rmm__books_free_is_rest(&self->base.books);
    rmm__books_end_exclusive(&self->base.books);
    self->shares_books = true;
    self->is_shared = true; /* it will not see those whom shards serve */
    rmm__pool_batch_limits_locked(self);
    /* release: pairs with rmm__pool_front() */
    atomic_store_explicit(&self->front, front, memory_order_release);
}

bool rmm__pool_front_open(pool_t *self)
{
    pool_front_t *front = rmm__calloc(1, sizeof(*front));
    bool is_first;

    if (front != NULL) {
        rmm__place_share(&self->base.books.user);
    }
    rmm__mutex_lock(&self->lock);
    self->crowd = (pool_crowd_t){0}; /* without host memory: perhaps later */
    is_first = front != NULL && rmm__pool_front(self) == NULL;
    if (is_first) {
        publish_front_locked(self, front);
    }
    rmm__mutex_unlock(&self->lock);
    if (!is_first) {
        rmm__free(front);
        return front != NULL;
    }
    rmm__log_info(
        "%s '%s' (%" PRIu32 "): threads wait for each other: they get shards",
        rmm_resource_type(&self->base), self->base.name, self->base.instance_id);
    return true;
}

/* --- through the front -------------------------------------------------------------- */

/* Without the lock, unless there is a far chunk (pool_chunks.c): who has an address or a
 * unit of a live block knows of its chunk. */
static bool find_unit(pool_t *self, front_place_t *place)
{
    bool found;

    if (!rmm__pool_has_far_chunks(self)) {
        return rmm__pool_unit_near(self, place->ptr, &place->unit);
    }
    rmm__mutex_lock(&self->lock);
    found = rmm__pool_unit_of_locked(self, place->ptr, &place->unit);
    rmm__mutex_unlock(&self->lock);
    return found;
}

static void *address_of(pool_t *self, uint32_t unit)
{
    void *ptr;

    if (!rmm__pool_has_far_chunks(self)) {
        return rmm__pool_address_near(self, unit);
    }
    rmm__mutex_lock(&self->lock);
    ptr = rmm__pool_address_of_locked(self, unit);
    rmm__mutex_unlock(&self->lock);
    return ptr;
}

static rmm_status_t hand_out(
    pool_t *self, pool_front_t *front, const pool_want_t *want, uint32_t unit,
    void **ptr_out)
{
    rmm__front_enter_books(front, want);
    *ptr_out = address_of(self, unit);
    return RMM_OK;
}

/* The back's, behind a look at what others have finished (see pool_alloc()). */
static rmm_status_t take_large(
    pool_t *self, pool_front_t *front, const pool_want_t *want, uint32_t *unit_out)
{
    if (want->units >= POOL_LARGE_UNITS && self->block_units == 0 &&
        rmm__pool_others_have_batches(self, &want->key)) {
        rmm__pool_reclaim_others(self, want);
    }
    return rmm__front_take(front, FRONT_BACK, want, false, unit_out);
}

rmm_status_t rmm__pool_front_alloc(
    pool_t *self, pool_front_t *front, const pool_want_t *want, void **ptr_out)
{
    uint32_t unit;
    rmm_status_t status = rmm__front_wants_small(front, want)
                              ? rmm__front_take_small(front, want, &unit)
                              : take_large(self, front, want, &unit);

    if (status == RMM_OK) {
        return hand_out(self, front, want, unit, ptr_out);
    }
    return status == RMM_ERR_OUT_OF_MEMORY ? rmm__pool_alloc_slow(self, want, ptr_out)
                                           : status;
}

void rmm__pool_front_dealloc(
    pool_t *self, pool_front_t *front, void *ptr, const rmm_request_t *request,
    const rmm_stream_key_t *key)
{
    const char *refusal = POOL_NO_SUCH_BLOCK;
    front_place_t place = {.ptr = ptr};
    bool is_right = find_unit(self, &place);

    if (is_right) {
        pool_t *owner = rmm__front_owner(front, place.unit);

        is_right = rmm__front_give(front, owner, place, request, key, &refusal);
    }
    if (!is_right) {
        rmm__resource_refuse_free(&self->base, ptr, request, refusal);
    }
}

rmm_status_t
rmm__pool_take_anywhere(pool_t *self, const pool_want_t *want, void **ptr_out)
{
    pool_front_t *front = rmm__pool_enter(self);
    rmm_status_t status;
    uint32_t unit;

    if (front != NULL) {
        status = rmm__front_take_anywhere(front, want, &unit);
        return status == RMM_OK ? hand_out(self, front, want, unit, ptr_out) : status;
    }
    status = rmm__pool_take_locked(self, want, ptr_out);
    rmm__pool_leave(self);
    return status;
}

rmm_status_t rmm__pool_front_rescue(
    pool_t *self, pool_front_t *front, const pool_want_t *want, void **ptr_out)
{
    uint32_t unit;
    rmm_status_t status = rmm__front_take_home(front, want, &unit);

    if (status == RMM_ERR_OUT_OF_MEMORY) {
        rmm__front_reclaim(front);
        status = rmm__front_take_anywhere(front, want, &unit);
    }
    if (status == RMM_ERR_OUT_OF_MEMORY) {
        status = rmm__front_wait_for_others(front, want, &unit);
    }
    return status == RMM_OK ? hand_out(self, front, want, unit, ptr_out) : status;
}

pool_want_t rmm__pool_front_shape(const pool_t *self, const pool_want_t *want)
{
    const pool_front_t *front = rmm__pool_front(self);
    pool_want_t shape = *want;

    if (front != NULL && self->block_units == 0 &&
        rmm__front_wants_small(front, want)) {
        shape.units = rmm__front_whole_granules(want->units + (want->align_units - 1));
        shape.align_units = FRONT_GRANULE_UNITS;
    }
    return shape;
}

/* --- all of it ---------------------------------------------------------------------- */

void rmm__pool_front_add_free(
    pool_t *self, uint64_t *free_bytes, uint64_t *largest_bytes)
{
    pool_front_t *front = rmm__pool_front(self);
    uint64_t largest = *largest_bytes / POOL_UNIT;
    uint64_t free_units = 0;

    for (uint32_t i = 0; front != NULL && i < FRONT_SHARDS; i++) {
        pool_t *pool = rmm__front_at(front, i);

        if (pool != NULL) {
            rmm__mutex_lock(&pool->lock);
            rmm__pool_figures_locked(pool);
            free_units += rmm__suballoc_total_free_units(pool->blocks);
            largest =
                pool->largest_free_units > largest ? pool->largest_free_units : largest;
            rmm__mutex_unlock(&pool->lock);
        }
    }
    *free_bytes += free_units * POOL_UNIT;
    *largest_bytes = largest * POOL_UNIT;
}

void rmm__pool_front_fini(pool_t *self)
{
    pool_front_t *front = rmm__pool_front(self);

    if (front != NULL) {
        rmm__front_fini(front);
        rmm__free(front);
    }
}
