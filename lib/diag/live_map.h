/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the live block that contains an address. The lookup runs for every 8-byte word of every
 * kernel parameter, so it first rejects addresses outside the bounds of all blocks, then
 * consults a small cache, and only then searches the index of the pools (pool/index.h).
 *
 * Blocks never overlap. Storage is taken once; an index names a block until it is erased
 * and is the index of its row in the side file as well.
 *
 * Not locked: the owner's lock protects it.
 */
#ifndef RMM_DIAG_LIVE_MAP_H
#define RMM_DIAG_LIVE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "pool/index.h"

#define RMM_LIVE_NONE UINT32_MAX
#define RMM_LIVE_CACHE_ENTRIES 1024u

typedef struct rmm_live_node {
    uint64_t start, end;     /* [start, end); both 0: free */
    uint32_t previous, next; /* by address; next of a free node: next free one */
} rmm_live_node_t;

typedef struct rmm_live_map {
    rmm_live_node_t *nodes;
    uint32_t capacity;
    uint32_t count;
    uint32_t fresh; /* nodes from here on were never used */
    uint32_t free;  /* head of the free nodes below fresh */
    uint32_t first;
    rmm_index_nodes_t tree_nodes;
    rmm_index_t tree;   /* of starts */
    uint64_t low, high; /* no block outside [low, high) */
    /* An index that once answered for this slot. May be stale: the links say whether the
     * answer still holds, so nothing has to be invalidated. */
    uint32_t cache[RMM_LIVE_CACHE_ENTRIES];
} rmm_live_map_t;

/* capacity > 0. False: no host memory. */
bool rmm__live_map_init(rmm_live_map_t *map, uint32_t capacity);
void rmm__live_map_fini(rmm_live_map_t *map);

/* The index, or RMM_LIVE_NONE if all are taken. Nothing live may overlap; start < end. */
uint32_t rmm__live_map_insert(rmm_live_map_t *map, uint64_t start, uint64_t end);
void rmm__live_map_erase(rmm_live_map_t *map, uint32_t index);

/* The block that contains the address, or RMM_LIVE_NONE. */
uint32_t rmm__live_map_find(rmm_live_map_t *map, uint64_t address);

/* The last block that begins before `end` and reaches beyond `start`. */
uint32_t rmm__live_map_overlap(rmm_live_map_t *map, uint64_t start, uint64_t end);

/* The blocks before and behind an address that is in no block; RMM_LIVE_NONE: there is none. */
void rmm__live_map_around(
    rmm_live_map_t *map, uint64_t address, uint32_t *before_out, uint32_t *behind_out);

/* Walks everything: order, overlaps, the tree, bounds, free nodes. */
bool rmm__live_map_check(const rmm_live_map_t *map);

#endif /* RMM_DIAG_LIVE_MAP_H */
