/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the block manager: its structures and the small steps on them, shared by
 * suballoc.c (life, heaps, regions), blocks.c (alloc, free, transfer), carve.c and check.c.
 *
 * Rules of the nodes:
 *  1. A node is named by its index, never by a pointer: storage moves when it grows.
 *     Node 0 is nobody: links that lead nowhere are 0, and a write through such a link
 *     lands in node 0, whose contents mean nothing. That spares a branch for each link.
 *  2. The blocks of a region form a ring through prev and next that a fence closes: a
 *     node without a block, whose unit and units are the region's. So every block has two
 *     neighbours, and nothing but the fence knows which block comes first.
 *  3. heap is RMM_HEAP_NONE in live blocks and in fences: neither ever merges.
 *  4. Two neighbours are never free in the same heap, but for the heap's unsettled block:
 *     the one that was freed last is left as it is until the next alloc or free there,
 *     because often that alloc wants the same size and takes it as it is. It is still in
 *     the table, not in a bin nor in the age list. What the interface tells is as if it
 *     had been merged at once.
 *  5. Every other free block is in the bin of its size, the newest first.
 *  6. Ages (stamps and the list in the order of stamps) are an array of their own, so that
 *     two nodes fill a cache line and a look at a neighbour touches one line.
 */
#ifndef RMM_SUBALLOC_SUBALLOC_IMPL_H
#define RMM_SUBALLOC_SUBALLOC_IMPL_H

#include <assert.h>

#include "suballoc/suballoc.h"

#define RMM_BIN_COUNT 896u /* bin_of(UINT32_MAX) + 1 */
#define RMM_LEVEL_COUNT (RMM_BIN_COUNT / 32u)

typedef struct rmm_block_node {
    uint32_t unit, units;
    uint32_t prev, next; /* neighbours in memory */
    uint32_t heap;
    union {
        uint32_t tag; /* live: the owner's */
        uint32_t bin; /* free */
    };
    union {
        uint32_t birth;     /* live: the clock at alloc */
        uint32_t link_prev; /* free: in the bin's list */
    };
    uint32_t
        link_next; /* free: in the bin's list; live: in the table's chain; unused */
} rmm_block_node_t;
static_assert(sizeof(rmm_block_node_t) == 32, "two nodes fill a cache line");

typedef struct rmm_block_age {
    uint64_t stamp;
    uint32_t older, newer;
} rmm_block_age_t;
static_assert(sizeof(rmm_block_age_t) == 16, "a node and its age take 48 bytes");

/*
 * An empty heap is all zero but for `in_use` and `largest`, so a destroyed heap needs no
 * cleaning. `largest` is never below the largest block; it is exact while largest_count,
 * the number of blocks of that size, is not 0. A block that shrinks and grows back, as in
 * an alloc and a free from a big remainder, keeps it exact without a search.
 */
typedef struct rmm_heap_body {
    uint64_t free_units;  /* of all free blocks */
    uint32_t free_blocks; /* without the unsettled one, as all that follows */
    uint32_t unsettled;   /* the block that was freed last, or 0 */
    uint32_t largest, largest_count;
    uint32_t oldest, newest; /* ends of the age list */
    uint32_t in_use;         /* 1; in a destroyed heap 0 */
    uint32_t next_unused;    /* destroyed heaps: index + 1 of the next, or 0 */
    uint32_t levels;         /* bit l: bins[l] is not 0 */
    uint32_t
        bins[RMM_LEVEL_COUNT + 1]; /* bit b: heads[32 l + b] is not 0; the last: 0 */
    uint32_t heads[RMM_BIN_COUNT];
} rmm_heap_body_t;

typedef struct rmm_region {
    uint32_t first_unit, units;
    uint32_t fence;
} rmm_region_t;

struct rmm_suballoc {
    /* what a hot alloc and free touch */
    rmm_block_node_t *nodes;
    rmm_block_age_t *ages;
    rmm_heap_body_t *heaps;
    uint32_t *table;      /* slots: first live block of the chain, or 0 */
    uint32_t table_shift; /* 64 - log2(slots) */
    uint32_t table_limit; /* live blocks that it may hold */
    uint32_t live_blocks;
    uint32_t unused_nodes; /* a list */
    uint64_t total_free_units;

    /* what blocks.c knows of lifetimes, for the place of large blocks */
    uint32_t clock;   /* large allocs so far, modulo 2^32 */
    uint64_t horizon; /* RMM_HORIZON_ONE times about the longest life lately */

    uint32_t used_nodes; /* indices below this have been used; at least 1 */
    uint32_t node_capacity, age_capacity;
    uint32_t heap_count, heap_capacity;
    uint32_t unused_heaps; /* index + 1 of a destroyed heap, or 0 */
    uint32_t region_count, region_capacity;
    rmm_region_t *regions; /* by first_unit */
    uint64_t changes;      /* since the last heavy check */
    rmm_suballoc_storage_t storage;
};

/*
 * Let two nodes be on the list of unused ones and a live block more fit into the table;
 * false: storage could not grow, and nothing that counts has changed.
 */
bool rmm__suballoc_reserve(rmm_suballoc_t *sa);

/* The number of regions that begin at or below this unit. */
uint32_t rmm__suballoc_regions_up_to(const rmm_suballoc_t *sa, uint32_t unit);
/* Into the list of regions, which has room, and out of it. */
void rmm__suballoc_insert_region(
    rmm_suballoc_t *sa, uint32_t place, const rmm_region_t *region);
void rmm__suballoc_drop_region(rmm_suballoc_t *sa, uint32_t place);

/* Merge the heap's unsettled block and put it into its bin. */
void rmm__suballoc_settle(rmm_suballoc_t *sa, rmm_heap_t heap);

#define RMM_SUBALLOC_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define RMM_SUBALLOC_INLINE static inline __attribute__((always_inline))
#define RMM_SUBALLOC_NOINLINE __attribute__((noinline))

/*
 * With RMM_HEAVY_CHECKS: walk everything, as often as costs a constant for each change.
 */
static inline void check_heavily(rmm_suballoc_t *sa)
{
#ifdef RMM_HEAVY_CHECKS
    if (++sa->changes >= (uint64_t)sa->used_nodes / 8 + (uint64_t)sa->heap_count * 16) {
        sa->changes = 0;
        assert(rmm__suballoc_check(sa) == NULL);
    }
#else
    (void)sa;
#endif
}

/*
 * 32 bins an octave; one for each size below 64 units. Bins are numbered through: an
 * octave follows the one before.
 */
static inline uint32_t bin_of(uint32_t units)
{
    uint32_t shift = 26u - (uint32_t)__builtin_clz(units | 32u);
    return (shift << 5) + (units >> shift);
}

static inline bool heap_is_valid(const rmm_suballoc_t *sa, rmm_heap_t heap)
{
    return heap < sa->heap_count && sa->heaps[heap].in_use == 1;
}

static inline bool request_is_valid(
    const rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t units, uint32_t align_units)
{
    return heap_is_valid(sa, heap) && units > 0 && align_units > 0 &&
           align_units <= RMM_SUBALLOC_PHASES && (align_units & (align_units - 1)) == 0;
}

/*
 * Unit numbers come in strides of powers of two. A product's low bits would show them; its
 * high bits do not (golden ratio, Knuth 6.4).
 */
static inline uint32_t slot_of(const rmm_suballoc_t *sa, uint32_t unit)
{
    return (uint32_t)((unit * UINT64_C(0x9e3779b97f4a7c15)) >> sa->table_shift);
}

/* Is this the block that its heap has not settled? */
static inline bool node_is_unsettled(const rmm_suballoc_t *sa, uint32_t index)
{
    uint32_t heap = sa->nodes[index].heap;
    return heap != RMM_HEAP_NONE && sa->heaps[heap].unsettled == index;
}

static inline uint32_t node_take(rmm_suballoc_t *sa)
{
    uint32_t index = sa->unused_nodes;
    assert(index != 0 && "reserve() comes first");
    sa->unused_nodes = sa->nodes[index].link_next;
    return index;
}

static inline void node_put(rmm_suballoc_t *sa, uint32_t index)
{
    sa->nodes[index].link_next = sa->unused_nodes;
    sa->unused_nodes = index;
}

static inline void table_insert(rmm_suballoc_t *sa, uint32_t index)
{
    rmm_block_node_t *node = &sa->nodes[index];
    uint32_t slot = slot_of(sa, node->unit);
    node->link_next = sa->table[slot];
    sa->table[slot] = index;
}

static inline void table_remove(rmm_suballoc_t *sa, uint32_t index)
{
    uint32_t *link = &sa->table[slot_of(sa, sa->nodes[index].unit)];
    while (*link != index) {
        assert(*link != 0 && "the block is in the table");
        link = &sa->nodes[*link].link_next;
    }
    *link = sa->nodes[index].link_next;
}

static inline void largest_enters(rmm_heap_body_t *body, uint32_t units)
{
    if (units >= body->largest) {
        body->largest_count = units == body->largest ? body->largest_count + 1 : 1;
        body->largest = units;
    }
}

static inline void largest_leaves(rmm_heap_body_t *body, uint32_t units)
{
    body->largest_count -= units == body->largest;
}

static inline void bin_insert(
    rmm_suballoc_t *sa, rmm_heap_body_t *body, rmm_block_node_t *node, uint32_t bin)
{
    uint32_t index = (uint32_t)(node - sa->nodes);
    node->bin = bin;
    node->link_prev = 0;
    node->link_next = body->heads[bin];
    sa->nodes[node->link_next].link_prev = index;
    body->heads[bin] = index;
    body->bins[bin / 32] |= 1u << bin % 32;
    body->levels |= 1u << bin / 32;
}

static inline void
bin_remove(rmm_suballoc_t *sa, rmm_heap_body_t *body, const rmm_block_node_t *node)
{
    sa->nodes[node->link_next].link_prev = node->link_prev;
    if (node->link_prev != 0) {
        sa->nodes[node->link_prev].link_next = node->link_next;
        return;
    }
    uint32_t bin = node->bin;
    body->heads[bin] = node->link_next;
    if (node->link_next == 0) {
        body->bins[bin / 32] &= ~(1u << bin % 32);
        body->levels &= ~((uint32_t)(body->bins[bin / 32] == 0) << bin / 32);
    }
}

/* Insert behind `older`; 0: as the oldest. */
static inline void
age_insert(rmm_suballoc_t *sa, rmm_heap_body_t *body, uint32_t index, uint32_t older)
{
    rmm_block_age_t *age = &sa->ages[index];
    uint32_t newer = older != 0 ? sa->ages[older].newer : body->oldest;
    age->older = older;
    age->newer = newer;
    if (older != 0) {
        sa->ages[older].newer = index;
    } else {
        body->oldest = index;
    }
    if (newer != 0) {
        sa->ages[newer].older = index;
    } else {
        body->newest = index;
    }
}

static inline void age_remove(rmm_suballoc_t *sa, rmm_heap_body_t *body, uint32_t index)
{
    const rmm_block_age_t *age = &sa->ages[index];
    if (age->older != 0) {
        sa->ages[age->older].newer = age->newer;
    } else {
        body->oldest = age->newer;
    }
    if (age->newer != 0) {
        sa->ages[age->newer].older = age->older;
    } else {
        body->newest = age->older;
    }
}

/* Make a node a free block of the heap: bin, count and largest. The age is the caller's. */
static inline void heap_enter(rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t index)
{
    rmm_heap_body_t *body = &sa->heaps[heap];
    rmm_block_node_t *node = &sa->nodes[index];
    node->heap = heap;
    bin_insert(sa, body, node, bin_of(node->units));
    body->free_blocks++;
    largest_enters(body, node->units);
}

/* A free block leaves its heap: bin, age list, count and largest. */
static inline void heap_leave(rmm_suballoc_t *sa, rmm_heap_body_t *body, uint32_t index)
{
    const rmm_block_node_t *node = &sa->nodes[index];
    bin_remove(sa, body, node);
    age_remove(sa, body, index);
    body->free_blocks--;
    largest_leaves(body, node->units);
}

/* A free block's size is no longer its bin's. */
void rmm__suballoc_rebin(
    rmm_suballoc_t *sa, rmm_heap_body_t *body, rmm_block_node_t *node);

/* A free block changes its size; most often it stays in its bin. */
RMM_SUBALLOC_INLINE void heap_resize(
    rmm_suballoc_t *sa, rmm_heap_body_t *body, rmm_block_node_t *node, uint32_t units)
{
    largest_leaves(body, node->units);
    largest_enters(body, units);
    node->units = units;
    if (RMM_SUBALLOC_UNLIKELY(bin_of(units) != node->bin)) {
        rmm__suballoc_rebin(sa, body, node);
    }
}

/* Put a node between two neighbours in memory. */
static inline void
ring_insert(rmm_suballoc_t *sa, uint32_t prev, uint32_t index, uint32_t next)
{
    sa->nodes[index].prev = prev;
    sa->nodes[index].next = next;
    sa->nodes[prev].next = index;
    sa->nodes[next].prev = index;
}

#endif /* RMM_SUBALLOC_SUBALLOC_IMPL_H */
