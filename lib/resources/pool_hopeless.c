/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cannot be served, without trying again.
 *
 * The ladder tries everything, the device is synchronised, and a request of so many units
 * still fits nowhere. Then none of that size or more can be served, but by growth, until
 *  - a block is freed beside which so many units are free, in whatever heaps: a bounded
 *    look at its neighbours, since a free that makes less changes nothing;
 *  - memory arrives: a chunk, a mapped piece;
 *  - blocks become obtainable otherwise than by a synchronise: a graph is gone, a stream of
 *    another device was waited for, a slot's first event was recorded, a block went to
 *    another stream's heap while the ladder was tried.
 * Requests that fail meanwhile ask for growth, if the maximum leaves any, and fail. In a
 * virtual pool that holds only while no whole piece is free, since pieces can be mapped
 * anew. A capture tries less than all, and has a heap that others have not: it neither
 * says nor asks.
 *
 * One word in the pool, or in the back of a front: units, and whether the ladder is still
 * being tried; frees look at it inside the critical section in which the block becomes
 * free. So a free is either seen by the ladder, which sets the word before it looks into
 * the heaps, or sees the word. Everything is relaxed: the locks order it.
 *
 * Locking: none needed for the word; the looks at blocks are under the pool's.
 */
#include "resources/pool_front.h"

#include "suballoc/suballoc_look.h"

#define TRYING (UINT64_C(1) << 63) /* else it is known */
#define LOOK_MOST 16               /* neighbours on each side */

static uint32_t units_of(uint64_t word)
{
    return (uint32_t)word;
}

/* Whatever its alignment, a request of so many units would fit where this one does. */
static uint32_t units_for(const pool_want_t *want)
{
    uint64_t units = (uint64_t)want->units + (want->align_units - 1);

    return units < UINT32_MAX ? (uint32_t)units : UINT32_MAX;
}

static bool captures(const pool_want_t *want)
{
    return want->key.capture_id != 0;
}

void rmm__pool_hope(pool_t *self)
{
    atomic_store_explicit(&self->hopeless, 0, memory_order_relaxed);
}

uint64_t rmm__pool_try_begin(pool_t *self, const pool_want_t *want)
{
    uint64_t word;

    if (captures(want)) {
        return 0;
    }
    rmm__mutex_lock(&self->lock);
    self->hopeless_serial = (self->hopeless_serial + 1) & INT32_MAX;
    word = TRYING | (uint64_t)self->hopeless_serial << 32 | units_for(want);
    self->hopeless_graphs = rmm__pool_graphs_gone();
    atomic_store_explicit(&self->hopeless, word, memory_order_relaxed);
    rmm__mutex_unlock(&self->lock);
    return word;
}

/* Free pieces that could be mapped anew: the next try may do more than this one. */
static bool has_whole_piece(const pool_t *self)
{
    return self->base.upstream == NULL && self->range.granule_bytes != 0 &&
           self->largest_free_units * POOL_UNIT >= self->range.granule_bytes;
}

void rmm__pool_try_end(pool_t *self, uint64_t word, bool is_hopeless)
{
    uint64_t known = word & ~TRYING;

    if (word == 0) {
        return;
    }
    rmm__mutex_lock(&self->lock);
    if (!is_hopeless || has_whole_piece(self)) {
        known = 0;
    }
    (void)atomic_compare_exchange_strong_explicit(
        &self->hopeless, &word, known, memory_order_relaxed, memory_order_relaxed);
    rmm__mutex_unlock(&self->lock);
}

bool rmm__pool_is_hopeless(const pool_t *self, const pool_want_t *want)
{
    uint64_t word = atomic_load_explicit(&self->hopeless, memory_order_relaxed);

    return word != 0 && (word & TRYING) == 0 && !captures(want) &&
           want->units >= units_of(word) &&
           self->hopeless_graphs == rmm__pool_graphs_gone();
}

RMM_COLD void rmm__pool_look_for_hope_locked(pool_t *self, rmm_block_t block)
{
    uint64_t word = atomic_load_explicit(&self->hopeless, memory_order_relaxed);
    uint64_t enough = units_of(word);
    uint64_t piece = self->range.granule_bytes / POOL_UNIT;
    rmm_heap_t absent = piece != 0 ? self->range.absent : RMM_HEAP_NONE;
    rmm_heap_t moving = piece != 0 ? self->range.moving : RMM_HEAP_NONE;

    RMM_ASSERT_LOCKED(&self->lock);
    if (piece != 0 && piece < enough) {
        enough = piece; /* a whole one could be mapped anew */
    }
    if (rmm__pool_front(self) != NULL || /* what is beside it may be free in a shard */
        rmm__suballoc_run_around(self->blocks, block, absent, moving, LOOK_MOST) >=
            enough) {
        rmm__pool_hope(self);
    }
}
