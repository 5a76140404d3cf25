/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order of uses of blocks: what is ordered is no error, what is not is one, and what is not known
 * is none. Drawn programs are compared with a graph of all their operations.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/order.h"

#define BASE 0x7f0000000000ull
#define BLOCK_BYTES 4096u
#define ROWS 16u

static rmm_order_t order;
static rmm_order_conflict_t conflict;

static int open_order(void **state)
{
    (void)state;
    assert_true(rmm__order_init(&order, ROWS));
    return 0;
}

static int close_order(void **state)
{
    (void)state;
    rmm__order_fini(&order);
    return 0;
}

static rmm_stream_t stream(uint32_t number)
{
    return number == 0 ? RMM_STREAM_LEGACY
                       : (rmm_stream_t)(uintptr_t)(0x10000u + number * 16u);
}

static rmm_diag_block_v1_t block(uint32_t index, uint32_t on)
{
    return (rmm_diag_block_v1_t){
        .address = BASE + index * (uint64_t)BLOCK_BYTES,
        .bytes = BLOCK_BYTES,
        .stream_id = on,
        .stream = stream(on),
        .flags = RMM_DIAG_BLOCK_IN_STREAM_ORDER};
}

static void tell(uint32_t kind, uint32_t on, uint64_t word)
{
    rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = kind,
        .stream = stream(on),
        .words = &word,
        .word_count = 1};

    rmm__order_event(&order, &event);
}

static void make(uint32_t number, bool is_non_blocking)
{
    tell(RMM_DIAG_STREAM_CREATE, number, is_non_blocking ? 1 : 0);
}

static void allocate(uint32_t index, uint32_t on)
{
    rmm_diag_block_v1_t given = block(index, on);

    rmm__order_allocated(&order, index, &given);
}

static bool is_bad_free(uint32_t index, uint32_t on)
{
    rmm_diag_block_v1_t given = block(index, on);

    return rmm__order_freed(&order, index, &given, &conflict);
}

typedef struct use {
    uint32_t call;
    rmm_order_access_t access;
    uint64_t from, to; /* within the block */
} use_t;

static const use_t kernel = {RMM_DIAG_LAUNCH, RMM_ORDER_KERNEL, 0, 0};
static const use_t fill = {RMM_DIAG_SET, RMM_ORDER_WRITE, 0, BLOCK_BYTES};
static const use_t fill_begin = {RMM_DIAG_SET, RMM_ORDER_WRITE, 0, 1000};
static const use_t fill_end = {RMM_DIAG_SET, RMM_ORDER_WRITE, 1000, BLOCK_BYTES};
static const use_t read_all = {RMM_DIAG_COPY, RMM_ORDER_READ, 0, BLOCK_BYTES};
static const use_t fill_rows = {RMM_DIAG_SET, RMM_ORDER_SOME_WRITE, 0, BLOCK_BYTES};

static bool is_bad_use(uint32_t index, uint32_t on, const use_t *how)
{
    rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event), .kind = how->call, .stream = stream(on)};
    uint64_t address = BASE + index * (uint64_t)BLOCK_BYTES;
    rmm_order_use_t use = {
        .start = address + how->from,
        .end = address + how->to,
        .user = 100 + on,
        .access = (uint8_t)how->access};

    return rmm__order_begin(&order, &event, &use) &&
           rmm__order_use(&order, index, &use, &conflict);
}

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
        allocate(i % ROWS, i);
        tell(RMM_DIAG_EVENT_RECORD, i, EVENT + i * 16u);
        tell(RMM_DIAG_EVENT_WAIT, i + 1, EVENT + i * 16u);
        assert_false(is_bad_use(i % ROWS, i + 1, &kernel));
        assert_false(is_bad_free(i % ROWS, i + 1));
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

/* --- drawn programs -------------------------------------------------------------------------- */

enum {
    STREAMS = RMM_ORDER_USES,
    EVENTS = 3,
    BLOCKS = 4,
    STEPS = 160,
    WORDS = 6,
    ROUNDS = 3000
};

/* Every operation is a number; a set says which were before. */
typedef struct set {
    uint64_t bits[WORDS];
} set_t;

static struct {
    set_t before[STEPS + 1]; /* and itself */
    uint32_t last[STREAMS];  /* operation of the stream; 0: none */
    bool is_blocking[STREAMS];
    uint32_t recorded[EVENTS];
    set_t host;
    set_t ended; /* of blocking streams that have ended */
    uint32_t count;
    uint32_t allocated[BLOCKS]; /* 0: it is free */
    uint32_t owner[BLOCKS];
    set_t uses[BLOCKS];
} graph;

static void add_all(set_t *to, const set_t *from)
{
    for (int i = 0; i < WORDS; i++) {
        to->bits[i] |= from->bits[i];
    }
}

static void add(set_t *to, uint32_t operation)
{
    to->bits[operation / 64] |= (uint64_t)1 << operation % 64;
}

static bool holds(const set_t *set, const set_t *part)
{
    for (int i = 0; i < WORDS; i++) {
        if ((part->bits[i] & ~set->bits[i]) != 0) {
            return false;
        }
    }
    return true;
}

static bool has(const set_t *set, uint32_t operation)
{
    return (set->bits[operation / 64] >> operation % 64 & 1) != 0;
}

/* The next operation of a stream. */
static uint32_t operate(uint32_t on)
{
    uint32_t operation = ++graph.count;
    set_t *before = &graph.before[operation];

    assert_true(operation <= STEPS);
    add_all(before, &graph.host);
    add_all(before, &graph.before[graph.last[on]]);
    for (uint32_t i = 1; i < STREAMS && on == LEGACY; i++) {
        if (graph.is_blocking[i]) {
            add_all(before, &graph.before[graph.last[i]]);
        }
    }
    if (on == LEGACY) {
        add_all(before, &graph.ended);
    }
    if (graph.is_blocking[on]) {
        add_all(before, &graph.before[graph.last[LEGACY]]);
    }
    add(before, operation);
    graph.last[on] = operation;
    return operation;
}

static void draw_event_call(uint32_t on, uint32_t event)
{
    uint32_t operation = operate(on);

    switch (rand() % 3) {
    case 0:
        tell(RMM_DIAG_EVENT_RECORD, on, EVENT + event * 16);
        graph.recorded[event] = operation;
        break;
    case 1:
        if (graph.recorded[event] != 0) {
            tell(RMM_DIAG_EVENT_WAIT, on, EVENT + event * 16);
            add_all(&graph.before[operation], &graph.before[graph.recorded[event]]);
            break;
        } /* fall through */
    default:
        tell(RMM_DIAG_STREAM_SYNC, on, 0);
        add_all(&graph.host, &graph.before[operation]);
        break;
    }
}

/* Its handle is another stream's, which is taken to follow it. */
static void end_stream(uint32_t on)
{
    if (graph.is_blocking[on]) {
        add_all(&graph.ended, &graph.before[graph.last[on]]);
    }
    tell(RMM_DIAG_STREAM_DESTROY, on, 0);
    graph.is_blocking[on] = rand() % 2 == 0;
    make(on, !graph.is_blocking[on]);
}

static void end_event(uint32_t event)
{
    tell(RMM_DIAG_EVENT_DESTROY, 0, EVENT + event * 16);
    graph.recorded[event] = 0;
}

static void draw_use(uint32_t on, uint32_t index)
{
    uint32_t operation = operate(on);
    set_t *before = &graph.before[operation];

    if (graph.allocated[index] == 0) {
        allocate(index, on);
        graph.allocated[index] = operation;
        graph.uses[index] = (set_t){{0}};
    } else if (rand() % 8 == 0) {
        assert_int_equal(is_bad_free(index, on), !holds(before, &graph.uses[index]));
        graph.allocated[index] = 0;
    } else {
        assert_int_equal(
            is_bad_use(index, on, &kernel), !has(before, graph.allocated[index]));
        add(&graph.uses[index], operation);
    }
}

static void draw_program(unsigned seed)
{
    memset(&graph, 0, sizeof(graph));
    srand(seed);
    graph.is_blocking[LEGACY] = true;
    for (uint32_t i = 1; i < STREAMS; i++) {
        graph.is_blocking[i] = rand() % 2 == 0;
        make(i, !graph.is_blocking[i]);
    }
    while (graph.count < STEPS) {
        uint32_t on = (uint32_t)rand() % STREAMS;

        if (rand() % 100 == 0) {
            tell(RMM_DIAG_DEVICE_SYNC, 0, 0);
            for (uint32_t i = 0; i < STREAMS; i++) {
                add_all(&graph.host, &graph.before[graph.last[i]]);
            }
        } else if (rand() % 40 == 0 && on != LEGACY) {
            end_stream(on);
        } else if (rand() % 60 == 0) {
            end_event((uint32_t)rand() % EVENTS);
        } else if (rand() % 3 == 0) {
            draw_event_call(on, (uint32_t)rand() % EVENTS);
        } else {
            draw_use(on, (uint32_t)rand() % BLOCKS);
        }
    }
}

static void agrees_with_the_graph_of_drawn_programs(void **state)
{
    const char *asked = getenv("RMM_TEST_SEED");
    unsigned first = asked != NULL ? (unsigned)strtoul(asked, NULL, 10) : 1;

    for (unsigned i = 0; i < (asked != NULL ? 1 : ROUNDS); i++) {
        fprintf(stderr, "%sRMM_TEST_SEED=%u", i == 0 ? "" : "\r", first + i);
        draw_program(first + i);
        close_order(state);
        open_order(state);
    }
    fputc('\n', stderr);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_order, close_order)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(finds_a_use_that_is_not_ordered_behind_the_allocation),
        CASE(an_event_recorded_too_early_orders_nothing),
        CASE(order_passes_from_stream_to_stream),
        CASE(the_host_orders_what_it_has_waited_for),
        CASE(blocks_that_every_stream_may_use_are_no_error),
        CASE(the_default_stream_orders_blocking_streams),
        CASE(graphs_and_prefetches_of_the_default_stream_order_others),
        CASE(a_stream_that_was_made_unseen_counts_as_blocking),
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
        CASE(an_event_that_ended_is_not_known),
        CASE(more_streams_than_fit_are_one),
        CASE(places_of_streams_that_ended_are_used_again),
        CASE(agrees_with_the_graph_of_drawn_programs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
