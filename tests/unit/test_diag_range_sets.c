/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of ranges, against one byte for each address; and what happens without room. */
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include "diag/ranges.h"
#include "harness/random.h"

enum { SPACE = 512, STEPS = 20000 };

/* The number of the range that has the address; 0: none. Ranges that touch differ. */
static uint32_t owner[SPACE + 1];

static void own(uint64_t start, uint64_t end, uint32_t number)
{
    for (uint64_t i = start; i < end; i++) {
        owner[i] = number;
    }
}

/* As rmm__ranges_merge(): what it overlaps or touches belongs to it. */
static void own_merged(uint64_t start, uint64_t end, uint32_t number)
{
    uint32_t before = start > 0 ? owner[start - 1] : 0, behind = owner[end];
    uint64_t first = start, last = end;

    if (start == end) {
        return;
    }
    while (first > 0 && before != 0 && owner[first - 1] == before) {
        first--;
    }
    while (behind != 0 && owner[last] == behind) {
        last++;
    }
    own(first, last, number);
}

/* The set has exactly the ranges of the bytes, in order. */
static void compare(const rmm_ranges_t *ranges)
{
    uint32_t found = 0;

    for (uint64_t i = 0, end; i < SPACE; i = end) {
        end = i + 1;
        while (end < SPACE && owner[end] == owner[i]) {
            end++;
        }
        if (owner[i] != 0) {
            assert_true(found < ranges->count);
            assert_int_equal(ranges->at[found].start, i);
            assert_int_equal(ranges->at[found].end, end);
            found++;
        }
    }
    assert_int_equal(found, ranges->count);
}

static void look(const rmm_ranges_t *ranges, uint64_t start, uint64_t end)
{
    const rmm_range_t *found = rmm__ranges_find(ranges, start, end);
    uint64_t first = start;

    while (first < end && owner[first] == 0) {
        first++;
    }
    assert_int_equal(found != NULL, first < end);
    if (found != NULL) {
        assert_true(found->start <= first && first < found->end);
    }
}

TEST_CASE(agree_with_one_byte_for_each_address)
{
    static rmm_ranges_t ranges;
    const char *seed = getenv("RMM_TEST_SEED");
    uint64_t random = seed != NULL ? strtoull(seed, NULL, 0) : 20261129u;

    print_message("RMM_TEST_SEED=%llu\n", (unsigned long long)random);
    for (uint32_t step = 1; step <= STEPS; step++) {
        uint64_t start = draw(&random, SPACE - 40), end = start + draw(&random, 40);

        switch (draw(&random, 3)) {
        case 0:
            rmm__ranges_put(&ranges, start, end);
            own(start, end, 2 * step); /* two rests of one range differ, too */
            break;
        case 1:
            rmm__ranges_take(&ranges, start, end);
            own(start, end, 0);
            break;
        default:
            rmm__ranges_merge(&ranges, start, end);
            own_merged(start, end, 2 * step);
            break;
        }
        compare(&ranges);
        look(&ranges, draw(&random, SPACE / 2), SPACE / 2 + draw(&random, SPACE / 2));
        look(&ranges, start, end + 1);
    }
    assert_false(ranges.is_cut);
}

TEST_CASE(reach_to_the_ends_of_the_addresses)
{
    static rmm_ranges_t ranges;

    rmm__ranges_merge(&ranges, 0, 8);
    rmm__ranges_merge(&ranges, UINT64_MAX - 8, UINT64_MAX);
    assert_int_equal(ranges.count, 2);
    rmm__ranges_merge(&ranges, 8, UINT64_MAX - 8);
    assert_int_equal(ranges.count, 1);
    assert_int_equal(ranges.at[0].start, 0);
    assert_int_equal(ranges.at[0].end, UINT64_MAX);
}

TEST_CASE(one_without_room_is_told_and_changes_nothing)
{
    static rmm_ranges_t ranges;

    for (uint64_t i = 0; i < RMM_RANGES_MAX; i++) {
        rmm__ranges_put(&ranges, 16 * i, 16 * i + 8);
    }
    assert_int_equal(ranges.count, RMM_RANGES_MAX);
    rmm__ranges_put(&ranges, 0, 16); /* in place of another */
    assert_int_equal(ranges.count, RMM_RANGES_MAX);
    assert_false(ranges.is_cut);
    rmm__ranges_take(&ranges, 2, 4); /* two rests */
    assert_true(ranges.is_cut);
    assert_int_equal(ranges.count, RMM_RANGES_MAX);
    assert_int_equal(ranges.at[0].start, 0);
    assert_int_equal(ranges.at[0].end, 16);
    ranges.is_cut = false;
    rmm__ranges_put(&ranges, 16 * RMM_RANGES_MAX, 16 * RMM_RANGES_MAX + 1);
    assert_true(ranges.is_cut);
    assert_int_equal(ranges.count, RMM_RANGES_MAX);
}
