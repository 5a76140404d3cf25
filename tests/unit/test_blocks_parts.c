/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of live blocks and of runs: a manager hands over pieces of its memory to another one and
 * takes them back in other pieces, as the arena does.
 */
#include "unit/blocks_fixture.h"

#include "harness/random.h"

enum { UNITS = 65536, GRANULE = 256, BLOCKS = 200, STEPS = 20000 };

typedef struct pair {
    test_storage_t storage;
    rmm_blocks_t *source, *target;
    rmm_heap_t free_at_source, free_at_target;
    rmm_block_t blocks[BLOCKS];
    uint32_t block_count;
    uint64_t random;
} pair_t;

static void pair_open(pair_t *pair, uint64_t seed)
{
    *pair = (pair_t){.random = seed};
    pair->source = test_blocks_create(&pair->storage);
    pair->target = test_blocks_create(&pair->storage);
    assert_int_equal(rmm__blocks_heap_create(pair->source, &pair->free_at_source), 0);
    assert_int_equal(rmm__blocks_heap_create(pair->target, &pair->free_at_target), 0);
    assert_int_equal(
        rmm__blocks_add(pair->source, pair->free_at_source, RUN_FIRST, UNITS, 0),
        RMM_BLOCKS_OK);
}

static void pair_close(pair_t *pair)
{
    rmm__blocks_destroy(pair->source);
    rmm__blocks_destroy(pair->target);
    assert_int_equal(pair->storage.bytes_held, 0);
}

static bool hand_over(pair_t *pair, uint32_t units)
{
    const rmm_blocks_request_t request = {units, GRANULE};
    rmm_block_node_t *moved;
    rmm_block_t block;

    if (rmm__blocks_take(
            pair->source, pair->free_at_source, pair->free_at_source, &request,
            &block) != RMM_BLOCKS_OK) {
        return false;
    }
    moved = rmm__blocks_look_at(pair->source, block);
    moved->tag = 77;
    assert_int_equal(
        rmm__blocks_add(pair->target, pair->free_at_target, moved->unit, units, 0),
        RMM_BLOCKS_OK);
    return true;
}

/* The live block of the source that a unit is in. */
static rmm_block_t moved_around(const pair_t *pair, uint64_t unit)
{
    rmm_block_t block = RMM_BLOCK_NONE;

    for (unit -= unit % GRANULE; block == RMM_BLOCK_NONE; unit -= GRANULE) {
        assert_true(unit >= RUN_FIRST);
        block = rmm__blocks_find(pair->source, unit);
    }
    return block;
}

static bool find_piece(void *context, const rmm_index_entry_t *found)
{
    uint64_t *piece = context; /* units wanted, unit found */
    uint64_t begin = (found->unit + GRANULE - 1) / GRANULE * GRANULE;

    if (begin + piece[0] > found->unit + found->units) {
        return true;
    }
    piece[1] = begin;
    return false;
}

/* One free piece of this size goes back; false: there is none. */
static bool take_back(pair_t *pair, uint32_t units)
{
    uint64_t piece[2] = {units, 0};
    rmm_block_t moved;

    rmm__blocks_walk_free(pair->target, pair->free_at_target, units, find_piece, piece);
    if (piece[1] == 0) {
        return false;
    }
    moved = moved_around(pair, piece[1]);
    assert_int_equal(rmm__blocks_look_at(pair->source, moved)->tag, 77);
    assert_true(rmm__blocks_cut(pair->target, pair->free_at_target, piece[1], units));
    assert_true(rmm__blocks_free_part(
        pair->source, moved, piece[1], units, pair->free_at_source, 0));
    return true;
}

static void step(pair_t *pair)
{
    uint32_t dice = draw(&pair->random, 100);

    if (dice < 5) {
        (void)hand_over(pair, GRANULE * (1 + draw(&pair->random, 16)));
    } else if (dice < 15) {
        (void)take_back(pair, GRANULE * (1 + draw(&pair->random, 8)));
    } else if (pair->block_count < BLOCKS && dice < 60) {
        const rmm_blocks_request_t request = {1 + draw(&pair->random, 600), 1};

        pair->block_count +=
            rmm__blocks_take(
                pair->target, pair->free_at_target, pair->free_at_target, &request,
                &pair->blocks[pair->block_count]) == RMM_BLOCKS_OK;
    } else if (pair->block_count > 0) {
        uint32_t index = draw(&pair->random, pair->block_count);

        rmm__blocks_free(pair->target, pair->blocks[index], pair->free_at_target, 0);
        pair->blocks[index] = pair->blocks[--pair->block_count];
    }
}

TEST_CASE(all_comes_back_whole_under_20_seeds)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        pair_t pair;

        print_message("seed %lu\n", (unsigned long)seed);
        pair_open(&pair, seed);
        for (int i = 0; i < STEPS; i++) {
            step(&pair);
            if (i % 500 == 0) {
                assert_sound(pair.source);
                assert_sound(pair.target);
            }
        }
        while (pair.block_count > 0) {
            rmm__blocks_free(
                pair.target, pair.blocks[--pair.block_count], pair.free_at_target, 0);
        }
        while (take_back(&pair, GRANULE)) {
        }
        assert_sound(pair.source);
        assert_sound(pair.target);
        assert_int_equal(rmm__blocks_total_free_units(pair.target), 0);
        assert_int_equal(
            rmm__blocks_largest_free(pair.source, pair.free_at_source), UNITS);
        pair_close(&pair);
    }
}

TEST_CASE(a_part_is_freed_or_nothing_without_storage)
{
    const rmm_blocks_request_t one = {1, 1}, many = {1000, 1};
    uint32_t refused = 0;

    for (uint32_t filled = 0; filled < 800; filled++) {
        pair_t pair;
        rmm_heap_t heap;
        rmm_block_t block;
        bool freed;

        pair_open(&pair, 1);
        heap = pair.free_at_source;
        for (uint32_t i = 0; i < filled; i++) {
            assert_int_equal(
                rmm__blocks_take(pair.source, heap, heap, &one, &block), RMM_BLOCKS_OK);
        }
        assert_int_equal(
            rmm__blocks_take(pair.source, heap, heap, &many, &block), RMM_BLOCKS_OK);
        pair.storage.fail_at = pair.storage.growths + 1 + filled % 2;
        freed = rmm__blocks_free_part(
            pair.source, block, rmm__blocks_look_at(pair.source, block)->unit + 300,
            400, heap, 0);
        assert_sound(pair.source);
        refused += !freed;
        assert_int_equal(rmm__blocks_live_count(pair.source), filled + (freed ? 2 : 1));
        assert_int_equal(
            rmm__blocks_look_at(pair.source, block)->units, freed ? 300 : 1000);
        pair_close(&pair);
    }
    assert_true(refused > 2);
}

CASE(a_part_that_needs_one_node_is_freed_only_with_one)
{
    fixture_t *f = *state;
    rmm_block_t block = take(f, 100);
    uint64_t unit = unit_of(f, block);

    /* blocks between free ones take two nodes each: none is left */
    while (f->blocks->unused_nodes != 0) {
        take_aligned(f, f->heap, 1, 2);
    }
    while (f->blocks->used_nodes < f->blocks->node_capacity ||
           f->blocks->unused_nodes != 0) {
        take_aligned(f, f->heap, 1, 2);
    }
    f->storage.fail_at = f->storage.growths + 1;
    assert_false(rmm__blocks_free_part(f->blocks, block, unit + 60, 40, f->other, 1));
    assert_sound(f->blocks);
    f->storage.fail_at = f->storage.growths + 1;
    assert_false(rmm__blocks_free_part(f->blocks, block, unit, 60, f->other, 1));
    assert_sound(f->blocks);
    assert_true(rmm__blocks_free_part(f->blocks, block, unit + 60, 40, f->other, 1));
    assert_sound(f->blocks);
}

CASE(each_part_of_a_live_block_keeps_tag_and_mark)
{
    fixture_t *f = *state;
    rmm_block_t block = take(f, 100);
    rmm_block_t rest;

    rmm__blocks_look_at(f->blocks, block)->tag = 9;
    rmm__blocks_mark(rmm__blocks_look_at(f->blocks, block), true);
    assert_true(
        rmm__blocks_free_part(f->blocks, block, f->first + 30, 20, f->other, 4));
    assert_sound(f->blocks);
    assert_int_equal(rmm__blocks_find(f->blocks, f->first), block);
    assert_int_equal(rmm__blocks_look_at(f->blocks, block)->units, 30);
    assert_int_equal(rmm__blocks_find(f->blocks, f->first + 30), RMM_BLOCK_NONE);
    rest = rmm__blocks_find(f->blocks, f->first + 50);
    assert_int_equal(rmm__blocks_look_at(f->blocks, rest)->units, 50);
    assert_int_equal(tag_of(f, rest), 9);
    assert_int_equal(tag_of(f, block), 9);
    assert_true(rmm__blocks_is_marked(rmm__blocks_look_at(f->blocks, rest)));
    assert_true(rmm__blocks_is_marked(rmm__blocks_look_at(f->blocks, block)));
    assert_int_equal(rmm__blocks_live_count(f->blocks), 2);
    assert_int_equal(rmm__blocks_free_units(f->blocks, f->other), 20);
    assert_true(rmm__blocks_free_part(f->blocks, rest, f->first + 50, 50, f->other, 4));
    assert_true(
        rmm__blocks_free_part(f->blocks, block, f->first + 20, 10, f->other, 4));
    assert_true(rmm__blocks_free_part(f->blocks, block, f->first, 5, f->other, 5));
    assert_sound(f->blocks);
    assert_int_equal(rmm__blocks_live_count(f->blocks), 1);
    assert_int_equal(rmm__blocks_largest_free(f->blocks, f->other), 80);
    assert_int_equal(block_at(f, f->first + 5).units, 15);
}

/* --- units that leave ---------------------------------------------------------------- */

CASE(units_that_are_cut_out_split_their_run)
{
    fixture_t *f = *state;
    rmm_block_t low, high;

    assert_true(rmm__blocks_cut(f->blocks, f->heap, f->first + 300, 200));
    assert_sound(f->blocks);
    assert_int_equal(rmm__blocks_free_units(f->blocks, f->heap), RUN_UNITS - 200);
    assert_int_equal(rmm__blocks_total_free_units(f->blocks), RUN_UNITS - 200);
    assert_int_equal(rmm__blocks_largest_free(f->blocks, f->heap), RUN_UNITS - 500);
    add_run(f, f->heap, f->first + 300, 200, 0); /* back, but for itself */
    assert_int_equal(blocks_free_count(f->blocks, f->heap), 3);
    low = take(f, 300);
    high = take(f, RUN_UNITS - 500);
    give(f, low, f->heap, 1);
    give(f, high, f->heap, 1);
    assert_int_equal(blocks_free_count(f->blocks, f->heap), 3);
}

CASE(cuts_only_a_range_within_one_free_block_of_the_heap)
{
    fixture_t *f = *state;
    rmm_block_t blocks[4];

    fill(f, blocks, 4, 256);
    give(f, blocks[1], f->heap, 1);
    give(f, blocks[2], f->other, 1);
    assert_false(rmm__blocks_cut(f->blocks, f->heap, f->first + 255, 2));
    assert_false(rmm__blocks_cut(f->blocks, f->heap, f->first + 511, 2));
    assert_false(rmm__blocks_cut(f->blocks, f->heap, f->first + 512, 1));
    assert_false(rmm__blocks_cut(f->blocks, f->heap, f->first - 1, 1));
    assert_int_equal(rmm__blocks_total_free_units(f->blocks), 512);
    assert_true(rmm__blocks_cut(f->blocks, f->heap, f->first + 256, 256));
    assert_int_equal(rmm__blocks_total_free_units(f->blocks), 256);
}

CASE(a_whole_run_and_its_ends_leave_without_storage)
{
    fixture_t *f = *state;
    uint64_t growths;

    for (uint64_t unit = 1000; f->blocks->used_nodes < f->blocks->node_capacity ||
                               f->blocks->nodes[f->blocks->unused_nodes].link != 0;
         unit += 20) {
        add_run(f, f->other, unit, 10, 0); /* until one node is left of all */
    }
    f->storage.fail_at = f->storage.growths + 1;
    assert_true(rmm__blocks_cut(f->blocks, f->heap, f->first, 24));
    assert_true(rmm__blocks_cut(f->blocks, f->heap, f->first + 1000, 24));
    assert_sound(f->blocks);
    assert_int_equal(block_at(f, f->first + 24).units, 976);
    assert_false(rmm__blocks_cut(f->blocks, f->heap, f->first + 100, 24));
    assert_sound(f->blocks);
    assert_int_equal(block_at(f, f->first + 24).units, 976);
    assert_true(rmm__blocks_cut(f->blocks, f->heap, f->first + 100, 24));
    growths = f->storage.growths;
    assert_true(rmm__blocks_cut(f->blocks, f->heap, f->first + 24, 76));
    assert_true(rmm__blocks_cut(f->blocks, f->heap, f->first + 124, 876));
    assert_int_equal(f->storage.growths, growths);
    assert_int_equal(blocks_free_count(f->blocks, f->heap), 0);
}
