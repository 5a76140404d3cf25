/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drawn programs of streams, events, waits of the host, captures and waits for what no call tells,
 * against a model that keeps for each stream the set of all operations that it follows. What the
 * model says of kernels is found exactly; of copies and fills, where some of the streams share a
 * place with others, and where events lose their places, nothing that is ordered is found.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/random.h"
#include "unit/order_fixture.h"

enum {
    LEGACY,
    STREAMS = RMM_ORDER_USES, /* more users of a block are not remembered */
    EVENTS = 4,
    DEVICES = 2,
    UNKNOWN = RMM_CLOCKS_DEVICE_UNKNOWN,
    SEVERAL = RMM_CLOCKS_DEVICE_SEVERAL,
    BLOCKS = 5,
    MIXED = BLOCKS - 1, /* block that is also copied and filled */
    STEPS = 240,        /* fewer than bits of a set: a step adds some operations */
    WORDS = 4,
    ROUNDS = 4000,
    EVENT = 0x7000
};

/* Of operations, which are numbers. */
typedef struct set {
    uint64_t bits[WORDS];
} set_t;

/* What an operation follows. */
typedef struct known {
    set_t before;
    bool is_unsure; /* and something unknown */
} known_t;

typedef struct past_use {
    uint32_t operation;
    const use_t *how;
} past_use_t;

static struct {
    uint64_t random;
    uint32_t count; /* operations */
    uint32_t captures;
    set_t host;
    known_t ended; /* blocking streams; the default stream follows them */
    bool is_lost;
    bool has_devices;
    bool was_unsure; /* a stream that has ended */
    bool is_crowded; /* some of the streams share a place */
    bool forgets;    /* events lose their places */
    struct {
        known_t now; /* with its last operation */
        uint32_t last;
        uint32_t capture; /* 0: none */
        bool is_origin;   /* of it */
        bool is_blocking;
        int32_t device; /* as far as the calls have told it */
    } streams[STREAMS];
    struct {
        known_t at;
        uint32_t capture; /* that it was recorded in */
        bool is_recorded;
    } events[EVENTS];
    struct {
        bool is_live;
        uint32_t allocated; /* operation; 0: all streams may use it */
        set_t uses;
        past_use_t past[STEPS];
        uint32_t past_count;
    } blocks[BLOCKS];
} model;

static uint32_t any(uint32_t bound)
{
    return (uint32_t)draw(&model.random, bound);
}

/* --- sets -------------------------------------------------------------------------- */

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

/* Operation 0 is none. */
static bool has(const set_t *set, uint32_t operation)
{
    return operation == 0 || (set->bits[operation / 64] >> operation % 64 & 1) != 0;
}

static void follow(known_t *now, const known_t *of)
{
    add_all(&now->before, &of->before);
    now->is_unsure |= of->is_unsure;
}

/* --- streams ----------------------------------------------------------------------- */

static void follow_stream(known_t *now, uint32_t of)
{
    if (!has(&now->before, model.streams[of].last)) {
        follow(now, &model.streams[of].now);
    }
}

static void follow_default(uint32_t on)
{
    known_t *now = &model.streams[on].now;

    if (on != LEGACY) {
        follow_stream(now, LEGACY);
        return;
    }
    for (uint32_t i = 1; i < STREAMS; i++) {
        if (model.streams[i].is_blocking) {
            follow_stream(now, i);
        }
    }
    follow(now, &model.ended);
    model.ended = (known_t){.is_unsure = false};
}

/* The next operation of a stream that does not capture. */
static uint32_t operate(uint32_t on)
{
    known_t *now = &model.streams[on].now;
    uint32_t operation = ++model.count;

    assert_true(operation < WORDS * 64);
    add_all(&now->before, &model.host);
    if (model.streams[on].is_blocking) {
        follow_default(on);
    }
    add(&now->before, operation);
    model.streams[on].last = operation;
    return operation;
}

/* A stream that is unsure may still wait: that comes as an operation of its own, which nobody
 * knows. */
static void renew_unsure(void)
{
    for (uint32_t i = 0; i < STREAMS; i++) {
        if (model.streams[i].now.is_unsure) {
            model.streams[i].last = ++model.count;
            add(&model.streams[i].now.before, model.count);
        }
    }
}

static void host_knows_all(void)
{
    uint32_t begun = model.count;

    renew_unsure();
    for (uint32_t i = 1; i <= begun; i++) {
        add(&model.host, i);
    }
}

static void host_follows(const known_t *known)
{
    if (known->is_unsure) {
        host_knows_all();
    } else {
        add_all(&model.host, &known->before);
    }
}

static void synchronize_stream(uint32_t on)
{
    known_t known;

    (void)operate(on);
    known = model.streams[on].now;
    tell(RMM_DIAG_STREAM_SYNC, on, 0);
    model.streams[on].now.is_unsure = false;
    host_follows(&known);
}

static bool is_waited_for(uint32_t on, int32_t device)
{
    return device < 0 || model.streams[on].device < 0 ||
           model.streams[on].device == device;
}

/* device: UNKNOWN: it may be any, and all. */
static void synchronize_device(int32_t device)
{
    bool is_all = device < 0 || !model.has_devices || model.was_unsure;

    synchronize(device);
    for (uint32_t i = 0; i < STREAMS; i++) {
        is_all |= is_waited_for(i, device) && model.streams[i].now.is_unsure;
        if (!model.has_devices || (device >= 0 && model.streams[i].device == device)) {
            model.streams[i].now.is_unsure = false;
        }
    }
    if (is_all) {
        host_knows_all();
    }
    for (uint32_t i = 0; i < STREAMS; i++) {
        if (!is_all && is_waited_for(i, device)) {
            add_all(&model.host, &model.streams[i].now.before);
        }
    }
    model.ended.is_unsure &= model.has_devices;
}

static void set_capture(uint32_t on, uint32_t capture)
{
    model.streams[on].capture = capture;
    if (model.forgets || model.is_crowded) {
        captured_streams &= ~((uint64_t)1 << on);
        captured_streams |= (uint64_t)(capture != 0) << on;
    }
}

static int32_t any_device(void)
{
    return model.has_devices ? (int32_t)any(DEVICES) : 0;
}

/* A stream is made on a device, which the call may not tell. The engine keeps what its handle
 * stood for before; where not all is found, the model does not. */
static void make_on(uint32_t on, int32_t device, bool is_blocking)
{
    bool is_exact = !model.is_crowded && !model.forgets;
    int32_t told = any(4) == 0 ? UNKNOWN : device;
    int32_t before = model.streams[on].device;
    bool is_over = has(&model.host, model.streams[on].last);

    devices[on] = told;
    make(on, !is_blocking);
    devices[on] = device;
    model.streams[on].device = is_exact ? told : device;
    if (is_exact && !is_over && (told < 0 || before != told)) {
        model.streams[on].device = SEVERAL;
    }
}

/* It waits for what the default stream waits for. */
static void begin_stream(uint32_t on)
{
    bool is_blocking = any(2) == 0;

    if (model.streams[on].now.is_unsure) {
        model.was_unsure = true;
        renew_unsure();
    }
    model.streams[on].is_blocking = is_blocking;
    set_capture(on, 0);
    /* in a crowd it may be that only when it first does something */
    model.streams[on].now.is_unsure =
        is_blocking && !model.is_crowded && model.streams[LEGACY].now.is_unsure;
    make_on(on, any_device(), is_blocking);
}

/* Its handle is another stream's. That counts as behind the work of the first, which is not all
 * known to the engine where events lose their places. */
static void end_stream(uint32_t on)
{
    if (on == LEGACY || model.streams[on].is_origin) {
        return;
    }
    /* what the host has waited for is over, and the engine may know it in a crowd only */
    if (model.streams[on].is_blocking &&
        !(model.is_crowded && has(&model.host, model.streams[on].last))) {
        follow(&model.ended, &model.streams[on].now);
    }
    tell(RMM_DIAG_STREAM_DESTROY, on, 0);
    if (model.forgets) {
        model.streams[on].now.before = (set_t){{0}};
        model.streams[on].last = 0;
    }
    begin_stream(on);
}

/* What the host does behind the work of a stream: it counts as waited for when that is queued. */
static void queue_host_function(uint32_t on)
{
    if (model.streams[on].capture == 0) {
        synchronize_stream(on);
    } else {
        tell(RMM_DIAG_STREAM_SYNC, on, 0);
    }
}

/* A wait for a value in memory, in a capture one that each launch of the graph makes. */
static void wait_for_unknown(uint32_t on)
{
    if (model.streams[on].capture != 0) {
        model.is_lost = true;
    } else {
        (void)operate(on);
        model.streams[on].now.is_unsure = true;
    }
    tell(RMM_DIAG_STREAM_UNSURE, on, 0);
}

/* --- captures ---------------------------------------------------------------------- */

static void toggle_capture(uint32_t on)
{
    uint32_t capture = model.streams[on].capture;

    if (capture == 0 && on != LEGACY) {
        set_capture(on, ++model.captures);
        model.streams[on].is_origin = true;
        tell(RMM_DIAG_CAPTURE_BEGIN, on, 0);
    } else if (model.streams[on].is_origin) {
        for (uint32_t i = 0; i < STREAMS; i++) {
            if (model.streams[i].capture == capture) {
                set_capture(i, 0);
                model.streams[i].is_origin = false;
            }
        }
        tell(RMM_DIAG_CAPTURE_END, on, 0);
    }
}

static bool is_under_way(uint32_t capture)
{
    for (uint32_t i = 0; i < STREAMS; i++) {
        if (model.streams[i].capture == capture) {
            return true;
        }
    }
    return false;
}

/* --- events ------------------------------------------------------------------------ */

static void record(uint32_t on, uint32_t event)
{
    model.events[event].is_recorded = true;
    model.events[event].capture = model.streams[on].capture;
    if (model.streams[on].capture == 0) {
        (void)operate(on);
        model.events[event].at = model.streams[on].now;
    }
    tell(RMM_DIAG_EVENT_RECORD, on, EVENT + event * 16);
}

/* The driver refuses: the event belongs to a capture that is over, or to another one. */
static bool is_refused(uint32_t on, uint32_t event)
{
    uint32_t capture = model.streams[on].capture;
    uint32_t of = model.events[event].is_recorded ? model.events[event].capture : 0;

    if (capture != 0) {
        return of != capture;
    }
    return of != 0 && (on == LEGACY || !is_under_way(of));
}

static void wait_for_event(uint32_t on, uint32_t event)
{
    if (is_refused(on, event)) {
        return;
    }
    if (!model.events[event].is_recorded) {
        (void)operate(on);
        model.streams[on].now.is_unsure = true;
    } else if (model.events[event].capture != 0) {
        set_capture(on, model.events[event].capture); /* it joins */
    } else {
        (void)operate(on);
        follow(&model.streams[on].now, &model.events[event].at);
    }
    tell(RMM_DIAG_EVENT_WAIT, on, EVENT + event * 16);
}

static void synchronize_event(uint32_t event)
{
    if (!model.events[event].is_recorded) {
        host_knows_all();
    } else if (model.events[event].capture == 0) {
        host_follows(&model.events[event].at);
    } else {
        return; /* an error */
    }
    tell(RMM_DIAG_EVENT_SYNC, 0, EVENT + event * 16);
}

static void end_event(uint32_t event)
{
    tell(RMM_DIAG_EVENT_DESTROY, 0, EVENT + event * 16);
    model.events[event].is_recorded = false;
}

/* Another event takes its place: to the engine that is as its end, to the program it is not. */
static void forget_event(uint32_t event)
{
    rmm__clocks_event_ends(order.clocks, EVENT + event * 16);
}

/* --- blocks ------------------------------------------------------------------------ */

static void take(uint32_t index, uint32_t on)
{
    rmm_diag_block_v1_t given = block(index, on);
    bool is_sync = any(4) == 0;

    given.flags |= is_sync ? RMM_DIAG_BLOCK_SYNC : 0;
    model.blocks[index].is_live = true;
    model.blocks[index].allocated =
        is_sync || model.streams[on].capture != 0 ? 0 : operate(on);
    model.blocks[index].uses = (set_t){{0}};
    model.blocks[index].past_count = 0;
    rmm__order_allocated(&order, index, &given);
}

/* An error is told once until it is mended; here each is looked for. */
static void forget_told(uint32_t index)
{
    memset(order.blocks[index].reported, 0, sizeof(order.blocks[index].reported));
}

/* Not all is remembered, or some streams are not told apart. */
static void check(bool may_miss, bool is_found, bool is_bad)
{
    if (may_miss || model.is_crowded || model.forgets) {
        assert_true(!is_found || is_bad);
    } else {
        assert_int_equal(is_found, is_bad);
    }
}

static bool is_judged(uint32_t on)
{
    return model.streams[on].capture == 0 && !model.is_lost &&
           !model.streams[on].now.is_unsure;
}

static bool drop(uint32_t index, uint32_t on)
{
    bool is_bad = false;

    if (model.streams[on].capture == 0) {
        (void)operate(on);
        is_bad = is_judged(on) &&
                 !holds(&model.streams[on].now.before, &model.blocks[index].uses);
    }
    model.blocks[index].is_live = false;
    forget_told(index);
    check(index == MIXED, is_bad_free(index, on), is_bad);
    return is_bad;
}

static bool writes_all(const use_t *how)
{
    return how == &fill;
}

static bool exclude_each_other(const use_t *a, const use_t *b)
{
    bool is_written = a->access == RMM_ORDER_WRITE || b->access == RMM_ORDER_WRITE;
    bool is_exact =
        a->access != RMM_ORDER_SOME_WRITE && b->access != RMM_ORDER_SOME_WRITE;

    if (a == &kernel || b == &kernel) {
        return writes_all(a) || writes_all(b);
    }
    return is_written && is_exact && a->from < b->to && b->from < a->to;
}

static bool is_beside_earlier(uint32_t index, uint32_t on, const use_t *how)
{
    for (uint32_t i = 0; i < model.blocks[index].past_count; i++) {
        const past_use_t *past = &model.blocks[index].past[i];

        if (!has(&model.streams[on].now.before, past->operation) &&
            exclude_each_other(past->how, how)) {
            return true;
        }
    }
    return false;
}

static bool use(uint32_t index, uint32_t on)
{
    static const use_t *const ways[] = {&kernel,   &fill,     &fill_begin,
                                        &fill_end, &read_all, &fill_rows};
    const use_t *how = index == MIXED ? ways[any(6)] : &kernel;
    bool is_bad = false, is_found = false;

    if (model.is_crowded && model.streams[on].capture != 0) {
        return false; /* the event itself says that it was captured */
    }
    if (model.streams[on].capture == 0) {
        uint32_t operation = operate(on);

        is_bad = is_judged(on) &&
                 (!has(&model.streams[on].now.before, model.blocks[index].allocated) ||
                  is_beside_earlier(index, on, how));
        add(&model.blocks[index].uses, operation);
        model.blocks[index].past[model.blocks[index].past_count++] =
            (past_use_t){operation, how};
    }
    forget_told(index);
    is_found = is_bad_use(index, on, how);
    check(index == MIXED, is_found, is_bad);
    return is_found;
}

/* --- programs ---------------------------------------------------------------------- */

static bool draw_use(uint32_t on, uint32_t index)
{
    if (!model.blocks[index].is_live) {
        take(index, on);
        return false;
    }
    return any(8) == 0 ? drop(index, on) : use(index, on);
}

static void draw_event_call(uint32_t on, uint32_t event)
{
    switch (any(12)) {
    case 0:
        synchronize_event(event);
        break;
    case 1:
        end_event(event);
        break;
    case 2:
    case 3:
    case 4:
    case 5:
        record(on, event);
        break;
    default:
        wait_for_event(on, event);
        break;
    }
}

/* Rare calls; false: something else is to be drawn. */
static bool draw_rare_call(uint32_t on)
{
    switch (any(160)) {
    case 0:
        synchronize_device(UNKNOWN); /* amid captures, too: a cudaFree */
        return true;
    case 16:
    case 17:
        synchronize_device(any_device());
        return true;
    case 1:
    case 2:
    case 3:
        end_stream(on);
        return true;
    case 4:
        wait_for_unknown(on);
        return true;
    case 5:
    case 6:
    case 7:
    case 8:
    case 9:
    case 10:
        toggle_capture(on);
        return true;
    case 11:
    case 12:
    case 13:
        queue_host_function(on);
        return true;
    case 14:
    case 15:
        if (model.streams[on].capture == 0) { /* uses nothing that is judged */
            (void)operate(on);
        }
        tell(any(2) == 0 ? RMM_DIAG_GRAPH_LAUNCH : RMM_DIAG_PREFETCH, on, 0);
        return true;
    default:
        return false;
    }
}

/* How much was found. */
static uint32_t draw_program(uint64_t seed, bool is_crowded, bool forgets)
{
    uint32_t found = 0;

    memset(&model, 0, sizeof(model));
    model.random = seed;
    model.is_crowded = is_crowded;
    model.forgets = forgets;
    model.streams[LEGACY].is_blocking = true;
    model.streams[LEGACY].device = SEVERAL;
    model.has_devices = any(2) == 0;
    for (int32_t i = 0; i < (model.has_devices ? DEVICES : 1); i++) {
        synchronize(i); /* that is how the engine learns of it */
    }
    if (is_crowded) {
        uint32_t others = RMM_CLOCKS_SHARED - STREAMS + any(3);

        for (uint32_t i = 0; i < others; i++) {
            make(100 + i, any(2) == 0);
        }
    }
    for (uint32_t i = 1; i < STREAMS; i++) {
        begin_stream(i);
    }
    for (uint32_t step = 0; step < 2 * STEPS && model.count < STEPS; step++) {
        uint32_t on = any(STREAMS);

        if (draw_rare_call(on)) {
            continue;
        }
        if (any(3) == 0) {
            draw_event_call(on, any(EVENTS));
        } else if (model.forgets && any(8) == 0) {
            forget_event(any(EVENTS));
        } else {
            found += draw_use(on, any(BLOCKS)) ? 1 : 0;
        }
    }
    return found;
}

static void
draw_programs(void **state, bool is_crowded, bool forgets, uint64_t least_found)
{
    const char *asked = getenv("RMM_TEST_SEED");
    uint64_t first = asked != NULL ? strtoull(asked, NULL, 10) : 1, found = 0;

    for (uint64_t i = 0; i < (asked != NULL ? 1 : ROUNDS); i++) {
        fprintf(stderr, "%sRMM_TEST_SEED=%d", i == 0 ? "" : "\r", (int)(first + i));
        open_order(state);
        found += draw_program(first + i, is_crowded, forgets);
        close_order(state);
    }
    fprintf(stderr, "\n%d found\n", (int)found);
    assert_true(asked != NULL || found > least_found);
}

static void agrees_with_the_model_of_drawn_programs(void **state)
{
    draw_programs(state, false, false, ROUNDS);
}

static void finds_nothing_ordered_where_streams_share_a_place(void **state)
{
    draw_programs(state, true, false, ROUNDS / 10);
}

static void finds_nothing_ordered_where_events_lose_their_places(void **state)
{
    draw_programs(state, false, true, ROUNDS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_model_of_drawn_programs),
        cmocka_unit_test(finds_nothing_ordered_where_streams_share_a_place),
        cmocka_unit_test(finds_nothing_ordered_where_events_lose_their_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
