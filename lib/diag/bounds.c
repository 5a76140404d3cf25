/* SPDX-License-Identifier: Apache-2.0 */
/* Compares ranges with blocks; see bounds.h. */
#include "diag/bounds.h"

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
    if (bounds->divided_count == RMM_BOUNDS_DIVIDED_MAX) {
        bounds->is_unsure = true;
        return;
    }
    bounds->divided[bounds->divided_count++] = (rmm_bounds_range_t){start, end};
}

void rmm__bounds_freed(rmm_bounds_t *bounds, uint64_t start, uint64_t end)
{
    uint32_t i = find_divided(bounds, start, end);

    if (i < bounds->divided_count && bounds->divided[i].start == start &&
        bounds->divided[i].end == end) {
        bounds->divided[i] = bounds->divided[--bounds->divided_count];
    }
}

/* The first block that begins behind `address` and before `end`. */
static uint32_t first_behind(rmm_live_map_t *map, uint64_t address, uint64_t end)
{
    uint32_t first = RMM_LIVE_NONE;
    uint32_t index = rmm__live_map_overlap(map, address, end);

    while (index != RMM_LIVE_NONE) {
        first = index;
        index = rmm__live_map_overlap(map, address, map->nodes[index].start);
    }
    return first;
}

uint32_t rmm__bounds_check(
    const rmm_bounds_t *bounds, rmm_live_map_t *map, uint64_t address, uint64_t bytes)
{
    uint64_t end = bytes > UINT64_MAX - address ? UINT64_MAX : address + bytes;
    uint32_t index = rmm__live_map_find(map, address);

    if (index == RMM_LIVE_NONE) {
        index = first_behind(map, address, end);
    } else if (end <= map->nodes[index].end) {
        return RMM_LIVE_NONE;
    }
    if (index != RMM_LIVE_NONE &&
        (bounds->is_unsure ||
         find_divided(bounds, map->nodes[index].start, map->nodes[index].end) <
             bounds->divided_count)) {
        return RMM_LIVE_NONE;
    }
    return index;
}
