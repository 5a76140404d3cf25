/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait adaptor: who waits for what, for how long, in which order, and who is refused. Limits
 * of 4 MiB stand for short memory. stress.wait_threads has the crowd.
 */
#include "sim/adaptors/adaptor_harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "adaptors/wait_threads.h"
#include "core/clock.h"
#include "harness/in_child.h"

#define LIMIT (4 * MIB)
#define LONG_MS 60000

static rmm_resource_t *make_limited(uint64_t bytes)
{
    rmm_limiting_options_t options = RMM_LIMITING_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda(), *mr;

    options.limit_bytes = bytes;
    assert_ok(rmm_limiting_adaptor_create(cuda, &options, &mr));
    rmm_resource_release(cuda);
    return mr;
}

static rmm_resource_t *wait_over(rmm_resource_t *upstream, uint32_t timeout_ms)
{
    rmm_wait_options_t options = RMM_WAIT_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.timeout_ms = timeout_ms;
    assert_ok(rmm_wait_adaptor_create(upstream, &options, &mr));
    rmm_resource_release(upstream);
    return mr;
}

static void pause_ms(long ms)
{
    (void)nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static uint64_t waiting_at(const rmm_resource_t *mr)
{
    uint64_t count;

    assert_ok(rmm_wait_get_waiting(mr, &count));
    return count;
}

static void until_waiting(const rmm_resource_t *mr, uint64_t count)
{
    while (waiting_at(mr) != count) {
        pause_ms(1);
    }
}

/* --- threads that do as they are told --------------------------------------------------- */

typedef struct hand {
    rmm_resource_t *mr;
    rmm_stream_t stream;
    size_t held_bytes, wanted_bytes;
    pthread_t thread;
    pthread_barrier_t *begin; /* all hold what they hold; NULL: at once */
    void *held, *wanted;
    rmm_status_t status;
    char message[512];
    uint64_t took_ns;
    _Atomic(int) *order; /* counts those that have got what they want */
    int place;
    bool gives_back_wanted;
    bool begins_later; /* at a second barrier: the test has what it holds */
} hand_t;

static bool is_told(const hand_t *hand)
{
    return hand->status == RMM_ERR_OUT_OF_MEMORY &&
           strstr(hand->message, "all threads that hold its memory wait") != NULL;
}

static void *ask(void *argument)
{
    hand_t *hand = argument;
    uint64_t begin_ns;

    if (hand->held_bytes != 0) {
        hand->held = take(hand->mr, hand->held_bytes, hand->stream);
    }
    if (hand->begin != NULL) {
        pthread_barrier_wait(hand->begin);
    }
    if (hand->begins_later) {
        pthread_barrier_wait(hand->begin);
    }
    begin_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    hand->status = rmm_resource_alloc(
        hand->mr, hand->wanted_bytes, 0, hand->stream, &hand->wanted);
    hand->took_ns = rmm__clock_ns(CLOCK_MONOTONIC) - begin_ns;
    snprintf(hand->message, sizeof(hand->message), "%s", rmm_last_error_message());
    if (hand->status == RMM_OK && hand->order != NULL) {
        hand->place = atomic_fetch_add(hand->order, 1);
    }
    if (hand->status == RMM_OK && hand->gives_back_wanted) {
        give(hand->mr, hand->wanted, hand->wanted_bytes, hand->stream);
    }
    if (hand->held != NULL) {
        give(hand->mr, hand->held, hand->held_bytes, hand->stream);
    }
    return NULL;
}

static void start(hand_t *hand)
{
    assert_int_equal(pthread_create(&hand->thread, NULL, ask, hand), 0);
}

static void join(hand_t *hand)
{
    assert_int_equal(pthread_join(hand->thread, NULL), 0);
}

/* --- waiting --------------------------------------------------------------------------- */

TEST_CASE(a_request_waits_until_another_thread_frees)
{
    rmm_resource_t *mr = wait_over(make_limited(LIMIT), LONG_MS);
    void *held = take(mr, 3 * MIB, NULL);
    hand_t hand = {.mr = mr, .wanted_bytes = 2 * MIB, .gives_back_wanted = true};

    start(&hand);
    until_waiting(mr, 1);
    give(mr, held, 3 * MIB, NULL);
    join(&hand);
    assert_ok(hand.status);
    assert_int_equal(waiting_at(mr), 0);
    assert_int_equal(stats_of(mr).oom_count, 0);
    end_adaptor(mr);
}

TEST_CASE(a_request_that_nobody_serves_fails_when_its_time_is_over)
{
    rmm_resource_t *mr = wait_over(make_limited(LIMIT), 200);
    void *held = take(mr, 3 * MIB, NULL); /* this thread works, for all that is known */
    hand_t hand = {.mr = mr, .wanted_bytes = 2 * MIB};

    start(&hand);
    join(&hand);
    assert_int_equal(hand.status, RMM_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(hand.message, "waited 200 ms: limiting"));
    assert_true(hand.took_ns >= 200000000u);
    assert_int_equal(stats_of(mr).oom_count, 1);
    give(mr, held, 3 * MIB, NULL);
    end_adaptor(mr);
}

/* That free wakes nobody, but a thread that waits tries now and then. */
TEST_CASE(memory_that_was_freed_past_the_adaptor_is_found)
{
    rmm_resource_t *limited = make_limited(LIMIT);
    rmm_resource_t *mr = wait_over(rmm_resource_retain(limited), LONG_MS);
    void *held = take(mr, MIB, NULL); /* so that somebody works */
    void *elsewhere = take(limited, 3 * MIB, NULL);
    hand_t hand = {.mr = mr, .wanted_bytes = 2 * MIB, .gives_back_wanted = true};

    start(&hand);
    until_waiting(mr, 1);
    pause_ms(10);
    give(limited, elsewhere, 3 * MIB, NULL);
    join(&hand);
    assert_ok(hand.status);
    assert_true(hand.took_ns < LONG_MS * 500000u);
    give(mr, held, MIB, NULL);
    rmm_resource_release(limited);
    end_adaptor(mr);
}

TEST_CASE(other_failures_are_not_waited_for)
{
    mock_t *mock = make_mock();
    rmm_resource_t *mr = wait_over(&mock->base, LONG_MS);
    void *ptr;

    mock->failure = RMM_ERR_BAD_ALLOC;
    mock->failures = 1;
    assert_int_equal(rmm_resource_alloc(mr, 100, 0, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    assert_int_equal(mock->allocs, 1);
    assert_ok(rmm_resource_alloc(mr, 0, 0, NULL, &ptr));
    rmm_resource_dealloc(mr, ptr, 0, 0, NULL);
    end_adaptor(mr);
}

/* --- all wait -------------------------------------------------------------------------- */

TEST_CASE(a_thread_that_holds_all_is_refused_at_once)
{
    rmm_resource_t *mr = wait_over(make_limited(LIMIT), LONG_MS);
    void *held = take(mr, 3 * MIB, NULL);
    uint64_t begin_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    void *mark = &mark, *ptr = mark;

    assert_int_equal(
        rmm_resource_alloc(mr, 2 * MIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_ptr_equal(ptr, mark);
    assert_non_null(strstr(
        rmm_last_error_message(),
        "wait 'wait': all threads that hold its memory wait"));
    assert_non_null(strstr(rmm_last_error_message(), "limiting"));
    assert_true(rmm__clock_ns(CLOCK_MONOTONIC) - begin_ns < LONG_MS * 500000u);
    assert_int_equal(
        rmm_resource_alloc(mr, 5 * MIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    give(mr, held, 3 * MIB, NULL);
    assert_int_equal(/* more than there is, and nobody holds any */
                     rmm_resource_alloc(mr, 5 * MIB, 0, NULL, &ptr),
                     RMM_ERR_OUT_OF_MEMORY);
    end_adaptor(mr);
}

TEST_CASE(one_of_four_is_refused_when_all_wait_and_the_others_get_through)
{
    rmm_resource_t *mr = wait_over(make_limited(LIMIT), LONG_MS);
    pthread_barrier_t begin;
    hand_t hands[4];
    int told = 0, served = 0;

    assert_int_equal(pthread_barrier_init(&begin, NULL, 4), 0);
    for (int i = 0; i < 4; i++) {
        hands[i] = (hand_t){
            .mr = mr,
            .held_bytes = MIB,
            .wanted_bytes = MIB,
            .begin = &begin,
            .gives_back_wanted = true};
        start(&hands[i]);
    }
    for (int i = 0; i < 4; i++) {
        join(&hands[i]);
        told += is_told(&hands[i]);
        served += hands[i].status == RMM_OK;
    }
    assert_int_equal(told, 1);
    assert_int_equal(served, 3);
    pthread_barrier_destroy(&begin);
    end_adaptor(mr);
}

/* It could give nothing back: a thread that holds memory is told, though it came first. */
TEST_CASE(a_thread_without_memory_waits_on)
{
    rmm_resource_t *mr = wait_over(make_limited(LIMIT), LONG_MS);
    pthread_barrier_t begin;
    hand_t holder = {
        .mr = mr, .held_bytes = 3 * MIB, .wanted_bytes = 2 * MIB, .begin = &begin};
    hand_t other = {.mr = mr, .wanted_bytes = 2 * MIB, .gives_back_wanted = true};

    assert_int_equal(pthread_barrier_init(&begin, NULL, 2), 0);
    start(&holder);
    while (stats_of(mr).current_bytes == 0) {
        pause_ms(1);
    }
    start(&other);
    until_waiting(mr, 1);
    pthread_barrier_wait(&begin);
    join(&holder);
    join(&other);
    assert_true(is_told(&holder));
    assert_ok(other.status);
    pthread_barrier_destroy(&begin);
    end_adaptor(mr);
}

/* The first to come holds memory as well, but the last one is told. */
TEST_CASE(the_last_that_came_is_told)
{
    rmm_resource_t *mr = wait_over(make_limited(LIMIT), LONG_MS);
    void *held = take(mr, 2 * MIB, NULL);
    hand_t first = {
        .mr = mr,
        .held_bytes = MIB,
        .wanted_bytes = 3 * MIB,
        .gives_back_wanted = true};
    void *ptr;

    start(&first);
    until_waiting(mr, 1);
    assert_int_equal(
        rmm_resource_alloc(mr, 2 * MIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(waiting_at(mr), 1);
    give(mr, held, 2 * MIB, NULL);
    join(&first);
    assert_ok(first.status);
    end_adaptor(mr);
}

typedef struct stubborn {
    hand_t hand;
    int told;
} stubborn_t;

static void *ask_until_served(void *argument)
{
    stubborn_t *self = argument;
    hand_t *hand = &self->hand;

    hand->held = take(hand->mr, hand->held_bytes, NULL);
    pthread_barrier_wait(hand->begin);
    while (rmm_resource_alloc(hand->mr, hand->wanted_bytes, 0, NULL, &hand->wanted) !=
           RMM_OK) {
        self->told++;
    }
    give(hand->mr, hand->wanted, hand->wanted_bytes, NULL);
    give(hand->mr, hand->held, hand->held_bytes, NULL);
    return NULL;
}

/* It is told once; then another one is, which does give something back. */
TEST_CASE(a_thread_that_gives_nothing_back_is_not_asked_again)
{
    rmm_resource_t *mr = wait_over(make_limited(LIMIT), LONG_MS);
    pthread_barrier_t begin;
    stubborn_t stubborn = {
        .hand = {
            .mr = mr, .held_bytes = MIB, .wanted_bytes = 3 * MIB, .begin = &begin}};
    hand_t first = {.mr = mr, .held_bytes = 3 * MIB, .wanted_bytes = 2 * MIB};

    assert_int_equal(pthread_barrier_init(&begin, NULL, 2), 0);
    assert_int_equal(
        pthread_create(&stubborn.hand.thread, NULL, ask_until_served, &stubborn), 0);
    while (stats_of(mr).current_bytes == 0) {
        pause_ms(1);
    }
    start(&first);
    until_waiting(mr, 1);
    pthread_barrier_wait(&begin);
    join(&first);
    assert_int_equal(pthread_join(stubborn.hand.thread, NULL), 0);
    assert_true(is_told(&first));
    assert_int_equal(stubborn.told, 1);
    pthread_barrier_destroy(&begin);
    end_adaptor(mr);
}

/* --- order ----------------------------------------------------------------------------- */

/* One that tries at the very moment of a free may be ahead of the first; so not each time. */
static bool are_served_in_order(void)
{
    rmm_resource_t *mr = wait_over(make_limited(LIMIT), LONG_MS);
    void *held = take(mr, 4 * MIB, NULL);
    _Atomic(int) order = 0;
    hand_t hands[6];
    bool in_order = true;

    for (int i = 0; i < 6; i++) {
        hands[i] = (hand_t){
            .mr = mr,
            .wanted_bytes = 3 * MIB, /* one at a time */
            .order = &order,
            .gives_back_wanted = true};
        start(&hands[i]);
        until_waiting(mr, (uint64_t)i + 1);
    }
    pause_ms(10);
    give(mr, held, 4 * MIB, NULL);
    for (int i = 0; i < 6; i++) {
        join(&hands[i]);
        assert_ok(hands[i].status);
        in_order = in_order && hands[i].place == i;
    }
    end_adaptor(mr);
    return in_order;
}

TEST_CASE(requests_are_served_in_the_order_in_which_they_came)
{
    int rounds = 1;

    while (!are_served_in_order()) {
        assert_true(rounds++ < 50);
    }
}

TEST_CASE(a_small_request_overtakes_one_that_does_not_fit)
{
    rmm_resource_t *mr = wait_over(make_limited(LIMIT), LONG_MS);
    void *held = take(mr, 2 * MIB, NULL), *half = take(mr, 2 * MIB, NULL);
    hand_t large = {.mr = mr, .wanted_bytes = 4 * MIB, .gives_back_wanted = true};
    hand_t small = {.mr = mr, .wanted_bytes = MIB, .gives_back_wanted = true};

    start(&large);
    until_waiting(mr, 1);
    start(&small);
    until_waiting(mr, 2);
    give(mr, half, 2 * MIB, NULL);
    join(&small);
    assert_ok(small.status);
    assert_int_equal(waiting_at(mr), 1);
    give(mr, held, 2 * MIB, NULL);
    join(&large);
    assert_ok(large.status);
    end_adaptor(mr);
}

typedef struct churn {
    rmm_resource_t *mr;
    _Atomic(bool) is_over;
} churn_t;

static void *churn(void *argument)
{
    churn_t *self = argument;
    void *blocks[2] = {NULL, NULL};

    for (int i = 0; !atomic_load(&self->is_over); i ^= 1) {
        if (blocks[i] != NULL) { /* never without a block */
            give(self->mr, blocks[i], MIB / 2, NULL);
        }
        blocks[i] = take(self->mr, MIB / 2, NULL);
    }
    for (int i = 0; i < 2; i++) {
        if (blocks[i] != NULL) {
            give(self->mr, blocks[i], MIB / 2, NULL);
        }
    }
    return NULL;
}

/* Four threads that never have less than half a MiB each, but take and free all the time: a
 * request for all but these gets its turn. */
TEST_CASE(a_large_request_is_served_among_many_small_ones)
{
    rmm_resource_t *mr = wait_over(make_limited(LIMIT), LONG_MS);
    churn_t self = {.mr = mr};
    pthread_t threads[4];
    void *ptr;

    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, churn, &self), 0);
    }
    for (int i = 0; i < 20; i++) {
        ptr = take(mr, 2 * MIB, NULL);
        give(mr, ptr, 2 * MIB, NULL);
    }
    atomic_store(&self.is_over, true);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    end_adaptor(mr);
}

/* --- streams and captures ---------------------------------------------------------------- */

TEST_CASE(memory_of_another_stream_is_reused_in_order)
{
    rmm_resource_t *mr = wait_over(make_pool(0, LIMIT), LONG_MS);
    rmm_stream_t streams[] = {make_stream(0), make_stream(0)};
    void *held = take(mr, 4 * MIB, streams[0]);
    hand_t hand = {.mr = mr, .stream = streams[1], .wanted_bytes = 4 * MIB};
    uint64_t mixups = 0;

    start(&hand);
    until_waiting(mr, 1);
    launch_fill(held, 4 * MIB, 1, streams[0]);
    launch_check(held, 4 * MIB, 1, &mixups, streams[0]);
    give(mr, held, 4 * MIB, streams[0]);
    join(&hand);
    assert_ok(hand.status);
    launch_fill(hand.wanted, 4 * MIB, 2, streams[1]);
    launch_check(hand.wanted, 4 * MIB, 2, &mixups, streams[1]);
    give(mr, hand.wanted, 4 * MIB, streams[1]);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(mixups, 0);
    assert_ok(rmm_stream_destroy(streams[0]));
    assert_ok(rmm_stream_destroy(streams[1]));
    end_adaptor(mr);
}

TEST_CASE(nothing_is_waited_for_in_a_capture)
{
    rmm_resource_t *mr = wait_over(make_limited(LIMIT), LONG_MS);
    void *held = take(mr, 4 * MIB, NULL), *ptr;
    hand_t hand = {.mr = mr, .stream = make_stream(0), .wanted_bytes = MIB};
    rmm_sim_graph_t graph;

    (void)ptr;
    assert_cuda(rmm_sim_begin_capture(hand.stream, 2));
    start(&hand); /* while this thread holds memory, and frees none */
    join(&hand);
    assert_int_equal(hand.status, RMM_ERR_OUT_OF_MEMORY);
    assert_null(strstr(hand.message, "wait"));
    assert_cuda(rmm_sim_end_capture(hand.stream, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    give(mr, held, 4 * MIB, NULL);
    assert_ok(rmm_stream_destroy(hand.stream));
    end_adaptor(mr);
}

/* --- functions of the program, stacks --------------------------------------------------- */

typedef struct inner {
    rmm_resource_t *mr;
    rmm_status_t status;
    int calls;
} inner_t;

static bool ask_again(size_t bytes, void *argument)
{
    inner_t *inner = argument;
    void *ptr;

    (void)bytes;
    if (inner->calls++ == 0) {
        inner->status = rmm_resource_alloc(inner->mr, MIB, 0, NULL, &ptr);
    }
    return false;
}

/* The other requests wait for the outer one, which would wait for the inner one. */
TEST_CASE(a_request_inside_a_request_does_not_wait)
{
    rmm_failure_callback_options_t options = RMM_FAILURE_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *limited = make_limited(LIMIT), *asking, *mr;
    void *held, *ptr;
    inner_t inner = {.status = RMM_OK};

    options.callback = ask_again;
    options.arg = &inner;
    assert_ok(rmm_failure_callback_adaptor_create(limited, &options, &asking));
    rmm_resource_release(limited);
    mr = inner.mr = wait_over(asking, LONG_MS);
    held = take(mr, 4 * MIB, NULL);
    assert_int_equal(rmm_resource_alloc(mr, MIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(inner.status, RMM_ERR_OUT_OF_MEMORY);
    give(mr, held, 4 * MIB, NULL);
    end_adaptor(mr);
}

TEST_CASE(a_wait_over_a_wait_leaves_it_to_that_one)
{
    rmm_resource_t *mr = wait_over(wait_over(make_limited(LIMIT), LONG_MS), LONG_MS);
    pthread_barrier_t begin;
    hand_t hands[2];

    assert_int_equal(pthread_barrier_init(&begin, NULL, 2), 0);
    for (int i = 0; i < 2; i++) {
        hands[i] = (hand_t){
            .mr = mr,
            .held_bytes = 2 * MIB,
            .wanted_bytes = 2 * MIB,
            .begin = &begin,
            .gives_back_wanted = true};
        start(&hands[i]);
    }
    join(&hands[0]);
    join(&hands[1]);
    assert_true(hands[0].took_ns < LONG_MS * 500000u);
    assert_true(hands[1].took_ns < LONG_MS * 500000u);
    assert_int_equal(is_told(&hands[0]) + is_told(&hands[1]), 1);
    pthread_barrier_destroy(&begin);
    end_adaptor(mr);
}

/* --- the end of things ------------------------------------------------------------------- */

TEST_CASE(a_cancelled_thread_waits_on_and_ends_behind_the_call)
{
    rmm_resource_t *mr = wait_over(make_limited(LIMIT), LONG_MS);
    void *held = take(mr, 4 * MIB, NULL);
    hand_t hand = {.mr = mr, .wanted_bytes = MIB, .gives_back_wanted = true};

    start(&hand);
    until_waiting(mr, 1);
    assert_int_equal(pthread_cancel(hand.thread), 0);
    pause_ms(20);
    assert_int_equal(waiting_at(mr), 1);
    give(mr, held, 4 * MIB, NULL);
    join(&hand);
    assert_int_equal(waiting_at(mr), 0);
    if (hand.wanted != NULL && stats_of(mr).current_bytes != 0) {
        give(mr, hand.wanted, MIB, NULL);
    }
    end_adaptor(mr);
}

static rmm_resource_t *forked_mr;

static int refuse_in_child(void)
{
    void *ptr;
    hand_t hand = {.mr = forked_mr, .wanted_bytes = MIB};

    if (rmm_resource_alloc(forked_mr, MIB, 0, NULL, &ptr) != RMM_ERR_UNSUPPORTED) {
        return 1;
    }
#ifdef __SANITIZE_THREAD__ /* it knows no new threads in such a child */
    (void)ask(&hand);
#else
    start(&hand);
    join(&hand);
#endif
    rmm_resource_release(forked_mr);
    return hand.status == RMM_ERR_UNSUPPORTED ? 0 : 2;
}

TEST_CASE(a_fork_while_a_thread_waits_leaves_both_processes_whole)
{
    rmm_resource_t *mr = wait_over(make_limited(LIMIT), LONG_MS);
    void *held = take(mr, 4 * MIB, NULL);
    hand_t hand = {.mr = mr, .wanted_bytes = MIB, .gives_back_wanted = true};

    start(&hand);
    until_waiting(mr, 1);
    forked_mr = mr;
    assert_int_equal(in_child(refuse_in_child), 0);
    give(mr, held, 4 * MIB, NULL);
    join(&hand);
    assert_ok(hand.status);
    end_adaptor(mr);
}

TEST_CASE(other_references_may_go_while_a_thread_waits)
{
    rmm_resource_t *limited = make_limited(LIMIT);
    rmm_resource_t *mr = wait_over(rmm_resource_retain(limited), LONG_MS);
    rmm_resource_t *also = rmm_resource_retain(mr);
    void *held = take(mr, 4 * MIB, NULL);
    hand_t hand = {.mr = also, .wanted_bytes = MIB, .gives_back_wanted = true};

    start(&hand);
    until_waiting(mr, 1);
    rmm_resource_release(limited);
    rmm_resource_release(mr);
    give(also, held, 4 * MIB, NULL);
    join(&hand);
    assert_ok(hand.status);
    end_adaptor(also);
}

static void *take_and_end(void *argument)
{
    hand_t *hand = argument;

    hand->held = take(hand->mr, hand->held_bytes, NULL);
    return NULL;
}

/* Somebody may free what an ended thread has left, so nobody is told; when it is freed, and by
 * whom, is known again. */
TEST_CASE(what_an_ended_thread_leaves_counts_until_it_is_freed)
{
    rmm_resource_t *mr = wait_over(make_limited(LIMIT), 300);
    hand_t left = {.mr = mr, .held_bytes = 3 * MIB};
    void *ptr;

    assert_int_equal(pthread_create(&left.thread, NULL, take_and_end, &left), 0);
    join(&left);
    assert_int_equal(
        rmm_resource_alloc(mr, 2 * MIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(rmm_last_error_message(), "waited 300 ms"));
    give(mr, left.held, 3 * MIB, NULL);
    assert_int_equal(
        rmm_resource_alloc(mr, 5 * MIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(rmm_last_error_message(), "all threads"));
    end_adaptor(mr);
}

/* This thread has freed a block of the other one: it may hold more of them. */
TEST_CASE(a_thread_that_frees_for_others_counts)
{
    rmm_resource_t *mr = wait_over(make_limited(LIMIT), 300);
    pthread_barrier_t begin;
    hand_t maker = {
        .mr = mr,
        .held_bytes = 3 * MIB,
        .wanted_bytes = 2 * MIB,
        .begin = &begin,
        .begins_later = true};
    void *own;

    assert_int_equal(pthread_barrier_init(&begin, NULL, 2), 0);
    start(&maker);
    pthread_barrier_wait(&begin);
    own = take(mr, MIB, NULL);
    give(mr, own, MIB, NULL);
    give(mr, maker.held, 3 * MIB, NULL); /* no longer the maker's */
    maker.held = NULL;
    own = take(mr, 3 * MIB, NULL);
    pthread_barrier_wait(&begin);
    join(&maker);
    assert_non_null(strstr(maker.message, "waited 300 ms"));
    give(mr, own, 3 * MIB, NULL);
    pthread_barrier_destroy(&begin);
    end_adaptor(mr);
}

/* Threads keep a record of each adaptor that they have used. */
TEST_CASE(many_adaptors_come_and_go_on_one_thread)
{
    for (int i = 0; i < 100; i++) {
        rmm_resource_t *mr = wait_over(make_limited(LIMIT), LONG_MS);
        rmm_resource_t *second = wait_over(rmm_resource_retain(mr), LONG_MS);
        void *ptr = take(second, MIB, NULL), *other = take(mr, MIB, NULL);

        give(second, ptr, MIB, NULL);
        give(mr, other, MIB, NULL);
        rmm_resource_release(second);
        end_adaptor(mr);
    }
}

TEST_CASE(options_are_checked)
{
    rmm_wait_options_t options = RMM_WAIT_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda(), *mr = NULL;
    uint64_t count;

    assert_int_equal(
        rmm_wait_adaptor_create(NULL, NULL, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_wait_adaptor_create(cuda, NULL, NULL), RMM_ERR_INVALID_ARGUMENT);
    options.struct_size = 0;
    assert_int_equal(
        rmm_wait_adaptor_create(cuda, &options, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_null(mr);
    assert_int_equal(rmm_wait_get_waiting(cuda, &count), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_wait_get_waiting(NULL, &count), RMM_ERR_INVALID_ARGUMENT);
    assert_ok(rmm_wait_adaptor_create(cuda, NULL, &mr));
    rmm_resource_release(cuda);
    assert_int_equal(rmm_wait_get_waiting(mr, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_string_equal(rmm_resource_name(mr), "wait");
    end_adaptor(mr);
}
