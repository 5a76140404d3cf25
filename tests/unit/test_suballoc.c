/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block manager, case by case: splitting and merging, heaps and stamps, alignment,
 * regions. Random operations are in test_suballoc_model.c, failing storage in
 * test_suballoc_storage.c.
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

static rmm_block_t
take_aligned(fixture_t *f, rmm_heap_t heap, uint32_t units, uint32_t align_units)
{
    rmm_block_t block = RMM_BLOCK_NONE;
    assert_int_equal(
        rmm__suballoc_alloc(f->sa, heap, units, align_units, &block), RMM_SUBALLOC_OK);
    assert_int_not_equal(block, RMM_BLOCK_NONE);
    assert_int_equal(rmm__suballoc_block_units(f->sa, block), units);
    assert_int_equal(rmm__suballoc_block_unit(f->sa, block) % align_units, 0);
    assert_sound(f->sa);
    return block;
}

static rmm_block_t take(fixture_t *f, uint32_t units)
{
    return take_aligned(f, f->heap, units, 1);
}

static void give(fixture_t *f, rmm_block_t block, rmm_heap_t heap, uint64_t stamp)
{
    rmm__suballoc_free(f->sa, block, heap, stamp);
    assert_sound(f->sa);
}

static uint32_t unit_of(fixture_t *f, rmm_block_t block)
{
    return rmm__suballoc_block_unit(f->sa, block);
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

/* Fill the region with blocks of `units` units, in the order of memory. */
static void fill(fixture_t *f, rmm_block_t *blocks, uint32_t count, uint32_t units)
{
    for (uint32_t i = 0; i < count; i++) {
        blocks[i] = take(f, units);
        assert_int_equal(unit_of(f, blocks[i]), f->first + i * units);
    }
}

/* ---- split and merge -------------------------------------------------------------- */

static void splits_the_front_off_a_larger_block(void **state)
{
    fixture_t *f = *state;
    rmm_block_t block = take(f, 10);
    assert_int_equal(unit_of(f, block), f->first);
    assert_int_equal(rmm__suballoc_free_units(f->sa, f->heap), REGION_UNITS - 10);
    assert_int_equal(rmm__suballoc_free_blocks(f->sa, f->heap), 1);
    assert_int_equal(rmm__suballoc_live_blocks(f->sa), 1);
    assert_int_equal(rmm__suballoc_total_free_units(f->sa), REGION_UNITS - 10);
}

static void takes_a_block_of_the_exact_size_whole(void **state)
{
    fixture_t *f = *state;
    rmm_block_t block = take(f, REGION_UNITS);
    assert_int_equal(unit_of(f, block), f->first);
    assert_int_equal(rmm__suballoc_free_blocks(f->sa, f->heap), 0);
    assert_int_equal(rmm__suballoc_free_units(f->sa, f->heap), 0);
    assert_int_equal(rmm__suballoc_oldest_stamp(f->sa, f->heap), UINT64_MAX);
    give(f, block, f->heap, 1);
    assert_int_equal(rmm__suballoc_largest_free(f->sa, f->heap), REGION_UNITS);
}

static void refuses_what_no_free_block_can_hold(void **state)
{
    fixture_t *f = *state;
    rmm_block_t block = 77;
    assert_int_equal(
        rmm__suballoc_alloc(f->sa, f->heap, REGION_UNITS + 1, 1, &block),
        RMM_SUBALLOC_NO_FIT);
    assert_int_equal(
        rmm__suballoc_alloc(f->sa, f->heap, UINT32_MAX, 1, &block),
        RMM_SUBALLOC_NO_FIT);
    assert_int_equal(
        rmm__suballoc_alloc(f->sa, f->heap, UINT32_MAX, RMM_SUBALLOC_PHASES, &block),
        RMM_SUBALLOC_NO_FIT);
    assert_int_equal(
        rmm__suballoc_alloc(f->sa, f->other, 1, 1, &block), RMM_SUBALLOC_NO_FIT);
    assert_int_equal(block, 77);
}

static void merges_with_the_lower_neighbour(void **state)
{
    fixture_t *f = *state;
    rmm_block_t blocks[4];
    fill(f, blocks, 4, 256);
    give(f, blocks[0], f->heap, 1);
    give(f, blocks[1], f->heap, 2);
    rmm_block_info_t merged = block_at(f, f->first);
    assert_int_equal(merged.units, 512);
    assert_int_equal(merged.heap, f->heap);
    assert_int_equal(merged.stamp, 2);
}

static void merges_with_the_upper_neighbour(void **state)
{
    fixture_t *f = *state;
    rmm_block_t blocks[4];
    fill(f, blocks, 4, 256);
    give(f, blocks[1], f->heap, 1);
    give(f, blocks[0], f->heap, 2);
    rmm_block_info_t merged = block_at(f, f->first);
    assert_int_equal(merged.units, 512);
    assert_int_equal(merged.stamp, 2);
}

static void merges_with_both_neighbours(void **state)
{
    fixture_t *f = *state;
    for (uint32_t smaller = 0; smaller < 2; smaller++) {
        rmm_block_t low = take(f, smaller == 0 ? 10 : 300);
        rmm_block_t middle = take(f, 20);
        rmm_block_t high = take(f, smaller == 0 ? 300 : 10);
        rmm_block_t rest = take(f, REGION_UNITS - 330);
        give(f, low, f->heap, 1);
        give(f, high, f->heap, 1);
        assert_int_equal(rmm__suballoc_free_blocks(f->sa, f->heap), 2);
        give(f, middle, f->heap, 2);
        assert_int_equal(rmm__suballoc_free_blocks(f->sa, f->heap), 1);
        assert_int_equal(block_at(f, f->first).units, 330);
        assert_int_equal(block_at(f, f->first).stamp, 2);
        give(f, rest, f->heap, 3);
        assert_int_equal(block_at(f, f->first).units, REGION_UNITS);
    }
}

static void does_not_merge_with_another_heap(void **state)
{
    fixture_t *f = *state;
    rmm_block_t blocks[4];
    fill(f, blocks, 4, 256);
    give(f, blocks[0], f->heap, 1);
    give(f, blocks[1], f->other, 1);
    give(f, blocks[2], f->heap, 2);
    give(f, blocks[3], f->other, 2);
    assert_int_equal(rmm__suballoc_free_blocks(f->sa, f->heap), 2);
    assert_int_equal(rmm__suballoc_free_blocks(f->sa, f->other), 2);
    assert_int_equal(rmm__suballoc_largest_free(f->sa, f->other), 256);
    assert_int_equal(block_at(f, f->first + 256).heap, f->other);
}

static void does_not_merge_over_the_border_of_regions(void **state)
{
    fixture_t *f = *state;
    /* the units follow each other, the memory does not */
    uint32_t first = 0;
    assert_int_equal(
        rmm__suballoc_add_region(f->sa, f->heap, 512, REGION_UNITS, 0, &first),
        RMM_SUBALLOC_OK);
    assert_int_equal(first, f->first + REGION_UNITS);
    rmm_block_t low = take(f, REGION_UNITS), high = take(f, 512);
    give(f, low, f->heap, 1);
    give(f, high, f->heap, 1);
    assert_int_equal(rmm__suballoc_free_blocks(f->sa, f->heap), 2);
    assert_int_equal(rmm__suballoc_largest_free(f->sa, f->heap), REGION_UNITS);
}

static void one_block_of_many_takes_the_tightest_fit(void **state)
{
    fixture_t *f = *state;
    const uint32_t units[5] = {1025, 1052, 1034, 1038, 1030}; /* all of one bin */
    uint32_t first[5];
    for (int i = 0; i < 5; i++) {
        assert_int_equal(
            rmm__suballoc_add_region(f->sa, f->other, units[i], 0, 0, &first[i]),
            RMM_SUBALLOC_OK);
    }
    assert_int_equal(unit_of(f, take_aligned(f, f->other, 1032, 1)), first[2]);
    assert_int_equal(unit_of(f, take_aligned(f, f->other, 1032, 1)), first[3]);
    assert_int_equal(unit_of(f, take_aligned(f, f->other, 1025, 1)), first[0]);
}

static void a_fit_behind_many_near_misses_is_found(void **state)
{
    fixture_t *f = *state;
    uint32_t first = 0;
    /* 40 blocks of one bin, 1024 to 1055 units; only the oldest fits */
    for (uint32_t i = 0; i < 40; i++) {
        uint32_t units = i == 0 ? 1055 : 1024 + i % 30;
        assert_int_equal(
            rmm__suballoc_add_region(f->sa, f->other, units, 0, 0, &first),
            RMM_SUBALLOC_OK);
    }
    take_aligned(f, f->other, 1055, 1);
    rmm_block_t block;
    assert_int_equal(
        rmm__suballoc_alloc(f->sa, f->other, 1054, 1, &block), RMM_SUBALLOC_NO_FIT);
    take_aligned(f, f->other, 1053, 1);
}

/* ---- either of two heaps ---------------------------------------------------------- */

static rmm_block_t
take_either(fixture_t *f, uint32_t units, uint32_t align_units, uint32_t *unit_out)
{
    rmm_block_t block = RMM_BLOCK_NONE;
    assert_int_equal(
        rmm__suballoc_alloc_either(
            f->sa, f->heap, f->other, units, align_units, &block),
        RMM_SUBALLOC_OK);
    assert_sound(f->sa);
    *unit_out = unit_of(f, block);
    return block;
}

static void the_tighter_of_two_heaps_is_taken(void **state)
{
    fixture_t *f = *state;
    rmm_block_t blocks[8];
    uint32_t unit = 0;
    fill(f, blocks, 8, 128);
    give(f, blocks[0], f->heap, 1); /* 256 free in the first heap */
    give(f, blocks[1], f->heap, 1);
    give(f, blocks[3], f->other, 1); /* 128 in the second */
    give(f, blocks[5], f->heap, 2);  /* and 128 in the first, freed last */
    take_either(f, 100, 1, &unit);
    assert_int_equal(unit, f->first + 5 * 128);
    take_either(f, 100, 1, &unit);
    assert_int_equal(unit, f->first + 3 * 128);
    take_either(f, 64, 64, &unit);
    assert_int_equal(unit, f->first);
    take_either(f, 28, 1, &unit);
    assert_int_equal(unit, f->first + 5 * 128 + 100);
    take_either(f, 28, 1, &unit);
    assert_int_equal(unit, f->first + 3 * 128 + 100);
}

static void either_heap_alone_is_enough(void **state)
{
    fixture_t *f = *state;
    uint32_t unit = 0;
    rmm_block_t all = take_either(f, REGION_UNITS, 1, &unit), none = 77;
    assert_int_equal(
        rmm__suballoc_alloc_either(f->sa, f->heap, f->other, 1, 1, &none),
        RMM_SUBALLOC_NO_FIT);
    assert_int_equal(
        rmm__suballoc_alloc_either(f->sa, f->heap, f->other, 1, 64, &none),
        RMM_SUBALLOC_NO_FIT);
    assert_int_equal(none, 77);
    give(f, all, f->other, 1);
    all = take_either(f, REGION_UNITS, 1024, &unit);
    give(f, all, f->heap, 2);
    take_either(f, REGION_UNITS, 1, &unit);
}

/* ---- the block that was freed last ------------------------------------------------ */

static void the_same_size_gets_the_same_block_again(void **state)
{
    fixture_t *f = *state;
    rmm_block_t block = take(f, 10);
    uint32_t unit = unit_of(f, block);
    rmm__suballoc_block_set_tag(f->sa, block, 5);
    give(f, block, f->heap, 1);
    assert_int_equal(rmm__suballoc_find(f->sa, unit), RMM_BLOCK_NONE);
    assert_int_equal(rmm__suballoc_live_blocks(f->sa), 0);
    block = take(f, 10);
    assert_int_equal(unit_of(f, block), unit);
    assert_int_equal(rmm__suballoc_block_tag(f->sa, block), 0);
    assert_int_equal(rmm__suballoc_find(f->sa, unit), block);
    assert_int_equal(rmm__suballoc_live_blocks(f->sa), 1);
    assert_int_equal(rmm__suballoc_free_units(f->sa, f->heap), REGION_UNITS - 10);
}

static void the_block_freed_last_counts_as_merged(void **state)
{
    fixture_t *f = *state;
    rmm_block_t blocks[4];
    fill(f, blocks, 4, 256);
    give(f, blocks[0], f->heap, 1);
    give(f, blocks[2], f->heap, 2);
    give(f, blocks[3], f->other, 7);
    assert_int_equal(rmm__suballoc_oldest_stamp(f->sa, f->heap), 1);
    give(f, blocks[1], f->heap, 3);
    assert_int_equal(rmm__suballoc_free_blocks(f->sa, f->heap), 1);
    assert_int_equal(rmm__suballoc_largest_free(f->sa, f->heap), 768);
    assert_int_equal(rmm__suballoc_oldest_stamp(f->sa, f->heap), 3);
    assert_int_equal(block_at(f, f->first).units, 768);
    assert_int_equal(block_at(f, f->first).stamp, 3);
    assert_int_equal(rmm__suballoc_oldest_stamp(f->sa, f->other), 7);
    assert_int_equal(rmm__suballoc_transfer(f->sa, f->heap, f->other, 2, 8), 0);
    assert_int_equal(rmm__suballoc_transfer(f->sa, f->heap, f->other, 3, 8), 768);
    assert_int_equal(rmm__suballoc_largest_free(f->sa, f->other), REGION_UNITS);
    assert_true(rmm__suballoc_remove_region(f->sa, f->other, f->first));
}

static void the_block_freed_last_is_merged_for_a_larger_one(void **state)
{
    fixture_t *f = *state;
    rmm_block_t blocks[4];
    fill(f, blocks, 4, 256);
    give(f, blocks[1], f->heap, 1);
    give(f, blocks[2], f->heap, 1);
    assert_int_equal(unit_of(f, take(f, 512)), f->first + 256);
    give(f, blocks[3], f->heap, 2);
    take_aligned(f, f->heap, 256, 256);
}

static void the_block_freed_last_is_not_taken_unaligned(void **state)
{
    fixture_t *f = *state;
    rmm_block_t low = take(f, 3), block = take(f, 16), high = take(f, 64);
    give(f, block, f->heap, 1);
    rmm_block_t aligned = take_aligned(f, f->heap, 16, 16);
    assert_int_not_equal(unit_of(f, aligned), f->first + 3);
    give(f, low, f->heap, 2);
    give(f, high, f->heap, 2);
}

/* ---- where large blocks go -------------------------------------------------------- */

static void a_large_block_keeps_off_a_neighbour_that_will_go(void **state)
{
    fixture_t *f = *state;
    enum { LARGE = 4096 };
    uint32_t first = 0;
    assert_int_equal(
        rmm__suballoc_add_region(f->sa, f->other, 16 * LARGE, 0, 0, &first),
        RMM_SUBALLOC_OK);
    rmm_block_t stays = take_aligned(f, f->other, LARGE, 1);
    assert_int_equal(unit_of(f, stays), first);
    for (uint64_t i = 0; i < 100; i++) { /* large blocks live for one or two allocs */
        rmm_block_t brief = take_aligned(f, f->other, LARGE, 1);
        rmm_block_t other = take_aligned(f, f->other, 2 * LARGE, 1);
        give(f, brief, f->other, i);
        give(f, other, f->other, i);
    }
    /* beside the old block, so that it does not part what the brief one will leave */
    rmm_block_t brief = take_aligned(f, f->other, 3 * LARGE, 1);
    assert_int_equal(unit_of(f, brief), first + LARGE);
    rmm_block_t next = take_aligned(f, f->other, LARGE, 1);
    assert_int_equal(unit_of(f, next), first + 15 * LARGE);
    give(f, brief, f->other, 200);
    assert_int_equal(rmm__suballoc_largest_free(f->sa, f->other), 14 * LARGE);
}

/* ---- finding live blocks ---------------------------------------------------------- */

static void finds_live_blocks_by_their_first_unit_only(void **state)
{
    fixture_t *f = *state;
    rmm_block_t block = take(f, 8);
    uint32_t unit = unit_of(f, block);
    assert_int_equal(rmm__suballoc_find(f->sa, unit), block);
    assert_int_equal(rmm__suballoc_find(f->sa, unit + 1), RMM_BLOCK_NONE);
    assert_int_equal(rmm__suballoc_find(f->sa, unit + 8), RMM_BLOCK_NONE);
    assert_int_equal(rmm__suballoc_find(f->sa, UINT32_MAX), RMM_BLOCK_NONE);
    give(f, block, f->heap, 1);
    assert_int_equal(rmm__suballoc_find(f->sa, unit), RMM_BLOCK_NONE);
}

static void a_tag_stays_until_the_block_is_free(void **state)
{
    fixture_t *f = *state;
    rmm_block_t block = take(f, 8);
    assert_int_equal(rmm__suballoc_block_tag(f->sa, block), 0);
    rmm__suballoc_block_set_tag(f->sa, block, 0xfeedu);
    rmm_block_t next = take(f, 8);
    assert_int_equal(rmm__suballoc_block_tag(f->sa, block), 0xfeedu);
    assert_int_equal(block_at(f, unit_of(f, block)).tag, 0xfeedu);
    give(f, block, f->heap, 1);
    assert_int_equal(rmm__suballoc_block_tag(f->sa, take(f, 8)), 0);
    give(f, next, f->heap, 1);
}

static void thousands_of_blocks_keep_their_handles_while_storage_moves(void **state)
{
    fixture_t *f = *state;
    enum { COUNT = 5000 };
    uint32_t first = 0;
    assert_int_equal(
        rmm__suballoc_add_region(f->sa, f->other, COUNT * 3, 5, 0, &first),
        RMM_SUBALLOC_OK);
    rmm_block_t *blocks = calloc(COUNT, sizeof *blocks);
    assert_non_null(blocks);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(
            rmm__suballoc_alloc(f->sa, f->other, 3, 1, &blocks[i]), RMM_SUBALLOC_OK);
    }
    assert_sound(f->sa);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(rmm__suballoc_find(f->sa, first + 3 * i), blocks[i]);
    }
    for (uint32_t i = 0; i < COUNT; i++) { /* every second one first */
        uint32_t k = i < COUNT / 2 ? 2 * i : 2 * (i - COUNT / 2) + 1;
        rmm__suballoc_free(f->sa, blocks[k], f->other, i);
    }
    assert_int_equal(rmm__suballoc_largest_free(f->sa, f->other), COUNT * 3);
    free(blocks);
}

/* ---- stamps and heaps ------------------------------------------------------------- */

static void a_remainder_keeps_stamp_and_place(void **state)
{
    fixture_t *f = *state;
    rmm_block_t blocks[4];
    fill(f, blocks, 4, 256);
    give(f, blocks[0], f->heap, 10);
    give(f, blocks[2], f->heap, 20);
    rmm_block_t low = take_aligned(f, f->heap, 200, 1);
    rmm_block_t high = take_aligned(f, f->heap, 250, 1);
    assert_int_equal(unit_of(f, low) + unit_of(f, high), 2 * f->first + 512);
    assert_int_equal(rmm__suballoc_oldest_stamp(f->sa, f->heap), 10);
    uint32_t rest = unit_of(f, low) == f->first ? 200 : 250;
    assert_int_equal(block_at(f, f->first + rest).stamp, 10);
    assert_int_equal(
        rmm__suballoc_transfer(f->sa, f->heap, f->other, 10, 1), 256 - rest);
}

static void transfer_moves_the_old_ones_and_merges_them(void **state)
{
    fixture_t *f = *state;
    rmm_block_t blocks[8];
    fill(f, blocks, 8, 128);
    const uint64_t stamps[8] = {1, 5, 2, 6, 3, 7, 4, 8};
    for (uint64_t stamp = 1; stamp <= 8; stamp++) {
        for (int i = 0; i < 8; i += 2) { /* no two neighbours */
            if (stamps[i] == stamp) {
                give(f, blocks[i], f->heap, stamp);
            }
        }
    }
    give(f, blocks[1], f->other, 1);
    assert_int_equal(rmm__suballoc_transfer(f->sa, f->heap, f->other, 2, 9), 256);
    assert_sound(f->sa);
    rmm_block_info_t merged = block_at(f, f->first);
    assert_int_equal(merged.units, 384);
    assert_int_equal(merged.heap, f->other);
    assert_int_equal(merged.stamp, 9);
    assert_int_equal(rmm__suballoc_oldest_stamp(f->sa, f->heap), 3);
    assert_int_equal(rmm__suballoc_free_units(f->sa, f->heap), 256);
    assert_int_equal(rmm__suballoc_total_free_units(f->sa), 5 * 128);
    assert_int_equal(rmm__suballoc_transfer(f->sa, f->heap, f->other, 2, 9), 0);
}

static void a_merge_takes_the_later_stamp_and_place(void **state)
{
    fixture_t *f = *state;
    rmm_block_t blocks[8];
    fill(f, blocks, 8, 128);
    give(f, blocks[0], f->heap, 1);
    give(f, blocks[3], f->heap, 2);
    give(f, blocks[1], f->heap, 3); /* makes 0 and 1 as young as 3 */
    assert_int_equal(rmm__suballoc_oldest_stamp(f->sa, f->heap), 2);
    assert_int_equal(rmm__suballoc_transfer(f->sa, f->heap, f->other, 2, 0), 128);
    assert_int_equal(block_at(f, f->first).heap, f->heap);
    assert_int_equal(block_at(f, f->first + 3 * 128).heap, f->other);
}

static void a_region_with_an_old_stamp_takes_its_place_in_age(void **state)
{
    fixture_t *f = *state;
    uint32_t first = 0;
    give(f, take(f, REGION_UNITS), f->heap, 50);
    assert_int_equal(
        rmm__suballoc_add_region(f->sa, f->heap, 64, 0, 7, &first), RMM_SUBALLOC_OK);
    assert_int_equal(rmm__suballoc_oldest_stamp(f->sa, f->heap), 7);
    assert_sound(f->sa);
    assert_int_equal(rmm__suballoc_transfer(f->sa, f->heap, f->other, 49, 0), 64);
}

static void largest_free_is_exact_after_every_change(void **state)
{
    fixture_t *f = *state;
    rmm_block_t a = take(f, 100);
    assert_int_equal(rmm__suballoc_largest_free(f->sa, f->heap), REGION_UNITS - 100);
    rmm_block_t b = take(f, REGION_UNITS - 101);
    assert_int_equal(rmm__suballoc_largest_free(f->sa, f->heap), 1);
    give(f, a, f->heap, 1);
    assert_int_equal(rmm__suballoc_largest_free(f->sa, f->heap), 100);
    a = take(f, 99);
    assert_int_equal(rmm__suballoc_largest_free(f->sa, f->heap), 1);
    rmm_block_t c = take(f, 1), d = take(f, 1);
    assert_int_equal(rmm__suballoc_largest_free(f->sa, f->heap), 0);
    give(f, b, f->heap, 2);
    give(f, a, f->heap, 2);
    give(f, c, f->heap, 3);
    give(f, d, f->heap, 3);
    assert_int_equal(rmm__suballoc_largest_free(f->sa, f->heap), REGION_UNITS);
}

static void destroyed_heaps_are_used_again(void **state)
{
    fixture_t *f = *state;
    rmm_heap_t heaps[3000];
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(rmm__suballoc_heap_create(f->sa, &heaps[i]), RMM_SUBALLOC_OK);
    }
    assert_sound(f->sa);
    give(f, take(f, 10), heaps[2999], 1);
    assert_int_equal(rmm__suballoc_free_units(f->sa, heaps[2999]), 10);
    take_aligned(f, heaps[2999], 10, 1);
    rmm__suballoc_heap_destroy(f->sa, heaps[2999]);
    rmm__suballoc_heap_destroy(f->sa, heaps[17]);
    rmm_heap_t again = 0;
    assert_int_equal(rmm__suballoc_heap_create(f->sa, &again), RMM_SUBALLOC_OK);
    assert_int_equal(again, heaps[17]);
    assert_int_equal(rmm__suballoc_heap_create(f->sa, &again), RMM_SUBALLOC_OK);
    assert_int_equal(again, heaps[2999]);
    assert_int_equal(rmm__suballoc_largest_free(f->sa, again), 0);
}

/* ---- alignment -------------------------------------------------------------------- */

static void alignment_leaves_the_pad_free(void **state)
{
    fixture_t *f = *state;
    rmm_block_t low = take(f, 3);
    rmm_block_t block = take_aligned(f, f->heap, 5, 64);
    assert_int_equal(unit_of(f, block) % 64, 0);
    assert_int_equal(rmm__suballoc_free_units(f->sa, f->heap), REGION_UNITS - 8);
    assert_int_equal(rmm__suballoc_free_blocks(f->sa, f->heap), 2);
    assert_int_equal(block_at(f, f->first + 3).units, 61);
    give(f, block, f->heap, 1);
    give(f, low, f->heap, 1);
    assert_int_equal(rmm__suballoc_free_blocks(f->sa, f->heap), 1);
}

static void alignment_of_2_mib_holds_for_addresses(void **state)
{
    fixture_t *f = *state;
    /* an address that is 3 * 256 bytes above a multiple of 2 MiB */
    uint32_t first = 0;
    assert_int_equal(
        rmm__suballoc_add_region(
            f->sa, f->other, 2 * RMM_SUBALLOC_PHASES, 3, 0, &first),
        RMM_SUBALLOC_OK);
    assert_int_equal(first % RMM_SUBALLOC_PHASES, 3);
    rmm_block_t block = take_aligned(f, f->other, 8192, RMM_SUBALLOC_PHASES);
    assert_int_equal(unit_of(f, block), first + RMM_SUBALLOC_PHASES - 3);
    rmm_block_t none;
    assert_int_equal(
        rmm__suballoc_alloc(f->sa, f->other, 4, RMM_SUBALLOC_PHASES, &none),
        RMM_SUBALLOC_NO_FIT);
    assert_int_equal(rmm__suballoc_free_blocks(f->sa, f->other), 2);
}

static void alignment_finds_the_only_block_that_fits(void **state)
{
    fixture_t *f = *state;
    uint32_t first = 0;
    /* the same size 60 times; only the one with phase 0 fits without padding */
    for (uint32_t i = 0; i < 60; i++) {
        uint32_t phase = i == 1 ? 0 : 1 + i % 50;
        assert_int_equal(
            rmm__suballoc_add_region(f->sa, f->other, 128, phase, 0, &first),
            RMM_SUBALLOC_OK);
    }
    take_aligned(f, f->other, 128, 64);
    rmm_block_t block;
    assert_int_equal(
        rmm__suballoc_alloc(f->sa, f->other, 128, 64, &block), RMM_SUBALLOC_NO_FIT);
}

/* ---- regions ---------------------------------------------------------------------- */

static void regions_keep_their_phase_and_do_not_overlap(void **state)
{
    fixture_t *f = *state;
    enum { COUNT = 2000 };
    uint64_t total = REGION_UNITS, end = f->first + REGION_UNITS;
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t phase = i * 7919 % RMM_SUBALLOC_PHASES, units = 1 + i % 300, first = 0;
        assert_int_equal(
            rmm__suballoc_add_region(f->sa, f->heap, units, phase, 0, &first),
            RMM_SUBALLOC_OK);
        assert_int_equal(first % RMM_SUBALLOC_PHASES, phase);
        assert_true(first >= end);
        end = (uint64_t)first + units;
        total += units;
    }
    assert_int_equal(rmm__suballoc_total_free_units(f->sa), total);
    assert_sound(f->sa);
}

static void a_region_leaves_only_when_it_is_whole(void **state)
{
    fixture_t *f = *state;
    rmm_block_t block = take(f, 1);
    assert_false(rmm__suballoc_remove_region(f->sa, f->heap, f->first));
    give(f, block, f->other, 1);
    assert_false(rmm__suballoc_remove_region(f->sa, f->heap, f->first));
    rmm__suballoc_transfer(f->sa, f->other, f->heap, UINT64_MAX, 1);
    assert_true(rmm__suballoc_remove_region(f->sa, f->heap, f->first));
    assert_int_equal(rmm__suballoc_total_free_units(f->sa), 0);
    assert_int_equal(rmm__suballoc_largest_free(f->sa, f->heap), 0);
    assert_int_equal(
        rmm__suballoc_alloc(f->sa, f->heap, 1, 1, &block), RMM_SUBALLOC_NO_FIT);
}

static void a_region_leaves_its_own_heap_only(void **state)
{
    fixture_t *f = *state;
    assert_false(rmm__suballoc_remove_region(f->sa, f->other, f->first));
    assert_true(rmm__suballoc_remove_region(f->sa, f->heap, f->first));
}

static void a_region_in_full_use_stays(void **state)
{
    fixture_t *f = *state;
    rmm_block_t block = take(f, REGION_UNITS);
    assert_false(rmm__suballoc_remove_region(f->sa, f->heap, f->first));
    give(f, block, f->other, 1);
    assert_true(rmm__suballoc_remove_region(f->sa, f->other, f->first));
}

static void units_run_out_and_come_back(void **state)
{
    fixture_t *f = *state;
    uint32_t low = 0, high = 0, none = 77;
    assert_int_equal(
        rmm__suballoc_add_region(f->sa, f->other, UINT32_MAX / 2, 0, 0, &low),
        RMM_SUBALLOC_OK);
    uint32_t rest = UINT32_MAX - (low + UINT32_MAX / 2) - RMM_SUBALLOC_PHASES;
    assert_int_equal(
        rmm__suballoc_add_region(f->sa, f->other, rest, 0, 0, &high), RMM_SUBALLOC_OK);
    assert_int_equal(
        rmm__suballoc_add_region(f->sa, f->other, 4 * 8192, 0, 0, &none),
        RMM_SUBALLOC_NO_UNITS);
    assert_int_equal(none, 77);
    assert_sound(f->sa);
    assert_true(rmm__suballoc_remove_region(f->sa, f->other, low));
    assert_int_equal(
        rmm__suballoc_add_region(f->sa, f->other, 4 * 8192, 9, 0, &none),
        RMM_SUBALLOC_OK);
    assert_true(none < high && none % RMM_SUBALLOC_PHASES == 9);
}

static void the_last_unit_of_all_can_be_used(void **state)
{
    fixture_t *f = *state;
    uint32_t first = 0, units = UINT32_MAX - 8192 + 1;
    assert_int_equal(
        rmm__suballoc_add_region(f->sa, f->other, units, 0, 0, &first),
        RMM_SUBALLOC_OK);
    assert_int_equal(rmm__suballoc_largest_free(f->sa, f->other), units);
    rmm_block_t low = take_aligned(f, f->other, units - 1, 1);
    rmm_block_t high = take_aligned(f, f->other, 1, 1);
    assert_int_equal(unit_of(f, high), UINT32_MAX);
    assert_int_equal(rmm__suballoc_find(f->sa, UINT32_MAX), high);
    give(f, high, f->other, 1);
    give(f, low, f->other, 1);
    assert_true(rmm__suballoc_remove_region(f->sa, f->other, first));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(splits_the_front_off_a_larger_block),
        CASE(takes_a_block_of_the_exact_size_whole),
        CASE(refuses_what_no_free_block_can_hold),
        CASE(merges_with_the_lower_neighbour),
        CASE(merges_with_the_upper_neighbour),
        CASE(merges_with_both_neighbours),
        CASE(does_not_merge_with_another_heap),
        CASE(does_not_merge_over_the_border_of_regions),
        CASE(one_block_of_many_takes_the_tightest_fit),
        CASE(a_fit_behind_many_near_misses_is_found),
        CASE(the_tighter_of_two_heaps_is_taken),
        CASE(either_heap_alone_is_enough),
        CASE(the_same_size_gets_the_same_block_again),
        CASE(the_block_freed_last_counts_as_merged),
        CASE(the_block_freed_last_is_merged_for_a_larger_one),
        CASE(the_block_freed_last_is_not_taken_unaligned),
        CASE(a_large_block_keeps_off_a_neighbour_that_will_go),
        CASE(finds_live_blocks_by_their_first_unit_only),
        CASE(a_tag_stays_until_the_block_is_free),
        CASE(thousands_of_blocks_keep_their_handles_while_storage_moves),
        CASE(a_remainder_keeps_stamp_and_place),
        CASE(transfer_moves_the_old_ones_and_merges_them),
        CASE(a_merge_takes_the_later_stamp_and_place),
        CASE(a_region_with_an_old_stamp_takes_its_place_in_age),
        CASE(largest_free_is_exact_after_every_change),
        CASE(destroyed_heaps_are_used_again),
        CASE(alignment_leaves_the_pad_free),
        CASE(alignment_of_2_mib_holds_for_addresses),
        CASE(alignment_finds_the_only_block_that_fits),
        CASE(regions_keep_their_phase_and_do_not_overlap),
        CASE(a_region_leaves_only_when_it_is_whole),
        CASE(a_region_leaves_its_own_heap_only),
        CASE(a_region_in_full_use_stays),
        CASE(units_run_out_and_come_back),
        CASE(the_last_unit_of_all_can_be_used)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
