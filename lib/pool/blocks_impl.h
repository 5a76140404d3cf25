/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of the block manager: its structures and the small steps on them, shared by
 * blocks.c (take and free), blocks_moves.c (parts of blocks, from heap to heap),
 * blocks_storage.c (storage, heaps, runs), blocks_queries.c, blocks_boundary.c and
 * blocks_check.c.
 *
 * Rules for nodes:
 *  1. A node is identified by its index, never by a pointer: storage moves when it grows.
 *     Node 0 is no block. An empty link is 0, and a write through it goes to node 0, whose
 *     contents are ignored. That saves a branch for each link.
 *  2. The blocks of a run are a list through prev and next, in the order of their units.
 *  3. heap is RMM_HEAP_NONE in live blocks, HEAP_MARKED in those that their owner marked, and
 *     HEAP_UNUSED in nodes that are no block: none of them ever merges. It is HEAP_UNUSED in
 *     node 0 too.
 *  4. Two neighbours are never free in the same heap, with two exceptions. One is the heap's
 *     recent block, the one that was freed last. It stays unmerged until the next take or
 *     free there, because that take often requests the same size. It is still in the table,
 *     and neither in the index nor in the age list. The interface behaves as if it had
 *     merged at once. The other: two blocks on both sides of the merge boundary.
 *  5. Every other free block is in the index of its heap.
 *  6. Ages (stamps and the list in the order of stamps) are an array of their own, so that
 *     two nodes fill a cache line and access to a neighbour touches one line.
 */
#ifndef RMM_POOL_BLOCKS_IMPL_H
#define RMM_POOL_BLOCKS_IMPL_H

#include <assert.h>

#include "pool/blocks.h"

#define HEAP_MARKED (RMM_HEAP_NONE - 1)
#define HEAP_UNUSED (RMM_HEAP_NONE - 2)

typedef struct rmm_block_node {
    uint64_t unit;
    uint32_t units;
    uint32_t prev, next; /* neighbours in memory */
    uint32_t heap;
    uint32_t tag;  /* live: the owner's */
    uint32_t link; /* live, recent: next in the table's chain; unused: next unused */
} rmm_block_node_t;
static_assert(sizeof(rmm_block_node_t) == 32, "two nodes fill a cache line");

typedef struct rmm_block_age {
    uint64_t stamp;
    uint32_t older, newer;
} rmm_block_age_t;
static_assert(sizeof(rmm_block_age_t) == 16, "a node and its age take 48 bytes");

/* In an empty heap all is zero but `in_use` and `tag`. */
typedef struct rmm_heap_body {
    uint64_t free_units;     /* of all free blocks */
    uint32_t free_count;     /* like all that follows, without the recent one */
    uint32_t recent;         /* the block that was freed last, or 0 */
    uint32_t oldest, newest; /* ends of the age list */
    rmm_index_t index;
    uint64_t tag;         /* the owner's; 0 in a new heap */
    uint32_t in_use;      /* 1; 0 in a destroyed heap */
    uint32_t next_unused; /* destroyed heaps: index + 1 of the next, or 0 */
} rmm_heap_body_t;

struct rmm_blocks {
    /* used by a hot take and free */
    rmm_block_node_t *nodes;
    rmm_block_age_t *ages;
    rmm_heap_body_t *heaps;
    uint32_t *table;      /* buckets: first live block of the chain, or 0 */
    uint32_t table_shift; /* 64 - log2(buckets) */
    uint32_t table_limit; /* live blocks that the table may hold */
    uint32_t live_count;
    uint32_t unused_nodes; /* first of a list */
    uint64_t total_free_units;
    uint64_t frontier;       /* no unit from here on was ever live */
    uint64_t merge_boundary; /* stamp of rmm__blocks_merge_boundary_set(); 0: none */

    rmm_index_nodes_t index_nodes;
    uint32_t used_nodes; /* nodes at the start of the array that were ever in use */
    uint32_t node_capacity, age_capacity;
    uint32_t heap_count, heap_capacity, unused_heaps;
    rmm_blocks_storage_t storage;
#ifdef RMM_HEAVY_CHECKS
    uint64_t changes;
#endif
};

/* Ensure two unused nodes, and room for two more live blocks in the table. */
bool rmm__blocks_reserve(rmm_blocks_t *blocks);

/* Merge the heap's recent block with its neighbours, and enter it in index and age list. */
void rmm__blocks_settle_recent(rmm_blocks_t *blocks, rmm_heap_t heap);

/* Make a node that is in no heap a free block, or part of a free neighbour. */
void rmm__blocks_enter(
    rmm_blocks_t *blocks, uint32_t index, rmm_heap_t heap, uint64_t stamp);

/* Split a free block after its first `units`; both parts are free and of the same age. The
 * front keeps the node; returns the node of the back. A node is reserved. */
uint32_t rmm__blocks_cut_back(rmm_blocks_t *blocks, uint32_t index, uint32_t units);

static inline void rmm__blocks_settle(rmm_blocks_t *blocks, rmm_heap_t heap)
{
    if (blocks->heaps[heap].recent != 0) {
        rmm__blocks_settle_recent(blocks, heap);
    }
}

/* With RMM_HEAVY_CHECKS: check everything, so rarely that a change costs a constant. */
static inline void check_heavily(rmm_blocks_t *blocks)
{
#ifdef RMM_HEAVY_CHECKS
    if (++blocks->changes >=
        (uint64_t)blocks->used_nodes / 8 + (uint64_t)blocks->heap_count * 16) {
        blocks->changes = 0;
        assert(rmm__blocks_check(blocks) == NULL);
    }
#else
    (void)blocks;
#endif
}

static inline bool heap_is_valid(const rmm_blocks_t *blocks, rmm_heap_t heap)
{
    return heap < blocks->heap_count && blocks->heaps[heap].in_use == 1;
}

/*
 * Unit numbers come in strides of powers of two. The low bits of a product would show the
 * stride; its high bits do not (golden ratio, Knuth 6.4).
 */
static inline uint32_t bucket_of(const rmm_blocks_t *blocks, uint64_t unit)
{
    return (uint32_t)((unit * UINT64_C(0x9e3779b97f4a7c15)) >> blocks->table_shift);
}

static inline bool node_is_live(const rmm_block_node_t *node)
{
    return node->heap >= HEAP_MARKED;
}

/* Is this the recent block of its heap? */
static inline bool node_is_recent(const rmm_blocks_t *blocks, uint32_t index)
{
    uint32_t heap = blocks->nodes[index].heap;

    return heap < HEAP_UNUSED && blocks->heaps[heap].recent == index;
}

/* Would this neighbour merge with a block of this heap and stamp? */
static inline bool merges_with(
    const rmm_blocks_t *blocks, uint32_t neighbour, rmm_heap_t heap, uint64_t stamp)
{
    return blocks->nodes[neighbour].heap == heap &&
           (__builtin_expect(blocks->merge_boundary == 0, true) ||
            (blocks->ages[neighbour].stamp <= blocks->merge_boundary) ==
                (stamp <= blocks->merge_boundary));
}

static inline uint32_t node_take(rmm_blocks_t *blocks)
{
    uint32_t index = blocks->unused_nodes;

    assert(index != 0 && "reserve() comes first");
    blocks->unused_nodes = blocks->nodes[index].link;
    return index;
}

static inline void node_put(rmm_blocks_t *blocks, uint32_t index)
{
    blocks->nodes[index].heap = HEAP_UNUSED;
    blocks->nodes[index].link = blocks->unused_nodes;
    blocks->unused_nodes = index;
}

static inline void table_insert(rmm_blocks_t *blocks, uint32_t index)
{
    rmm_block_node_t *node = &blocks->nodes[index];
    uint32_t bucket = bucket_of(blocks, node->unit);

    node->link = blocks->table[bucket];
    blocks->table[bucket] = index;
}

static inline void table_remove(rmm_blocks_t *blocks, uint32_t index)
{
    uint32_t *link = &blocks->table[bucket_of(blocks, blocks->nodes[index].unit)];

    while (*link != index) {
        assert(*link != 0 && "the block is in the table");
        link = &blocks->nodes[*link].link;
    }
    *link = blocks->nodes[index].link;
}

/* Put a node between two neighbours in memory. */
static inline void
list_insert(rmm_blocks_t *blocks, uint32_t prev, uint32_t index, uint32_t next)
{
    blocks->nodes[index].prev = prev;
    blocks->nodes[index].next = next;
    blocks->nodes[prev].next = index;
    blocks->nodes[next].prev = index;
}

/* Insert after `older`; 0: as the oldest. */
static inline void
age_insert(rmm_blocks_t *blocks, rmm_heap_body_t *body, uint32_t index, uint32_t older)
{
    rmm_block_age_t *age = &blocks->ages[index];
    uint32_t newer = older != 0 ? blocks->ages[older].newer : body->oldest;

    age->older = older;
    age->newer = newer;
    if (older != 0) {
        blocks->ages[older].newer = index;
    } else {
        body->oldest = index;
    }
    if (newer != 0) {
        blocks->ages[newer].older = index;
    } else {
        body->newest = index;
    }
}

static inline void
age_remove(rmm_blocks_t *blocks, rmm_heap_body_t *body, uint32_t index)
{
    const rmm_block_age_t *age = &blocks->ages[index];

    if (age->older != 0) {
        blocks->ages[age->older].newer = age->newer;
    } else {
        body->oldest = age->newer;
    }
    if (age->newer != 0) {
        blocks->ages[age->newer].older = age->older;
    } else {
        body->newest = age->older;
    }
}

static inline rmm_index_entry_t entry_of(const rmm_blocks_t *blocks, uint32_t index)
{
    const rmm_block_node_t *node = &blocks->nodes[index];

    return (rmm_index_entry_t){node->unit, node->units, index};
}

/* Make a node a free block of the heap. The caller sets its age. */
static inline void heap_enter(rmm_blocks_t *blocks, rmm_heap_t heap, uint32_t index)
{
    rmm_heap_body_t *body = &blocks->heaps[heap];
    rmm_index_entry_t entry = entry_of(blocks, index);

    blocks->nodes[index].heap = heap;
    rmm__index_insert(&blocks->index_nodes, &body->index, &entry);
    body->free_count++;
}

/* The block is settled and leaves the heap; it is in no heap then. */
static inline void
heap_leave(rmm_blocks_t *blocks, rmm_heap_body_t *body, uint32_t index)
{
    rmm__index_remove(&blocks->index_nodes, &body->index, blocks->nodes[index].unit);
    age_remove(blocks, body, index);
    body->free_count--;
}

/* A free block's unit or units have changed. */
static inline void heap_changed(
    rmm_blocks_t *blocks, rmm_heap_body_t *body, uint32_t index, uint64_t unit_before)
{
    rmm_index_entry_t entry = entry_of(blocks, index);

    rmm__index_change(&blocks->index_nodes, &body->index, unit_before, &entry);
}

/* Make an adjacent node, which is in no heap, part of this one. */
static inline void glue(rmm_blocks_t *blocks, uint32_t index, uint32_t neighbour)
{
    rmm_block_node_t *node = &blocks->nodes[index];
    const rmm_block_node_t *taken = &blocks->nodes[neighbour];

    if (node->prev == neighbour) {
        node->unit = taken->unit;
        node->prev = taken->prev;
        blocks->nodes[node->prev].next = index;
    } else {
        node->next = taken->next;
        blocks->nodes[node->next].prev = index;
    }
    node->units += taken->units;
    node_put(blocks, neighbour);
}

/* The same with a settled free block, which keeps its node and its age. */
static inline void
absorb(rmm_blocks_t *blocks, rmm_heap_body_t *body, uint32_t index, uint32_t neighbour)
{
    uint64_t unit = blocks->nodes[index].unit;

    glue(blocks, index, neighbour);
    heap_changed(blocks, body, index, unit);
}

/* --- access to one block, for the hot path of an owner ------------------------------- */

/* rmm__blocks_find() */
static inline rmm_block_t rmm__blocks_look_up(const rmm_blocks_t *blocks, uint64_t unit)
{
    uint32_t index = blocks->table[bucket_of(blocks, unit)];

    while (index != 0 && blocks->nodes[index].unit != unit) {
        index = blocks->nodes[index].link;
    }
    return index != 0 && node_is_live(&blocks->nodes[index]) ? index : RMM_BLOCK_NONE;
}

/* Its owner's mark of a live block, which has none at first and keeps it until it is freed. */
static inline void rmm__blocks_mark(rmm_block_node_t *node, bool is_marked)
{
    node->heap -= is_marked;
}

static inline bool rmm__blocks_is_marked(const rmm_block_node_t *node)
{
    return node->heap == HEAP_MARKED;
}

/* The block's unit, units and tag; the owner may write the tag of a live block. */
static inline rmm_block_node_t *
rmm__blocks_look_at(const rmm_blocks_t *blocks, rmm_block_t block)
{
    return &blocks->nodes[block];
}

/* Units that the block freed last into its heap will have after its merge. */
static inline uint32_t
rmm__blocks_look_merged(const rmm_blocks_t *blocks, rmm_block_t block)
{
    const rmm_block_node_t *node = &blocks->nodes[block];
    uint64_t stamp = blocks->ages[block].stamp;
    uint32_t units = node->units;

    if (merges_with(blocks, node->prev, node->heap, stamp)) {
        units += blocks->nodes[node->prev].units;
    }
    if (merges_with(blocks, node->next, node->heap, stamp)) {
        units += blocks->nodes[node->next].units;
    }
    return units;
}

/* rmm__blocks_largest_free() */
static inline uint32_t
rmm__blocks_look_largest(const rmm_blocks_t *blocks, rmm_heap_t heap)
{
    const rmm_heap_body_t *body = &blocks->heaps[heap];
    uint32_t largest = body->index.largest;

    if (body->recent != 0) { /* its size after the merge */
        uint32_t units = rmm__blocks_look_merged(blocks, body->recent);

        largest = units > largest ? units : largest;
    }
    return largest;
}

#endif /* RMM_POOL_BLOCKS_IMPL_H */
