/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of free blocks that change their heap, and where memory is missing least. Random
 * operations are in test_suballoc_model.c.
 */
#include "unit/suballoc_fixture.h"

#define REGION_UNITS 1024

typedef struct fixture {
    test_storage_t storage;
    rmm_suballoc_t *sa;
    rmm_heap_t heap, other;
    uint32_t first; /* unit of the region in `heap` */
} fixture_t;

static int setup(void **state)
{
    fixture_t *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->sa = test_suballoc_create(&f->storage);
    assert_non_null(f->sa);
    assert_int_equal(rmm__suballoc_heap_create(f->sa, &f->heap), RMM_SUBALLOC_OK);
    assert_int_equal(rmm__suballoc_heap_create(f->sa, &f->other), RMM_SUBALLOC_OK);
    assert_int_equal(
        rmm__suballoc_add_region(f->sa, f->heap, REGION_UNITS, 0, 0, &f->first),
        RMM_SUBALLOC_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture_t *f = *state;
    assert_sound(f->sa);
    rmm__suballoc_destroy(f->sa);
    assert_int_equal(f->storage.bytes_held, 0);
    free(f);
    return 0;
}

static void take(fixture_t *f, uint32_t units)
{
    rmm_block_t block = RMM_BLOCK_NONE;
    assert_int_equal(
        rmm__suballoc_alloc(f->sa, f->heap, units, 1, &block), RMM_SUBALLOC_OK);
}

/* The block that the walk finds at a unit. */
static bool keep_block_at(void *context, const rmm_block_info_t *info)
{
    rmm_block_info_t *found = context;
    if (info->unit == found->unit) {
        *found = *info;
        return false;
    }
    return true;
}

static rmm_block_info_t block_at(fixture_t *f, uint32_t unit)
{
    rmm_block_info_t found = {.unit = unit, .units = 0};
    rmm__suballoc_walk(f->sa, keep_block_at, &found);
    assert_true(found.units > 0);
    return found;
}

static void a_part_moves_to_another_heap_and_back(void **state)
{
    fixture_t *f = *state;
    assert_int_equal(
        rmm__suballoc_move(f->sa, f->heap, f->other, f->first + 100, 24, 0),
        RMM_SUBALLOC_OK);
    assert_sound(f->sa);
    assert_int_equal(block_at(f, f->first).units, 100);
    assert_int_equal(block_at(f, f->first + 100).heap, f->other);
    assert_int_equal(block_at(f, f->first + 124).units, REGION_UNITS - 124);
    assert_int_equal(
        rmm__suballoc_move(f->sa, f->heap, f->other, f->first + 99, 2, 0),
        RMM_SUBALLOC_NO_FIT);
    assert_int_equal(
        rmm__suballoc_move(f->sa, f->other, f->heap, f->first + 100, 24, 0),
        RMM_SUBALLOC_OK);
    assert_int_equal(block_at(f, f->first).units, REGION_UNITS);
}

/* `units` from `at` on have no memory any more. */
static void make_gap(fixture_t *f, uint32_t at, uint32_t units)
{
    assert_int_equal(
        rmm__suballoc_move(f->sa, f->heap, f->other, f->first + at, units, 0),
        RMM_SUBALLOC_OK);
}

static rmm_suballoc_gap_t gap_for(fixture_t *f, uint32_t units, uint32_t granule)
{
    rmm_suballoc_gap_t gap = {.units = UINT32_MAX};
    assert_true(rmm__suballoc_find_gap(f->sa, f->other, f->heap, units, granule, &gap));
    return gap;
}

static void growth_at_the_tail_takes_only_what_is_missing(void **state)
{
    fixture_t *f = *state;
    make_gap(f, 256, REGION_UNITS - 256);
    take(f, 156);
    rmm_suballoc_gap_t gap = gap_for(f, 300, 64); /* 100 are free beside it */
    assert_int_equal(gap.unit, f->first + 256);
    assert_int_equal(gap.units, 256); /* 200, in granules */
    assert_int_equal(gap.before, 100);
    assert_int_equal(gap.room, REGION_UNITS - 256);
    assert_false(
        rmm__suballoc_find_gap(f->sa, f->other, f->heap, REGION_UNITS - 155, 64, &gap));
}

static void a_hole_that_joins_two_free_blocks_is_filled_first(void **state)
{
    fixture_t *f = *state;
    make_gap(f, 128, 64);
    make_gap(f, 512, REGION_UNITS - 512);
    rmm_suballoc_gap_t gap = gap_for(f, 400, 64);
    assert_int_equal(gap.unit, f->first + 128);
    assert_int_equal(gap.units, 64);
    assert_int_equal(gap.before + gap.after, 128 + 320);
}

static void a_hole_is_filled_from_the_side_where_more_is_free(void **state)
{
    fixture_t *f = *state;
    make_gap(f, 64, 512); /* 64 in front of it, 448 behind */
    rmm_suballoc_gap_t gap = gap_for(f, 500, 16);
    assert_int_equal(gap.units, 64);
    assert_int_equal(gap.unit + gap.units, f->first + 64 + 512);
    assert_int_equal(gap.after, 448);
    assert_int_equal(gap.before, 0);
}

static void sum_up(void *context, uint32_t unit, uint32_t units)
{
    uint64_t *sums = context;
    sums[0] += unit;
    sums[1] += units;
}

static void only_free_blocks_that_are_large_enough_are_visited(void **state)
{
    fixture_t *f = *state;
    make_gap(f, 100, 40);
    make_gap(f, 200, 39);
    make_gap(f, 300, 500);
    uint64_t sums[2] = {0, 0};
    rmm__suballoc_walk_free(f->sa, f->other, 40, sum_up, sums);
    assert_int_equal(sums[0], 2 * f->first + 100 + 300);
    assert_int_equal(sums[1], 540);
    rmm__suballoc_walk_free(f->sa, f->other, 501, sum_up, sums);
    assert_int_equal(sums[1], 540);
    take(f, 60);
    sums[1] = 0;
    rmm__suballoc_walk_free(f->sa, f->heap, 1, sum_up, sums);
    assert_int_equal(sums[1], REGION_UNITS - 579 - 60);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_part_moves_to_another_heap_and_back),
        CASE(growth_at_the_tail_takes_only_what_is_missing),
        CASE(a_hole_that_joins_two_free_blocks_is_filled_first),
        CASE(a_hole_is_filled_from_the_side_where_more_is_free),
        CASE(only_free_blocks_that_are_large_enough_are_visited)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
