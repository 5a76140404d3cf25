/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which candidate rmm-replay --advise names, with which size, and the reason that it gives.
 */
#include "harness/harness.h"

#include "replay/advice.h"

#define PEAK UINT64_C(1000000000)

static advice_t advice;

static advice_candidate_t candidate(const char *resource, unsigned safe, double ns)
{
    return (advice_candidate_t){
        .resource = resource,
        .safe = safe,
        .safe_bytes = PEAK / 100 * safe,
        .grows = true,
        .grown_bytes = 2 * PEAK,
        .ns_per_operation = ns};
}

static void assert_advised(
    const advice_candidate_t *candidates, size_t count, const char *spec,
    const char *why)
{
    assert_true(advice_decide(candidates, count, PEAK, &advice));
    assert_string_equal(advice.spec, spec);
    assert_string_equal(advice.why, why);
}

static void advises_the_least_memory_when_times_are_alike(void **state)
{
    const advice_candidate_t candidates[] = {
        candidate("pool", 103, 100), candidate("pool_virtual", 101, 105)};
    assert_advised(
        candidates, 2, "pool_virtual:964MiB",
        "pool_virtual runs the log in 1.01 of its peak, at 105 ns an operation; none "
        "needs less memory, and none is much faster");
}

static void advises_the_fastest_resource_near_the_least_memory(void **state)
{
    const advice_candidate_t candidates[] = {
        candidate("pool", 104, 100), candidate("pool_virtual", 101, 120)};
    assert_advised(
        candidates, 2, "pool:992MiB",
        "pool runs the log in 1.04 of its peak, at 100 ns an operation; pool_virtual "
        "needs only slightly less memory (1.01), but more time (120 ns)");
}

static void pays_for_speed_with_no_more_than_that(void **state)
{
    const advice_candidate_t candidates[] = {
        candidate("pool", 105, 10), candidate("pool_virtual", 101, 120)};
    assert_advised(
        candidates, 2, "pool_virtual:964MiB",
        "pool_virtual runs the log in 1.01 of its peak, at 120 ns an operation; pool "
        "would be faster (10 ns), but needs 1.05");
}

static void leaves_out_what_has_no_safe_size(void **state)
{
    const advice_candidate_t candidates[] = {
        candidate("binning", 0, 1), candidate("pool", 139, 100)};
    assert_advised(
        candidates, 2, "pool:1326MiB",
        "pool runs the log in 1.39 of its peak, at 100 ns an operation; none needs "
        "less "
        "memory, and none is much faster");
}

static void names_no_size_where_none_is_safe(void **state)
{
    advice_candidate_t candidates[] = {
        candidate("arena", 0, 1), candidate("pool", 0, 1),
        candidate("pool_virtual", 0, 9)};
    candidates[0].grows = false;
    candidates[2].grown_bytes = PEAK / 2 * 3;
    assert_advised(
        candidates, 3, "pool_virtual",
        "no size up to 1.40 of the peak is safe; pool_virtual that grows from nothing "
        "takes the least, 1.50 of the peak");
    assert_false(advice_decide(candidates, 1, PEAK, &advice));
    assert_false(advice_decide(candidates, 0, PEAK, &advice));
}

static void rounds_up_by_less_than_a_hundredth(void **state)
{
    assert_int_equal(advice_round(1), 256);
    assert_int_equal(advice_round(1000), 1024);
    assert_int_equal(advice_round(128 * 1024 - 1), 128 * 1024);
    assert_int_equal(advice_round(128 * 1024 + 1), 129 * 1024);
    assert_int_equal(advice_round((128 << 20) + 1), 129 << 20);
    for (uint64_t bytes = 25600; bytes < UINT64_C(1) << 50; bytes = bytes * 3 + 1) {
        uint64_t rounded = advice_round(bytes);
        assert_true(rounded >= bytes && rounded % 256 == 0);
        assert_true((rounded - bytes) * 100 <= bytes);
    }
}

static void writes_each_size_in_its_unit(void **state)
{
    advice_candidate_t small = candidate("pool", 100, 1);
    small.safe_bytes = 1000;
    assert_true(advice_decide(&small, 1, 1000, &advice));
    assert_string_equal(advice.spec, "pool:1KiB");
    small.safe_bytes = 1100;
    assert_true(advice_decide(&small, 1, 1100, &advice));
    assert_string_equal(advice.spec, "pool:1280");
    small.safe_bytes = 300 * 1024 - 1;
    assert_true(advice_decide(&small, 1, 300 * 1024, &advice));
    assert_string_equal(advice.spec, "pool:300KiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(advises_the_least_memory_when_times_are_alike),
        cmocka_unit_test(advises_the_fastest_resource_near_the_least_memory),
        cmocka_unit_test(pays_for_speed_with_no_more_than_that),
        cmocka_unit_test(leaves_out_what_has_no_safe_size),
        cmocka_unit_test(names_no_size_where_none_is_safe),
        cmocka_unit_test(rounds_up_by_less_than_a_hundredth),
        cmocka_unit_test(writes_each_size_in_its_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
