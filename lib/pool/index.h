/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free blocks in the order of their addresses: a B+ tree whose entries also have the size
 * of the largest block below them. So the first blocks, by address, with room for a request
 * are found without visiting smaller ones. Pure: it knows only units.
 *
 * A node has INDEX_LEAST to INDEX_MOST entries; the root may have fewer. A search touches
 * one node of 32 entries for each level: two levels for 1,000 blocks, four for 100,000.
 *
 * All trees of a block manager share one array of nodes. Its owner makes room for as many
 * nodes as may ever be needed (rmm__index_nodes_for()): then no change of a tree can fail.
 *
 * Locking: none; the caller serialises.
 */
#ifndef RMM_POOL_INDEX_H
#define RMM_POOL_INDEX_H

#include <stdbool.h>
#include <stdint.h>

enum { INDEX_MOST = 32, INDEX_LEAST = 8 };

/* In a leaf: free blocks. Above: nodes, each with its first unit and largest block. */
typedef struct rmm_index_node {
    uint64_t unit[INDEX_MOST];
    uint32_t units[INDEX_MOST]; /* 0 in unused entries */
    uint32_t child[INDEX_MOST]; /* a block, or a node of the level below */
    uint32_t count;
    uint32_t next_unused;
} rmm_index_node_t;

typedef struct rmm_index_nodes {
    rmm_index_node_t *nodes; /* nodes[0] is none */
    uint32_t capacity;       /* of the array */
    uint32_t used;   /* nodes at the start of the array that were ever in a tree */
    uint32_t unused; /* first of a list: those of them that are in no tree now */
} rmm_index_nodes_t;

/* All zero: an empty tree. */
typedef struct rmm_index {
    uint32_t root, height;
    uint32_t largest; /* units of the largest entry; 0: the tree is empty */
} rmm_index_t;

typedef struct rmm_index_entry {
    uint64_t unit;
    uint32_t units, block;
} rmm_index_entry_t;

/* The most nodes that this many trees can need, with this many entries in all of them. */
uint64_t rmm__index_nodes_for(uint64_t entries, uint64_t trees);

void rmm__index_insert(
    rmm_index_nodes_t *all, rmm_index_t *tree, const rmm_index_entry_t *entry);
/* Remove the entry that begins at this unit, which is in the tree. */
void rmm__index_remove(rmm_index_nodes_t *all, rmm_index_t *tree, uint64_t unit);
/* Replace the entry that begins at `unit` by another one between the same neighbours. */
void rmm__index_change(
    rmm_index_nodes_t *all, rmm_index_t *tree, uint64_t unit,
    const rmm_index_entry_t *entry);

/* The last entry that begins at or below this unit; false: there is none. */
bool rmm__index_at(
    const rmm_index_nodes_t *all, const rmm_index_t *tree, uint64_t unit,
    rmm_index_entry_t *entry_out);

/*
 * Find the first entries, by address, in which `units` fit that begin at a multiple of
 * `align_units`, a power of two. Writes at most `most` of them, none after an exact fit, and
 * returns how many.
 */
uint32_t rmm__index_first_fits(
    const rmm_index_nodes_t *all, const rmm_index_t *tree, uint32_t units,
    uint32_t align_units, rmm_index_entry_t *out, uint32_t most);

/* Visit all entries with at least `units`, by address, until fn returns false. fn changes
 * nothing. */
void rmm__index_walk(
    const rmm_index_nodes_t *all, const rmm_index_t *tree, uint32_t units,
    bool (*fn)(void *context, const rmm_index_entry_t *entry), void *context);

/* Check a tree. Returns NULL, or a sentence that says what is wrong. */
const char *rmm__index_check(const rmm_index_nodes_t *all, const rmm_index_t *tree);

/* Units to skip so that the rest begins at a multiple of align_units. */
static inline uint32_t rmm__index_pad(uint64_t unit, uint32_t align_units)
{
    return (uint32_t)(-unit & (align_units - 1));
}

#endif /* RMM_POOL_INDEX_H */
