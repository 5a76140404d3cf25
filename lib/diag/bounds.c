/* SPDX-License-Identifier: Apache-2.0 */
/* Compares ranges with blocks; see bounds.h. */
#include "diag/bounds.h"

#include <stdlib.h>

bool rmm__bounds_init(rmm_bounds_t *bounds, uint32_t block_count)
{
    bounds->ends = calloc(block_count, sizeof(*bounds->ends));
    return bounds->ends != NULL;
}

void rmm__bounds_fini(rmm_bounds_t *bounds)
{
    free(bounds->ends);
}

/* --- what is divided --------------------------------------------------------------- */

static uint32_t find_divided(const rmm_bounds_t *bounds, uint64_t start, uint64_t end)
{
    uint32_t i = 0;

    while (i < bounds->divided_count &&
           (bounds->divided[i].start >= end || bounds->divided[i].end <= start)) {
        i++;
    }
    return i;
}

void rmm__bounds_divided(rmm_bounds_t *bounds, uint64_t start, uint64_t end)
{
    rmm__bounds_gone(bounds, start, end);
    if (bounds->divided_count == RMM_BOUNDS_DIVIDED_MAX) {
        bounds->is_unsure = true;
        return;
    }
    bounds->divided[bounds->divided_count++] = (rmm_range_t){start, end};
}

void rmm__bounds_freed(rmm_bounds_t *bounds, uint64_t start, uint64_t end)
{
    uint32_t i = find_divided(bounds, start, end);

    if (i < bounds->divided_count && bounds->divided[i].start == start &&
        bounds->divided[i].end == end) {
        bounds->divided[i] = bounds->divided[--bounds->divided_count];
    }
}

/* --- pools ------------------------------------------------------------------------- */

void rmm__bounds_pool(rmm_bounds_t *bounds, uint64_t start, uint64_t end)
{
    rmm__ranges_put(&bounds->pools, start, end);
    rmm__ranges_take(&bounds->holes, start, end);
}

void rmm__bounds_allocated(rmm_bounds_t *bounds, uint64_t start, uint64_t end)
{
    rmm__ranges_take(&bounds->holes, start, end);
}

void rmm__bounds_gone(rmm_bounds_t *bounds, uint64_t start, uint64_t end)
{
    const rmm_range_t *pool = rmm__ranges_find(&bounds->pools, start, end);

    if (pool == NULL) {
        return;
    }
    if (start <= pool->start && end >= pool->end) {
        rmm__ranges_take(&bounds->pools, start, end);
        rmm__ranges_take(&bounds->holes, start, end);
    } else {
        rmm__ranges_merge(&bounds->holes, start, end);
    }
}

void rmm__bounds_forget_pools(rmm_bounds_t *bounds)
{
    bounds->pools.count = 0;
    bounds->holes.count = 0;
}

/* The pool's memory in which the range begins, all of which is known to be the pool's. */
static const rmm_range_t *
find_pool(const rmm_bounds_t *bounds, uint64_t address, uint64_t end)
{
    if (bounds->pools.is_cut || bounds->holes.is_cut ||
        rmm__ranges_find(&bounds->holes, address, end) != NULL) {
        return NULL;
    }
    return rmm__ranges_find(&bounds->pools, address, address + 1);
}

/* --- whose error it is ------------------------------------------------------------- */

static bool is_in(const rmm_live_map_t *map, uint32_t index, const rmm_range_t *pool)
{
    return index != RMM_LIVE_NONE && pool != NULL &&
           map->nodes[index].start >= pool->start && map->nodes[index].end <= pool->end;
}

/* The nearer of two blocks in the memory of a pool, one before the range and one behind it. */
static uint32_t nearest(
    const rmm_live_map_t *map, uint32_t before, uint32_t behind,
    const rmm_range_t *range)
{
    if (before == RMM_LIVE_NONE || behind == RMM_LIVE_NONE) {
        return before != RMM_LIVE_NONE ? before : behind;
    }
    return range->start - map->nodes[before].end <=
                   map->nodes[behind].start - range->end
               ? before
               : behind;
}

/* The range begins in no block. One that begins where a block ends is the error of that block;
 * else, if it reaches into one, of this. */
static uint32_t
find_culprit(const rmm_bounds_t *bounds, rmm_live_map_t *map, const rmm_range_t *range)
{
    const rmm_range_t *pool = find_pool(bounds, range->start, range->end);
    uint32_t before, behind;
    bool is_its_own, reaches;

    rmm__live_map_around(map, range->start, &before, &behind);
    is_its_own = before != RMM_LIVE_NONE && range->start < bounds->ends[before];
    reaches = behind != RMM_LIVE_NONE && map->nodes[behind].start < range->end;
    if ((is_its_own || is_in(map, before, pool)) &&
        range->start == map->nodes[before].end) {
        return before;
    }
    if (reaches) {
        return behind;
    }
    if (is_its_own) {
        return before;
    }
    return nearest(
        map, is_in(map, before, pool) ? before : RMM_LIVE_NONE,
        is_in(map, behind, pool) ? behind : RMM_LIVE_NONE, range);
}

uint32_t rmm__bounds_check(
    const rmm_bounds_t *bounds, rmm_live_map_t *map, uint64_t address, uint64_t bytes)
{
    const rmm_range_t range = {
        address, bytes > UINT64_MAX - address ? UINT64_MAX : address + bytes};
    uint32_t index = rmm__live_map_find(map, address);

    if (range.start == range.end) {
        return RMM_LIVE_NONE;
    }
    if (index == RMM_LIVE_NONE) {
        index = find_culprit(bounds, map, &range);
    } else if (range.end <= map->nodes[index].end) {
        return RMM_LIVE_NONE;
    }
    if (index != RMM_LIVE_NONE &&
        (bounds->is_unsure ||
         find_divided(bounds, map->nodes[index].start, map->nodes[index].end) <
             bounds->divided_count ||
         find_divided(bounds, range.start, range.start + 1) < bounds->divided_count)) {
        return RMM_LIVE_NONE;
    }
    return index;
}
