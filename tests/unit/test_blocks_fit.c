/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which free block a take chooses: the tightest of the first few by address, of one heap or
 * of two, and nothing beyond the frontier while something below it fits.
 */
#include "unit/blocks_fixture.h"

#define RUNS_APART 10000u

/* A free run of `other` for each size, at multiples of RUNS_APART below the frontier. */
static void add_runs(fixture_t *f, const uint32_t *sizes, uint32_t count)
{
    take(f, RUN_UNITS); /* the frontier is above all that is added lower */
    for (uint32_t i = 0; i < count; i++) {
        add_run(f, f->other, (i + 1) * (uint64_t)RUNS_APART, sizes[i], 0);
    }
}

#define ADD_RUNS(f, ...)                                                               \
    add_runs(                                                                          \
        f, (const uint32_t[]){__VA_ARGS__},                                            \
        sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static uint64_t unit_taken(fixture_t *f, uint32_t units)
{
    return unit_of(f, take_either(f, f->heap, f->other, units, 1));
}

CASE(the_tightest_of_the_first_four_fits_is_taken)
{
    fixture_t *f = *state;

    ADD_RUNS(f, 1025, 1052, 1034, 1038, 1033, 1032);
    assert_int_equal(unit_taken(f, 1032), 50000); /* 1033: the fourth that fits */
    assert_int_equal(unit_taken(f, 1032), 60000);
    assert_int_equal(unit_taken(f, 1035), 40000);
    assert_int_equal(unit_taken(f, 1020), 10000);
}

CASE(only_the_first_four_fits_are_compared)
{
    fixture_t *f = *state;

    ADD_RUNS(f, 104, 103, 102, 103, 100);
    assert_int_equal(unit_taken(f, 100), 30000);
    assert_int_equal(unit_taken(f, 100), 50000);
}

CASE(of_equal_fits_the_lowest_address_is_taken)
{
    fixture_t *f = *state;

    ADD_RUNS(f, 105, 103, 103, 105);
    assert_int_equal(unit_taken(f, 102), 20000);
    assert_int_equal(unit_taken(f, 102), 30000);
    assert_int_equal(unit_taken(f, 102), 10000);
}

CASE(a_fit_behind_many_that_are_too_small_is_found)
{
    fixture_t *f = *state;

    take(f, RUN_UNITS);
    for (uint32_t i = 0; i < 2000; i++) {
        uint32_t units = i == 1777 ? 1055 : 1024 + i % 30;

        assert_int_equal(
            rmm__blocks_add(f->blocks, f->other, 10000 + i * 2000, units, 0),
            RMM_BLOCKS_OK);
    }
    assert_int_equal(unit_taken(f, 1055), 10000 + 1777 * 2000);
    assert_no_fit(f, f->other, 1054, 1);
    assert_int_equal(unit_taken(f, 1053), 10000 + 29 * 2000);
}

CASE(the_first_few_are_those_of_both_heaps_together)
{
    fixture_t *f = *state;
    uint64_t beside = 10000 + 5000;

    ADD_RUNS(f, 110, 109, 106);
    add_run(f, f->heap, beside, 108, 0);
    add_run(f, f->heap, beside + 10000, 107, 0);
    /* 110, (108), 109, (107) | 106 */
    assert_int_equal(unit_taken(f, 105), beside + 10000);
    assert_int_equal(unit_taken(f, 105), 30000);
    assert_int_equal(unit_taken(f, 105), beside);
    assert_int_equal(unit_taken(f, 105), 20000);
    assert_int_equal(unit_taken(f, 105), 10000);
}

CASE(an_exact_fit_in_one_heap_does_not_hide_lower_ones_of_the_other)
{
    fixture_t *f = *state;

    ADD_RUNS(f, 104, 103, 102, 101);
    add_run(f, f->heap, 90000, 100, 0);
    assert_int_equal(unit_taken(f, 100), 40000); /* the exact one is the fifth */
    assert_int_equal(unit_taken(f, 100), 90000);
}

CASE(either_heap_alone_is_enough)
{
    fixture_t *f = *state;
    rmm_block_t all = take_either(f, f->heap, f->other, RUN_UNITS, 1), none = 77;
    const rmm_blocks_request_t request = {1, 64};

    assert_int_equal(
        rmm__blocks_take(f->blocks, f->heap, f->other, &request, &none),
        RMM_BLOCKS_NO_FIT);
    assert_int_equal(none, 77);
    give(f, all, f->other, 1);
    all = take_either(f, f->heap, f->other, RUN_UNITS, 1024);
    give(f, all, f->heap, 2);
    take_either(f, f->heap, f->other, RUN_UNITS, 1);
}

CASE(a_loose_fit_below_the_frontier_is_taken_before_memory_beyond_it)
{
    fixture_t *f = *state;
    rmm_block_t blocks[3];

    fill(f, blocks, 3, 200); /* 424 beyond the frontier */
    give(f, blocks[0], f->heap, 1);
    assert_int_equal(unit_of(f, take(f, 10)), f->first);
    give(f, blocks[2], f->heap, 2); /* and now 624, of which 200 were used */
    assert_int_equal(unit_of(f, take(f, 190)), f->first + 10);
    assert_int_equal(unit_of(f, take(f, 150)), f->first + 400);
}

CASE(memory_beyond_the_frontier_counts_as_the_loosest_fit_whatever_its_size)
{
    fixture_t *f = *state;
    rmm_block_t block = take(f, 900), last = take(f, 4); /* 120 beyond the frontier */

    give(f, block, f->heap, 1); /* 900 free */
    assert_int_equal(unit_of(f, take(f, 110)), f->first);
    give(f, last, f->heap, 1);
}
