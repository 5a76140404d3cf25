/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of rmm-replay: frees find their allocations, the peak is the log's, and what
 * cannot be is refused.
 */
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include "replay/plan.h"

static plan_result_t add_full(plan_t *plan, log_row_t row, const char *expected_problem)
{
    char problem[LOG_PROBLEM_MAX] = "";
    plan_result_t result = plan_add(plan, &row, problem);
    assert_string_equal(problem, expected_problem);
    return result;
}

static plan_result_t
add(plan_t *plan, log_action_t action, uint64_t pointer, uint64_t bytes)
{
    static uint64_t line;
    log_row_t row = {
        .line = ++line, .action = action, .pointer = pointer, .bytes = bytes};
    char problem[LOG_PROBLEM_MAX];
    return plan_add(plan, &row, problem);
}

TEST_CASE(pairs_a_free_with_its_allocation)
{
    plan_t plan;
    plan_init(&plan);
    assert_int_equal(add(&plan, LOG_ALLOCATE, 0x100, 10), PLAN_ADDED);
    assert_int_equal(add(&plan, LOG_ALLOCATE, 0x200, 20), PLAN_ADDED);
    assert_int_equal(add(&plan, LOG_FREE, 0x100, 10), PLAN_ADDED);
    assert_int_equal(add(&plan, LOG_ALLOCATE, 0x100, 40), PLAN_ADDED);
    assert_int_equal(add(&plan, LOG_FREE, 0x200, 20), PLAN_ADDED);
    assert_int_equal(plan.op_count, 5);
    assert_int_equal(plan.ops[2].handle, plan.ops[0].handle);
    assert_true(plan.ops[2].is_free);
    assert_int_equal(plan.ops[2].bytes, 10);
    assert_int_equal(plan.ops[4].handle, plan.ops[1].handle);
    assert_int_equal(plan.handle_count, 2); /* handles are used again */
    assert_int_equal(plan.peak_bytes, 60);
    assert_int_equal(plan.left_bytes, 40);
    assert_int_equal(plan.left_count, 1);
    plan_fini(&plan);
}

TEST_CASE(refuses_a_free_of_an_unknown_address)
{
    plan_t plan;
    plan_init(&plan);
    log_row_t row = {.action = LOG_FREE, .pointer = 0xabc, .bytes = 7};
    assert_int_equal(
        add_full(
            &plan, row, "free of an address that is not allocated, 0xabc (7 bytes)"),
        PLAN_REFUSED);
    assert_int_equal(add(&plan, LOG_ALLOCATE, 0xabc, 7), PLAN_ADDED);
    assert_int_equal(add(&plan, LOG_FREE, 0xabc, 7), PLAN_ADDED);
    assert_int_equal(add(&plan, LOG_FREE, 0xabc, 7), PLAN_REFUSED); /* twice */
    assert_int_equal(plan.op_count, 2);
    plan_fini(&plan);
}

TEST_CASE(refuses_a_second_allocation_of_a_live_address)
{
    plan_t plan;
    plan_init(&plan);
    assert_int_equal(add(&plan, LOG_ALLOCATE, 0x100, 10), PLAN_ADDED);
    log_row_t row = {.action = LOG_ALLOCATE, .pointer = 0x100, .bytes = 11};
    assert_int_equal(
        add_full(
            &plan, row,
            "allocate of an address that is still allocated, 0x100 (11 bytes)"),
        PLAN_REFUSED);
    assert_int_equal(plan.peak_bytes, 10);
    plan_fini(&plan);
}

TEST_CASE(uses_the_size_of_the_allocation_at_its_free)
{
    plan_t plan;
    plan_init(&plan);
    assert_int_equal(add(&plan, LOG_ALLOCATE, 0x100, 10), PLAN_ADDED);
    log_row_t row = {.action = LOG_FREE, .pointer = 0x100, .bytes = 99};
    assert_int_equal(
        add_full(&plan, row, "free of 0x100 with 99 bytes, allocated with 10"),
        PLAN_NOTED);
    assert_int_equal(plan.ops[1].bytes, 10);
    assert_int_equal(plan.left_bytes, 0);
    plan_fini(&plan);
}

TEST_CASE(keeps_allocations_of_no_bytes_apart)
{
    plan_t plan;
    plan_init(&plan);
    assert_int_equal(add(&plan, LOG_ALLOCATE, 0, 0), PLAN_ADDED);
    assert_int_equal(add(&plan, LOG_ALLOCATE, 0, 0), PLAN_ADDED);
    assert_int_equal(plan.left_count, 2);
    assert_int_not_equal(plan.ops[0].handle, plan.ops[1].handle);
    assert_int_equal(add(&plan, LOG_FREE, 0, 0), PLAN_ADDED);
    assert_int_equal(add(&plan, LOG_FREE, 0, 0), PLAN_ADDED);
    assert_int_equal(add(&plan, LOG_FREE, 0, 0), PLAN_REFUSED);
    assert_int_equal(add(&plan, LOG_ALLOCATE, 0, 16), PLAN_REFUSED);
    assert_int_equal(plan.left_count, 0);
    plan_fini(&plan);
}

TEST_CASE(counts_failure_rows_and_replays_none)
{
    plan_t plan;
    plan_init(&plan);
    assert_int_equal(add(&plan, LOG_ALLOCATE_FAILURE, 0, 4096), PLAN_ADDED);
    assert_int_equal(add(&plan, LOG_ALLOCATE_FAILURE, 0, 1024), PLAN_ADDED);
    assert_int_equal(plan.failure_count, 2);
    assert_int_equal(plan.failure_bytes, 4096);
    assert_int_equal(plan.op_count, 0);
    plan_fini(&plan);
}

TEST_CASE(refuses_sizes_whose_sum_would_overflow)
{
    plan_t plan;
    plan_init(&plan);
    assert_int_equal(add(&plan, LOG_ALLOCATE, 1, UINT64_MAX), PLAN_REFUSED);
    assert_int_equal(add(&plan, LOG_ALLOCATE, 1, UINT64_C(1) << 60), PLAN_ADDED);
    assert_int_equal(add(&plan, LOG_ALLOCATE, 2, 1), PLAN_REFUSED);
    assert_int_equal(add(&plan, LOG_FREE, 1, UINT64_C(1) << 60), PLAN_ADDED);
    assert_int_equal(add(&plan, LOG_ALLOCATE, 2, 1), PLAN_ADDED);
    plan_fini(&plan);
}

/* An operation keeps the number of its line in 32 bits. */
TEST_CASE(refuses_a_line_whose_number_it_cannot_keep)
{
    plan_t plan;
    plan_init(&plan);
    log_row_t row = {
        .line = UINT32_MAX, .action = LOG_ALLOCATE, .pointer = 0x100, .bytes = 7};
    assert_int_equal(add_full(&plan, row, ""), PLAN_ADDED);
    assert_int_equal(plan.ops[0].line, UINT32_MAX);
    row.line++;
    row.pointer = 0x200;
    assert_int_equal(
        add_full(&plan, row, "too many lines to replay, at 0x200 (7 bytes)"),
        PLAN_REFUSED);
    assert_int_equal(plan.op_count, 1);
    plan_fini(&plan);
}

TEST_CASE(distinguishes_streams_and_threads)
{
    plan_t plan;
    char problem[LOG_PROBLEM_MAX];
    const struct {
        uint64_t thread;
        uint64_t stream;
        uint32_t thread_index;
        uint32_t stream_index;
    } rows[] = {
        {7, 0, 0, 0},                        /* legacy default stream */
        {7, 1, 0, 0},                        /* the same by its other name */
        {7, 0xa5d2ad30, 0, 1},               /* one of the program's */
        {9, 0xa5d2ad30, 1, 1}, {9, 2, 1, 2}, /* per-thread default: one for each thread */
        {7, 2, 0, 3},          {9, 2, 1, 2}, {9, 0xa3752860, 1, 4},
    };
    plan_init(&plan);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        log_row_t row = {
            .line = i,
            .thread = rows[i].thread,
            .stream = rows[i].stream,
            .action = LOG_ALLOCATE,
            .pointer = 0x100 * (i + 1),
            .bytes = 1};
        assert_int_equal(plan_add(&plan, &row, problem), PLAN_ADDED);
        assert_int_equal(plan.ops[i].thread, rows[i].thread_index);
        assert_int_equal(plan.ops[i].stream, rows[i].stream_index);
    }
    assert_int_equal(plan.stream_count, 5);
    assert_int_equal(plan.thread_count, 2);
    assert_true(plan.streams[0].is_default);
    assert_false(plan.streams[2].is_default);
    plan_fini(&plan);
}

TEST_CASE(keeps_time_across_midnight_and_late_rows)
{
    const uint64_t second = 1000000000;
    const uint64_t times[] = {86399 * second, 50000 * second, 86399 * second + 5, 10};
    const uint64_t due[] = {0, 0, 5, second + 10};
    plan_t plan;
    char problem[LOG_PROBLEM_MAX];
    plan_init(&plan);
    for (size_t i = 0; i < 4; i++) {
        log_row_t row = {
            .time_ns = times[i], .action = LOG_ALLOCATE, .pointer = i + 1, .bytes = 1};
        assert_int_equal(plan_add(&plan, &row, problem), PLAN_ADDED);
        assert_int_equal(plan.ops[i].due_ns, due[i]);
    }
    plan_fini(&plan);
}
