/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a range that the program passed to a call stay within the block that it points into?
 *
 * A range that begins in no block is an error, too, where no block can be that this file does not
 * know: behind a block, in what is its alone (padding and guard); and in the memory of a pool.
 * The error is that of the block which the range touches or is nearest to.
 *
 * A program may divide a block and hand its parts out as blocks of their own (a custom resource
 * over a large allocation). Such a range is remembered, and nothing in it is checked: a copy of
 * the whole is correct there. Memory of a pool that may have another owner is a hole: a program's
 * own function allocated from the pool, or a captured graph owns what was freed.
 *
 * Not locked: the engine's lock protects it.
 */
#ifndef RMM_DIAG_BOUNDS_H
#define RMM_DIAG_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "diag/live_map.h"
#include "diag/ranges.h"

#define RMM_BOUNDS_DIVIDED_MAX 64u

typedef struct rmm_bounds {
    rmm_range_t divided[RMM_BOUNDS_DIVIDED_MAX];
    uint32_t divided_count;
    bool is_unsure; /* more ranges were divided than fit: nothing is checked any more */
    uint64_t *ends; /* by block: of its padding and guard; 0: not known */
    rmm_ranges_t pools; /* chunks that resources divide into blocks */
    rmm_ranges_t holes; /* parts of them */
} rmm_bounds_t;

/* For so many blocks. False: no host memory; nothing is left to undo. */
bool rmm__bounds_init(rmm_bounds_t *bounds, uint32_t block_count);
void rmm__bounds_fini(rmm_bounds_t *bounds);

/* A block was allocated inside of [start, end), which was allocated as one. */
void rmm__bounds_divided(rmm_bounds_t *bounds, uint64_t start, uint64_t end);
/* The block [start, end) is freed. */
void rmm__bounds_freed(rmm_bounds_t *bounds, uint64_t start, uint64_t end);

/* A resource divides this memory into blocks, and only their holders use it. */
void rmm__bounds_pool(rmm_bounds_t *bounds, uint64_t start, uint64_t end);
/* This block of such a resource is alone in [start, end). */
void rmm__bounds_allocated(rmm_bounds_t *bounds, uint64_t start, uint64_t end);
/* From now on somebody else may use it. */
void rmm__bounds_gone(rmm_bounds_t *bounds, uint64_t start, uint64_t end);
void rmm__bounds_forget_pools(rmm_bounds_t *bounds);

/*
 * The block that the range leaves, or into which it reaches from outside, or whose error it is;
 * RMM_LIVE_NONE: the range is correct, or nothing is known of the memory.
 */
uint32_t rmm__bounds_check(
    const rmm_bounds_t *bounds, rmm_live_map_t *map, uint64_t address, uint64_t bytes);

#endif /* RMM_DIAG_BOUNDS_H */
