/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which arena has which memory: superblocks are borrowed from the global arena and given
 * back, whole or in the parts that are free.
 *
 * Memory keeps its order on the way. What is clean in the global arena becomes clean in
 * the other, and back. What the wanting stream itself freed in the global arena may go to
 * that stream's heap in its arena, where it counts as freed just now, behind no event.
 */
#include "resources/arena_impl.h"

#include "core/host_memory.h"

/* Nobody resets the marks of books that nobody reads. */
static const rmm_control_slot_t no_wishes;

arena_t *rmm__arena_create(arena_resource_t *self)
{
    arena_t *arena = rmm__calloc(1, sizeof(*arena));
    pool_t *pool;

    if (arena == NULL) {
        return NULL;
    }
    pool = &arena->pool;
    pool->driver = self->driver;
    pool->base.device = self->base.device;
    pool->base.upstream = self->base.upstream; /* borrowed */
    pool->base.books = self->base.books;
    pool->base.books.slot = &arena->figures;
    pool->base.books.wishes = &no_wishes;
    /* what a stream may keep from the others is a share of all memory (pool_streams.c) */
    pool->reserved_bytes = self->bytes;
    rmm__mutex_init(&pool->lock);
    rmm__mutex_init(&pool->grow_lock);
    if (rmm__pool_blocks_init(pool) != RMM_OK) {
        rmm__arena_destroy(arena);
        return NULL;
    }
    return arena;
}

void rmm__arena_destroy(arena_t *arena)
{
    pool_t *pool = &arena->pool;

    rmm__pool_streams_fini(pool);
    if (pool->blocks != NULL) {
        rmm__suballoc_destroy(pool->blocks);
    }
    rmm__mutex_fini(&pool->lock);
    rmm__mutex_fini(&pool->grow_lock);
    rmm__free(arena);
}

arena_t *rmm__arena_make(arena_resource_t *self, uint32_t index)
{
    arena_t *fresh = rmm__arena_create(self);
    arena_t *found = NULL;

    if (fresh == NULL) {
        return NULL;
    }
    /* release: pairs with rmm__arena_at(); acquire: another thread's arena is whole */
    if (atomic_compare_exchange_strong_explicit(
            &self->arenas[index], &found, fresh, memory_order_acq_rel,
            memory_order_acquire)) {
        return fresh;
    }
    rmm__arena_destroy(fresh);
    return found;
}

/* --- who has what ------------------------------------------------------------------- */

static void
set_owner(arena_resource_t *self, uint32_t first_unit, uint32_t units, uint32_t owner)
{
    uint32_t first = first_unit / ARENA_GRANULE_UNITS;
    uint32_t count = units / ARENA_GRANULE_UNITS;

    /* relaxed: whoever frees a block got it from a thread that had the arena's lock */
    for (uint32_t i = first; i < first + count; i++) {
        atomic_store_explicit(&self->owners[i], (uint8_t)owner, memory_order_relaxed);
    }
}

bool rmm__arena_locate(
    arena_resource_t *self, const void *ptr, uint32_t *unit_out, arena_t **arena_out)
{
    uint64_t offset = (uint64_t)((uintptr_t)ptr - (uintptr_t)self->memory);
    uint32_t unit;
    uint32_t owner;

    if (offset >= self->bytes || offset % POOL_UNIT != 0) {
        return false;
    }
    unit = self->first_unit + (uint32_t)(offset / POOL_UNIT);
    owner = atomic_load_explicit(
        &self->owners[unit / ARENA_GRANULE_UNITS], memory_order_relaxed);
    *unit_out = unit;
    *arena_out = rmm__arena_at(self, owner == 0 ? ARENA_COUNT : owner - 1);
    return true;
}

void rmm__arena_publish_largest_locked(arena_resource_t *self)
{
    RMM_ASSERT_LOCKED(&self->global->pool.lock);
    RMM_BOOKS_SET(
        &self->base.books, largest_free_bytes,
        self->global->pool.largest_free_units * POOL_UNIT);
}

/* --- borrowing ---------------------------------------------------------------------- */

/* A superblock of the global arena, for the heap of `to` that keeps its order. */
typedef struct loan {
    rmm_block_t block;
    rmm_heap_t heap;
    uint64_t stamp;
    bool is_clean;
} loan_t;

static rmm_suballoc_result_t loan_take_locked(
    pool_t *global, pool_t *to, const pool_want_t *want, uint32_t units, loan_t *loan)
{
    const pool_want_t superblock = {
        want->request, want->key, units, ARENA_GRANULE_UNITS};
    pool_stream_t *own = rmm__pool_stream_find_locked(global, want->key);
    pool_stream_t *slot = NULL;
    uint64_t clean_before = rmm__suballoc_free_units(global->blocks, global->clean);
    rmm_suballoc_result_t result;

    if (own != NULL && rmm__suballoc_free_units(global->blocks, own->heap) != 0) {
        slot = rmm__pool_stream_get_locked(to, want->key);
        if (slot == NULL) {
            return RMM_SUBALLOC_NO_STORAGE;
        }
    }
    result = rmm__pool_take_block_locked(global, &superblock, &loan->block);
    if (result != RMM_SUBALLOC_OK) {
        return result;
    }
    loan->is_clean =
        rmm__suballoc_free_units(global->blocks, global->clean) != clean_before;
    loan->heap = loan->is_clean ? to->clean : slot->heap;
    loan->stamp = loan->is_clean ? 0 : slot->open_stamp;
    if (!loan->is_clean) {
        slot->open_frees++; /* no event of this slot covers them yet */
        slot->doubtful |= own->doubtful && !slot->native;
    }
    return RMM_SUBALLOC_OK;
}

/* It never came to be used. */
static void
loan_undo_locked(pool_t *global, const pool_want_t *want, const loan_t *loan)
{
    pool_stream_t *own = rmm__pool_stream_find_locked(global, want->key);

    if (loan->is_clean) {
        rmm__suballoc_free(global->blocks, loan->block, global->clean, 0);
    } else {
        rmm__suballoc_free(global->blocks, loan->block, own->heap, own->open_stamp);
        own->open_frees++;
    }
    rmm__pool_figures_locked(global);
}

static rmm_suballoc_result_t borrow_units_locked(
    arena_resource_t *self, uint32_t index, const pool_want_t *want, uint32_t units)
{
    pool_t *global = &self->global->pool;
    pool_t *to = &rmm__arena_at(self, index)->pool;
    uint32_t first_unit;
    loan_t loan;
    rmm_suballoc_result_t result = loan_take_locked(global, to, want, units, &loan);

    if (result != RMM_SUBALLOC_OK) {
        return result;
    }
    first_unit = rmm__suballoc_block_unit(global->blocks, loan.block);
    result = rmm__suballoc_add_region_at(
        to->blocks, loan.heap, first_unit, units, loan.stamp);
    if (result != RMM_SUBALLOC_OK) {
        loan_undo_locked(global, want, &loan);
        return result;
    }
    rmm__suballoc_block_set_tag(global->blocks, loan.block, ARENA_TAG_SUPERBLOCK);
    set_owner(self, first_unit, units, index + 1);
    rmm__arena_publish_largest_locked(self);
    return RMM_SUBALLOC_OK;
}

/* As much as is usual, or less down to what is needed, where there is no more. */
static rmm_suballoc_result_t
borrow_locked(arena_resource_t *self, uint32_t index, const pool_want_t *want)
{
    pool_t *global = &self->global->pool;
    uint32_t need = rmm__arena_whole_granules(want->units + (want->align_units - 1));
    uint32_t units = self->superblock_units > need ? self->superblock_units : need;
    rmm_suballoc_result_t result;

    rmm__mutex_lock(&global->lock);
    result = borrow_units_locked(self, index, want, units);
    while (result == RMM_SUBALLOC_NO_FIT && units > need) {
        units = rmm__arena_whole_granules(units / 2);
        units = units > need ? units : need;
        result = borrow_units_locked(self, index, want, units);
    }
    rmm__mutex_unlock(&global->lock);
    return result;
}

static rmm_status_t status_of(rmm_suballoc_result_t result)
{
    if (result == RMM_SUBALLOC_OK) {
        return RMM_OK;
    }
    /* without storage, that has set the last error */
    return result == RMM_SUBALLOC_NO_STORAGE ? RMM_ERR_OUT_OF_HOST_MEMORY
                                             : RMM_ERR_OUT_OF_MEMORY;
}

/* Of the stream's own heap or the clean one. Only the global arena's largest block is
 * shown, and kept for that. */
static inline rmm_suballoc_result_t take_block_locked(
    pool_t *pool, bool is_global, const pool_want_t *want, rmm_block_t *block)
{
    const pool_stream_t *own;

    if (is_global) {
        return rmm__pool_take_block_locked(pool, want, block);
    }
    own = rmm__pool_stream_find_locked(pool, want->key);
    return own != NULL
               ? rmm__suballoc_alloc_either(
                     pool->blocks, own->heap, pool->clean, want->units,
                     want->align_units, block)
               : rmm__suballoc_alloc(
                     pool->blocks, pool->clean, want->units, want->align_units, block);
}

rmm_status_t rmm__arena_take(
    arena_resource_t *self, uint32_t index, const pool_want_t *want, bool refill,
    uint32_t *unit_out)
{
    pool_t *pool = &rmm__arena_at(self, index)->pool;
    bool is_global = index == ARENA_COUNT;
    rmm_suballoc_result_t result;
    rmm_block_t block;

    rmm__mutex_lock(&pool->lock);
    result = take_block_locked(pool, is_global, want, &block);
    if (result == RMM_SUBALLOC_NO_FIT && refill) {
        result = borrow_locked(self, index, want);
        if (result == RMM_SUBALLOC_OK) {
            result = take_block_locked(pool, is_global, want, &block);
        }
    }
    if (result == RMM_SUBALLOC_OK) {
        rmm__suballoc_block_set_tag(
            pool->blocks, block,
            (uint32_t)((uint64_t)want->units * POOL_UNIT - want->request->bytes));
        *unit_out = rmm__suballoc_block_unit(pool->blocks, block);
        if (is_global) {
            rmm__arena_publish_largest_locked(self);
        }
    }
    rmm__mutex_unlock(&pool->lock);
    return status_of(result);
}

/* --- giving back -------------------------------------------------------------------- */

/* A piece of whole granules, as large as the clean heap has one. */
static bool piece_take_locked(pool_t *pool, rmm_block_t *piece)
{
    uint32_t largest = rmm__suballoc_largest_free(pool->blocks, pool->clean);
    uint32_t units = largest / ARENA_GRANULE_UNITS * ARENA_GRANULE_UNITS;

    /* the largest may not begin with a granule: then one less is in it, if any */
    for (int tries = 0; tries < 2 && units != 0; tries++) {
        if (rmm__suballoc_alloc(
                pool->blocks, pool->clean, units, ARENA_GRANULE_UNITS, piece) ==
            RMM_SUBALLOC_OK) {
            return true;
        }
        units = units > ARENA_GRANULE_UNITS ? units - ARENA_GRANULE_UNITS : 0;
    }
    return false;
}

static bool
give_back_piece_locked(arena_resource_t *self, pool_t *pool, rmm_block_t piece)
{
    pool_t *global = &self->global->pool;
    uint32_t unit = rmm__suballoc_block_unit(pool->blocks, piece);
    uint32_t units = rmm__suballoc_block_units(pool->blocks, piece);
    rmm_block_t superblock = rmm__suballoc_find(
        global->blocks, rmm__suballoc_region_start(pool->blocks, unit));

    RMM_ASSERT_LOCKED(&global->lock);
    RMM_ASSERT(superblock != RMM_BLOCK_NONE);
    if (!rmm__suballoc_reserve_region(pool->blocks) ||
        !rmm__suballoc_free_part(
            global->blocks, superblock, unit, units, global->clean, 0)) {
        rmm__suballoc_free(pool->blocks, piece, pool->clean, 0);
        return false;
    }
    rmm__suballoc_carve(pool->blocks, piece);
    set_owner(self, unit, units, 0);
    return true;
}

void rmm__arena_give_back(arena_resource_t *self, uint32_t index)
{
    arena_t *arena = rmm__arena_at(self, index);
    rmm_block_t piece;

    if (arena == NULL || index == ARENA_COUNT) {
        return;
    }
    rmm__mutex_lock(&arena->pool.lock);
    rmm__mutex_lock(&self->global->pool.lock);
    while (piece_take_locked(&arena->pool, &piece) &&
           give_back_piece_locked(self, &arena->pool, piece)) {
    }
    rmm__pool_figures_locked(&self->global->pool);
    rmm__arena_publish_largest_locked(self);
    rmm__pool_figures_locked(&arena->pool);
    rmm__mutex_unlock(&self->global->pool.lock);
    rmm__mutex_unlock(&arena->pool.lock);
}
