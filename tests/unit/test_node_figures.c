/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of several resources and programs, added up: each by its rule, known or not. */
#include "harness/harness.h"

#include <string.h>

#include "node/figures.h"

#define UNKNOWN FIGURE_UNKNOWN

/* --- arithmetic --------------------------------------------------------------------------- */

TEST_CASE(sums_and_differences_stay_within_what_is_known)
{
    static const struct {
        uint64_t a, b, sum, known, difference;
    } cases[] = {
        {7, 5, 12, 12, 2},
        {5, 7, 12, 12, 0},
        {5, 5, 10, 10, 0},
        {UNKNOWN, 5, UNKNOWN, 5, UNKNOWN},
        {5, UNKNOWN, UNKNOWN, 5, UNKNOWN},
        {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN},
        {UNKNOWN - 3, 1, UNKNOWN - 2, UNKNOWN - 2, UNKNOWN - 4},
        {UNKNOWN - 3, 2, UNKNOWN - 1, UNKNOWN - 1, UNKNOWN - 5},
        {UNKNOWN - 3, 3, UNKNOWN - 1, UNKNOWN - 1, UNKNOWN - 6},
        {3, UNKNOWN - 3, UNKNOWN - 1, UNKNOWN - 1, 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(figure_add(cases[i].a, cases[i].b), cases[i].sum);
        assert_int_equal(figure_add_known(cases[i].a, cases[i].b), cases[i].known);
        assert_int_equal(figure_subtract(cases[i].a, cases[i].b), cases[i].difference);
    }
}

TEST_CASE(fragmentation_is_the_share_that_the_largest_has_not)
{
    static const struct {
        uint64_t free_bytes, largest, thousandths;
    } cases[] = {{0, 0, 0},      {100, 100, 0},         {100, 101, 0},
                 {100, 99, 10},  {100, 1, 990},         {3, 1, 667},
                 {100, 0, 1000}, {UNKNOWN, 1, UNKNOWN}, {1, UNKNOWN, UNKNOWN}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const figures_t figures = {
            .free_bytes = cases[i].free_bytes, .largest_free_sum = cases[i].largest};

        assert_int_equal(figures_fragmentation(&figures), cases[i].thousandths);
    }
}

TEST_CASE(counters_may_be_larger_than_what_is_held_at_one_time)
{
    assert_true(figure_is_plausible(RMM_KIND_GAUGE, FIGURE_GAUGE_MAX - 1));
    assert_false(figure_is_plausible(RMM_KIND_GAUGE, FIGURE_GAUGE_MAX));
    assert_false(figure_is_plausible(RMM_KIND_MARK, FIGURE_GAUGE_MAX));
    assert_true(figure_is_plausible(RMM_KIND_COUNTER, (UINT64_C(1) << 63) - 1));
    assert_false(figure_is_plausible(RMM_KIND_COUNTER, UINT64_C(1) << 63));
}

/* --- of a program and of a device --------------------------------------------------------- */

/* Each figure another number: `first` and those that follow, in the order of the struct. */
static figures_t make(uint64_t first)
{
    figures_t figures = {0};
    uint64_t *figure = (uint64_t *)&figures;

    for (size_t i = 0; i < offsetof(figures_t, left_out) / sizeof(uint64_t); i++) {
        figure[i] = first + i;
    }
    figures.reserved_bytes += 10000; /* more than is used */
    return figures;
}

static uint64_t cached(const figures_t *figures)
{
    return figures->reserved_bytes - figures->current_bytes - figures->padding_bytes;
}

/* What is the same in the sums of a program and of a device. */
#define ASSERT_SUM(field) assert_int_equal(sum->field, a->field + b->field)
static void assert_sums(const figures_t *sum, const figures_t *a, const figures_t *b)
{
#define X(field, kind, unit, help) ASSERT_SUM(field);
    RMM_COMMON_STATS(X)
    RMM_LOCATION_ONLY_STATS(X)
#undef X
    ASSERT_SUM(free_bytes);
    ASSERT_SUM(current_count);
    ASSERT_SUM(largest_free_sum);
    assert_int_equal(sum->largest_free_bytes, b->largest_free_bytes);
}

TEST_CASE(resources_add_up_to_a_program)
{
    const figures_t small = make(1000), large = make(2000);
    figures_t sum = small, other = large;

    figures_add(&sum, &large);
    assert_sums(&sum, &small, &large);
    assert_int_equal(sum.cached_bytes, cached(&sum));
    assert_int_equal(sum.maximum_bytes, small.maximum_bytes);
    figures_add(&other, &small); /* in any order */
    assert_sums(&other, &small, &large);
    sum = small;
    figures_add_free(&sum, &large);
    assert_int_equal(sum.free_bytes, small.free_bytes + large.free_bytes);
    assert_int_equal(sum.largest_free_bytes, large.largest_free_bytes);
    assert_int_equal(
        sum.largest_free_sum, small.largest_free_sum + large.largest_free_bytes);
    assert_int_equal(sum.current_bytes, small.current_bytes);
}

/* Fields that `what` leaves as they are, and what the others become. */
TEST_CASE(a_program_that_ended_leaves_its_counters)
{
    const figures_t before = make(1000);
    figures_t after = before;

    figures_leave_counters(&after);
#define X(field, kind, unit, help)                                                     \
    if (RMM_KIND_##kind == RMM_KIND_COUNTER) {                                         \
        assert_int_equal(after.field, before.field);                                   \
    } else if (strcmp(#field, "lifetime_peak_bytes") != 0) {                           \
        assert_int_equal(after.field, 0);                                              \
    }
    RMM_EACH_STAT(X)
#undef X
    assert_int_equal(after.lifetime_peak_bytes, before.lifetime_peak_bytes);
    assert_int_equal(after.current_count, 0);
    assert_int_equal(after.largest_free_sum, 0);
}

TEST_CASE(what_is_forgotten_is_unknown_and_nothing_else)
{
    const figures_t before = make(1000);
    figures_t after = before;

    figures_forget_marks(&after);
#define X(field, kind, unit, help)                                                     \
    assert_int_equal(                                                                  \
        after.field, RMM_KIND_##kind == RMM_KIND_MARK ? UNKNOWN : before.field);
    RMM_EACH_STAT(X)
#undef X
    after = before;
    figures_forget_free(&after);
    assert_int_equal(after.free_bytes, UNKNOWN);
    assert_int_equal(after.largest_free_bytes, UNKNOWN);
    assert_int_equal(after.largest_free_sum, UNKNOWN);
    after.free_bytes = before.free_bytes;
    after.largest_free_bytes = before.largest_free_bytes;
    after.largest_free_sum = before.largest_free_sum;
    assert_memory_equal(&after, &before, sizeof(before));
}

TEST_CASE(programs_add_up_to_a_device)
{
    figures_t first = make(1000), second = make(2000);
    device_sum_t sum = {.member_count = 0};

    first.node_peak_bytes = 9000; /* more than the second's */
    second.current_bytes = 7000;  /* more than its mark */
    figures_add_to_device(&sum, &first);
    figures_add_to_device(&sum, &second);
    assert_int_equal(sum.member_count, 2);
    assert_int_equal(sum.left_out, 0);
    assert_int_equal(sum.largest_peak_bytes, 9000);
    assert_int_equal(sum.largest_peak_count, second.node_peak_count);
    assert_int_equal(sum.largest_lifetime_bytes, second.lifetime_peak_bytes);
    assert_int_equal(sum.upper_bytes, 9000 + 7000);
    figures_end_device(&sum);
    assert_sums(&sum.figures, &first, &second);
    assert_int_equal(
        sum.figures.cached_bytes, first.cached_bytes + second.cached_bytes);
    assert_int_equal(sum.figures.device_free_bytes, first.device_free_bytes);
    assert_int_equal(sum.figures.left_out, 0);
}

TEST_CASE(a_program_with_unknown_figures_is_left_out_of_those_sums)
{
    const figures_t first = make(1000);
    figures_t second = make(2000);
    device_sum_t sum = {.member_count = 0};

    second.total_bytes = UNKNOWN;
    second.device_free_bytes = 0; /* it did not ask */
    figures_add_to_device(&sum, &second);
    figures_add_to_device(&sum, &first);
    figures_end_device(&sum);
    assert_int_equal(sum.figures.left_out, 1);
    assert_int_equal(sum.figures.total_bytes, first.total_bytes);
    assert_int_equal(sum.figures.total_count, first.total_count + second.total_count);
    assert_int_equal(sum.figures.device_free_bytes, first.device_free_bytes);
}

/* Each figure that is unknown in all programs, alone. */
TEST_CASE(a_figure_that_no_program_has_is_unknown)
{
    const size_t offsets[] = {
#define X(field, kind, unit, help) offsetof(figures_t, field),
        RMM_COMMON_STATS(X) RMM_LOCATION_ONLY_STATS(X)
#undef X
            offsetof(figures_t, free_bytes),
        offsetof(figures_t, current_count), offsetof(figures_t, largest_free_sum)};

    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        figures_t part = make(1000);
        device_sum_t sum = {.member_count = 0};
        bool is_of_cached = offsets[i] == offsetof(figures_t, current_bytes) ||
                            offsets[i] == offsetof(figures_t, reserved_bytes) ||
                            offsets[i] == offsetof(figures_t, padding_bytes);

        *figure_at(&part, offsets[i]) = UNKNOWN;
        figures_add_to_device(&sum, &part);
        figures_end_device(&sum);
        for (size_t k = 0; k < sizeof(offsets) / sizeof(offsets[0]); k++) {
            assert_int_equal(
                figure_value(&sum.figures, offsets[k]),
                figure_value(&part, offsets[k]));
        }
        assert_int_equal(
            sum.figures.cached_bytes, is_of_cached ? UNKNOWN : part.cached_bytes);
        assert_int_equal(
            sum.figures.largest_free_bytes,
            offsets[i] == offsetof(figures_t, free_bytes) ? UNKNOWN
                                                          : part.largest_free_bytes);
        assert_int_equal(sum.figures.left_out, 1);
    }
}

TEST_CASE(without_programs_all_is_0)
{
    const figures_t none = {0};
    device_sum_t sum = {.member_count = 0};

    figures_end_device(&sum);
    assert_memory_equal(&sum.figures, &none, sizeof(none));
}
