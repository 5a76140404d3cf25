/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storage that fails: the N-th growth, for every N until a whole scenario succeeds. After
 * each failure the manager is sound, the call that failed succeeds when it is repeated, and
 * frees and transfers have asked for nothing.
 */
#include "unit/blocks_fixture.h"

#define BLOCKS 1500
#define RUNS 40
#define HEAPS 20
#define MOVES 3000
#define MOVED_FIRST UINT64_C(1000000)

typedef struct scenario {
    test_storage_t storage;
    rmm_blocks_t *blocks;
    rmm_heap_t heaps[HEAPS];
    rmm_block_t live[BLOCKS];
    uint32_t failures;
} scenario_t;

static void expect_failure_once(scenario_t *scenario, rmm_blocks_result_t result)
{
    assert_int_equal(result, RMM_BLOCKS_NO_STORAGE);
    assert_sound(scenario->blocks);
    scenario->failures++;
    assert_int_equal(scenario->failures, 1);
}

static void make_heaps(scenario_t *scenario)
{
    for (int i = 0; i < HEAPS; i++) {
        rmm_blocks_result_t result =
            rmm__blocks_heap_create(scenario->blocks, &scenario->heaps[i]);

        if (result != RMM_BLOCKS_OK) {
            expect_failure_once(scenario, result);
            result = rmm__blocks_heap_create(scenario->blocks, &scenario->heaps[i]);
        }
        assert_int_equal(result, RMM_BLOCKS_OK);
        assert_int_equal(scenario->heaps[i], i);
    }
}

static void add(scenario_t *scenario, uint64_t unit, uint32_t units)
{
    uint64_t before = rmm__blocks_total_free_units(scenario->blocks);
    rmm_heap_t heap = scenario->heaps[0];
    rmm_blocks_result_t result =
        rmm__blocks_add(scenario->blocks, heap, unit, units, 0);

    if (result != RMM_BLOCKS_OK) {
        assert_int_equal(rmm__blocks_total_free_units(scenario->blocks), before);
        expect_failure_once(scenario, result);
        result = rmm__blocks_add(scenario->blocks, heap, unit, units, 0);
    }
    assert_int_equal(result, RMM_BLOCKS_OK);
}

static void take_blocks(scenario_t *scenario)
{
    rmm_heap_t heap = scenario->heaps[0];

    for (uint32_t i = 0; i < BLOCKS; i++) {
        const rmm_blocks_request_t request = {1 + i % 4, i % 16 == 0 ? 4 : 1};
        uint64_t before = rmm__blocks_total_free_units(scenario->blocks);
        rmm_blocks_result_t result = rmm__blocks_take(
            scenario->blocks, heap, heap, &request, &scenario->live[i]);

        if (result != RMM_BLOCKS_OK) {
            assert_int_equal(rmm__blocks_total_free_units(scenario->blocks), before);
            expect_failure_once(scenario, result);
            result = rmm__blocks_take(
                scenario->blocks, heap, heap, &request, &scenario->live[i]);
        }
        assert_int_equal(result, RMM_BLOCKS_OK);
    }
}

/* Every second unit of a run goes to another heap: each move leaves one block more. */
static void move_units(scenario_t *scenario)
{
    rmm_blocks_t *blocks = scenario->blocks;
    rmm_heap_t from = scenario->heaps[0], to = scenario->heaps[1];

    add(scenario, MOVED_FIRST, MOVES * 2);
    for (uint32_t moved = 2; moved < MOVES * 2; moved += 2) {
        uint64_t unit = MOVED_FIRST + moved - 1;
        rmm_blocks_result_t result = rmm__blocks_move(blocks, from, to, unit, 1, 0);

        if (result != RMM_BLOCKS_OK) {
            assert_int_equal(rmm__blocks_free_units(blocks, to), moved / 2 - 1);
            expect_failure_once(scenario, result);
            result = rmm__blocks_move(blocks, from, to, unit, 1, 0);
        }
        assert_int_equal(result, RMM_BLOCKS_OK);
    }
    rmm__blocks_transfer(blocks, to, from, UINT64_MAX, 0);
    assert_true(rmm__blocks_cut(blocks, from, MOVED_FIRST, MOVES * 2));
}

static void give_blocks_without_storage(scenario_t *scenario)
{
    uint64_t growths = scenario->storage.growths;

    for (uint32_t i = 0; i < BLOCKS; i++) {
        uint32_t k = i * 7 % BLOCKS; /* 7 does not divide it: every block once */

        rmm__blocks_free(
            scenario->blocks, scenario->live[k], scenario->heaps[k % HEAPS], i);
    }
    assert_sound(scenario->blocks);
    for (int i = 1; i < HEAPS; i++) {
        rmm__blocks_transfer(
            scenario->blocks, scenario->heaps[i], scenario->heaps[0], UINT64_MAX,
            BLOCKS);
        rmm__blocks_heap_destroy(scenario->blocks, scenario->heaps[i]);
    }
    assert_int_equal(scenario->storage.growths, growths);
    assert_sound(scenario->blocks);
    assert_int_equal(
        rmm__blocks_free_units(scenario->blocks, scenario->heaps[0]), RUNS * 200);
    assert_int_equal(blocks_free_count(scenario->blocks, scenario->heaps[0]), RUNS);
}

/* False: storage was never asked that often. */
static bool run_with_failure(uint64_t fail_at)
{
    scenario_t *scenario = calloc(1, sizeof(*scenario));
    bool failed;

    assert_non_null(scenario);
    scenario->storage.fail_at = fail_at;
    scenario->blocks = test_blocks_create(&scenario->storage);
    if (scenario->blocks == NULL) {
        assert_int_equal(scenario->storage.bytes_held, 0);
        scenario->failures++;
        scenario->blocks = test_blocks_create(&scenario->storage);
    }
    assert_non_null(scenario->blocks);
    make_heaps(scenario);
    for (uint32_t i = 0; i < RUNS; i++) {
        add(scenario, 1000 * (uint64_t)i, 200);
    }
    take_blocks(scenario);
    move_units(scenario);
    give_blocks_without_storage(scenario);
    rmm__blocks_destroy(scenario->blocks);
    assert_int_equal(scenario->storage.bytes_held, 0);
    failed = scenario->failures > 0;
    free(scenario);
    return failed;
}

TEST_CASE(every_failing_growth_leaves_it_sound)
{
    uint64_t fail_at = 1;

    while (run_with_failure(fail_at)) {
        fail_at++;
    }
    assert_true(fail_at > 30); /* manager, nodes, ages, table, heaps, index */
}

CASE(more_nodes_than_can_be_named_are_refused)
{
    fixture_t *f = *state;
    rmm_blocks_t real = *f->blocks;
    uint64_t growths = f->storage.growths;

    f->blocks->used_nodes = UINT32_C(1) << 31; /* as if: nothing is touched */
    f->blocks->node_capacity = f->blocks->used_nodes;
    f->blocks->age_capacity = f->blocks->used_nodes;
    f->blocks->unused_nodes = 0;
    assert_false(rmm__blocks_reserve(f->blocks));
    assert_int_equal(f->storage.growths, growths);
    *f->blocks = real;
}

/* A heap is created without a reserve, and its recent block is in the table. */
CASE(one_reserve_is_enough_after_many_new_heaps)
{
    fixture_t *f = *state;
    uint64_t growths;

    for (int i = 0; i < 1000; i++) {
        rmm_heap_t heap;

        assert_int_equal(rmm__blocks_heap_create(f->blocks, &heap), RMM_BLOCKS_OK);
    }
    assert_true(rmm__blocks_reserve(f->blocks));
    growths = f->storage.growths;
    assert_true(rmm__blocks_reserve(f->blocks));
    assert_int_equal(f->storage.growths, growths);
}

TEST_CASE(destroying_nothing_is_allowed)
{
    rmm__blocks_destroy(NULL);
}
