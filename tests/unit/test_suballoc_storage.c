/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storage that fails: the N-th growth, for every N until a whole scenario succeeds. After
 * each failure the manager is sound, the call that failed succeeds when it is repeated, and
 * frees and transfers have asked for nothing.
 */
#include "unit/suballoc_fixture.h"

#define BLOCKS 1500
#define REGIONS 40
#define HEAPS 20
#define MOVES 3000

typedef struct scenario {
    test_storage_t storage;
    rmm_suballoc_t *sa;
    rmm_heap_t heaps[HEAPS];
    rmm_block_t blocks[BLOCKS];
    uint32_t failures;
} scenario_t;

static void expect_failure_once(scenario_t *scenario, rmm_suballoc_result_t result)
{
    assert_int_equal(result, RMM_SUBALLOC_NO_STORAGE);
    assert_sound(scenario->sa);
    scenario->failures++;
    assert_int_equal(scenario->failures, 1);
}

static void make_heaps_and_regions(scenario_t *scenario)
{
    for (int i = 0; i < HEAPS; i++) {
        rmm_suballoc_result_t result =
            rmm__suballoc_heap_create(scenario->sa, &scenario->heaps[i]);
        if (result != RMM_SUBALLOC_OK) {
            expect_failure_once(scenario, result);
            result = rmm__suballoc_heap_create(scenario->sa, &scenario->heaps[i]);
        }
        assert_int_equal(result, RMM_SUBALLOC_OK);
    }
    for (uint32_t i = 0; i < REGIONS; i++) {
        uint32_t first = 0;
        uint64_t before = rmm__suballoc_total_free_units(scenario->sa);
        rmm_suballoc_result_t result = rmm__suballoc_add_region(
            scenario->sa, scenario->heaps[0], 200, i, 0, &first);
        if (result != RMM_SUBALLOC_OK) {
            assert_int_equal(rmm__suballoc_total_free_units(scenario->sa), before);
            expect_failure_once(scenario, result);
            result = rmm__suballoc_add_region(
                scenario->sa, scenario->heaps[0], 200, i, 0, &first);
        }
        assert_int_equal(result, RMM_SUBALLOC_OK);
    }
}

static void take_blocks(scenario_t *scenario)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        uint32_t units = 1 + i % 4, align = i % 16 == 0 ? 4 : 1;
        uint64_t before = rmm__suballoc_total_free_units(scenario->sa);
        rmm_suballoc_result_t result = rmm__suballoc_alloc(
            scenario->sa, scenario->heaps[0], units, align, &scenario->blocks[i]);
        if (result != RMM_SUBALLOC_OK) {
            assert_int_equal(rmm__suballoc_total_free_units(scenario->sa), before);
            expect_failure_once(scenario, result);
            result = rmm__suballoc_alloc(
                scenario->sa, scenario->heaps[0], units, align, &scenario->blocks[i]);
        }
        assert_int_equal(result, RMM_SUBALLOC_OK);
    }
}

/* Every second unit of a region goes to another heap: each move leaves one block more. */
static void move_units(scenario_t *scenario)
{
    uint32_t first = 0, moved = 2;
    rmm_heap_t to = scenario->heaps[1];
    rmm_suballoc_result_t result = rmm__suballoc_add_region(
        scenario->sa, scenario->heaps[0], MOVES * 2, 0, 0, &first);
    if (result != RMM_SUBALLOC_OK) {
        expect_failure_once(scenario, result);
        result = rmm__suballoc_add_region(
            scenario->sa, scenario->heaps[0], MOVES * 2, 0, 0, &first);
    }
    assert_int_equal(result, RMM_SUBALLOC_OK);
    for (; moved < MOVES * 2; moved += 2) {
        uint32_t unit = first + moved - 1;
        result = rmm__suballoc_move(scenario->sa, scenario->heaps[0], to, unit, 1, 0);
        if (result != RMM_SUBALLOC_OK) {
            assert_int_equal(rmm__suballoc_free_units(scenario->sa, to), moved / 2 - 1);
            expect_failure_once(scenario, result);
            result =
                rmm__suballoc_move(scenario->sa, scenario->heaps[0], to, unit, 1, 0);
        }
        assert_int_equal(result, RMM_SUBALLOC_OK);
    }
    rmm__suballoc_transfer(scenario->sa, to, scenario->heaps[0], UINT64_MAX, 0);
    assert_true(rmm__suballoc_remove_region(scenario->sa, scenario->heaps[0], first));
}

static void give_blocks_without_storage(scenario_t *scenario)
{
    uint64_t growths = scenario->storage.growths;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        uint32_t k = i * 7 % BLOCKS; /* 7 does not divide it: every block once */
        rmm__suballoc_free(
            scenario->sa, scenario->blocks[k], scenario->heaps[k % HEAPS], i);
    }
    assert_sound(scenario->sa);
    for (int i = 1; i < HEAPS; i++) {
        rmm__suballoc_transfer(
            scenario->sa, scenario->heaps[i], scenario->heaps[0], UINT64_MAX, BLOCKS);
        rmm__suballoc_heap_destroy(scenario->sa, scenario->heaps[i]);
    }
    assert_int_equal(scenario->storage.growths, growths);
    assert_sound(scenario->sa);
    assert_int_equal(
        rmm__suballoc_free_units(scenario->sa, scenario->heaps[0]), REGIONS * 200);
    assert_int_equal(
        rmm__suballoc_free_blocks(scenario->sa, scenario->heaps[0]), REGIONS);
}

/* False: storage was never asked that often. */
static bool run_with_failure(uint64_t fail_at)
{
    scenario_t *scenario = calloc(1, sizeof *scenario);
    assert_non_null(scenario);
    scenario->storage.fail_at = fail_at;
    scenario->sa = test_suballoc_create(&scenario->storage);
    if (scenario->sa == NULL) {
        assert_int_equal(scenario->storage.bytes_held, 0);
        scenario->failures++;
        scenario->sa = test_suballoc_create(&scenario->storage);
    }
    assert_non_null(scenario->sa);
    make_heaps_and_regions(scenario);
    take_blocks(scenario);
    move_units(scenario);
    give_blocks_without_storage(scenario);
    rmm__suballoc_destroy(scenario->sa);
    assert_int_equal(scenario->storage.bytes_held, 0);
    bool failed = scenario->failures > 0;
    free(scenario);
    return failed;
}

static void every_failing_growth_leaves_it_sound(void **state)
{
    (void)state;
    uint64_t fail_at = 1;
    while (run_with_failure(fail_at)) {
        fail_at++;
    }
    assert_true(
        fail_at > 20); /* manager, nodes, ages, table, heaps, regions: each a few */
}

static void destroying_nothing_is_allowed(void **state)
{
    (void)state;
    rmm__suballoc_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_growth_leaves_it_sound),
        cmocka_unit_test(destroying_nothing_is_allowed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
