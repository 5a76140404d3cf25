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

static void the_tightest_of_the_first_four_fits_is_taken(void **state)
{
    fixture_t *f = *state;

    ADD_RUNS(f, 1025, 1052, 1034, 1038, 1033, 1032);
    assert_int_equal(unit_taken(f, 1032), 50000); /* 1033: the fourth that fits */
    assert_int_equal(unit_taken(f, 1032), 60000);
    assert_int_equal(unit_taken(f, 1035), 40000);
    assert_int_equal(unit_taken(f, 1020), 10000);
}

static void only_the_first_four_fits_are_compared(void **state)
{
    fixture_t *f = *state;

    ADD_RUNS(f, 104, 103, 102, 103, 100);
    assert_int_equal(unit_taken(f, 100), 30000);
    assert_int_equal(unit_taken(f, 100), 50000);
}

static void of_equal_fits_the_lowest_address_is_taken(void **state)
{
    fixture_t *f = *state;

    ADD_RUNS(f, 105, 103, 103, 105);
    assert_int_equal(unit_taken(f, 102), 20000);
    assert_int_equal(unit_taken(f, 102), 30000);
    assert_int_equal(unit_taken(f, 102), 10000);
}

static void a_fit_behind_many_that_are_too_small_is_found(void **state)
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

static void the_first_few_are_those_of_both_heaps_together(void **state)
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

static void an_exact_fit_in_one_heap_does_not_hide_lower_ones_of_the_other(void **state)
{
    fixture_t *f = *state;

    ADD_RUNS(f, 104, 103, 102, 101);
    add_run(f, f->heap, 90000, 100, 0);
    assert_int_equal(unit_taken(f, 100), 40000); /* the exact one is the fifth */
    assert_int_equal(unit_taken(f, 100), 90000);
}

static void either_heap_alone_is_enough(void **state)
{
    fixture_t *f = *state;
    rmm_block_t all = take_either(f, f->heap, f->other, RUN_UNITS, 1), none = 77;
    const rmm_blocks_request_t request = {1, 64, true};

    assert_int_equal(
        rmm__blocks_take(f->blocks, f->heap, f->other, &request, &none),
        RMM_BLOCKS_NO_FIT);
    assert_int_equal(none, 77);
    give(f, all, f->other, 1);
    all = take_either(f, f->heap, f->other, RUN_UNITS, 1024);
    give(f, all, f->heap, 2);
    take_either(f, f->heap, f->other, RUN_UNITS, 1);
}

static void
a_loose_fit_below_the_frontier_is_taken_before_memory_beyond_it(void **state)
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

static void
memory_beyond_the_frontier_counts_as_the_loosest_fit_whatever_its_size(void **state)
{
    fixture_t *f = *state;
    rmm_block_t block = take(f, 900), last = take(f, 4); /* 120 beyond the frontier */

    give(f, block, f->heap, 1); /* 900 free */
    assert_int_equal(unit_of(f, take(f, 110)), f->first);
    give(f, last, f->heap, 1);
}

static rmm_blocks_result_t take_inside(fixture_t *f, uint32_t units, uint32_t align)
{
    const rmm_blocks_request_t request = {units, align, false};
    rmm_block_t block = 77;
    rmm_blocks_result_t result =
        rmm__blocks_take(f->blocks, f->heap, f->other, &request, &block);

    assert_true((result == RMM_BLOCKS_OK) == (block != 77));
    assert_sound(f->blocks);
    return result;
}

static void a_request_that_fits_only_beyond_the_frontier_extends_it(void **state)
{
    fixture_t *f = *state;
    rmm_block_t block;

    assert_int_equal(take_inside(f, 1, 1), RMM_BLOCKS_EXTENDS);
    assert_int_equal(rmm__blocks_free_units(f->blocks, f->heap), RUN_UNITS);
    block = take(f, 100);
    assert_int_equal(take_inside(f, 1, 1), RMM_BLOCKS_EXTENDS);
    assert_int_equal(take_inside(f, RUN_UNITS - 99, 1), RMM_BLOCKS_NO_FIT);
    give(f, block, f->heap, 1);
    assert_int_equal(take_inside(f, 101, 1), RMM_BLOCKS_EXTENDS);
    assert_int_equal(take_inside(f, 40, 1), RMM_BLOCKS_OK);
    assert_int_equal(take_inside(f, 37, 64), RMM_BLOCKS_EXTENDS);
    assert_int_equal(take_inside(f, 36, 64), RMM_BLOCKS_OK); /* ends at the frontier */
    assert_int_equal(take_inside(f, 24, 1), RMM_BLOCKS_OK);
    assert_int_equal(take_inside(f, 1, 1), RMM_BLOCKS_EXTENDS);
}

static void the_frontier_stays_where_it_was_when_blocks_are_freed(void **state)
{
    fixture_t *f = *state;
    rmm_block_t block = take(f, RUN_UNITS);

    give(f, block, f->heap, 1);
    assert_int_equal(take_inside(f, RUN_UNITS, 1), RMM_BLOCKS_OK);
}

/* --- blocks of the shared heap beside own ones --------------------------------------- */

static void neighbours_of_the_shared_heap_are_joined(void **state)
{
    fixture_t *f = *state;
    rmm_block_t blocks[8];

    fill(f, blocks, 8, 128);
    GIVE_ALL(
        f, blocks, {1, f->other, 3}, {2, f->heap, 5}, {3, f->other, 4},
        {6, f->heap, 9});
    assert_false(rmm__blocks_join_shared(f->blocks, f->heap, f->other, 385, 100));
    assert_int_equal(block_at(f, f->first + 256).units, 128);
    assert_true(rmm__blocks_join_shared(f->blocks, f->heap, f->other, 300, 100));
    assert_sound(f->blocks);
    /* all that is in front, and of what is behind only what is missing */
    assert_int_equal(block_at(f, f->first + 128).units, 300);
    assert_int_equal(block_at(f, f->first + 128).heap, f->heap);
    assert_int_equal(block_at(f, f->first + 128).stamp, 9);
    assert_int_equal(block_at(f, f->first + 428).units, 84);
    assert_int_equal(block_at(f, f->first + 428).heap, f->other);
    assert_int_equal(block_at(f, f->first + 428).stamp, 4);
}

static void only_what_is_missing_in_front_is_joined(void **state)
{
    fixture_t *f = *state;
    rmm_block_t blocks[8];

    fill(f, blocks, 8, 128);
    GIVE_ALL(f, blocks, {1, f->other, 3}, {2, f->heap, 5}, {3, f->other, 4});
    assert_true(rmm__blocks_join_shared(f->blocks, f->heap, f->other, 200, 100));
    assert_sound(f->blocks);
    assert_int_equal(block_at(f, f->first + 128).units, 56);
    assert_int_equal(block_at(f, f->first + 184).units, 200);
    assert_int_equal(block_at(f, f->first + 384).units, 128);
}

static void a_join_examines_a_limited_number_of_blocks_newest_first(void **state)
{
    fixture_t *f = *state;
    rmm_block_t blocks[8];

    fill(f, blocks, 8, 128);
    give(f, blocks[0], f->heap, 1); /* with room beside it */
    give(f, blocks[1], f->other, 1);
    give(f, blocks[3], f->heap, 2);
    give(f, blocks[6], f->heap, 3); /* with room as well */
    give(f, blocks[7], f->other, 2);
    assert_false(rmm__blocks_join_shared(f->blocks, f->heap, f->other, 256, 0));
    assert_true(rmm__blocks_join_shared(f->blocks, f->heap, f->other, 256, 2));
    assert_int_equal(block_at(f, f->first + 6 * 128).units, 256);
    assert_int_equal(block_at(f, f->first).units, 128);
    assert_true(rmm__blocks_join_shared(f->blocks, f->heap, f->other, 256, 3));
    assert_int_equal(
        block_at(f, f->first).units, 256); /* the lowest of those with room */
}

static void a_join_that_swallows_a_neighbour_merges_with_the_next_own_one(void **state)
{
    fixture_t *f = *state;
    rmm_block_t blocks[8];

    fill(f, blocks, 8, 128);
    GIVE_ALL(
        f, blocks, {0, f->heap, 1}, {1, f->other, 1}, {2, f->heap, 2}, {3, f->other, 2},
        {4, f->heap, 3});
    assert_true(rmm__blocks_join_shared(f->blocks, f->heap, f->other, 384, 100));
    assert_sound(f->blocks);
    assert_int_equal(block_at(f, f->first).units, 640);
    assert_int_equal(blocks_free_count(f->blocks, f->other), 0);
    assert_false(rmm__blocks_join_shared(f->blocks, f->heap, f->heap, 1, 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_tightest_of_the_first_four_fits_is_taken),
        CASE(only_the_first_four_fits_are_compared),
        CASE(of_equal_fits_the_lowest_address_is_taken),
        CASE(a_fit_behind_many_that_are_too_small_is_found),
        CASE(the_first_few_are_those_of_both_heaps_together),
        CASE(an_exact_fit_in_one_heap_does_not_hide_lower_ones_of_the_other),
        CASE(either_heap_alone_is_enough),
        CASE(a_loose_fit_below_the_frontier_is_taken_before_memory_beyond_it),
        CASE(memory_beyond_the_frontier_counts_as_the_loosest_fit_whatever_its_size),
        CASE(a_request_that_fits_only_beyond_the_frontier_extends_it),
        CASE(the_frontier_stays_where_it_was_when_blocks_are_freed),
        CASE(neighbours_of_the_shared_heap_are_joined),
        CASE(only_what_is_missing_in_front_is_joined),
        CASE(a_join_examines_a_limited_number_of_blocks_newest_first),
        CASE(a_join_that_swallows_a_neighbour_merges_with_the_next_own_one)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
