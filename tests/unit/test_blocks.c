/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block manager, case by case: splitting and merging, heaps and stamps, alignment,
 * runs. Which block is taken is in test_blocks_fit.c, parts of blocks in
 * test_blocks_parts.c, gaps in test_blocks_gaps.c, random operations in
 * test_blocks_model.c, failing storage in test_blocks_storage.c.
 */
#include "unit/blocks_fixture.h"

/* --- split and merge ----------------------------------------------------------------- */

CASE(splits_the_front_off_a_larger_block)
{
    fixture_t *f = *state;
    rmm_block_t block = take(f, 10);

    assert_int_equal(unit_of(f, block), f->first);
    assert_int_equal(rmm__blocks_free_units(f->blocks, f->heap), RUN_UNITS - 10);
    assert_int_equal(blocks_free_count(f->blocks, f->heap), 1);
    assert_int_equal(rmm__blocks_live_count(f->blocks), 1);
    assert_int_equal(rmm__blocks_total_free_units(f->blocks), RUN_UNITS - 10);
}

CASE(takes_a_block_of_the_exact_size_whole)
{
    fixture_t *f = *state;
    rmm_block_t block = take(f, RUN_UNITS);

    assert_int_equal(unit_of(f, block), f->first);
    assert_int_equal(blocks_free_count(f->blocks, f->heap), 0);
    assert_int_equal(rmm__blocks_free_units(f->blocks, f->heap), 0);
    assert_int_equal(rmm__blocks_oldest_stamp(f->blocks, f->heap), UINT64_MAX);
    give(f, block, f->heap, 1);
    assert_int_equal(rmm__blocks_largest_free(f->blocks, f->heap), RUN_UNITS);
}

CASE(refuses_what_no_free_block_can_hold)
{
    fixture_t *f = *state;

    assert_no_fit(f, f->heap, RUN_UNITS + 1, 1);
    assert_no_fit(f, f->heap, UINT32_MAX, 1);
    assert_no_fit(f, f->heap, UINT32_MAX, 1u << 31);
    assert_no_fit(f, f->other, 1, 1);
}

/* Of the two lowest blocks, `early` is freed first, then `late`. */
static void assert_two_merge(fixture_t *f, uint32_t early, uint32_t late)
{
    rmm_block_t blocks[4];
    rmm_block_info_t merged;

    fill(f, blocks, 4, 256);
    give(f, blocks[early], f->heap, 1);
    give(f, blocks[late], f->heap, 2);
    merged = block_at(f, f->first);
    assert_int_equal(merged.units, 512);
    assert_int_equal(merged.heap, f->heap);
    assert_int_equal(merged.stamp, 2);
}

CASE(merges_with_the_lower_neighbour)
{
    assert_two_merge(*state, 0, 1);
}

CASE(merges_with_the_upper_neighbour)
{
    assert_two_merge(*state, 1, 0);
}

CASE(merges_with_both_neighbours)
{
    fixture_t *f = *state;

    for (uint32_t smaller = 0; smaller < 2; smaller++) {
        rmm_block_t low = take(f, smaller == 0 ? 10 : 300);
        rmm_block_t middle = take(f, 20);
        rmm_block_t high = take(f, smaller == 0 ? 300 : 10);
        rmm_block_t rest = take(f, RUN_UNITS - 330);

        give(f, low, f->heap, 1);
        give(f, high, f->heap, 1);
        assert_int_equal(blocks_free_count(f->blocks, f->heap), 2);
        give(f, middle, f->heap, 2);
        assert_int_equal(blocks_free_count(f->blocks, f->heap), 1);
        assert_int_equal(block_at(f, f->first).units, 330);
        assert_int_equal(block_at(f, f->first).stamp, 2);
        give(f, rest, f->heap, 3);
        assert_int_equal(block_at(f, f->first).units, RUN_UNITS);
    }
}

CASE(does_not_merge_with_another_heap)
{
    fixture_t *f = *state;
    rmm_block_t blocks[4];

    fill(f, blocks, 4, 256);
    GIVE_ALL(
        f, blocks, {0, f->heap, 1}, {1, f->other, 1}, {2, f->heap, 2},
        {3, f->other, 2});
    assert_int_equal(blocks_free_count(f->blocks, f->heap), 2);
    assert_int_equal(blocks_free_count(f->blocks, f->other), 2);
    assert_int_equal(rmm__blocks_largest_free(f->blocks, f->other), 256);
    assert_int_equal(block_at(f, f->first + 256).heap, f->other);
}

CASE(does_not_merge_over_the_border_of_runs)
{
    fixture_t *f = *state;
    rmm_block_t low, high;

    /* the addresses follow each other, but they were added apart */
    add_run(f, f->heap, f->first + RUN_UNITS, 512, 0);
    low = take(f, RUN_UNITS);
    high = take(f, 512);
    give(f, low, f->heap, 1);
    give(f, high, f->heap, 1);
    assert_int_equal(blocks_free_count(f->blocks, f->heap), 2);
    assert_int_equal(rmm__blocks_largest_free(f->blocks, f->heap), RUN_UNITS);
}

/* --- the block that was freed last --------------------------------------------------- */

CASE(the_same_size_gets_the_same_block_again)
{
    fixture_t *f = *state;
    rmm_block_t block = take(f, 10);
    uint64_t unit = unit_of(f, block);

    rmm__blocks_look_at(f->blocks, block)->tag = 5;
    give(f, block, f->heap, 1);
    assert_int_equal(rmm__blocks_find(f->blocks, unit), RMM_BLOCK_NONE);
    assert_int_equal(rmm__blocks_live_count(f->blocks), 0);
    block = take(f, 10);
    assert_int_equal(unit_of(f, block), unit);
    assert_int_equal(tag_of(f, block), 0);
    assert_int_equal(rmm__blocks_find(f->blocks, unit), block);
    assert_int_equal(rmm__blocks_live_count(f->blocks), 1);
    assert_int_equal(rmm__blocks_free_units(f->blocks, f->heap), RUN_UNITS - 10);
    assert_int_equal(rmm__blocks_total_free_units(f->blocks), RUN_UNITS - 10);
}

CASE(the_same_block_again_leaves_its_neighbours_their_stamps)
{
    fixture_t *f = *state;
    rmm_block_t blocks[4];

    fill(f, blocks, 4, 256);
    give(f, blocks[0], f->heap, 1);
    give(f, blocks[1], f->heap, 9);
    assert_int_equal(take(f, 256), blocks[1]);
    assert_int_equal(block_at(f, f->first).stamp, 1);
}

CASE(the_block_freed_last_counts_as_merged)
{
    fixture_t *f = *state;
    rmm_block_t blocks[4];

    fill(f, blocks, 4, 256);
    give(f, blocks[0], f->heap, 1);
    give(f, blocks[2], f->heap, 2);
    give(f, blocks[3], f->other, 7);
    assert_int_equal(rmm__blocks_oldest_stamp(f->blocks, f->heap), 1);
    give(f, blocks[1], f->heap, 3);
    assert_int_equal(rmm__blocks_look_merged(f->blocks, blocks[1]), 768);
    assert_int_equal(blocks_free_count(f->blocks, f->heap), 1);
    assert_int_equal(rmm__blocks_largest_free(f->blocks, f->heap), 768);
    assert_int_equal(rmm__blocks_oldest_stamp(f->blocks, f->heap), 3);
    assert_int_equal(block_at(f, f->first).units, 768);
    assert_int_equal(block_at(f, f->first).stamp, 3);
    assert_int_equal(rmm__blocks_oldest_stamp(f->blocks, f->other), 7);
    assert_int_equal(rmm__blocks_transfer(f->blocks, f->heap, f->other, 2, 8), 0);
    assert_int_equal(rmm__blocks_transfer(f->blocks, f->heap, f->other, 3, 8), 768);
    assert_int_equal(rmm__blocks_largest_free(f->blocks, f->other), RUN_UNITS);
}

CASE(the_block_freed_last_is_merged_for_a_larger_one)
{
    fixture_t *f = *state;
    rmm_block_t blocks[4];

    fill(f, blocks, 4, 256);
    give(f, blocks[0], f->heap, 1);
    give(f, blocks[1], f->heap, 2);
    assert_int_equal(unit_of(f, take(f, 300)), f->first);
    assert_int_equal(block_at(f, f->first + 300).stamp, 2);
}

CASE(the_block_freed_last_is_not_taken_unaligned)
{
    fixture_t *f = *state;
    rmm_block_t low = take(f, 3), block = take(f, 16);

    give(f, block, f->heap, 1);
    assert_int_equal(unit_of(f, take_aligned(f, f->heap, 16, 16)), f->first + 16);
    give(f, low, f->heap, 2);
}

/* --- finding live blocks ------------------------------------------------------------- */

CASE(finds_live_blocks_by_their_first_unit_only)
{
    fixture_t *f = *state;
    rmm_block_t block = take(f, 8);
    uint64_t unit = unit_of(f, block);

    assert_int_equal(rmm__blocks_find(f->blocks, unit), block);
    assert_int_equal(rmm__blocks_find(f->blocks, unit + 1), RMM_BLOCK_NONE);
    assert_int_equal(rmm__blocks_find(f->blocks, unit + 8), RMM_BLOCK_NONE);
    assert_int_equal(rmm__blocks_find(f->blocks, 0), RMM_BLOCK_NONE);
    assert_int_equal(rmm__blocks_find(f->blocks, UINT64_MAX), RMM_BLOCK_NONE);
    give(f, block, f->heap, 1);
    assert_int_equal(rmm__blocks_find(f->blocks, unit), RMM_BLOCK_NONE);
}

CASE(a_tag_stays_until_the_block_is_free)
{
    fixture_t *f = *state;
    rmm_block_t block = take(f, 8), next;

    assert_int_equal(tag_of(f, block), 0);
    rmm__blocks_look_at(f->blocks, block)->tag = 0xfeedu;
    next = take(f, 8);
    assert_int_equal(tag_of(f, block), 0xfeedu);
    assert_int_equal(block_at(f, unit_of(f, block)).tag, 0xfeedu);
    give(f, block, f->heap, 1);
    assert_int_equal(tag_of(f, take(f, 8)), 0);
    give(f, next, f->heap, 1);
}

CASE(a_mark_stays_until_the_block_is_free)
{
    fixture_t *f = *state;
    rmm_block_t block = take(f, 8), next;
    uint64_t unit = unit_of(f, block);

    rmm__blocks_mark(rmm__blocks_look_at(f->blocks, block), false);
    assert_false(rmm__blocks_is_marked(rmm__blocks_look_at(f->blocks, block)));
    rmm__blocks_mark(rmm__blocks_look_at(f->blocks, block), true);
    next = take(f, 8);
    assert_false(rmm__blocks_is_marked(rmm__blocks_look_at(f->blocks, next)));
    assert_true(rmm__blocks_is_marked(rmm__blocks_look_at(f->blocks, block)));
    assert_int_equal(rmm__blocks_find(f->blocks, unit), block);
    assert_int_equal(block_at(f, unit).heap, RMM_HEAP_NONE);
    assert_sound(f->blocks);
    give(f, block, f->heap, 1);
    assert_int_equal(rmm__blocks_find(f->blocks, unit), RMM_BLOCK_NONE);
    block = take(f, 8);
    assert_int_equal(unit_of(f, block), unit);
    assert_false(rmm__blocks_is_marked(rmm__blocks_look_at(f->blocks, block)));
    give(f, block, f->heap, 1);
    give(f, next, f->heap, 1);
}

/* The tag says whose the heap is, and the next owner may set none. */
CASE(a_heap_that_is_created_again_has_no_tag)
{
    fixture_t *f = *state;
    rmm_heap_t heap, again;

    assert_int_equal(rmm__blocks_heap_create(f->blocks, &heap), RMM_BLOCKS_OK);
    f->blocks->heaps[heap].tag = 7;
    rmm__blocks_heap_destroy(f->blocks, heap);
    assert_int_equal(rmm__blocks_heap_create(f->blocks, &again), RMM_BLOCKS_OK);
    assert_int_equal(again, heap);
    assert_int_equal(f->blocks->heaps[again].tag, 0);
}

CASE(thousands_of_blocks_keep_their_handles_while_storage_moves)
{
    enum { COUNT = 5000 };
    fixture_t *f = *state;
    uint64_t first = add_run(f, f->other, 12345, COUNT * 3, 0);
    const rmm_blocks_request_t request = {3, 1};
    rmm_block_t *blocks = calloc(COUNT, sizeof(*blocks));

    assert_non_null(blocks);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(
            rmm__blocks_take(f->blocks, f->other, f->other, &request, &blocks[i]),
            RMM_BLOCKS_OK);
    }
    assert_sound(f->blocks);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(
            rmm__blocks_find(f->blocks, first + 3 * (uint64_t)i), blocks[i]);
    }
    for (uint32_t i = 0; i < COUNT; i++) { /* every second one first */
        uint32_t k = i < COUNT / 2 ? 2 * i : 2 * (i - COUNT / 2) + 1;

        rmm__blocks_free(f->blocks, blocks[k], f->other, i);
    }
    assert_int_equal(rmm__blocks_largest_free(f->blocks, f->other), COUNT * 3);
    assert_int_equal(rmm__blocks_live_count(f->blocks), 0);
    free(blocks);
}

/* --- stamps and heaps ---------------------------------------------------------------- */

CASE(a_remainder_keeps_stamp_and_place)
{
    fixture_t *f = *state;
    rmm_block_t blocks[4];

    fill(f, blocks, 4, 256);
    give(f, blocks[0], f->heap, 10);
    give(f, blocks[2], f->heap, 20);
    assert_int_equal(unit_of(f, take(f, 200)), f->first);
    assert_int_equal(unit_of(f, take(f, 250)), f->first + 512);
    assert_int_equal(rmm__blocks_oldest_stamp(f->blocks, f->heap), 10);
    assert_int_equal(block_at(f, f->first + 200).stamp, 10);
    assert_int_equal(block_at(f, f->first + 762).stamp, 20);
    assert_int_equal(rmm__blocks_transfer(f->blocks, f->heap, f->other, 10, 1), 56);
}

CASE(transfer_moves_the_old_ones_and_merges_them)
{
    fixture_t *f = *state;
    const uint64_t stamps[8] = {1, 5, 2, 6, 3, 7, 4, 8};
    rmm_block_t blocks[8];
    rmm_block_info_t merged;

    fill(f, blocks, 8, 128);
    for (uint64_t stamp = 1; stamp <= 8; stamp++) {
        for (int i = 0; i < 8; i += 2) { /* no two neighbours */
            if (stamps[i] == stamp) {
                give(f, blocks[i], f->heap, stamp);
            }
        }
    }
    give(f, blocks[1], f->other, 1);
    assert_int_equal(rmm__blocks_transfer(f->blocks, f->heap, f->other, 2, 9), 256);
    assert_sound(f->blocks);
    merged = block_at(f, f->first);
    assert_int_equal(merged.units, 384);
    assert_int_equal(merged.heap, f->other);
    assert_int_equal(merged.stamp, 9);
    assert_int_equal(rmm__blocks_oldest_stamp(f->blocks, f->heap), 3);
    assert_int_equal(rmm__blocks_free_units(f->blocks, f->heap), 256);
    assert_int_equal(rmm__blocks_total_free_units(f->blocks), 5 * 128);
    assert_int_equal(rmm__blocks_transfer(f->blocks, f->heap, f->other, 2, 9), 0);
}

CASE(a_merge_takes_the_later_stamp_and_place)
{
    fixture_t *f = *state;
    rmm_block_t blocks[8];

    fill(f, blocks, 8, 128);
    give(f, blocks[0], f->heap, 1);
    give(f, blocks[3], f->heap, 2);
    give(f, blocks[1], f->heap, 3); /* makes 0 and 1 as young as 3 */
    assert_int_equal(rmm__blocks_oldest_stamp(f->blocks, f->heap), 2);
    assert_int_equal(rmm__blocks_transfer(f->blocks, f->heap, f->other, 2, 0), 128);
    assert_int_equal(block_at(f, f->first).heap, f->heap);
    assert_int_equal(block_at(f, f->first + 3 * 128).heap, f->other);
}

CASE(a_run_with_an_old_stamp_takes_its_place_in_age)
{
    fixture_t *f = *state;

    give(f, take(f, RUN_UNITS), f->heap, 50);
    add_run(f, f->heap, 5000, 64, 7);
    assert_int_equal(rmm__blocks_oldest_stamp(f->blocks, f->heap), 7);
    assert_int_equal(rmm__blocks_transfer(f->blocks, f->heap, f->other, 49, 0), 64);
}

CASE(largest_free_is_exact_after_every_change)
{
    fixture_t *f = *state;
    rmm_block_t a = take(f, 100), b, c, d;

    assert_int_equal(rmm__blocks_largest_free(f->blocks, f->heap), RUN_UNITS - 100);
    b = take(f, RUN_UNITS - 101);
    assert_int_equal(rmm__blocks_largest_free(f->blocks, f->heap), 1);
    give(f, a, f->heap, 1);
    assert_int_equal(rmm__blocks_largest_free(f->blocks, f->heap), 100);
    a = take(f, 99);
    assert_int_equal(rmm__blocks_largest_free(f->blocks, f->heap), 1);
    c = take(f, 1);
    d = take(f, 1);
    assert_int_equal(rmm__blocks_largest_free(f->blocks, f->heap), 0);
    give(f, b, f->heap, 2);
    give(f, a, f->heap, 2);
    give(f, c, f->heap, 3);
    give(f, d, f->heap, 3);
    assert_int_equal(rmm__blocks_largest_free(f->blocks, f->heap), RUN_UNITS);
}

CASE(destroyed_heaps_are_used_again)
{
    fixture_t *f = *state;
    rmm_heap_t heaps[3000], again = 0;

    for (int i = 0; i < 3000; i++) {
        assert_int_equal(rmm__blocks_heap_create(f->blocks, &heaps[i]), RMM_BLOCKS_OK);
    }
    assert_sound(f->blocks);
    give(f, take(f, 10), heaps[2999], 1);
    assert_int_equal(rmm__blocks_free_units(f->blocks, heaps[2999]), 10);
    take_aligned(f, heaps[2999], 10, 1);
    rmm__blocks_heap_destroy(f->blocks, heaps[2999]);
    rmm__blocks_heap_destroy(f->blocks, heaps[17]);
    assert_int_equal(rmm__blocks_heap_create(f->blocks, &again), RMM_BLOCKS_OK);
    assert_int_equal(again, heaps[17]);
    assert_int_equal(rmm__blocks_heap_create(f->blocks, &again), RMM_BLOCKS_OK);
    assert_int_equal(again, heaps[2999]);
    assert_int_equal(rmm__blocks_largest_free(f->blocks, again), 0);
    assert_int_equal(rmm__blocks_heap_create(f->blocks, &again), RMM_BLOCKS_OK);
    assert_int_equal(again, heaps[2999] + 1);
}

CASE(every_heap_may_hold_one_block_without_storage)
{
    enum { HEAPS = 500 };
    fixture_t *f = *state;
    rmm_heap_t heaps[HEAPS];
    rmm_block_t blocks[HEAPS];
    uint64_t growths;

    for (int i = 0; i < HEAPS; i++) {
        blocks[i] = take(f, 1);
    }
    for (int i = 0; i < HEAPS; i++) {
        assert_int_equal(rmm__blocks_heap_create(f->blocks, &heaps[i]), RMM_BLOCKS_OK);
    }
    growths = f->storage.growths;
    for (int i = 0; i < HEAPS; i++) {
        give(f, blocks[i], heaps[i], 1);
        rmm__blocks_oldest_stamp(f->blocks, heaps[i]);
    }
    assert_int_equal(f->storage.growths, growths);
}

/* --- alignment ----------------------------------------------------------------------- */

CASE(alignment_leaves_the_pad_free)
{
    fixture_t *f = *state;
    rmm_block_t low = take(f, 3);
    rmm_block_t block = take_aligned(f, f->heap, 5, 64);

    assert_int_equal(rmm__blocks_free_units(f->blocks, f->heap), RUN_UNITS - 8);
    assert_int_equal(blocks_free_count(f->blocks, f->heap), 2);
    assert_int_equal(block_at(f, f->first + 3).units, 61);
    give(f, block, f->heap, 1);
    give(f, low, f->heap, 1);
    assert_int_equal(blocks_free_count(f->blocks, f->heap), 1);
}

CASE(alignment_of_2_mib_holds_for_addresses)
{
    enum { TWO_MIB = 8192 };
    fixture_t *f = *state;
    /* an address that is 3 * 256 bytes above a multiple of 2 MiB */
    uint64_t first = add_run(f, f->other, 7 * TWO_MIB + 3, 2 * TWO_MIB, 0);
    rmm_block_t block = take_aligned(f, f->other, TWO_MIB, TWO_MIB);

    assert_int_equal(unit_of(f, block), first + TWO_MIB - 3);
    assert_no_fit(f, f->other, 4, TWO_MIB);
    assert_int_equal(blocks_free_count(f->blocks, f->other), 2);
}

CASE(alignment_finds_the_only_block_that_fits)
{
    fixture_t *f = *state;

    /* the same size 60 times; only one fits without padding */
    for (uint32_t i = 0; i < 60; i++) {
        uint32_t phase = i == 41 ? 0 : 1 + i % 50;

        add_run(f, f->other, (uint64_t)i * 512 + phase, 128, 0);
    }
    assert_int_equal(unit_of(f, take_aligned(f, f->other, 128, 64)), 41 * 512);
    assert_no_fit(f, f->other, 128, 64);
}

/* --- runs and walks ------------------------------------------------------------------ */

CASE(units_of_any_address_can_be_used)
{
    fixture_t *f = *state;
    const uint64_t last = UINT64_MAX / RMM_BLOCKS_UNIT;
    rmm_block_t low, high;

    add_run(f, f->other, last - (UINT32_MAX - 1), UINT32_MAX, 0);
    assert_int_equal(rmm__blocks_largest_free(f->blocks, f->other), UINT32_MAX);
    low = take_aligned(f, f->other, UINT32_MAX - 1, 1);
    high = take_aligned(f, f->other, 1, 1);
    assert_int_equal(unit_of(f, high), last);
    assert_int_equal(rmm__blocks_find(f->blocks, last), high);
    give(f, high, f->other, 1);
    give(f, low, f->other, 1);
    assert_int_equal(rmm__blocks_largest_free(f->blocks, f->other), UINT32_MAX);
    add_run(f, f->other, 0, 1, 1);
    assert_int_equal(unit_of(f, take_aligned(f, f->other, 1, 1)), 0);
    assert_int_not_equal(rmm__blocks_find(f->blocks, 0), RMM_BLOCK_NONE);
}

static bool count_one(void *context, const rmm_block_info_t *info)
{
    uint32_t *left = context;

    (void)info;
    return --*left > 0;
}

CASE(a_walk_stops_when_its_visitor_returns_false)
{
    fixture_t *f = *state;
    rmm_block_t blocks[4];
    uint32_t left = 3;

    fill(f, blocks, 4, 256);
    rmm__blocks_walk(f->blocks, count_one, &left); /* a fourth visit would wrap it */
    assert_int_equal(left, 0);
}

CASE(the_free_block_around_a_unit_is_found)
{
    fixture_t *f = *state;
    rmm_block_t blocks[4];
    uint64_t unit = 7;
    uint32_t units = 8;

    fill(f, blocks, 4, 256);
    give(f, blocks[1], f->heap, 1);
    give(f, blocks[2], f->heap, 1);
    assert_false(
        rmm__blocks_free_around(f->blocks, f->heap, f->first + 255, &unit, &units));
    assert_false(
        rmm__blocks_free_around(f->blocks, f->heap, f->first + 768, &unit, &units));
    assert_false(
        rmm__blocks_free_around(f->blocks, f->other, f->first + 300, &unit, &units));
    assert_int_equal(unit, 7);
    assert_int_equal(units, 8);
    for (uint32_t i = 256; i < 768; i += 511) {
        assert_true(
            rmm__blocks_free_around(f->blocks, f->heap, f->first + i, &unit, &units));
        assert_int_equal(unit, f->first + 256);
        assert_int_equal(units, 512);
    }
}
