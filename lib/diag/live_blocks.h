/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live blocks: where they are, and their rows in the side file. And which of them an event is
 * given: a launch is given a block if any word of its parameters points into it; a copy, fill or
 * prefetch the blocks that its ranges begin in.
 *
 * Block i has row i.
 *
 * Not locked: the engine's lock protects it.
 */
#ifndef RMM_DIAG_LIVE_BLOCKS_H
#define RMM_DIAG_LIVE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include <rmm/sys/diag.h>

#include "diag/diag_format.h"
#include "diag/live_map.h"

#define RMM_BLOCKS_LISTED                                                              \
    64u /* that checkers look at, of those that an event is given */
#define RMM_BLOCKS_UNOWNED 16u

/* Facts of a block that its row does not have. */
typedef struct rmm_block_note {
    uint64_t end;    /* as in rmm_diag_block_v1_t, of the allocation */
    uint32_t flags;  /* the same */
    uint32_t origin; /* stack of the allocation (stack_depot.h) */
} rmm_block_note_t;

typedef struct rmm_live_blocks {
    rmm_live_map_t map;
    rmm_block_note_t *notes;   /* by block */
    rmm_diag_header_t *header; /* in the side file, as the next; borrowed */
    rmm_diag_row_t *rows;
    uint64_t last_ns; /* the last rmm__live_blocks_now() */
    /* The blocks that the last event was given, each once: its index, and the address. */
    uint32_t *used;
    uint64_t *used_at;
    uint32_t used_count;
    /* Its words that are in no live block, and may be in one of this map, if there is one. */
    const rmm_live_map_t *freed_map;
    uint64_t unowned[RMM_BLOCKS_UNOWNED];
    uint32_t unowned_count;
    uint64_t *seen; /* by block: the last look that found it */
    uint64_t looks;
} rmm_live_blocks_t;

/* header and rows are set. False: no host memory; nothing is left to undo. */
bool rmm__live_blocks_init(rmm_live_blocks_t *blocks, uint32_t row_count);
void rmm__live_blocks_fini(rmm_live_blocks_t *blocks);

/* CLOCK_MONOTONIC; grows from call to call, so that of two blocks one is older. */
uint64_t rmm__live_blocks_now(rmm_live_blocks_t *blocks);

/* The index, or RMM_LIVE_NONE: all rows are taken. No live block overlaps it. */
uint32_t
rmm__live_blocks_add(rmm_live_blocks_t *blocks, const rmm_diag_block_v1_t *block);
void rmm__live_blocks_remove(rmm_live_blocks_t *blocks, uint32_t index);

/* A live block that this one overlaps; the live block that this is exactly; or RMM_LIVE_NONE. */
uint32_t
rmm__live_blocks_overlap(rmm_live_blocks_t *blocks, const rmm_diag_block_v1_t *block);
uint32_t
rmm__live_blocks_find(rmm_live_blocks_t *blocks, const rmm_diag_block_v1_t *block);

/* The live block as it was allocated; without what the library reports of pools and order. */
rmm_diag_block_v1_t
rmm__live_blocks_at(const rmm_live_blocks_t *blocks, uint32_t index);

/* Lists what a launch, copy, fill or prefetch is given. */
void rmm__live_blocks_look(rmm_live_blocks_t *blocks, const rmm_diag_event_v1_t *event);

/* How many of the listed blocks checkers look at. There may be more if these are all. */
static inline uint32_t rmm__live_blocks_listed(const rmm_live_blocks_t *blocks)
{
    return blocks->used_count < RMM_BLOCKS_LISTED ? blocks->used_count
                                                  : RMM_BLOCKS_LISTED;
}

/* Walks everything; for tests. */
bool rmm__live_blocks_check(const rmm_live_blocks_t *blocks);

#endif /* RMM_DIAG_LIVE_BLOCKS_H */
