/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of free blocks that change their heap, and where memory is missing least. Random
 * operations are in test_blocks_model.c.
 */
#include "unit/blocks_fixture.h"

static rmm_blocks_result_t
move(fixture_t *f, rmm_heap_t from, rmm_heap_t to, uint32_t at, uint32_t units)
{
    rmm_blocks_result_t result =
        rmm__blocks_move(f->blocks, from, to, f->first + at, units, 0);

    assert_sound(f->blocks);
    return result;
}

CASE(a_part_moves_to_another_heap_and_back)
{
    fixture_t *f = *state;

    assert_int_equal(move(f, f->heap, f->other, 100, 24), RMM_BLOCKS_OK);
    assert_int_equal(block_at(f, f->first).units, 100);
    assert_int_equal(block_at(f, f->first + 100).heap, f->other);
    assert_int_equal(block_at(f, f->first + 124).units, RUN_UNITS - 124);
    assert_int_equal(move(f, f->heap, f->other, 99, 2), RMM_BLOCKS_NO_FIT);
    assert_int_equal(move(f, f->heap, f->other, 123, 2), RMM_BLOCKS_NO_FIT);
    assert_int_equal(move(f, f->heap, f->other, 124, RUN_UNITS), RMM_BLOCKS_NO_FIT);
    assert_int_equal(move(f, f->heap, f->other, RUN_UNITS, 1), RMM_BLOCKS_NO_FIT);
    assert_int_equal(
        rmm__blocks_move(f->blocks, f->heap, f->other, f->first - 1, 2, 0),
        RMM_BLOCKS_NO_FIT);
    assert_int_equal(move(f, f->other, f->heap, 100, 24), RMM_BLOCKS_OK);
    assert_int_equal(block_at(f, f->first).units, RUN_UNITS);
}

CASE(both_ends_of_a_block_can_move)
{
    fixture_t *f = *state;

    assert_int_equal(move(f, f->heap, f->other, 0, 24), RMM_BLOCKS_OK);
    assert_int_equal(move(f, f->heap, f->other, 1000, 24), RMM_BLOCKS_OK);
    assert_int_equal(block_at(f, f->first + 24).units, 976);
    assert_int_equal(move(f, f->heap, f->other, 24, 976), RMM_BLOCKS_OK);
    assert_int_equal(block_at(f, f->first).units, RUN_UNITS);
    assert_int_equal(block_at(f, f->first).heap, f->other);
}

/* `units` from `at` on have no memory any more. */
static void make_gap(fixture_t *f, uint32_t at, uint32_t units)
{
    assert_int_equal(move(f, f->heap, f->other, at, units), RMM_BLOCKS_OK);
}

static rmm_blocks_gap_t gap_for(fixture_t *f, uint32_t units, uint32_t granule)
{
    const rmm_blocks_request_t request = {units, 1};
    rmm_blocks_gap_t gap = {.units = UINT32_MAX};

    assert_true(
        rmm__blocks_find_gap(f->blocks, f->other, f->heap, &request, granule, &gap));
    return gap;
}

CASE(growth_at_the_tail_takes_only_what_is_missing)
{
    const rmm_blocks_request_t too_large = {RUN_UNITS - 155, 1};
    fixture_t *f = *state;
    rmm_blocks_gap_t gap;

    make_gap(f, 256, RUN_UNITS - 256);
    take(f, 156);
    gap = gap_for(f, 300, 64); /* 100 are free beside it */
    assert_int_equal(gap.unit, f->first + 256);
    assert_int_equal(gap.units, 256); /* 200, in granules */
    assert_int_equal(gap.before, 100);
    assert_int_equal(gap.room, RUN_UNITS - 256);
    assert_false(
        rmm__blocks_find_gap(f->blocks, f->other, f->heap, &too_large, 64, &gap));
    assert_int_equal(gap_for(f, RUN_UNITS - 156, 64).units, RUN_UNITS - 256);
}

CASE(a_hole_that_joins_two_free_blocks_is_filled_first)
{
    fixture_t *f = *state;
    rmm_blocks_gap_t gap;

    make_gap(f, 128, 64);
    make_gap(f, 512, RUN_UNITS - 512);
    gap = gap_for(f, 400, 64);
    assert_int_equal(gap.unit, f->first + 128);
    assert_int_equal(gap.units, 64);
    assert_int_equal(gap.room, 64);
    assert_int_equal(gap.before + gap.after, 128 + 320);
}

/* The hole is all that is missing for `units`, and all else in the run is free. */
static void assert_filled_whole(
    fixture_t *f, uint32_t units, uint32_t granule, uint32_t at, uint32_t hole)
{
    rmm_blocks_gap_t gap = gap_for(f, units, granule);

    assert_int_equal(gap.unit, f->first + at);
    assert_int_equal(gap.units, hole);
    assert_int_equal(gap.before, at);
    assert_int_equal(gap.after, RUN_UNITS - at - hole);
}

CASE(a_hole_that_is_filled_whole_counts_both_sides)
{
    fixture_t *f = *state;

    make_gap(f, 512, 64); /* 512 in front of it, 448 behind */
    for (uint32_t units = 513; units <= RUN_UNITS; units += 511) {
        assert_filled_whole(f, units, 64, 512, 64);
    }
}

CASE(a_hole_that_is_filled_whole_from_behind_counts_both_sides)
{
    fixture_t *f = *state;

    make_gap(f, 50, 100); /* 50 in front of it, 874 behind */
    assert_filled_whole(f, 974, 20, 50, 100);
}

CASE(a_hole_is_filled_from_the_side_where_more_is_free)
{
    fixture_t *f = *state;
    rmm_blocks_gap_t gap;

    make_gap(f, 64, 512); /* 64 in front of it, 448 behind */
    gap = gap_for(f, 500, 16);
    assert_int_equal(gap.units, 64);
    assert_int_equal(gap.unit + gap.units, f->first + 64 + 512);
    assert_int_equal(gap.room, 64);
    assert_int_equal(gap.after, 448);
    assert_int_equal(gap.before, 0);
}

CASE(the_lowest_of_equally_cheap_gaps_is_filled)
{
    fixture_t *f = *state;

    make_gap(f, 300, 100);
    make_gap(f, 100, 100);
    make_gap(f, 500, 100);
    take(f, RUN_UNITS - 600); /* 100 are free before each */
    assert_int_equal(gap_for(f, 120, 20).unit, f->first + 100);
    assert_int_equal(gap_for(f, 210, 1).unit, f->first + 100);
    assert_int_equal(gap_for(f, 210, 1).units, 100);
}

static bool sum_up(void *context, const rmm_index_entry_t *found)
{
    uint64_t *sums = context;

    sums[0] += found->unit;
    sums[1] += found->units;
    return sums[2] == 0 || --sums[2] > 0;
}

CASE(only_free_blocks_that_are_large_enough_are_visited)
{
    fixture_t *f = *state;
    uint64_t sums[3] = {0, 0, 0};

    make_gap(f, 100, 40);
    make_gap(f, 200, 39);
    make_gap(f, 300, 500);
    rmm__blocks_walk_free(f->blocks, f->other, 40, sum_up, sums);
    assert_int_equal(sums[0], 2 * f->first + 100 + 300);
    assert_int_equal(sums[1], 540);
    rmm__blocks_walk_free(f->blocks, f->other, 501, sum_up, sums);
    assert_int_equal(sums[1], 540);
    take(f, 60);
    sums[1] = 0;
    rmm__blocks_walk_free(f->blocks, f->heap, 1, sum_up, sums);
    assert_int_equal(sums[1], RUN_UNITS - 579 - 60);
    sums[1] = 0;
    sums[2] = 2; /* stops after the second */
    rmm__blocks_walk_free(f->blocks, f->other, 1, sum_up, sums);
    assert_int_equal(sums[1], 79);
}
