/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Freed blocks; see freed.h.
 *
 * Invariant: the list contains each piece of the map once, in the order of the frees. If two pieces
 * of a block are left, they take the block's position.
 */
#include "diag/freed.h"

#include <stdlib.h>

#define NONE RMM_LIVE_NONE

bool rmm__freed_init(rmm_freed_t *freed, uint32_t capacity)
{
    *freed = (rmm_freed_t){.oldest = NONE, .newest = NONE};
    freed->entries = calloc(capacity, sizeof(*freed->entries));
    if (freed->entries == NULL) {
        return false;
    }
    if (!rmm__live_map_init(&freed->pieces, capacity)) {
        free(freed->entries);
        return false;
    }
    return true;
}

void rmm__freed_fini(rmm_freed_t *freed)
{
    rmm__live_map_fini(&freed->pieces);
    free(freed->entries);
}

/* --- the list ---------------------------------------------------------------------- */

static uint32_t *newer_of(rmm_freed_t *freed, uint32_t index)
{
    return index == NONE ? &freed->oldest : &freed->entries[index].newer;
}

static uint32_t *older_of(rmm_freed_t *freed, uint32_t index)
{
    return index == NONE ? &freed->newest : &freed->entries[index].older;
}

static void link_behind(rmm_freed_t *freed, uint32_t index, uint32_t older)
{
    uint32_t newer = *newer_of(freed, older);

    freed->entries[index].older = older;
    freed->entries[index].newer = newer;
    *newer_of(freed, older) = index;
    *older_of(freed, newer) = index;
}

static void forget(rmm_freed_t *freed, uint32_t index)
{
    uint32_t older = freed->entries[index].older;
    uint32_t newer = freed->entries[index].newer;

    *newer_of(freed, older) = newer;
    *older_of(freed, newer) = older;
    rmm__live_map_erase(&freed->pieces, index);
}

/* --- pieces ------------------------------------------------------------------------ */

/* False: there is no room. */
static bool add_piece(
    rmm_freed_t *freed, const rmm_freed_block_t *block, uint64_t start, uint64_t end,
    uint32_t older)
{
    uint32_t index = rmm__live_map_insert(&freed->pieces, start, end);

    if (index == NONE) {
        return false;
    }
    freed->entries[index].freed = *block;
    link_behind(freed, index, older);
    return true;
}

void rmm__freed_add(rmm_freed_t *freed, const rmm_freed_block_t *block)
{
    uint64_t start = block->block.address, end = start + block->block.bytes;

    rmm__freed_take(freed, start, end); /* nothing, unless an allocation was not seen */
    if (freed->pieces.count == freed->pieces.capacity) {
        forget(freed, freed->oldest);
        freed->dropped++;
    }
    (void)add_piece(freed, block, start, end, freed->newest);
}

/* Keeps the parts of the piece beside [start, end). */
static void cut_piece(rmm_freed_t *freed, uint32_t index, uint64_t start, uint64_t end)
{
    const rmm_live_node_t piece = freed->pieces.nodes[index];
    const rmm_freed_block_t block = freed->entries[index].freed;
    uint32_t older = freed->entries[index].older;

    forget(freed, index);
    if (piece.start < start) {
        (void)add_piece(freed, &block, piece.start, start, older);
    }
    if (piece.end > end && !add_piece(freed, &block, end, piece.end, older)) {
        freed->dropped++; /* one piece made room, and two are left */
    }
}

void rmm__freed_take(rmm_freed_t *freed, uint64_t start, uint64_t end)
{
    uint32_t index = rmm__live_map_overlap(&freed->pieces, start, end);

    while (index != NONE) {
        cut_piece(freed, index, start, end);
        index = rmm__live_map_overlap(&freed->pieces, start, end);
    }
}

void rmm__freed_drop_returned(rmm_freed_t *freed)
{
    uint32_t newer = NONE;

    for (uint32_t index = freed->oldest; index != NONE; index = newer) {
        newer = freed->entries[index].newer;
        if (freed->entries[index].freed.is_returned) {
            forget(freed, index);
        }
    }
}

const rmm_freed_block_t *rmm__freed_find(rmm_freed_t *freed, uint64_t address)
{
    uint32_t index = rmm__live_map_find(&freed->pieces, address);

    return index != NONE ? &freed->entries[index].freed : NULL;
}

bool rmm__freed_check(const rmm_freed_t *freed)
{
    uint32_t count = 0, older = NONE;

    for (uint32_t i = freed->oldest; i != NONE && count <= freed->pieces.count;
         i = freed->entries[i].newer) {
        if (freed->entries[i].older != older || freed->pieces.nodes[i].end == 0) {
            return false;
        }
        older = i;
        count++;
    }
    return older == freed->newest && count == freed->pieces.count &&
           rmm__live_map_check(&freed->pieces);
}
