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

TEST_CASE(advises_the_least_memory_when_times_are_alike)
{
    const advice_candidate_t candidates[] = {
        candidate("pool", 103, 100), candidate("pool_virtual", 101, 105)};
    assert_advised(
        candidates, 2, "pool_virtual:964MiB",
        "pool_virtual runs the log in 1.01 of its peak, at 105 ns an operation; none "
        "needs less memory, and none is much faster");
}

TEST_CASE(advises_the_fastest_resource_near_the_least_memory)
{
    const advice_candidate_t candidates[] = {
        candidate("pool", 104, 100), candidate("pool_virtual", 101, 120)};
    assert_advised(
        candidates, 2, "pool:992MiB",
        "pool runs the log in 1.04 of its peak, at 100 ns an operation; pool_virtual "
        "needs only slightly less memory (1.01), but more time (120 ns)");
}

TEST_CASE(pays_for_speed_with_no_more_than_that)
{
    const advice_candidate_t candidates[] = {
        candidate("pool", 105, 10), candidate("pool_virtual", 101, 120)};
    assert_advised(
        candidates, 2, "pool_virtual:964MiB",
        "pool_virtual runs the log in 1.01 of its peak, at 120 ns an operation; pool "
        "would be faster (10 ns), but needs 1.05");
}

TEST_CASE(leaves_out_what_has_no_safe_size)
{
    const advice_candidate_t candidates[] = {
        candidate("binning", 0, 1), candidate("pool", 139, 100)};
    assert_advised(
        candidates, 2, "pool:1326MiB",
        "pool runs the log in 1.39 of its peak, at 100 ns an operation; none needs "
        "less "
        "memory, and none is much faster");
}

TEST_CASE(names_no_size_where_none_is_safe)
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

TEST_CASE(rounds_up_by_less_than_a_hundredth)
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

TEST_CASE(writes_each_size_in_its_unit)
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
