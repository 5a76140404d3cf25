/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a diagnosis is told by the simulated GPU: the calls, in their order, when they
 * are made.
 */
#include "sim/driver/sim_harness.h"

#include <rmm/sys/diag.h>

#include "driver/sim/control.h"

typedef struct seen_event {
    rmm_diag_event_v1_t event;
    uint64_t words[8];
    char name[16];
} seen_event_t;

static seen_event_t seen[64];
static size_t seen_count;

/* Calls the driver, as a diagnosis may: no lock is held here. */
static void observer(void *context, const rmm_diag_event_v1_t *event)
{
    rmm_stream_key_t key;

    assert_ptr_equal(context, &seen_count);
    assert_int_equal(event->struct_size, sizeof(*event));
    assert_true(seen_count < 64 && event->word_count <= 8);
    if (event->kind != RMM_DIAG_STREAM_CREATE && /* not known by its handle yet */
        event->kind != RMM_DIAG_STREAM_DESTROY) {
        assert_cuda(sim_driver()->stream_key(event->stream, &key));
        assert_int_equal(rmm_sim_violations(), 0);
    }
    seen[seen_count].event = *event;
    if (event->word_count != 0) {
        memcpy(seen[seen_count].words, event->words, event->word_count * 8);
    }
    if (event->name != NULL) {
        strncpy(seen[seen_count].name, event->name, 15);
    }
    seen_count++;
}

static int set_up(void **state)
{
    memset(seen, 0, sizeof(seen));
    seen_count = 0;
    sim_driver()->observe(observer, &seen_count);
    return 0;
}

static int tear_down(void **state)
{
    sim_driver()->observe(NULL, NULL);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, tear_down)

/* The call's event comes twice: before it is made, and when it has succeeded. */
static void check_was_told_before(size_t count)
{
    const seen_event_t *before = &seen[count - 2], *after = &seen[count - 1];

    assert_int_equal(before->event.before, 1);
    assert_int_equal(after->event.before, 0);
    assert_int_equal(before->event.kind, after->event.kind);
    assert_int_equal(before->event.bytes, after->event.bytes);
    assert_memory_equal(before->words, after->words, sizeof(after->words));
}

/* The number-th event, counted from 1. */
static const seen_event_t *
told(size_t number, rmm_diag_event_kind_t kind, rmm_stream_t stream)
{
    const seen_event_t *event = &seen[number - 1];

    assert_true(number <= seen_count);
    assert_int_equal(event->event.kind, kind);
    assert_int_equal(event->event.device, 0);
    assert_ptr_equal(event->event.stream, stream);
    return event;
}

/* The latest event, which must be the count-th. */
static const seen_event_t *
latest(size_t count, rmm_diag_event_kind_t kind, rmm_stream_t stream)
{
    assert_int_equal(seen_count, count);
    return told(count, kind, stream);
}

static void nothing(const void *const *params)
{
}

CASE(tells_every_word_of_the_parameters_by_value)
{
    struct {
        void *pointer;
        uint32_t small;
        void *second;
    } record = {&record, 5, &seen};
    char odd[11] = "01234567xyz";
    uint32_t number = 9;
    uint64_t value = 77;
    const void *params[] = {&record, &number, odd, &value};
    const size_t bytes[] = {sizeof(record), sizeof(number), sizeof(odd), sizeof(value)};
    rmm_stream_t stream = make_stream(0);
    rmm_sim_kernel_fn kernel = nothing;
    const seen_event_t *launch;

    assert_cuda(rmm_sim_launch("a kernel", nothing, stream, params, bytes, 4));
    launch = latest(2, RMM_DIAG_LAUNCH, stream);
    assert_string_equal(launch->name, "a kernel");
    assert_memory_equal(&launch->event.function, &kernel, sizeof(kernel));
    assert_int_equal(launch->event.capturing, 0);
    assert_int_equal(launch->event.word_count, 5);
    assert_int_equal(launch->words[0], (uintptr_t)&record);
    assert_int_equal(launch->words[2], (uintptr_t)&seen);
    assert_memory_equal(&launch->words[3], "01234567", 8);
    assert_int_equal(launch->words[4], 77);
    assert_cuda(sim_driver()->stream_destroy(stream));
}

CASE(tells_copies_and_fills_with_their_ranges)
{
    static char from[100], to[100];
    const seen_event_t *event;

    assert_cuda(rmm_sim_memcpy_async(to, from, 100, NULL));
    event = latest(2, RMM_DIAG_COPY, NULL);
    check_was_told_before(2);
    assert_string_equal(event->name, "memcpy_async");
    assert_int_equal(event->event.bytes, 100);
    assert_int_equal(event->event.word_count, 2);
    assert_int_equal(event->words[0], (uintptr_t)to);
    assert_int_equal(event->words[1], (uintptr_t)from);
    assert_cuda(rmm_sim_memset_async(to, 1, 50, RMM_STREAM_LEGACY));
    event = latest(4, RMM_DIAG_SET, RMM_STREAM_LEGACY);
    check_was_told_before(4);
    assert_int_equal(event->event.bytes, 50);
    assert_int_equal(event->event.word_count, 1);
    assert_int_equal(event->words[0], (uintptr_t)to);
    assert_cuda(rmm__sim_stream_synchronize(NULL));
    latest(5, RMM_DIAG_STREAM_SYNC, NULL);
}

CASE(tells_what_a_call_was_given_also_when_it_fails)
{
    static char host[100];
    const seen_event_t *event;

    assert_int_not_equal(
        sim_driver()->mem_prefetch(host, 100, 99, RMM_STREAM_LEGACY), RMM_DRIVER_OK);
    event = latest(1, RMM_DIAG_PREFETCH, RMM_STREAM_LEGACY);
    assert_int_equal(event->event.before, 1);
    assert_int_equal(event->event.bytes, 100);
    assert_int_equal(event->words[0], (uintptr_t)host);
}

CASE(tells_events_and_synchronisation_with_their_handles)
{
    const rmm_driver_t *driver = sim_driver();
    rmm_stream_t stream = make_stream(0);
    rmm_driver_event_t event;

    assert_int_equal(latest(1, RMM_DIAG_STREAM_CREATE, stream)->words[0], 0);
    assert_cuda(driver->event_create(&event));
    assert_cuda(driver->event_record(event, stream));
    assert_int_equal(
        latest(2, RMM_DIAG_EVENT_RECORD, stream)->words[0], (uintptr_t)event);
    assert_cuda(driver->stream_wait_event(NULL, event));
    assert_int_equal(latest(3, RMM_DIAG_EVENT_WAIT, NULL)->words[0], (uintptr_t)event);
    assert_cuda(driver->event_synchronize(event));
    assert_int_equal(latest(4, RMM_DIAG_EVENT_SYNC, NULL)->words[0], (uintptr_t)event);
    assert_cuda(driver->stream_synchronize(stream));
    latest(5, RMM_DIAG_STREAM_SYNC, stream);
    assert_cuda(driver->device_synchronize());
    latest(6, RMM_DIAG_DEVICE_SYNC, NULL);
    assert_cuda(driver->stream_destroy(stream));
    latest(7, RMM_DIAG_STREAM_DESTROY, stream);
    assert_cuda(driver->event_destroy(event));
    latest(8, RMM_DIAG_EVENT_DESTROY, NULL);
}

CASE(tells_of_the_call_and_not_of_the_execution)
{
    journal_t journal = {.count = 0};

    for (uint64_t seed = 0; seed < 20; seed++) {
        size_t before = seen_count;

        rmm__sim_reseed(seed);
        assert_cuda(launch_mark(&journal, 1, RMM_STREAM_PER_THREAD));
        assert_int_equal(seen_count, before + 1);
        sim_driver()->observe(NULL, NULL);
        assert_cuda(rmm_sim_device_synchronize());
        sim_driver()->observe(observer, &seen_count);
        assert_int_equal(seen_count, before + 1);
    }
}

CASE(marks_what_is_captured)
{
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    journal_t journal = {.count = 0};
    rmm_sim_event_t event;
    rmm_sim_graph_t graph;
    uint64_t captured;

    assert_int_equal(latest(1, RMM_DIAG_STREAM_CREATE, stream)->words[0], 1);
    assert_cuda(rmm_sim_event_create(&event));
    assert_cuda(rmm_sim_begin_capture(stream, 0));
    (void)told(2, RMM_DIAG_CAPTURE_BEGIN, stream);
    captured = latest(3, RMM_DIAG_GRAPH_MADE, NULL)->words[0];
    assert_int_not_equal(captured, 0);
    assert_cuda(launch_mark(&journal, 1, stream));
    assert_int_equal(latest(4, RMM_DIAG_LAUNCH, stream)->event.capturing, 1);
    assert_int_equal(seen[3].event.graph, captured);
    assert_cuda(rmm_sim_event_record(event, stream));
    assert_int_equal(latest(5, RMM_DIAG_EVENT_RECORD, stream)->event.capturing, 1);
    assert_cuda(rmm_sim_stream_wait_event(stream, event));
    assert_int_equal(latest(6, RMM_DIAG_EVENT_WAIT, stream)->event.capturing, 1);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    (void)told(7, RMM_DIAG_CAPTURE_END, stream);
    assert_int_equal(told(8, RMM_DIAG_GRAPH_MADE, NULL)->words[1], captured);
    assert_int_equal(latest(9, RMM_DIAG_GRAPH_ENDS, NULL)->words[0], captured);
    assert_cuda(launch_mark(&journal, 2, stream));
    assert_int_equal(latest(10, RMM_DIAG_LAUNCH, stream)->event.capturing, 0);
    assert_int_equal(seen[9].event.graph, 0);
    assert_cuda(rmm_sim_device_synchronize());
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(rmm_sim_event_destroy(event));
    assert_cuda(sim_driver()->stream_destroy(stream));
}

CASE(tells_nothing_of_calls_that_failed)
{
    rmm_driver_event_t event;

    assert_cuda(sim_driver()->event_create(&event));
    assert_true(rmm_sim_fail("event_record:1,stream_synchronize:1"));
    assert_int_equal(sim_driver()->event_record(event, NULL), 999);
    assert_int_equal(sim_driver()->stream_synchronize(NULL), 999);
    assert_true(rmm_sim_fail(NULL));
    assert_int_equal(
        rmm_sim_launch("none", NULL, NULL, NULL, NULL, 0), RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(seen_count, 0);
    assert_cuda(sim_driver()->event_destroy(event));
}
