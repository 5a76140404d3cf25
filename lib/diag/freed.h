/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that were freed and whose memory no block has taken since: of resources that keep such
 * memory (RMM_DIAG_BLOCK_KEPT), and, where all that the driver hands out is known, those that went
 * back to it (RMM_DIAG_BLOCK_RETURNED).
 *
 * Memory leaves the table when a block takes it, of which the rest stays, and when its resource
 * gives it back. So every use of an address in the table is an error, unless the host has got that
 * address for other memory, which can only happen to memory that went back to the driver.
 *
 * Bounded: if there is no room, the block freed longest ago is forgotten.
 *
 * Not locked: the engine's lock protects it. Cost: a search, and a link in a list.
 */
#ifndef RMM_DIAG_FREED_H
#define RMM_DIAG_FREED_H

#include <stdbool.h>
#include <stdint.h>

#include <rmm/sys/diag.h>

#include "diag/live_map.h"

#define RMM_FREED_COUNT 4096u

typedef struct rmm_freed_block {
    rmm_diag_block_v1_t block; /* as a whole, whatever of it was taken since */
    uint64_t freed_stream_id;
    uint32_t origin; /* stacks of the allocation and the free (stack_depot.h) */
    uint32_t freed;
    bool is_returned; /* to the driver */
} rmm_freed_block_t;

typedef struct rmm_freed_entry {
    rmm_freed_block_t freed;
    uint32_t older, newer; /* RMM_LIVE_NONE: none */
} rmm_freed_entry_t;

typedef struct rmm_freed {
    rmm_live_map_t pieces;      /* of memory that was not taken */
    rmm_freed_entry_t *entries; /* by piece: the block that it was of */
    uint32_t oldest, newest;
    uint64_t dropped; /* pieces that were dropped because there was no room */
} rmm_freed_t;

/* capacity > 1. False: no host memory; nothing is left to undo. */
bool rmm__freed_init(rmm_freed_t *freed, uint32_t capacity);
void rmm__freed_fini(rmm_freed_t *freed);

void rmm__freed_add(rmm_freed_t *freed, const rmm_freed_block_t *block);

/* The memory [start, end) belongs to a new block, or was given back: it leaves the table. */
void rmm__freed_take(rmm_freed_t *freed, uint64_t start, uint64_t end);

/* Drop the blocks that went back to the driver. */
void rmm__freed_drop_returned(rmm_freed_t *freed);

/* The freed block that this address was in; NULL: the table has none. */
const rmm_freed_block_t *rmm__freed_find(rmm_freed_t *freed, uint64_t address);

/* No quick no from here on: two comparisons. */
static inline bool rmm__freed_may_have(const rmm_freed_t *freed, uint64_t address)
{
    return address >= freed->pieces.low && address < freed->pieces.high;
}

/* Walks everything; for tests. */
bool rmm__freed_check(const rmm_freed_t *freed);

#endif /* RMM_DIAG_FREED_H */
