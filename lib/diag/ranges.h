/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded set of ranges of addresses, which do not overlap: in order, in an array.
 *
 * Not locked: the engine's lock protects it. Cost: a binary search; a change moves what is behind.
 */
#ifndef RMM_DIAG_RANGES_H
#define RMM_DIAG_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#define RMM_RANGES_MAX 1024u

typedef struct rmm_range {
    uint64_t start, end; /* [start, end) */
} rmm_range_t;

typedef struct rmm_ranges {
    rmm_range_t at[RMM_RANGES_MAX];
    uint32_t count;
    bool is_cut; /* one found no room: the set is not to be relied on any more */
} rmm_ranges_t;

/* It becomes a range of its own; what was there before is cut. */
void rmm__ranges_put(rmm_ranges_t *ranges, uint64_t start, uint64_t end);
/* The same, and ranges that it overlaps or touches become one with it. */
void rmm__ranges_merge(rmm_ranges_t *ranges, uint64_t start, uint64_t end);
void rmm__ranges_take(rmm_ranges_t *ranges, uint64_t start, uint64_t end);

/* The first one that overlaps [start, end); NULL: none does. */
const rmm_range_t *
rmm__ranges_find(const rmm_ranges_t *ranges, uint64_t start, uint64_t end);

#endif /* RMM_DIAG_RANGES_H */
