/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pure block manager: divides runs of numbered units into blocks. It knows no driver,
 * stream, lock or log, only units, so that it can be tested by itself. A unit is 256 bytes,
 * and its number is its address divided by 256, so that no table has to map one to the
 * other.
 *
 * Fit. A request gets the tightest of the first RMM_BLOCKS_FEW free blocks, by address, in
 * which it fits. Live blocks gather at low addresses and free memory stays contiguous at
 * high ones (Johnstone and Wilson, "The memory fragmentation problem: solved?", ISMM 1998);
 * a choice among a few keeps large blocks whole. Memory beyond the frontier, the end of the
 * highest unit ever handed out, is taken last. So the layout does not depend on how much is
 * free there: a pool that serves a program also serves it with more memory.
 * docs/decisions/0010 compares policies.
 *
 * Heaps. A free block belongs to one heap and carries a stamp. Adjacent blocks merge when
 * both are free in the same heap; the merged block takes the later stamp. A heap also keeps
 * its free blocks in the order of their stamps, so that all up to a stamp can be moved to
 * another heap without a search. A pool uses a heap for each stream, one for memory that any
 * stream may use, and stamps that say which event covers a block.
 *
 * Runs. Blocks merge only within the run of contiguous units that was added at once.
 *
 * Cost: taking the block that was freed last again costs a few loads and stores. Other
 * requests search and change a few nodes of the heap's index (index.h).
 *
 * Locking: none; the caller serialises.
 *
 * Failure: only add, heap_create, take, free_part, move and a cut that leaves units on both
 * sides may need storage; each fails cleanly. free and transfer never fail.
 */
#ifndef RMM_POOL_BLOCKS_H
#define RMM_POOL_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/index.h"

#define RMM_BLOCKS_UNIT UINT64_C(256)
#define RMM_BLOCKS_FEW 4u

typedef struct rmm_blocks rmm_blocks_t;

/* Index of a node; 0 is none. Stable from take to free. */
typedef uint32_t rmm_block_t;
/* Index of a heap; 0 is valid: the first one created. */
typedef uint32_t rmm_heap_t;

#define RMM_BLOCK_NONE 0u
#define RMM_HEAP_NONE UINT32_MAX

/*
 * Storage for nodes and tables. resize() works like realloc (contents kept to the smaller size,
 * new bytes zeroed; NULL: failed, the old memory stays); new_bytes 0 frees and returns NULL. The
 * table of live blocks allocates its new memory before it frees the old.
 */
typedef struct rmm_blocks_storage {
    void *(*resize)(void *context, void *old, size_t old_bytes, size_t new_bytes);
    void *context;
} rmm_blocks_storage_t;

typedef enum rmm_blocks_result {
    RMM_BLOCKS_OK = 0,
    RMM_BLOCKS_NO_FIT,     /* no free block of these heaps is large enough */
    RMM_BLOCKS_NO_STORAGE, /* storage could not grow */
    RMM_BLOCKS_NOT_RECENT  /* take_recent(): that block does not fit exactly */
} rmm_blocks_result_t;

/* NULL if storage cannot hold the manager itself. */
rmm_blocks_t *rmm__blocks_create(const rmm_blocks_storage_t *storage);
void rmm__blocks_destroy(rmm_blocks_t *blocks);

/* A new, empty heap. Indices of destroyed heaps are reused. */
rmm_blocks_result_t rmm__blocks_heap_create(rmm_blocks_t *blocks, rmm_heap_t *heap_out);
/* The heap must be empty. */
void rmm__blocks_heap_destroy(rmm_blocks_t *blocks, rmm_heap_t heap);

/* Add a run of contiguous units as one free block. None of them may be in the manager. */
rmm_blocks_result_t rmm__blocks_add(
    rmm_blocks_t *blocks, rmm_heap_t heap, uint64_t unit, uint32_t units,
    uint64_t stamp);

/*
 * Remove units that are all in one free block of the heap from the manager. The parts of
 * their run before and after them become runs of their own. Returns false and changes
 * nothing if the units are not all in one such block, or if units are left on both sides
 * and there is no storage.
 */
bool rmm__blocks_cut(
    rmm_blocks_t *blocks, rmm_heap_t heap, uint64_t unit, uint32_t units);

typedef struct rmm_blocks_request {
    uint32_t units;       /* at least 1 */
    uint32_t align_units; /* a power of two */
} rmm_blocks_request_t;

/*
 * Take a block from either of two heaps, which may be the same. Finds a fit whenever one free
 * block has the room. Takes the front of a larger block.
 */
rmm_blocks_result_t rmm__blocks_take(
    rmm_blocks_t *blocks, rmm_heap_t own, rmm_heap_t shared,
    const rmm_blocks_request_t *request, rmm_block_t *block_out);

/* Take the block that was freed last into this heap, if it fits exactly; else NOT_RECENT. */
rmm_blocks_result_t rmm__blocks_take_recent(
    rmm_blocks_t *blocks, rmm_heap_t own, const rmm_blocks_request_t *request,
    rmm_block_t *block_out);

/* The live block that starts at this unit, or RMM_BLOCK_NONE. The unit may be any number. */
rmm_block_t rmm__blocks_find(const rmm_blocks_t *blocks, uint64_t unit);

/*
 * Free a live block into this heap, with a stamp not below any stamp in the heap. Its merge
 * with its neighbours becomes final at the next call for the heap. If that is a take of
 * exactly this size, it takes the block as it is, and the neighbours keep their stamps.
 */
void rmm__blocks_free(
    rmm_blocks_t *blocks, rmm_block_t block, rmm_heap_t heap, uint64_t stamp);

/*
 * Free part of a live block. The parts before and after it stay live, as blocks of their
 * own with the same tag. Returns false and changes nothing if there is no storage.
 */
bool rmm__blocks_free_part(
    rmm_blocks_t *blocks, rmm_block_t block, uint64_t unit, uint32_t units,
    rmm_heap_t heap, uint64_t stamp);

/*
 * Move every free block of `from` with stamp <= up_to into `to`, stamped `new_stamp`
 * (not below any stamp there), merging with neighbours there. Returns the units moved.
 */
uint64_t rmm__blocks_transfer(
    rmm_blocks_t *blocks, rmm_heap_t from, rmm_heap_t to, uint64_t up_to,
    uint64_t new_stamp);

/*
 * Move units that are all in one free block of `from` into `to`, stamped `stamp` (not below
 * any stamp there), merging with neighbours there; the rest of the block stays as it is.
 * NO_FIT (the units are not all in one such block) and NO_STORAGE change nothing.
 */
rmm_blocks_result_t rmm__blocks_move(
    rmm_blocks_t *blocks, rmm_heap_t from, rmm_heap_t to, uint64_t unit, uint32_t units,
    uint64_t stamp);

/*
 * Between these two calls, in every heap, free blocks with a stamp up to this one do not
 * merge with those that have a later one: they keep their stamps while the caller waits for
 * an answer about them. clear() merges the blocks that were kept apart, and makes every
 * heap's last merge final. Its cost grows with the number of heaps and later blocks, but not if
 * none came (any_came). Not nested.
 */
void rmm__blocks_merge_boundary_set(rmm_blocks_t *blocks, uint64_t stamp);
void rmm__blocks_merge_boundary_clear(rmm_blocks_t *blocks, bool any_came);

/*
 * A heap may stand for addresses without memory. Filling a gap there joins the free blocks
 * beside it into a larger one.
 */
typedef struct rmm_blocks_gap {
    uint64_t unit;          /* fill from here */
    uint32_t units;         /* how many to fill; 0: nothing is missing */
    uint32_t room;          /* units of the gap from `unit` on that could be filled */
    uint32_t before, after; /* free units on each side that join the filled ones */
} rmm_blocks_gap_t;

/*
 * Find what to fill so that `filled` gets a block in which the request fits: the fewest units
 * of one free block of `gaps`, rounded up to `granule` if the block has that many; among equally
 * few, the lowest. It is filled from its back only if the filled part is aligned as requested.
 * Returns false if no block of `gaps` has the room together with the free blocks beside it.
 * Examines all blocks of `gaps`.
 */
bool rmm__blocks_find_gap(
    rmm_blocks_t *blocks, rmm_heap_t gaps, rmm_heap_t filled,
    const rmm_blocks_request_t *request, uint32_t granule, rmm_blocks_gap_t *gap_out);

/* The block that was freed last counts as merged. O(1), largest_free O(32). */
uint64_t rmm__blocks_free_units(const rmm_blocks_t *blocks, rmm_heap_t heap);
uint32_t rmm__blocks_largest_free(const rmm_blocks_t *blocks, rmm_heap_t heap);

/* Stamp of the oldest free block; UINT64_MAX when the heap is empty. Makes the last merge
 * final. */
uint64_t rmm__blocks_oldest_stamp(rmm_blocks_t *blocks, rmm_heap_t heap);
/* Stamp of the newest free block; 0 when the heap is empty. Makes the last merge final. */
uint64_t rmm__blocks_newest_stamp(rmm_blocks_t *blocks, rmm_heap_t heap);

/* Units of the heap's free blocks with a later stamp than this. O(such blocks). */
uint64_t
rmm__blocks_units_after(const rmm_blocks_t *blocks, rmm_heap_t heap, uint64_t stamp);

/* The free block of the heap that contains this unit. Makes the last merge final. */
bool rmm__blocks_free_around(
    rmm_blocks_t *blocks, rmm_heap_t heap, uint64_t unit, uint64_t *unit_out,
    uint32_t *units_out);

/* All heaps together. */
uint64_t rmm__blocks_total_free_units(const rmm_blocks_t *blocks);
uint32_t rmm__blocks_live_count(const rmm_blocks_t *blocks);

typedef struct rmm_block_info {
    uint64_t unit;
    uint32_t units;
    rmm_heap_t heap; /* RMM_HEAP_NONE: live */
    uint32_t tag;    /* of a live block: its owner's */
    uint64_t stamp;
} rmm_block_info_t;

/* Visit every block, in unit order within a run, until fn returns false. */
void rmm__blocks_walk(
    const rmm_blocks_t *blocks, bool (*fn)(void *context, const rmm_block_info_t *info),
    void *context);

/* Visit the free blocks of a heap that have at least `units`, by address; fn must not
 * change anything. */
void rmm__blocks_walk_free(
    rmm_blocks_t *blocks, rmm_heap_t heap, uint32_t units,
    bool (*fn)(void *context, const rmm_index_entry_t *block), void *context);

/* Check all structures. Returns NULL, or a sentence that says what is wrong. For tests and
 * heavy checks. */
const char *rmm__blocks_check(const rmm_blocks_t *blocks);

#endif /* RMM_POOL_BLOCKS_H */
