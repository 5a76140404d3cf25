/* SPDX-License-Identifier: Apache-2.0 */
/* Rates and rings of rmm-top, from snapshots that are made here. */
#include "harness/harness.h"

#include <string.h>

#include "top/figure_history.h"
#include "top_node.h"

static history_t history;
static node_t node;

static int begin(void **state)
{
    history_init(&history);
    node_init(&node);
    return 0;
}

static int finish(void **state)
{
    history_fini(&history);
    node_fini(&node);
    return 0;
}

static void add_sample(uint64_t seconds, uint64_t bytes, uint64_t count)
{
    top_node_begin(&node, 1);
    node.time_ns = seconds * 1000000000u;
    node_use_t *use = top_node_program(&node, 7, "a", 1, bytes);
    use->figures.total_count = count;
    assert_true(history_add(&history, &node));
}

TEST_CASE_WITH(a_rate_needs_two_samples, begin, finish)
{
    double rate = -1;
    add_sample(10, 100, 1000);
    assert_false(history_rate(&history, 7, 1, &rate));
    add_sample(12, 100, 1500);
    assert_true(history_rate(&history, 7, 1, &rate));
    assert_float_equal(rate, 250.0, 1e-9);
    assert_false(history_rate(&history, 8, 1, &rate));
    assert_false(history_rate(&history, 7, 0, &rate));
}

TEST_CASE_WITH(a_rate_that_cannot_be_is_not_known, begin, finish)
{
    double rate = -1;
    add_sample(10, 100, 1000);
    add_sample(11, 100, 999);
    assert_false(history_rate(&history, 7, 1, &rate));
    add_sample(11, 100, 1001);
    assert_false(history_rate(&history, 7, 1, &rate));
    add_sample(12, 100, FIGURE_UNKNOWN);
    assert_false(history_rate(&history, 7, 1, &rate));
    add_sample(13, 100, 2000);
    assert_false(history_rate(&history, 7, 1, &rate));
    assert_float_equal(rate, -1.0, 1e-9);
}

TEST_CASE_WITH(rates_are_known_between_two_samples, begin, finish)
{
    static const uint64_t counts[] = {100, 350, 350, 10, 30};
    uint64_t rates[8];
    for (uint64_t i = 0; i < 5; i++) {
        add_sample(i + 1, 1, counts[i]);
    }
    assert_int_equal(history_rates(&history, 7, 1, rates, 8), 5);
    assert_int_equal(rates[0], FIGURE_UNKNOWN); /* nothing is before it */
    assert_int_equal(rates[1], 250);
    assert_int_equal(rates[2], 0);
    assert_int_equal(rates[3], FIGURE_UNKNOWN); /* it fell */
    assert_int_equal(rates[4], 20);
    assert_int_equal(history_rates(&history, 7, 1, rates, 2), 2);
    assert_int_equal(rates[1], 20);
    assert_int_equal(history_rates(&history, 8, 1, rates, 8), 0);
}

TEST_CASE_WITH(rates_are_rounded, begin, finish)
{
    uint64_t rates[3];
    add_sample(0, 1, 0);
    add_sample(3, 1, 5); /* 1.67 a second */
    add_sample(6, 1, 9); /* 1.33 */
    assert_int_equal(history_rates(&history, 7, 1, rates, 3), 3);
    assert_int_equal(rates[1], 2);
    assert_int_equal(rates[2], 1);
}

TEST_CASE_WITH(the_newest_values_stay, begin, finish)
{
    uint64_t values[HISTORY_SAMPLES + 5];
    for (uint64_t i = 0; i < 3 * HISTORY_SAMPLES + 1; i++) {
        add_sample(i, i, i);
    }
    assert_int_equal(
        history_used(&history, 7, 1, values, HISTORY_SAMPLES + 5), HISTORY_SAMPLES);
    assert_int_equal(values[0], 2 * HISTORY_SAMPLES + 1);
    assert_int_equal(values[HISTORY_SAMPLES - 1], 3 * HISTORY_SAMPLES);
    assert_int_equal(history_used(&history, 7, 1, values, 2), 2);
    assert_int_equal(values[1], 3 * HISTORY_SAMPLES);
    assert_int_equal(history_used(&history, HISTORY_DEVICES, 1, values, 2), 2);
}

TEST_CASE_WITH(ended_programs_leave_the_history, begin, finish)
{
    uint64_t value;
    add_sample(1, 100, 1);
    top_node_begin(&node, 1);
    (void)top_node_program(&node, 9, "b", 1, 5);
    assert_true(history_add(&history, &node));
    assert_int_equal(history_used(&history, 7, 1, &value, 1), 0);
    assert_int_equal(history_used(&history, 9, 1, &value, 1), 1);
    assert_int_equal(history.count, 3); /* two devices, a program */
}

TEST_CASE_WITH(many_programs_are_kept_apart, begin, finish)
{
    uint64_t value;
    top_node_begin(&node, 1);
    for (uint64_t id = 500; id > 0; id--) {
        (void)top_node_program(&node, id, "a", 1, 1000 + id);
    }
    assert_true(history_add(&history, &node));
    for (uint64_t id = 1; id <= 500; id++) {
        assert_int_equal(history_used(&history, id, 1, &value, 1), 1);
        assert_int_equal(value, 1000 + id);
    }
}
