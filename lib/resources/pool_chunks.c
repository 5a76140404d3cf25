/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool's memory from upstream: which address is which unit of the block manager, in
 * both directions.
 *
 * The first chunk's units are numbered from the middle of all numbers, and every other
 * chunk's by how far its address is from that one's: so one subtraction leads from an
 * address to its unit, and one addition back. Only a chunk more than half a TiB away, which
 * is `far`, gets any numbers that are free; while there is one, two sorted arrays are
 * searched instead: by address at a free, by unit at an allocation.
 */
#include "resources/pool_impl.h"

#include <string.h>

#include "core/host_memory.h"
#include "log/log.h"

#define MIDDLE_UNIT (UINT64_C(1) << 31) /* a multiple of RMM_SUBALLOC_PHASES */

static bool grow_array(pool_chunk_t **array, uint32_t old_count, uint32_t new_count)
{
    pool_chunk_t *grown = rmm__resize(
        *array, old_count * sizeof(pool_chunk_t), new_count * sizeof(pool_chunk_t));

    if (grown != NULL) {
        *array = grown;
    }
    return grown != NULL;
}

bool rmm__pool_chunks_reserve_locked(pool_t *self)
{
    uint32_t capacity = self->chunk_capacity;
    uint32_t wanted = capacity != 0 ? 2 * capacity : 16;

    RMM_ASSERT_LOCKED(&self->lock);
    if (self->chunk_count < capacity) {
        return true;
    }
    /* one array may stay larger than chunk_capacity says: harmless, grown again later */
    if (!grow_array(&self->by_address, capacity, wanted) ||
        !grow_array(&self->by_unit, capacity, wanted)) {
        return false;
    }
    self->chunk_capacity = wanted;
    return true;
}

/* Number of chunks that begin at or below ptr. */
static uint32_t count_up_to_address(const pool_t *self, const char *ptr)
{
    uint32_t low = 0;
    uint32_t high = self->chunk_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (self->by_address[middle].address <= ptr) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Number of chunks whose units begin at or below unit. */
static uint32_t count_up_to_unit(const pool_t *self, uint32_t unit)
{
    uint32_t low = 0;
    uint32_t high = self->chunk_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (self->by_unit[middle].first_unit <= unit) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void insert_at(
    pool_chunk_t *array, uint32_t count, uint32_t index, const pool_chunk_t *chunk)
{
    memmove(&array[index + 1], &array[index], (count - index) * sizeof(*array));
    array[index] = *chunk;
}

static void remove_at(pool_chunk_t *array, uint32_t count, uint32_t index)
{
    memmove(&array[index], &array[index + 1], (count - index - 1) * sizeof(*array));
}

/* The address that unit 0 would have, were all numbered as this chunk. */
static uintptr_t start_of(const pool_chunk_t *chunk)
{
    return (uintptr_t)chunk->address - (uint64_t)chunk->first_unit * POOL_UNIT;
}

/* All begins anew with this chunk; but not under those who ask without the lock. */
static bool is_first(const pool_t *self)
{
    return self->chunk_count == 0 &&
           (rmm__pool_near_start(self) == 0 ||
            /* relaxed: written under the lock that is held */
            atomic_load_explicit(&self->front, memory_order_relaxed) == NULL);
}

static void count_far(pool_t *self, const pool_chunk_t *chunk, uint32_t step)
{
    uint32_t count = atomic_load_explicit(&self->far_chunks, memory_order_relaxed);

    if (start_of(chunk) != rmm__pool_near_start(self)) {
        atomic_store_explicit(&self->far_chunks, count + step, memory_order_relaxed);
    }
}

bool rmm__pool_chunk_number_locked(const pool_t *self, pool_chunk_t *chunk)
{
    uint64_t units = chunk->bytes / POOL_UNIT;
    uint64_t first =
        ((uintptr_t)chunk->address - rmm__pool_near_start(self)) / POOL_UNIT;

    RMM_ASSERT_LOCKED(&self->lock);
    if (is_first(self)) {
        first =
            MIDDLE_UNIT + (uintptr_t)chunk->address / POOL_UNIT % RMM_SUBALLOC_PHASES;
    }
    chunk->first_unit = (uint32_t)first;
    return !rmm__pool_has_far_chunks(self) && first <= UINT32_MAX &&
           first + units <= UINT32_MAX;
}

void rmm__pool_chunks_insert_locked(pool_t *self, const pool_chunk_t *chunk)
{
    pool_chunk_t fresh = *chunk;

    RMM_ASSERT_LOCKED(&self->lock);
    RMM_ASSERT(self->chunk_count < self->chunk_capacity && "room was reserved");
    fresh.serial = ++self->chunk_serial;
    if (is_first(self)) {
        atomic_store_explicit(&self->near_start, start_of(chunk), memory_order_relaxed);
    }
    count_far(self, chunk, 1);
    insert_at(
        self->by_address, self->chunk_count, count_up_to_address(self, chunk->address),
        &fresh);
    insert_at(
        self->by_unit, self->chunk_count, count_up_to_unit(self, chunk->first_unit),
        &fresh);
    self->chunk_count++;
}

void rmm__pool_chunks_remove_locked(pool_t *self, const pool_chunk_t *chunk)
{
    RMM_ASSERT_LOCKED(&self->lock);
    count_far(self, chunk, -1u);
    remove_at(
        self->by_address, self->chunk_count,
        count_up_to_address(self, chunk->address) - 1);
    remove_at(
        self->by_unit, self->chunk_count,
        count_up_to_unit(self, chunk->first_unit) - 1);
    self->chunk_count--;
}

RMM_COLD bool
rmm__pool_unit_search_locked(const pool_t *self, const void *ptr, uint32_t *unit_out)
{
    uint32_t count = count_up_to_address(self, ptr);
    const pool_chunk_t *chunk;
    uint64_t offset;

    if (count == 0) {
        return false;
    }
    chunk = &self->by_address[count - 1];
    offset = (uint64_t)((const char *)ptr - chunk->address);
    if (offset >= chunk->bytes || offset % POOL_UNIT != 0) {
        return false;
    }
    *unit_out = chunk->first_unit + (uint32_t)(offset / POOL_UNIT);
    return true;
}

const pool_chunk_t *rmm__pool_chunk_of_locked(const pool_t *self, uint32_t unit)
{
    return &self->by_unit[count_up_to_unit(self, unit) - 1];
}

RMM_COLD void *rmm__pool_address_search_locked(const pool_t *self, uint32_t unit)
{
    const pool_chunk_t *chunk = rmm__pool_chunk_of_locked(self, unit);

    return chunk->address + (uint64_t)(unit - chunk->first_unit) * POOL_UNIT;
}

static rmm_request_t upstream_request(uint64_t bytes)
{
    return (rmm_request_t){
        .bytes = bytes,
        .align = RMM_ALIGN_DEFAULT,
        .stream = RMM_STREAM_LEGACY,
        .user = false, /* the pool holds it; its users are counted by the pool */
    };
}

/* Memory of a stream-ordered upstream is ours on one stream only, until that is done. */
static rmm_status_t wait_until_ready(const pool_t *self)
{
    const rmm_resource_t *upstream = self->base.upstream;
    const rmm_resource_ops_t *ops =
        atomic_load_explicit(&upstream->ops, memory_order_relaxed);

    return ops->ready_on_all_streams
               ? RMM_OK
               : rmm__driver_wait_default_stream(self->base.device);
}

rmm_status_t rmm__pool_chunk_obtain(pool_t *self, uint64_t bytes, void **ptr_out)
{
    rmm_request_t request = upstream_request(bytes);
    rmm_status_t status = rmm__resource_alloc(self->base.upstream, &request, ptr_out);

    if (status != RMM_OK) {
        return status;
    }
    status = wait_until_ready(self);
    if (status != RMM_OK) {
        rmm__resource_dealloc(self->base.upstream, *ptr_out, &request);
    }
    return status;
}

void rmm__pool_chunk_return(pool_t *self, const pool_chunk_t *chunk)
{
    rmm_request_t request = upstream_request(chunk->bytes);

    rmm__resource_dealloc(self->base.upstream, chunk->address, &request);
}
