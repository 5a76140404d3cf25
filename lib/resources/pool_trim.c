/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving back what is free. The device is synchronised first, so that as much as possible
 * is in the clean heap; nothing else ever goes: a block of a stream's or a capture's heap
 * may have work queued that still uses it.
 *
 * A chunk of upstream's goes as a whole or not at all; a virtual pool's memory goes piece
 * by piece (pool_range.c).
 */
#include "resources/pool_impl.h"

typedef struct chunk_search {
    const pool_t *self;
    uint64_t keep_bytes;
    pool_chunk_t found; /* no bytes: none yet */
} chunk_search_t;

/* Keep the youngest chunk that is one block free for any stream. A block of a stream's or
 * a capture's heap may have work queued that still uses it. */
static bool look_at_block(void *context, const rmm_block_info_t *info)
{
    chunk_search_t *search = context;
    const pool_t *self = search->self;
    const pool_chunk_t *chunk;

    if (info->heap != self->clean) {
        return true;
    }
    chunk = rmm__pool_chunk_of_locked(self, info->unit);
    if (chunk->bytes == info->units * POOL_UNIT &&
        self->reserved_bytes - chunk->bytes >= search->keep_bytes &&
        (search->found.bytes == 0 || search->found.serial < chunk->serial)) {
        search->found = *chunk;
    }
    return true;
}

/* Take one whole free chunk out, the youngest first; false: none may go. */
static bool take_free_chunk(pool_t *self, uint64_t keep_bytes, pool_chunk_t *chunk)
{
    chunk_search_t search = {.self = self, .keep_bytes = keep_bytes};
    bool found;

    rmm__mutex_lock(&self->lock);
    rmm__suballoc_walk(self->blocks, look_at_block, &search);
    found =
        search.found.bytes != 0 &&
        rmm__suballoc_remove_region(self->blocks, self->clean, search.found.first_unit);
    if (found) {
        *chunk = search.found;
        rmm__pool_chunks_remove_locked(self, chunk);
        self->reserved_bytes -= chunk->bytes;
        rmm__pool_figures_locked(self);
    }
    rmm__mutex_unlock(&self->lock);
    return found;
}

static rmm_status_t return_free_chunks(pool_t *self, uint64_t keep_bytes)
{
    pool_chunk_t chunk;

    while (take_free_chunk(self, keep_bytes, &chunk)) {
        rmm__pool_chunk_return(self, &chunk);
    }
    return RMM_OK;
}

rmm_status_t rmm__pool_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    pool_t *self = pool_from_base(mr);
    rmm_status_t status;

    rmm__mutex_lock(&self->grow_lock);
    status = rmm__pool_clean_all(self);
    if (status == RMM_OK) {
        status = mr->upstream == NULL ? rmm__pool_range_trim(self, keep_bytes)
                                      : return_free_chunks(self, keep_bytes);
    }
    if (self->reserved_bytes == 0) {
        rmm__pool_keep_barrier(self, false);
    }
    rmm__mutex_unlock(&self->grow_lock);
    return status;
}
