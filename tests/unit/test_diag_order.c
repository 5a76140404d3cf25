/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order of uses of blocks: what is ordered is no error, what is not is one, and what is not known
 * is none. Drawn programs: test_diag_order_model.c.
 */
#include "harness/harness.h"

#include <pthread.h>

#include "unit/order_fixture.h"

enum { LEGACY, A, B, C, EVENT = 0x7000 };

/* Three streams that do not wait for the legacy default stream. */
static void make_streams(void)
{
    make(A, true);
    make(B, true);
    make(C, true);
}

static void record_and_wait(uint32_t from, uint32_t to)
{
    tell(RMM_DIAG_EVENT_RECORD, from, EVENT);
    tell(RMM_DIAG_EVENT_WAIT, to, EVENT);
}

/* --- allocation ------------------------------------------------------------------------ */

static void finds_a_use_that_is_not_ordered_behind_the_allocation(void **state)
{
    (void)state;
    make_streams();
    allocate(0, A);
    assert_false(is_bad_use(0, A, &kernel));
    assert_true(is_bad_use(0, B, &kernel));
    assert_int_equal(conflict.other_call, 0);
    assert_int_equal(conflict.other_stream_id, A);
    record_and_wait(A, C);
    assert_false(is_bad_use(0, C, &kernel));
}

static void a_wait_that_is_missing_is_told_once_for_a_block(void **state)
{
    (void)state;
    make_streams();
    allocate(0, A);
    allocate(1, A);
    assert_false(is_bad_use(0, A, &kernel));
    assert_true(is_bad_use(0, B, &kernel));
    assert_false(is_bad_use(0, B, &fill)); /* the same wait would order it */
    assert_true(is_bad_use(1, B, &kernel));
    assert_true(is_bad_use(0, C, &kernel)); /* another one is missing there */
    assert_false(is_bad_use(0, B, &kernel));
    assert_true(is_bad_free(0, A)); /* and a wait in the other direction */
}

static void a_use_after_the_error_that_was_told_is_another_error(void **state)
{
    (void)state;
    make_streams();
    allocate(0, A);
    assert_true(is_bad_use(0, B, &kernel));
    assert_true(is_bad_use(0, A, &fill));
    assert_true(is_bad_use(0, B, &kernel)); /* of which A knew nothing then */
    assert_int_equal(conflict.other_call, RMM_DIAG_SET);
}

static void an_event_recorded_too_early_orders_nothing(void **state)
{
    (void)state;
    make_streams();
    tell(RMM_DIAG_EVENT_RECORD, A, EVENT);
    allocate(0, A);
    tell(RMM_DIAG_EVENT_WAIT, B, EVENT);
    assert_true(is_bad_use(0, B, &kernel));
    record_and_wait(A, B);
    assert_false(is_bad_use(0, B, &kernel));
}

static void order_passes_from_stream_to_stream(void **state)
{
    (void)state;
    make_streams();
    allocate(0, A);
    record_and_wait(A, B);
    record_and_wait(B, C); /* the event again */
    assert_false(is_bad_use(0, C, &kernel));
}

static void the_host_orders_what_it_has_waited_for(void **state)
{
    static const uint32_t waits[] = {
        RMM_DIAG_STREAM_SYNC, RMM_DIAG_DEVICE_SYNC, RMM_DIAG_EVENT_SYNC};

    (void)state;
    make_streams();
    for (uint32_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        allocate(i, A);
        tell(RMM_DIAG_EVENT_RECORD, A, EVENT);
        assert_true(is_bad_use(i, B, &kernel));
        tell(waits[i], A, EVENT);
        assert_false(is_bad_use(i, B, &kernel));
    }
    allocate(5, A);
    tell(RMM_DIAG_STREAM_SYNC, C, 0); /* another one */
    assert_true(is_bad_use(5, B, &kernel));
}

static void blocks_that_every_stream_may_use_are_no_error(void **state)
{
    rmm_diag_block_v1_t given = block(0, A);

    (void)state;
    make_streams();
    given.flags = 0;
    rmm__order_allocated(&order, 0, &given);
    assert_false(is_bad_use(0, B, &kernel));
    assert_false(rmm__order_freed(&order, 0, &given, &conflict));
    given.flags = RMM_DIAG_BLOCK_IN_STREAM_ORDER | RMM_DIAG_BLOCK_SYNC;
    rmm__order_allocated(&order, 0, &given);
    assert_false(is_bad_use(0, B, &kernel));
    assert_true(is_bad_free(0, A)); /* of a call that does not wait */
}

/* --- default streams --------------------------------------------------------------------- */

static void the_default_stream_orders_blocking_streams(void **state)
{
    (void)state;
    make(A, false);
    make(B, false);
    make(C, true);
    allocate(0, LEGACY);
    assert_false(is_bad_use(0, A, &kernel));
    assert_true(is_bad_use(0, C, &kernel));
    allocate(1, A);
    assert_true(is_bad_use(1, B, &kernel));
    assert_false(is_bad_use(1, LEGACY, &kernel));
    assert_false(is_bad_use(1, B, &kernel)); /* behind what was just done there */
    allocate(2, C);
    assert_true(is_bad_use(2, LEGACY, &kernel));
}

/* Neither uses a block, but as work of the default stream it waits for A, and B for it. */
static void graphs_and_prefetches_of_the_default_stream_order_others(void **state)
{
    const uint32_t calls[] = {RMM_DIAG_GRAPH_LAUNCH, RMM_DIAG_PREFETCH};

    (void)state;
    make(A, false);
    make(B, false);
    make(C, true);
    for (uint32_t i = 0; i < 2; i++) {
        allocate(i, A);
        assert_true(is_bad_use(i, B, &kernel));
        allocate(i, A);
        tell(calls[i], LEGACY, 0);
        assert_false(is_bad_use(i, B, &kernel));
        assert_true(is_bad_use(i, C, &kernel));
    }
}

static void a_stream_that_was_made_unseen_counts_as_blocking(void **state)
{
    (void)state;
    allocate(0, A);
    assert_true(is_bad_use(0, B, &kernel));
    allocate(1, LEGACY);
    assert_false(is_bad_use(1, A, &kernel));
}

/* --- copies, fills and kernels ------------------------------------------------------------- */

/* The driver is asked for its flags. */
static void a_stream_that_was_made_unseen_is_what_the_driver_says(void **state)
{
    (void)state;
    rmm__clocks_stream_seen(order.clocks, stream(A), false, 77);
    rmm__clocks_stream_seen(order.clocks, stream(B), true, UINT64_MAX);
    allocate(0, LEGACY);
    assert_true(is_bad_use(0, A, &kernel));
    assert_int_equal(conflict.stream_id, 77);
    assert_false(is_bad_use(0, B, &kernel));
    allocate(1, C); /* seen by a block before the driver was asked */
    rmm__clocks_stream_seen(order.clocks, stream(C), false, UINT64_MAX);
    assert_false(is_bad_use(1, C, &kernel));
    tell(RMM_DIAG_STREAM_SYNC, C, 0);
    allocate(2, LEGACY);
    assert_true(is_bad_use(2, C, &kernel));
}

static void finds_copies_and_fills_of_the_same_bytes(void **state)
{
    (void)state;
    make_streams();
    allocate(0, A);
    tell(RMM_DIAG_DEVICE_SYNC, 0, 0);
    assert_false(is_bad_use(0, A, &fill_begin));
    assert_false(is_bad_use(0, B, &fill_end));
    assert_true(is_bad_use(0, B, &fill_begin));
    assert_int_equal(conflict.other_call, RMM_DIAG_SET);
    assert_int_equal(conflict.other_user, 100 + A);
    tell(RMM_DIAG_DEVICE_SYNC, 0, 0);
    assert_false(is_bad_use(0, A, &read_all));
    assert_false(is_bad_use(0, B, &read_all));
    assert_true(is_bad_use(0, C, &fill_end));
}

static void rows_with_a_pitch_may_lie_in_each_other(void **state)
{
    (void)state;
    make_streams();
    allocate(0, A);
    tell(RMM_DIAG_DEVICE_SYNC, 0, 0);
    assert_false(is_bad_use(0, A, &fill_rows));
    assert_false(is_bad_use(0, B, &fill_rows));
    assert_false(is_bad_use(0, B, &kernel));
    assert_false(is_bad_use(0, C, &fill_begin));
}

static void a_kernel_conflicts_only_with_a_write_of_the_whole_block(void **state)
{
    (void)state;
    make_streams();
    allocate(0, A);
    tell(RMM_DIAG_DEVICE_SYNC, 0, 0);
    assert_false(is_bad_use(0, A, &kernel));
    assert_false(is_bad_use(0, B, &kernel));
    assert_false(is_bad_use(0, C, &fill_begin)); /* each its part */
    assert_false(is_bad_use(0, C, &read_all));
    assert_true(is_bad_use(0, C, &fill));
    tell(RMM_DIAG_DEVICE_SYNC, 0, 0);
    assert_false(is_bad_use(0, C, &fill));
    assert_true(is_bad_use(0, A, &kernel));
}

/* --- frees ------------------------------------------------------------------------------------ */

static void finds_a_free_under_a_use(void **state)
{
    (void)state;
    make_streams();
    allocate(0, A);
    assert_false(is_bad_use(0, A, &kernel));
    assert_false(is_bad_free(0, A));
    allocate(0, A);
    record_and_wait(A, B);
    assert_false(is_bad_use(0, B, &kernel));
    assert_true(is_bad_free(0, A));
    assert_int_equal(conflict.other_user, 100 + B);
    assert_int_equal(conflict.other_call, RMM_DIAG_LAUNCH);
    assert_int_equal(conflict.stream_id, A);
    record_and_wait(B, A);
    assert_false(is_bad_free(0, A));
}

static void a_free_must_follow_each_of_several_users(void **state)
{
    (void)state;
    make_streams();
    allocate(0, A);
    tell(RMM_DIAG_STREAM_SYNC, A, 0);
    for (uint32_t i = 0; i < 10; i++) {
        assert_false(is_bad_use(0, A, &kernel));
        assert_false(is_bad_use(0, B, &kernel));
        assert_false(is_bad_use(0, C, &read_all));
    }
    record_and_wait(C, A);
    assert_true(is_bad_free(0, A));
    record_and_wait(B, A);
    assert_false(is_bad_free(0, A));
}

/* --- what is not known ------------------------------------------------------------------- */

static void a_stream_that_waits_for_the_unknown_is_never_judged(void **state)
{
    (void)state;
    make_streams();
    allocate(0, A);
    tell(RMM_DIAG_EVENT_WAIT, B, EVENT + 1); /* recorded by whom? */
    assert_false(is_bad_use(0, B, &kernel));
    record_and_wait(B, C);
    assert_false(is_bad_use(0, C, &kernel));
    assert_false(is_bad_free(0, C));
    tell(RMM_DIAG_STREAM_SYNC, C, 0);
    allocate(0, A);
    assert_true(is_bad_use(0, C, &kernel));  /* all is known again */
    assert_false(is_bad_use(0, B, &kernel)); /* not there */
}

static void when_order_is_lost_nothing_is_judged(void **state)
{
    (void)state;
    make_streams();
    allocate(0, A);
    tell(RMM_DIAG_ORDER_LOST, 0, 0);
    assert_false(is_bad_use(0, B, &kernel));
    assert_false(is_bad_free(0, C));
}

static void captured_work_is_not_judged(void **state)
{
    (void)state;
    make_streams();
    allocate(0, A);
    tell(RMM_DIAG_CAPTURE_BEGIN, B, 0);
    assert_false(is_bad_use(0, B, &kernel));
    record_and_wait(B, C); /* joins */
    assert_false(is_bad_use(0, C, &kernel));
    allocate(1, C);
    tell(RMM_DIAG_CAPTURE_END, B, 0);
    assert_false(is_bad_use(1, A, &kernel));
    assert_true(is_bad_use(0, C, &kernel));
    tell(RMM_DIAG_EVENT_WAIT, A, EVENT);
    assert_false(is_bad_use(0, A, &kernel));
}

/* The simulated GPU says of the wait by which a stream joins that it was captured. */
static void a_stream_joins_a_capture_whatever_is_said_of_its_wait(void **state)
{
    const uint64_t word = EVENT;

    (void)state;
    make_streams();
    for (uint32_t capturing = 0; capturing < 2; capturing++) {
        const rmm_diag_event_v1_t wait = {
            .struct_size = sizeof(wait),
            .kind = RMM_DIAG_EVENT_WAIT,
            .stream = stream(B),
            .words = &word,
            .word_count = 1,
            .capturing = capturing};

        tell(RMM_DIAG_CAPTURE_BEGIN, A, 0);
        tell(RMM_DIAG_EVENT_RECORD, A, EVENT);
        rmm__order_event(&order, &wait);
        allocate(0, B); /* not in order with any stream */
        assert_false(is_bad_use(0, B, &kernel));
        tell(RMM_DIAG_CAPTURE_END, A, 0);
        assert_false(is_bad_use(0, C, &kernel));
        allocate(0, B);
        assert_true(is_bad_use(0, C, &kernel));
    }
}

static void a_handle_that_is_used_again_is_another_stream(void **state)
{
    (void)state;
    make(A, false);
    make(B, true);
    allocate(0, B);
    tell(RMM_DIAG_STREAM_DESTROY, A, 0);
    make(A, true);
    allocate(1, LEGACY);
    assert_true(is_bad_use(1, A, &kernel));
    assert_true(is_bad_use(0, A, &kernel));
}

/* Its work goes on, and its handle and place are another stream's. */
static void the_default_stream_waits_for_blocking_streams_that_ended(void **state)
{
    (void)state;
    make(A, false);
    make(B, true);
    allocate(0, A);
    allocate(1, B);
    assert_false(is_bad_use(0, A, &kernel));
    tell(RMM_DIAG_STREAM_DESTROY, A, 0);
    make(A, true);
    assert_false(is_bad_free(0, LEGACY));
    assert_true(is_bad_use(1, LEGACY, &kernel)); /* of a stream that does not block */
    for (uint32_t i = 10; i < 5000; i++) {
        make(i, false);
        allocate(2, i);
        tell(RMM_DIAG_STREAM_DESTROY, i, 0);
        make(i + 1, true);
        assert_false(is_bad_use(2, LEGACY, &kernel));
        tell(RMM_DIAG_STREAM_DESTROY, i + 1, 0);
    }
    assert_false(order.clocks->is_shared);
}

/* The new stream follows the default stream as the first did, and what that waits for. */
static void a_new_stream_waits_for_what_the_default_stream_waits_for(void **state)
{
    (void)state;
    make(A, false);
    make(B, true);
    allocate(0, B);
    tell(RMM_DIAG_STREAM_UNSURE, LEGACY, 0);
    assert_false(is_bad_use(0, A, &kernel));
    tell(RMM_DIAG_STREAM_DESTROY, A, 0);
    make(A, false);
    assert_false(is_bad_use(0, A, &kernel));
    make(C, true); /* which does not follow it */
    assert_true(is_bad_use(0, C, &kernel));
}

/* The host takes all as known after it has waited for C. The default stream still waits. */
/* It knows the times of the streams that the first had waited for, and has nothing to wait for. */
static void the_handle_of_an_unsure_stream_ends_no_doubt_about_others(void **state)
{
    (void)state;
    make(A, false);
    make(B, false);
    make(C, true);
    allocate(0, C);
    tell(RMM_DIAG_STREAM_UNSURE, LEGACY, 0); /* it may wait for C */
    tell(RMM_DIAG_PREFETCH, A, 0);
    tell(RMM_DIAG_STREAM_DESTROY, A, 0);
    make(A, true);
    tell(RMM_DIAG_STREAM_SYNC, A, 0);
    assert_false(is_bad_use(0, B, &kernel));
}

static void a_wait_for_one_stream_ends_no_doubt_about_another(void **state)
{
    (void)state;
    make(A, false);
    make(B, true);
    make(C, true);
    tell(RMM_DIAG_STREAM_UNSURE, LEGACY, 0);
    tell(RMM_DIAG_STREAM_UNSURE, C, 0);
    tell(RMM_DIAG_STREAM_SYNC, C, 0);
    allocate(0, B);
    assert_true(is_bad_use(0, C, &kernel));
    assert_false(is_bad_use(0, A, &kernel)); /* which follows the default stream */
    tell(RMM_DIAG_STREAM_SYNC, LEGACY, 0);
    tell(RMM_DIAG_STREAM_SYNC, A, 0);
    allocate(1, B);
    assert_true(is_bad_use(1, A, &kernel));
}

static void an_event_that_ended_is_not_known(void **state)
{
    (void)state;
    make_streams();
    allocate(0, A);
    tell(RMM_DIAG_EVENT_RECORD, C, EVENT);
    tell(RMM_DIAG_EVENT_DESTROY, 0, EVENT);
    tell(RMM_DIAG_EVENT_WAIT, B, EVENT);
    assert_false(is_bad_use(0, B, &kernel));
}

/* Many streams, events and blocks: tables stay as they are, and nothing false is found. */
static void more_streams_than_fit_are_one(void **state)
{
    (void)state;
    make_streams();
    for (uint32_t i = 10; i < 5000; i++) {
        make(i, true);
        allocate(i % ORDER_ROWS, i);
        tell(RMM_DIAG_EVENT_RECORD, i, EVENT + i * 16u);
        tell(RMM_DIAG_EVENT_WAIT, i + 1, EVENT + i * 16u);
        assert_false(is_bad_use(i % ORDER_ROWS, i + 1, &kernel));
        assert_false(is_bad_free(i % ORDER_ROWS, i + 1));
    }
    allocate(0, A);
    assert_true(is_bad_use(0, B, &kernel)); /* who was first still has his place */
}

static void places_of_streams_that_ended_are_used_again(void **state)
{
    (void)state;
    make_streams();
    for (uint32_t i = 10; i < 5000; i++) {
        make(i, true);
        allocate(0, i);
        assert_true(is_bad_use(0, A, &kernel));
        record_and_wait(i, A);
        assert_false(is_bad_use(0, A, &kernel));
        tell(RMM_DIAG_STREAM_DESTROY, i, 0);
    }
    assert_false(order.clocks->is_shared);
}

static void *use_own_stream(void *unused)
{
    rmm_diag_block_v1_t given = block(0, A);

    (void)unused;
    given.stream = RMM_STREAM_PER_THREAD;
    rmm__order_allocated(&order, 0, &given);
    return NULL;
}

/* No call tells that they end. The legacy default stream waits for their work. */
static void default_streams_of_threads_that_ended_leave_their_places(void **state)
{
    pthread_t thread;

    (void)state;
    make_streams();
    for (uint32_t i = 0; i < 5 * RMM_CLOCKS_STREAMS; i++) {
        assert_int_equal(pthread_create(&thread, NULL, use_own_stream, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(is_bad_use(0, A, &kernel));
        assert_false(is_bad_use(0, LEGACY, &kernel));
    }
    assert_false(order.clocks->is_shared);
}

/* It waits for nothing, whoever had its handle or its place before. */
static void a_new_stream_is_judged_although_an_earlier_one_was_not(void **state)
{
    (void)state;
    make_streams();
    for (uint32_t i = 10; i < 500; i++) {
        for (int again = 0; again < 2; again++) {
            make(i, true);
            allocate(0, A);
            assert_true(is_bad_use(0, i, &kernel));
            tell(RMM_DIAG_STREAM_UNSURE, i, 0);
            allocate(0, A);
            assert_false(is_bad_use(0, i, &kernel));
            tell(RMM_DIAG_STREAM_DESTROY, i, 0);
        }
    }
    assert_false(order.clocks->is_shared);
}

/* The host has waited for what the ended stream did not know. */
static void a_wait_for_the_device_makes_what_ended_known(void **state)
{
    (void)state;
    make(A, false);
    make(B, true);
    tell(RMM_DIAG_STREAM_UNSURE, A, 0);
    tell(RMM_DIAG_STREAM_DESTROY, A, 0);
    tell(RMM_DIAG_DEVICE_SYNC, 0, 0);
    allocate(0, B);
    assert_true(is_bad_use(0, LEGACY, &kernel));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_order, close_order)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(finds_a_use_that_is_not_ordered_behind_the_allocation),
        CASE(a_wait_that_is_missing_is_told_once_for_a_block),
        CASE(a_use_after_the_error_that_was_told_is_another_error),
        CASE(an_event_recorded_too_early_orders_nothing),
        CASE(order_passes_from_stream_to_stream),
        CASE(the_host_orders_what_it_has_waited_for),
        CASE(blocks_that_every_stream_may_use_are_no_error),
        CASE(the_default_stream_orders_blocking_streams),
        CASE(graphs_and_prefetches_of_the_default_stream_order_others),
        CASE(a_stream_that_was_made_unseen_counts_as_blocking),
        CASE(a_stream_that_was_made_unseen_is_what_the_driver_says),
        CASE(finds_copies_and_fills_of_the_same_bytes),
        CASE(rows_with_a_pitch_may_lie_in_each_other),
        CASE(a_kernel_conflicts_only_with_a_write_of_the_whole_block),
        CASE(finds_a_free_under_a_use),
        CASE(a_free_must_follow_each_of_several_users),
        CASE(a_stream_that_waits_for_the_unknown_is_never_judged),
        CASE(when_order_is_lost_nothing_is_judged),
        CASE(captured_work_is_not_judged),
        CASE(a_stream_joins_a_capture_whatever_is_said_of_its_wait),
        CASE(a_handle_that_is_used_again_is_another_stream),
        CASE(the_default_stream_waits_for_blocking_streams_that_ended),
        CASE(a_new_stream_waits_for_what_the_default_stream_waits_for),
        CASE(the_handle_of_an_unsure_stream_ends_no_doubt_about_others),
        CASE(a_wait_for_one_stream_ends_no_doubt_about_another),
        CASE(an_event_that_ended_is_not_known),
        CASE(more_streams_than_fit_are_one),
        CASE(places_of_streams_that_ended_are_used_again),
        CASE(default_streams_of_threads_that_ended_leave_their_places),
        CASE(a_new_stream_is_judged_although_an_earlier_one_was_not),
        CASE(a_wait_for_the_device_makes_what_ended_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
