/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of blocks and of regions: a manager lends pieces of its memory to another one with
 * the same unit numbers, and takes them back in other pieces, as the arena does.
 */
#include "unit/suballoc_fixture.h"

enum { UNITS = 65536, PHASE = 512, GRANULE = 256, BLOCKS = 200, STEPS = 20000 };

typedef struct pair {
    test_storage_t storage;
    rmm_suballoc_t *lender, *borrower;
    rmm_heap_t free_at_lender, free_at_borrower;
    rmm_block_t blocks[BLOCKS];
    uint32_t block_count;
    uint64_t random;
} pair_t;

static uint32_t draw(pair_t *pair, uint32_t bound)
{
    pair->random = pair->random * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((pair->random >> 33) % bound);
}

static void pair_open(pair_t *pair, uint64_t seed)
{
    *pair = (pair_t){.random = seed};
    pair->lender = test_suballoc_create(&pair->storage);
    pair->borrower = test_suballoc_create(&pair->storage);
    assert_int_equal(rmm__suballoc_heap_create(pair->lender, &pair->free_at_lender), 0);
    assert_int_equal(
        rmm__suballoc_heap_create(pair->borrower, &pair->free_at_borrower), 0);
    assert_int_equal(
        rmm__suballoc_add_region_at(
            pair->lender, pair->free_at_lender, PHASE, UNITS, 0),
        RMM_SUBALLOC_OK);
}

static void pair_close(pair_t *pair)
{
    rmm__suballoc_destroy(pair->lender);
    rmm__suballoc_destroy(pair->borrower);
    assert_int_equal(pair->storage.bytes_held, 0);
}

static bool lend(pair_t *pair, uint32_t units)
{
    rmm_block_t block;

    if (rmm__suballoc_alloc(
            pair->lender, pair->free_at_lender, units, GRANULE, &block) !=
        RMM_SUBALLOC_OK) {
        return false;
    }
    rmm__suballoc_block_set_tag(pair->lender, block, 77);
    assert_int_equal(
        rmm__suballoc_add_region_at(
            pair->borrower, pair->free_at_borrower,
            rmm__suballoc_block_unit(pair->lender, block), units, 0),
        RMM_SUBALLOC_OK);
    return true;
}

/* One free piece of this size goes back; false: there is none. */
static bool take_back(pair_t *pair, uint32_t units)
{
    rmm_block_t piece;
    rmm_block_t lent;
    uint32_t unit;

    if (rmm__suballoc_alloc(
            pair->borrower, pair->free_at_borrower, units, GRANULE, &piece) !=
        RMM_SUBALLOC_OK) {
        return false;
    }
    unit = rmm__suballoc_block_unit(pair->borrower, piece);
    lent = rmm__suballoc_find(
        pair->lender, rmm__suballoc_region_start(pair->borrower, unit));
    assert_int_not_equal(lent, RMM_BLOCK_NONE);
    assert_int_equal(rmm__suballoc_block_tag(pair->lender, lent), 77);
    assert_true(rmm__suballoc_reserve_region(pair->borrower));
    assert_true(rmm__suballoc_free_part(
        pair->lender, lent, unit, units, pair->free_at_lender, 0));
    rmm__suballoc_carve(pair->borrower, piece);
    return true;
}

static void step(pair_t *pair)
{
    uint32_t dice = draw(pair, 100);
    uint32_t index;

    if (dice < 5) {
        (void)lend(pair, GRANULE * (1 + draw(pair, 16)));
    } else if (dice < 15) {
        (void)take_back(pair, GRANULE * (1 + draw(pair, 8)));
    } else if (pair->block_count < BLOCKS && dice < 60) {
        index = pair->block_count;
        pair->block_count +=
            rmm__suballoc_alloc(
                pair->borrower, pair->free_at_borrower, 1 + draw(pair, 600), 1,
                &pair->blocks[index]) == RMM_SUBALLOC_OK;
    } else if (pair->block_count > 0) {
        index = draw(pair, pair->block_count);
        rmm__suballoc_free(
            pair->borrower, pair->blocks[index], pair->free_at_borrower, 0);
        pair->blocks[index] = pair->blocks[--pair->block_count];
    }
}

static void all_comes_back_whole_under_20_seeds(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        pair_t pair;

        print_message("seed %lu\n", (unsigned long)seed);
        pair_open(&pair, seed);
        for (int i = 0; i < STEPS; i++) {
            step(&pair);
            if (i % 500 == 0) {
                assert_sound(pair.lender);
                assert_sound(pair.borrower);
            }
        }
        while (pair.block_count > 0) {
            rmm__suballoc_free(
                pair.borrower, pair.blocks[--pair.block_count], pair.free_at_borrower,
                0);
        }
        while (take_back(&pair, GRANULE)) {
        }
        assert_sound(pair.lender);
        assert_sound(pair.borrower);
        assert_int_equal(rmm__suballoc_total_free_units(pair.borrower), 0);
        assert_int_equal(
            rmm__suballoc_largest_free(pair.lender, pair.free_at_lender), UNITS);
        pair_close(&pair);
    }
}

static void a_part_is_freed_or_nothing_without_storage(void **state)
{
    uint32_t refused = 0;

    (void)state;
    for (uint32_t filled = 0; filled < 200; filled++) {
        pair_t pair;
        rmm_block_t block;
        bool freed;

        pair_open(&pair, 1);
        for (uint32_t i = 0; i < filled; i++) {
            assert_int_equal(
                rmm__suballoc_alloc(pair.lender, pair.free_at_lender, 1, 1, &block), 0);
        }
        assert_int_equal(
            rmm__suballoc_alloc(pair.lender, pair.free_at_lender, 1000, 1, &block), 0);
        pair.storage.fail_at = pair.storage.growths + 1 + filled % 2;
        freed = rmm__suballoc_free_part(
            pair.lender, block, rmm__suballoc_block_unit(pair.lender, block) + 300, 400,
            pair.free_at_lender, 0);
        assert_sound(pair.lender);
        refused += !freed;
        assert_int_equal(
            rmm__suballoc_live_blocks(pair.lender), filled + (freed ? 2 : 1));
        assert_int_equal(
            rmm__suballoc_block_units(pair.lender, block), freed ? 300 : 1000);
        pair_close(&pair);
    }
    assert_true(refused > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_comes_back_whole_under_20_seeds),
        cmocka_unit_test(a_part_is_freed_or_nothing_without_storage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
