/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a pool grows: by how much, by a chunk from upstream (a virtual pool maps: pool_range.c),
 * and what the log is told of it. When it grows is the ladder's matter.
 *
 * Locking: grow_lock is held across upstream's calls, `lock` never is.
 */
#include "resources/pool_impl.h"

#include <inttypes.h>

#include "log/log.h"

#define GROWTH_MIN ((uint64_t)2 * 1024 * 1024) /* cudaMalloc's own granularity */
#define GROWTH_MAX ((uint64_t)1024 * 1024 * 1024)
#define GROWTH_SHARE 16 /* one chunk is this part of what is held already */

uint64_t rmm__pool_reserved(pool_t *self)
{
    uint64_t reserved;

    rmm__mutex_lock(&self->lock);
    reserved = self->reserved_bytes;
    rmm__mutex_unlock(&self->lock);
    return reserved;
}

static uint64_t round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

uint64_t rmm__pool_whole_growth(const pool_t *self, uint64_t bytes)
{
    return self->growth_bytes != 0 ? round_up(bytes, self->growth_bytes) : bytes;
}

uint64_t rmm__pool_growth_wish(pool_t *self, uint64_t need)
{
    uint64_t wish = round_up(rmm__pool_reserved(self) / GROWTH_SHARE, GROWTH_MIN);

    if (self->growth_bytes != 0) {
        return need;
    }
    wish = wish < GROWTH_MIN ? GROWTH_MIN : wish;
    wish = wish > GROWTH_MAX ? GROWTH_MAX : wish;
    wish = wish < need ? round_up(need, GROWTH_MIN) : wish;
    return wish > POOL_CHUNK_BYTES ? POOL_CHUNK_BYTES : wish;
}

static rmm_status_t chunk_add(pool_t *self, void *ptr, uint64_t bytes)
{
    pool_chunk_t chunk = {.address = ptr, .bytes = bytes};
    uint32_t phase = (uint32_t)((uintptr_t)ptr / POOL_UNIT % RMM_SUBALLOC_PHASES);
    rmm_suballoc_result_t result = RMM_SUBALLOC_NO_STORAGE;

    rmm__mutex_lock(&self->lock);
    if (rmm__pool_chunks_reserve_locked(self)) {
        uint32_t units = (uint32_t)(bytes / POOL_UNIT);

        result =
            rmm__pool_chunk_number_locked(self, &chunk)
                ? rmm__suballoc_add_region_at(
                      self->blocks, self->clean, chunk.first_unit, units, 0)
                : rmm__suballoc_add_region(
                      self->blocks, self->clean, units, phase, 0, &chunk.first_unit);
    }
    if (result == RMM_SUBALLOC_OK) {
        rmm__pool_chunks_insert_locked(self, &chunk);
        self->reserved_bytes += bytes;
        rmm__figure_add(&self->base.books.slot->growth_count, 1);
        rmm__pool_figures_locked(self);
    }
    rmm__mutex_unlock(&self->lock);
    if (result == RMM_SUBALLOC_OK) {
        return RMM_OK;
    }
    rmm__pool_chunk_return(self, &chunk);
    if (result == RMM_SUBALLOC_NO_UNITS) {
        return rmm__error(
            RMM_ERR_OUT_OF_MEMORY, "a pool divides no more than 1 TiB in all");
    }
    return rmm__error(
        RMM_ERR_OUT_OF_HOST_MEMORY, "no host memory to divide a chunk of %" PRIu64,
        bytes);
}

/* Upstream may have less than the wish: halve down to what is needed. */
static rmm_status_t
obtain_at_most(pool_t *self, uint64_t need, uint64_t *bytes, void **ptr_out)
{
    rmm_status_t status = rmm__pool_chunk_obtain(self, *bytes, ptr_out);

    while (status == RMM_ERR_OUT_OF_MEMORY && *bytes > need) {
        *bytes = round_up(*bytes / 2, POOL_UNIT);
        *bytes = *bytes < need ? need : *bytes;
        status = rmm__pool_chunk_obtain(self, *bytes, ptr_out);
    }
    return status;
}

void rmm__pool_keep_barrier(pool_t *self, bool keep)
{
    rmm_driver_scope_t scope;

    if (keep == self->keeps_barrier ||
        rmm__driver_scope_enter(&scope, self->driver, self->base.device) != RMM_OK) {
        return;
    }
    if (keep) {
        rmm__driver_barrier_keep(self->driver, self->base.device);
    } else {
        rmm__driver_barrier_drop(self->driver, self->base.device);
    }
    rmm__driver_scope_leave(&scope);
    self->keeps_barrier = keep;
}

static rmm_status_t grow_by_chunk(pool_t *self, uint64_t need, uint64_t wish)
{
    uint64_t room = self->maximum_bytes - rmm__pool_reserved(self);
    uint64_t bytes = wish < room ? wish : room / POOL_UNIT * POOL_UNIT;
    rmm_status_t status;
    void *ptr;

    if (need > POOL_CHUNK_BYTES) {
        return rmm__error(
            RMM_ERR_OUT_OF_MEMORY,
            "a chunk of %" PRIu64 " bytes is more than the %" PRIu64
            " that a pool can divide",
            need, POOL_CHUNK_BYTES);
    }
    if (need > room) {
        return rmm__error(
            RMM_ERR_OUT_OF_MEMORY, "its maximum of %" PRIu64 " bytes leaves %" PRIu64,
            self->maximum_bytes, room);
    }
    status = obtain_at_most(self, need, &bytes, &ptr);
    return status == RMM_OK ? chunk_add(self, ptr, bytes) : status;
}

rmm_status_t rmm__pool_grow(pool_t *self, uint64_t need, uint64_t wish)
{
    rmm_status_t status;

    RMM_ASSERT_LOCKED(&self->grow_lock);
    status = self->base.upstream == NULL ? rmm__pool_range_grow(self, need)
                                         : grow_by_chunk(self, need, wish);
    if (status == RMM_OK) {
        rmm__pool_keep_barrier(self, true);
    }
    return status;
}

void rmm__pool_log_growth(pool_t *self, uint64_t bytes)
{
    if (bytes != 0) {
        rmm__log_info(
            "%s '%s' (%" PRIu32 "): grew by %" PRIu64 " bytes to %" PRIu64,
            rmm_resource_type(&self->base), self->base.name, self->base.instance_id,
            bytes, rmm__pool_reserved(self));
    }
}
