/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of ranges; see ranges.h. */
#include "diag/ranges.h"

#include <string.h>

/* The first one that ends behind `address`, or where it would be. */
static uint32_t first_behind(const rmm_ranges_t *ranges, uint64_t address)
{
    uint32_t low = 0, high = ranges->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (ranges->at[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* `count` of them from `index` on become the first `with_count` of `with`. */
static void replace(
    rmm_ranges_t *ranges, uint32_t index, uint32_t count, const rmm_range_t *with,
    uint32_t with_count)
{
    uint32_t rest = ranges->count - index - count;

    if (ranges->count - count + with_count > RMM_RANGES_MAX) {
        ranges->is_cut = true;
        return;
    }
    memmove(
        &ranges->at[index + with_count], &ranges->at[index + count],
        rest * sizeof(ranges->at[0]));
    memcpy(&ranges->at[index], with, with_count * sizeof(ranges->at[0]));
    ranges->count += with_count - count;
}

static uint32_t count_overlaps(const rmm_ranges_t *ranges, uint32_t index, uint64_t end)
{
    uint32_t count = 0;

    while (index + count < ranges->count && ranges->at[index + count].start < end) {
        count++;
    }
    return count;
}

/* Keeps the parts of the old ranges beside [start, end), and inserts that one if is_put. */
static void cut(rmm_ranges_t *ranges, uint64_t start, uint64_t end, bool is_put)
{
    uint32_t index = first_behind(ranges, start);
    uint32_t count = count_overlaps(ranges, index, end);
    rmm_range_t with[3];
    uint32_t with_count = 0;

    if (count > 0 && ranges->at[index].start < start) {
        with[with_count++] = (rmm_range_t){ranges->at[index].start, start};
    }
    if (is_put) {
        with[with_count++] = (rmm_range_t){start, end};
    }
    if (count > 0 && ranges->at[index + count - 1].end > end) {
        with[with_count++] = (rmm_range_t){end, ranges->at[index + count - 1].end};
    }
    replace(ranges, index, count, with, with_count);
}

void rmm__ranges_put(rmm_ranges_t *ranges, uint64_t start, uint64_t end)
{
    if (start < end) {
        cut(ranges, start, end, true);
    }
}

void rmm__ranges_take(rmm_ranges_t *ranges, uint64_t start, uint64_t end)
{
    if (start < end && ranges->count > 0) {
        cut(ranges, start, end, false);
    }
}

void rmm__ranges_merge(rmm_ranges_t *ranges, uint64_t start, uint64_t end)
{
    /* one that ends where this begins touches it, and so does one that begins at its end */
    uint32_t index = first_behind(ranges, start > 0 ? start - 1 : 0);
    uint32_t count = count_overlaps(ranges, index, end < UINT64_MAX ? end + 1 : end);
    rmm_range_t whole = {start, end};

    if (start >= end) {
        return;
    }
    if (count > 0) {
        const rmm_range_t *first = &ranges->at[index];
        const rmm_range_t *last = &ranges->at[index + count - 1];

        whole.start = first->start < start ? first->start : start;
        whole.end = last->end > end ? last->end : end;
    }
    replace(ranges, index, count, &whole, 1);
}

const rmm_range_t *
rmm__ranges_find(const rmm_ranges_t *ranges, uint64_t start, uint64_t end)
{
    uint32_t index = first_behind(ranges, start);

    return index < ranges->count && ranges->at[index].start < end ? &ranges->at[index]
                                                                  : NULL;
}
