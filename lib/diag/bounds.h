/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a range that the program passed to a call stay within the block that it points into?
 *
 * A program may divide a block and hand its parts out as blocks of their own (a custom resource
 * over a large allocation). Such a range is remembered, and nothing in it is checked: a copy of
 * the whole is correct there.
 *
 * Not locked: the engine's lock protects it.
 */
#ifndef RMM_DIAG_BOUNDS_H
#define RMM_DIAG_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "diag/live_map.h"

#define RMM_BOUNDS_DIVIDED_MAX 64u

typedef struct rmm_bounds_range {
    uint64_t start, end; /* [start, end) */
} rmm_bounds_range_t;

typedef struct rmm_bounds {
    rmm_bounds_range_t divided[RMM_BOUNDS_DIVIDED_MAX];
    uint32_t divided_count;
    bool is_unsure; /* more ranges were divided than fit: nothing is checked any more */
} rmm_bounds_t;

/* A block was allocated inside of [start, end), which was allocated as one. */
void rmm__bounds_divided(rmm_bounds_t *bounds, uint64_t start, uint64_t end);
/* What was allocated as one block is freed. */
void rmm__bounds_freed(rmm_bounds_t *bounds, uint64_t start, uint64_t end);

/*
 * The block that the range leaves, or into which it reaches from outside; RMM_LIVE_NONE: the
 * range is correct, or lies where no block is.
 */
uint32_t rmm__bounds_check(
    const rmm_bounds_t *bounds, rmm_live_map_t *map, uint64_t address, uint64_t bytes);

#endif /* RMM_DIAG_BOUNDS_H */
