/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Superblocks are borrowed from the back of a front and given back, whole or in the parts
 * that are free.
 *
 * Memory keeps its order on the way. What is clean in the back becomes clean in the shard,
 * and back. What the wanting stream itself freed in the back may go to that stream's heap
 * in its shard, where it counts as freed just now, behind no event.
 */
#include "resources/pool_front.h"

/* --- borrowing ---------------------------------------------------------------------- */

/* A superblock of the back, for the heap of `to` that keeps its order. */
typedef struct loan {
    rmm_block_t block;
    rmm_heap_t heap;
    uint64_t stamp;
    bool is_clean;
} loan_t;

static rmm_suballoc_result_t loan_take_locked(
    pool_t *back, pool_t *to, const pool_want_t *want, uint32_t units, loan_t *loan)
{
    const pool_want_t superblock = {
        want->request, want->key, units, FRONT_GRANULE_UNITS};
    pool_stream_t *own = rmm__pool_stream_find_locked(back, want->key);
    pool_stream_t *slot = NULL;
    uint64_t clean_before = rmm__suballoc_free_units(back->blocks, back->clean);
    rmm_suballoc_result_t result;

    if (own != NULL && rmm__suballoc_free_units(back->blocks, own->heap) != 0) {
        slot = rmm__pool_stream_get_locked(to, want->key);
        if (slot == NULL) {
            return RMM_SUBALLOC_NO_STORAGE;
        }
    }
    result = rmm__pool_take_block_locked(back, &superblock, &loan->block);
    if (result != RMM_SUBALLOC_OK) {
        return result;
    }
    loan->is_clean =
        rmm__suballoc_free_units(back->blocks, back->clean) != clean_before;
    loan->heap = loan->is_clean ? to->clean : slot->heap;
    loan->stamp = loan->is_clean ? 0 : slot->open_stamp;
    if (!loan->is_clean) {
        slot->open_frees++; /* no event of this slot covers them yet */
        slot->doubtful |= own->doubtful && !slot->native;
    }
    return RMM_SUBALLOC_OK;
}

/* It never came to be used. */
static void loan_undo_locked(pool_t *back, const pool_want_t *want, const loan_t *loan)
{
    pool_stream_t *own = rmm__pool_stream_find_locked(back, want->key);

    if (loan->is_clean) {
        rmm__suballoc_free(back->blocks, loan->block, back->clean, 0);
    } else {
        rmm__suballoc_free(back->blocks, loan->block, own->heap, own->open_stamp);
        own->open_frees++;
    }
    rmm__pool_figures_locked(back);
}

static rmm_suballoc_result_t borrow_units_locked(
    pool_front_t *front, uint32_t index, const pool_want_t *want, uint32_t units)
{
    pool_t *back = front->back;
    pool_t *to = rmm__front_at(front, index);
    uint32_t first_unit;
    loan_t loan;
    rmm_suballoc_result_t result = loan_take_locked(back, to, want, units, &loan);

    if (result != RMM_SUBALLOC_OK) {
        return result;
    }
    first_unit = rmm__suballoc_block_unit(back->blocks, loan.block);
    result = rmm__front_owners_reserve(front, first_unit, units)
                 ? rmm__suballoc_add_region_at(
                       to->blocks, loan.heap, first_unit, units, loan.stamp)
                 : RMM_SUBALLOC_NO_STORAGE;
    if (result != RMM_SUBALLOC_OK) {
        loan_undo_locked(back, want, &loan);
        return result;
    }
    rmm__suballoc_block_set_tag(back->blocks, loan.block, POOL_TAG_SUPERBLOCK);
    rmm__front_owners_set(front, first_unit, units, index);
    rmm__pool_show_largest_locked(back);
    /* what a stream may keep from the others is a share of all memory (pool_streams.c) */
    to->reserved_bytes = back->reserved_bytes;
    rmm__pool_batch_limits_locked(to);
    return RMM_SUBALLOC_OK;
}

/* As much as is usual, or less down to what is needed, where there is no more. */
static rmm_suballoc_result_t
borrow_locked(pool_front_t *front, uint32_t index, const pool_want_t *want)
{
    pool_t *back = front->back;
    uint32_t need = rmm__front_whole_granules(want->units + (want->align_units - 1));
    uint32_t usual =
        atomic_load_explicit(&front->superblock_units, memory_order_relaxed);
    uint32_t units = usual > need ? usual : need;
    rmm_suballoc_result_t result;

    rmm__mutex_lock(&back->lock);
    result = borrow_units_locked(front, index, want, units);
    while (result == RMM_SUBALLOC_NO_FIT && units > need) {
        units = rmm__front_whole_granules(units / 2);
        units = units > need ? units : need;
        result = borrow_units_locked(front, index, want, units);
    }
    rmm__mutex_unlock(&back->lock);
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

/* Of the stream's own heap or the clean one. Only the back's largest block is shown, and
 * kept for that. */
static inline rmm_suballoc_result_t take_block_locked(
    pool_t *pool, bool is_back, const pool_want_t *want, rmm_block_t *block)
{
    const pool_stream_t *own;

    if (is_back) {
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

rmm_status_t rmm__front_take(
    pool_front_t *front, uint32_t index, const pool_want_t *want, bool refill,
    uint32_t *unit_out)
{
    pool_t *pool = rmm__front_at(front, index);
    bool is_back = index == FRONT_BACK;
    rmm_suballoc_result_t result;
    rmm_block_t block;

    if (want->key.capture_id != 0) {
        rmm__pool_capture_open(pool, want->key, want->request->stream);
    }
    rmm__mutex_lock(&pool->lock);
    result = take_block_locked(pool, is_back, want, &block);
    if (result == RMM_SUBALLOC_NO_FIT && refill) {
        result = borrow_locked(front, index, want);
        if (result == RMM_SUBALLOC_OK) {
            result = take_block_locked(pool, is_back, want, &block);
        }
    }
    if (result == RMM_SUBALLOC_OK) {
        rmm__suballoc_block_set_tag(
            pool->blocks, block,
            (uint32_t)((uint64_t)want->units * POOL_UNIT - want->request->bytes));
        *unit_out = rmm__suballoc_block_unit(pool->blocks, block);
        if (is_back) {
            rmm__pool_show_largest_locked(pool);
        } else if (want->key.capture_id != 0) {
            rmm__pool_capture_note_locked(pool, want->key, *unit_out);
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
    uint32_t units = largest / FRONT_GRANULE_UNITS * FRONT_GRANULE_UNITS;

    /* the largest may not begin with a granule: then one less is in it, if any */
    for (int tries = 0; tries < 2 && units != 0; tries++) {
        if (rmm__suballoc_alloc(
                pool->blocks, pool->clean, units, FRONT_GRANULE_UNITS, piece) ==
            RMM_SUBALLOC_OK) {
            return true;
        }
        units = units > FRONT_GRANULE_UNITS ? units - FRONT_GRANULE_UNITS : 0;
    }
    return false;
}

static bool give_back_piece_locked(pool_front_t *front, pool_t *pool, rmm_block_t piece)
{
    pool_t *back = front->back;
    uint32_t unit = rmm__suballoc_block_unit(pool->blocks, piece);
    uint32_t units = rmm__suballoc_block_units(pool->blocks, piece);
    rmm_block_t superblock = rmm__suballoc_find(
        back->blocks, rmm__suballoc_region_start(pool->blocks, unit));

    RMM_ASSERT_LOCKED(&back->lock);
    RMM_ASSERT(superblock != RMM_BLOCK_NONE);
    if (!rmm__suballoc_reserve_region(pool->blocks) ||
        !rmm__suballoc_free_part(
            back->blocks, superblock, unit, units, back->clean, 0)) {
        rmm__suballoc_free(pool->blocks, piece, pool->clean, 0);
        return false;
    }
    rmm__suballoc_carve(pool->blocks, piece);
    rmm__front_owners_set(front, unit, units, FRONT_BACK);
    return true;
}

static void give_back_from(pool_front_t *front, pool_t *pool)
{
    rmm_block_t piece;

    rmm__mutex_lock(&pool->lock);
    rmm__mutex_lock(&front->back->lock);
    while (piece_take_locked(pool, &piece) &&
           give_back_piece_locked(front, pool, piece)) {
    }
    rmm__pool_figures_locked(front->back);
    rmm__pool_figures_locked(pool);
    rmm__mutex_unlock(&front->back->lock);
    rmm__mutex_unlock(&pool->lock);
}

void rmm__front_give_back(pool_front_t *front)
{
    for (uint32_t i = 0; i < FRONT_SHARDS; i++) {
        pool_t *pool = rmm__front_at(front, i);

        if (pool != NULL) {
            give_back_from(front, pool);
        }
    }
}
