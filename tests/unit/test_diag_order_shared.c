/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures where more streams live than the diagnosis tells apart. What shares a place must not
 * be taken for a part of the capture, nor the capture for work.
 */
#include "harness/harness.h"

#include "unit/order_fixture.h"

enum { EVENT = 0x7000 };

static void record_and_wait(uint32_t from, uint32_t to)
{
    tell(RMM_DIAG_EVENT_RECORD, from, EVENT);
    tell(RMM_DIAG_EVENT_WAIT, to, EVENT);
}

/* Streams 1 to 62 have places of their own, later ones share one. */
static void make_more_than_fit(void)
{
    for (uint32_t i = 1; i <= RMM_CLOCKS_STREAMS + 6; i++) {
        make(i, true);
    }
}

enum { SHARED_A = RMM_CLOCKS_STREAMS + 1, SHARED_B, SHARED_C };

/* What the others do meanwhile is ordered, and must be known behind the capture. */
static void a_stream_without_a_place_captures_beside_others(void **state)
{
    (void)state;
    make_more_than_fit();
    allocate(0, 1);
    tell(RMM_DIAG_CAPTURE_BEGIN, SHARED_A, 0);
    record_and_wait(1, SHARED_B);
    assert_false(is_bad_use(0, SHARED_B, &kernel));
    tell(RMM_DIAG_CAPTURE_END, SHARED_A, 0);
    assert_false(is_bad_use(0, SHARED_B, &kernel));
    assert_false(is_bad_free(0, SHARED_B));
}

static void a_stream_that_waits_beside_such_a_capture_joins_nothing(void **state)
{
    (void)state;
    make_more_than_fit();
    allocate(0, 1);
    tell(RMM_DIAG_CAPTURE_BEGIN, SHARED_A, 0);
    record_and_wait(SHARED_B, 2);
    record_and_wait(1, 2);
    tell(RMM_DIAG_CAPTURE_END, SHARED_A, 0);
    assert_false(is_bad_use(0, 2, &kernel));
    assert_false(is_bad_free(0, 2));
}

static void the_host_waits_for_a_stream_beside_such_a_capture(void **state)
{
    (void)state;
    make_more_than_fit();
    allocate(0, SHARED_B);
    tell(RMM_DIAG_CAPTURE_BEGIN, SHARED_A, 0);
    tell(RMM_DIAG_STREAM_SYNC, SHARED_B, 0);
    assert_false(is_bad_use(0, 2, &kernel));
    tell(RMM_DIAG_CAPTURE_END, SHARED_A, 0);
    assert_false(is_bad_use(0, 3, &kernel));
}

/* Its place is then in the capture of another stream. */
static void a_stream_without_a_place_joins_a_capture(void **state)
{
    (void)state;
    make_more_than_fit();
    allocate(0, 1);
    allocate(1, 2);
    tell(RMM_DIAG_CAPTURE_BEGIN, 3, 0);
    record_and_wait(3, SHARED_A);
    record_and_wait(1, SHARED_B);
    record_and_wait(SHARED_A, 3);
    tell(RMM_DIAG_CAPTURE_END, 3, 0);
    assert_false(is_bad_use(0, SHARED_B, &kernel));
    assert_true(is_bad_use(1, 3, &kernel)); /* it had a place */
}

/* The graph's memory belongs to the stream that launches it. */
static void memory_of_such_a_capture_is_for_every_stream(void **state)
{
    (void)state;
    make_more_than_fit();
    tell(RMM_DIAG_CAPTURE_BEGIN, SHARED_A, 0);
    record_and_wait(SHARED_A, 2);
    allocate(0, SHARED_A);
    allocate(1, 2);
    tell(RMM_DIAG_CAPTURE_END, SHARED_A, 0);
    tell(RMM_DIAG_GRAPH_LAUNCH, 4, 0);
    assert_false(is_bad_use(0, 4, &kernel));
    assert_false(is_bad_use(1, 4, &kernel));
}

static void after_a_wait_for_the_device_all_with_a_place_are_judged(void **state)
{
    (void)state;
    make_more_than_fit();
    tell(RMM_DIAG_CAPTURE_BEGIN, SHARED_A, 0);
    record_and_wait(SHARED_B, 2);
    tell(RMM_DIAG_CAPTURE_END, SHARED_A, 0);
    tell(RMM_DIAG_DEVICE_SYNC, 0, 0);
    allocate(0, 1);
    assert_true(is_bad_use(0, 2, &kernel));
    assert_true(is_bad_use(0, SHARED_C, &kernel));
}

/* As a cudaFree does: it is no call of the capture. */
static void the_host_waits_for_the_device_amid_such_a_capture(void **state)
{
    (void)state;
    make_more_than_fit();
    tell(RMM_DIAG_CAPTURE_BEGIN, SHARED_A, 0);
    tell(RMM_DIAG_DEVICE_SYNC, 0, 0);
    allocate(0, SHARED_A);
    tell(RMM_DIAG_CAPTURE_END, SHARED_A, 0);
    tell(RMM_DIAG_GRAPH_LAUNCH, 4, 0);
    assert_false(is_bad_use(0, 4, &kernel));
}

/* A node of the graph that calls the host counts as a wait only where it is no node. */
static void a_host_function_in_such_a_capture_is_no_wait(void **state)
{
    (void)state;
    make_more_than_fit();
    tell(RMM_DIAG_CAPTURE_BEGIN, SHARED_A, 0);
    captured_streams = (uint64_t)1 << 2;
    record_and_wait(SHARED_A, 2);
    tell(RMM_DIAG_STREAM_SYNC, 2, 0);
    allocate(0, 2);
    tell(RMM_DIAG_CAPTURE_END, SHARED_A, 0);
    tell(RMM_DIAG_GRAPH_LAUNCH, 4, 0);
    assert_false(is_bad_use(0, 4, &kernel));
}

static void a_capture_that_ended_long_ago_makes_nothing_unsure(void **state)
{
    (void)state;
    make_more_than_fit();
    tell(RMM_DIAG_CAPTURE_BEGIN, SHARED_A, 0);
    tell(RMM_DIAG_CAPTURE_END, SHARED_A, 0);
    tell(RMM_DIAG_DEVICE_SYNC, 0, 0);
    tell(RMM_DIAG_STREAM_UNSURE, 5, 0);
    tell(RMM_DIAG_STREAM_UNSURE, 5, 0);
    tell(RMM_DIAG_DEVICE_SYNC, 0, 0);
    allocate(0, 1);
    assert_true(is_bad_use(0, 2, &kernel));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_order, close_order)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_stream_without_a_place_captures_beside_others),
        CASE(a_stream_that_waits_beside_such_a_capture_joins_nothing),
        CASE(the_host_waits_for_a_stream_beside_such_a_capture),
        CASE(a_stream_without_a_place_joins_a_capture),
        CASE(memory_of_such_a_capture_is_for_every_stream),
        CASE(after_a_wait_for_the_device_all_with_a_place_are_judged),
        CASE(the_host_waits_for_the_device_amid_such_a_capture),
        CASE(a_host_function_in_such_a_capture_is_no_wait),
        CASE(a_capture_that_ended_long_ago_makes_nothing_unsure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
