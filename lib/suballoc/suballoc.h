/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pure block manager: divides ranges of numbered units into blocks, in constant time.
 * It knows no pointer, driver, stream, lock or log: units in, units out, so that it is
 * tested by itself. Two-level segregated fit (TLSF: Masmano, Ripoll, Crespo, Real,
 * ECRTS 2004), 32 second-level bins an octave, bitmaps of both levels, nodes outside of
 * the memory that they describe.
 *
 * Heaps. A free block belongs to one heap and carries a stamp. Neighbours in memory merge
 * when both are free in the same heap; the merged block takes the later stamp. A heap's
 * free blocks are also kept in the order of their stamps, so that all up to a stamp
 * can be moved to another heap without a search. A pool uses a heap per stream, one for
 * memory that any stream may use, and stamps for "behind which event".
 *
 * Regions. Units of one region are contiguous memory; blocks never merge across regions.
 *
 * Locking: none; the caller serialises.
 *
 * Failure: only add_region, heap_create, alloc and move may need storage; each fails
 * cleanly. free and transfer never fail.
 */
#ifndef RMM_SUBALLOC_SUBALLOC_H
#define RMM_SUBALLOC_SUBALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RMM_SUBALLOC_UNIT_BYTES 256u

typedef struct rmm_suballoc rmm_suballoc_t;

/* Index of a node; 0 is none. Stable from alloc to free. */
typedef uint32_t rmm_block_t;
/* Index of a heap; 0 is valid: the first one created. */
typedef uint32_t rmm_heap_t;

#define RMM_BLOCK_NONE 0u
#define RMM_HEAP_NONE UINT32_MAX

/*
 * Where nodes and tables live: the owner's choice (private memory, a shared file).
 * resize() works like realloc (contents kept to the smaller size, new bytes zeroed;
 * NULL: failed, the old memory stays); new_bytes 0 frees and returns NULL. `what` tells
 * the areas apart: 'm' the manager itself, 'n' nodes, 'a' their ages, 't' table of live
 * blocks, 'h' heaps, 'r' regions. Growing 't' asks for new memory before the old is freed.
 */
typedef struct rmm_suballoc_storage {
    void *(*resize)(
        void *context, char what, void *old, size_t old_bytes, size_t new_bytes);
    void *context;
} rmm_suballoc_storage_t;

typedef enum rmm_suballoc_result {
    RMM_SUBALLOC_OK = 0,
    RMM_SUBALLOC_NO_FIT,     /* no free block of this heap is large enough */
    RMM_SUBALLOC_NO_STORAGE, /* storage could not grow */
    RMM_SUBALLOC_NO_UNITS    /* 2^32 units are used up */
} rmm_suballoc_result_t;

/* NULL if storage cannot hold the manager itself. */
rmm_suballoc_t *rmm__suballoc_create(const rmm_suballoc_storage_t *storage);
void rmm__suballoc_destroy(rmm_suballoc_t *sa);

/* A new, empty heap. Destroyed heaps' indices are used again. */
rmm_suballoc_result_t
rmm__suballoc_heap_create(rmm_suballoc_t *sa, rmm_heap_t *heap_out);
/* The heap must be empty. */
void rmm__suballoc_heap_destroy(rmm_suballoc_t *sa, rmm_heap_t heap);

/*
 * Add `units` of contiguous memory as one free block of `heap`. The first unit's number is
 * chosen here, congruent to `phase` modulo RMM_SUBALLOC_PHASES, so that alignment of
 * units is alignment of addresses (phase = address / 256 modulo that).
 */
#define RMM_SUBALLOC_PHASES 8192u /* 2 MiB / 256 */
rmm_suballoc_result_t rmm__suballoc_add_region(
    rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t units, uint32_t phase, uint64_t stamp,
    uint32_t *first_unit_out);

/*
 * The same with numbers of the caller's choice, which no region has: for units that are
 * named alike in several managers. Alignment is that of the numbers.
 */
rmm_suballoc_result_t rmm__suballoc_add_region_at(
    rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t first_unit, uint32_t units,
    uint64_t stamp);

/*
 * Take a region away again. Only when all of it is one free block of this heap; false and
 * no change otherwise. Its unit numbers may be used again.
 */
bool rmm__suballoc_remove_region(
    rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t first_unit);

/*
 * Take a block from the free ones of a heap. units >= 1; align_units a power of two, at
 * most RMM_SUBALLOC_PHASES. Finds a fit whenever one exists. Best fit among the first
 * few of the request's own bin, then good fit by bitmap, then the own bin whole.
 *
 * Of a larger block it takes the front; with align_units 1 and 256 KiB or more, that end
 * beside which memory will stay in use longer. (So memory that is to be taken from one end
 * to the other, as a heap of addresses without memory behind them, wants align_units > 1.)
 */
rmm_suballoc_result_t rmm__suballoc_alloc(
    rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t units, uint32_t align_units,
    rmm_block_t *block_out);

/*
 * The same from either of two heaps: from the one whose block fits more tightly, the first
 * if both do alike. Best fit over both holds far less memory than trying one after the
 * other: a stream's own heap and the clean one, smallest capacity over peak on the trace
 * gpt_train 1.025 instead of 1.091.
 */
rmm_suballoc_result_t rmm__suballoc_alloc_either(
    rmm_suballoc_t *sa, rmm_heap_t first, rmm_heap_t second, uint32_t units,
    uint32_t align_units, rmm_block_t *block_out);

/* The live block that starts at this unit, or RMM_BLOCK_NONE. Any number may be asked. */
rmm_block_t rmm__suballoc_find(const rmm_suballoc_t *sa, uint32_t unit);

uint32_t rmm__suballoc_block_unit(const rmm_suballoc_t *sa, rmm_block_t block);
uint32_t rmm__suballoc_block_units(const rmm_suballoc_t *sa, rmm_block_t block);

/*
 * The owner's tag of a live block (a pool keeps the padding and the requested size's
 * check here); 0 after alloc.
 */
uint32_t rmm__suballoc_block_tag(const rmm_suballoc_t *sa, rmm_block_t block);
void rmm__suballoc_block_set_tag(rmm_suballoc_t *sa, rmm_block_t block, uint32_t tag);

/*
 * Give a live block back, to this heap, with a stamp not below any stamp in the heap. Its
 * merge with its neighbours becomes final at the next call for the heap: an alloc that
 * comes first and wants just this size takes the block as it is, and the neighbours keep
 * the stamps that they had.
 */
void rmm__suballoc_free(
    rmm_suballoc_t *sa, rmm_block_t block, rmm_heap_t heap, uint64_t stamp);

/*
 * Give back part of a live block, as free() does; what is before and behind it stays live,
 * in blocks of their own with the same tag. False, and no change, without storage.
 */
bool rmm__suballoc_free_part(
    rmm_suballoc_t *sa, rmm_block_t block, uint32_t unit, uint32_t units,
    rmm_heap_t heap, uint64_t stamp);

/*
 * Take a live block out of its region for good: its units are nobody's, and what is before
 * and behind it become regions of their own. reserve_region() right before makes room for
 * that; false without storage.
 */
bool rmm__suballoc_reserve_region(rmm_suballoc_t *sa);
void rmm__suballoc_carve(rmm_suballoc_t *sa, rmm_block_t block);

/* The first unit of the region that this unit is in. */
uint32_t rmm__suballoc_region_start(const rmm_suballoc_t *sa, uint32_t unit);

/*
 * Move every free block of `from` with stamp <= up_to into `to`, stamped `new_stamp`
 * (not below any stamp there), merging with neighbours there. Returns the units moved.
 */
uint64_t rmm__suballoc_transfer(
    rmm_suballoc_t *sa, rmm_heap_t from, rmm_heap_t to, uint64_t up_to,
    uint64_t new_stamp);

/*
 * Move units that are all in one free block of `from` into `to`, stamped `stamp` (not below
 * any stamp there), merging with neighbours there; what is left of the block stays as it is.
 * NO_FIT: they are not; NO_STORAGE; nothing changed then. Looks at the blocks of `from` that
 * have at least so many units, one after the other.
 */
rmm_suballoc_result_t rmm__suballoc_move(
    rmm_suballoc_t *sa, rmm_heap_t from, rmm_heap_t to, uint32_t unit, uint32_t units,
    uint64_t stamp);

/*
 * A heap may stand for addresses behind which there is no memory. Filling a gap there makes
 * a larger block of the free ones beside it.
 */
typedef struct rmm_suballoc_gap {
    uint32_t unit, units;   /* to be filled; units 0: nothing is missing */
    uint32_t room;          /* units of the gap from `unit` on: more could be filled */
    uint32_t before, after; /* free units beside what is to be filled, that count */
} rmm_suballoc_gap_t;

/*
 * What to fill so that `filled` gets a block of `units`: the fewest units of one free block
 * of `gaps`, rounded up to `granule` where the block has that many; the lowest of
 * equally few. False: no block of `gaps` has the room, with the free blocks beside it.
 * Looks at all blocks of `gaps`.
 */
bool rmm__suballoc_find_gap(
    rmm_suballoc_t *sa, rmm_heap_t gaps, rmm_heap_t filled, uint32_t units,
    uint32_t granule, rmm_suballoc_gap_t *gap_out);

/*
 * O(1), but largest: exact, O(1) unless the largest block has left since it was asked last;
 * then it is found among those of nearly its size. The block that was freed last counts as
 * merged.
 */
uint64_t rmm__suballoc_free_units(const rmm_suballoc_t *sa, rmm_heap_t heap);
uint32_t rmm__suballoc_free_blocks(const rmm_suballoc_t *sa, rmm_heap_t heap);
uint32_t rmm__suballoc_largest_free(const rmm_suballoc_t *sa, rmm_heap_t heap);
/*
 * Units around a block that was freed: its own and those of its neighbours, as far as all
 * are free, in any heap but two (addresses without memory; HEAP_NONE: none such). Looks at
 * `most` neighbours on each side; UINT32_MAX if there are more.
 */
uint32_t rmm__suballoc_run_around(
    const rmm_suballoc_t *sa, rmm_block_t block, rmm_heap_t but, rmm_heap_t nor,
    uint32_t most);
/* Stamp of the oldest free block; UINT64_MAX when the heap is empty. Makes the last merge
 * final. */
uint64_t rmm__suballoc_oldest_stamp(rmm_suballoc_t *sa, rmm_heap_t heap);

/* All heaps together. */
uint64_t rmm__suballoc_total_free_units(const rmm_suballoc_t *sa);
uint32_t rmm__suballoc_live_blocks(const rmm_suballoc_t *sa);

typedef struct rmm_block_info {
    uint32_t unit, units;
    rmm_heap_t heap; /* RMM_HEAP_NONE: live */
    uint32_t tag;
    uint64_t stamp;
} rmm_block_info_t;

/* Every block of every region in unit order within a region; stops when fn is false. */
void rmm__suballoc_walk(
    const rmm_suballoc_t *sa, bool (*fn)(void *context, const rmm_block_info_t *info),
    void *context);

/* Visit the free blocks of a heap that have at least `units`, in no order; fn must not
 * change anything. Looks at no smaller ones but those of nearly that size. */
void rmm__suballoc_walk_free(
    rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t units,
    void (*fn)(void *context, uint32_t unit, uint32_t units), void *context);

/* Walk and check everything; NULL if sound, else a sentence. For tests and heavy checks. */
const char *rmm__suballoc_check(const rmm_suballoc_t *sa);

#endif /* RMM_SUBALLOC_SUBALLOC_H */
