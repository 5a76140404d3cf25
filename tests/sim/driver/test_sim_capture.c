/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture of the simulated GPU: what a graph contains, and what ruins a capture,
 * with the error codes of CUDA.
 */
#include "sim/driver/sim_harness.h"

#include <pthread.h>

#include "driver/sim/control.h"

enum {
    GLOBAL = RMM_CAPTURE_MODE_GLOBAL,
    LOCAL = RMM_CAPTURE_MODE_THREAD_LOCAL,
    RELAXED = RMM_CAPTURE_MODE_RELAXED
};

static rmm_stream_t stream, side;
static rmm_driver_event_t event, other_event;

static int set_up(void **state)
{
    stream = make_stream(RMM_STREAM_NON_BLOCKING);
    side = make_stream(RMM_STREAM_NON_BLOCKING);
    assert_cuda(sim_driver()->event_create(&event));
    assert_cuda(sim_driver()->event_create(&other_event));
    return 0;
}

static int tear_down(void **state)
{
    assert_cuda(sim_driver()->stream_destroy(stream));
    assert_cuda(sim_driver()->stream_destroy(side));
    assert_cuda(sim_driver()->event_destroy(event));
    assert_cuda(sim_driver()->event_destroy(other_event));
    assert_cuda(rmm_sim_device_synchronize()); /* no capture is left */
    assert_int_equal(rmm_sim_violations(), 0);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, tear_down)

static uint64_t capture_id(rmm_stream_t of)
{
    rmm_stream_key_t key;

    assert_cuda(sim_driver()->stream_key(of, &key));
    return key.capture_id;
}

static void assert_ruined(rmm_stream_t origin)
{
    rmm_sim_graph_t graph = NULL;

    assert_int_equal(
        rmm_sim_end_capture(origin, &graph), RMM_DRIVER_CAPTURE_INVALIDATED);
    assert_null(graph);
    assert_int_equal(capture_id(origin), 0);
}

static void assert_whole(rmm_stream_t origin)
{
    rmm_sim_graph_t graph = NULL;

    assert_cuda(rmm_sim_end_capture(origin, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
}

CASE(runs_captured_work_at_each_launch_and_not_before)
{
    journal_t journal = {.count = 0};
    rmm_sim_graph_t graph;

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    for (int i = 0; i < 5; i++) {
        assert_cuda(launch_mark(&journal, i, stream));
    }
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(journal.count, 0);
    for (size_t launch = 0; launch < 3; launch++) {
        assert_cuda(rmm_sim_graph_launch(graph, side));
        assert_cuda(rmm__sim_stream_synchronize(side));
        assert_int_equal(journal.count, 5 * (launch + 1));
        for (int i = 0; i < 5; i++) {
            assert_int_equal(journal.entries[5 * launch + (size_t)i], i);
        }
    }
    assert_cuda(rmm_sim_graph_launch(graph, side));
    assert_cuda(rmm_sim_graph_destroy(graph)); /* what was launched still runs */
    assert_cuda(rmm__sim_stream_synchronize(side));
    assert_int_equal(journal.count, 20);
}

CASE(tells_by_the_key_which_streams_capture)
{
    rmm_stream_key_t before, key;
    uint64_t first;

    assert_cuda(sim_driver()->stream_key(stream, &before));
    assert_int_equal(before.capture_id, 0);
    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    first = capture_id(stream);
    assert_int_not_equal(first, 0);
    assert_cuda(sim_driver()->stream_key(stream, &key));
    assert_int_equal(key.stream_id, (uintptr_t)stream);
    assert_int_equal(capture_id(side), 0);
    assert_cuda(sim_driver()->event_record(event, stream));
    assert_cuda(sim_driver()->stream_wait_event(side, event));
    assert_int_equal(capture_id(side), first);
    assert_whole(stream);
    assert_int_equal(capture_id(side), 0);
    assert_cuda(sim_driver()->stream_key(stream, &key));
    assert_int_equal(key.capture_id, 0);
    assert_int_equal(key.stream_id, before.stream_id);
    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_true(capture_id(stream) > first);
    assert_whole(stream);
}

/* a, then b and c in parallel, then d */
static rmm_sim_graph_t capture_diamond(journal_t *journal)
{
    rmm_sim_graph_t graph;

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_cuda(launch_mark(journal, 'a', stream));
    assert_cuda(sim_driver()->event_record(event, stream));
    assert_cuda(launch_mark(journal, 'b', stream));
    assert_cuda(sim_driver()->stream_wait_event(side, event));
    assert_cuda(launch_mark(journal, 'c', side));
    assert_cuda(sim_driver()->event_record(other_event, side));
    assert_cuda(sim_driver()->stream_wait_event(stream, other_event));
    assert_cuda(launch_mark(journal, 'd', stream));
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    return graph;
}

CASE(keeps_a_graphs_edges_and_no_others_under_every_seed)
{
    journal_t journal = {.count = 0};
    rmm_sim_graph_t graph = capture_diamond(&journal);
    int b_first = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        journal.count = 0;
        rmm__sim_reseed(seed);
        assert_cuda(rmm_sim_graph_launch(graph, stream));
        assert_cuda(rmm__sim_stream_synchronize(stream));
        assert_int_equal(journal.count, 4);
        assert_order(&journal, 'a', 'b');
        assert_order(&journal, 'a', 'c');
        assert_order(&journal, 'b', 'd');
        assert_order(&journal, 'c', 'd');
        b_first += position_of(&journal, 'b') == 1;
    }
    assert_true(b_first > SEEDS / 4 && b_first < SEEDS * 3 / 4);
    assert_cuda(rmm_sim_graph_destroy(graph));
}

CASE(does_not_overlap_launches_of_one_graph)
{
    journal_t journal = {.count = 0};
    rmm_sim_graph_t graph = capture_diamond(&journal);

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        journal.count = 0;
        rmm__sim_reseed(seed);
        assert_cuda(rmm_sim_graph_launch(graph, stream));
        assert_cuda(rmm_sim_graph_launch(graph, side));
        assert_cuda(rmm_sim_device_synchronize());
        assert_int_equal(journal.count, 8);
        assert_int_equal(journal.entries[3], 'd');
        assert_int_equal(journal.entries[4], 'a');
    }
    assert_cuda(rmm_sim_graph_destroy(graph));
}

CASE(puts_a_launched_graph_into_the_capture_around_it)
{
    journal_t journal = {.count = 0};
    rmm_sim_graph_t inner = capture_diamond(&journal);
    rmm_sim_graph_t outer;

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_cuda(launch_mark(&journal, 1, stream));
    assert_cuda(rmm_sim_graph_launch(inner, stream));
    assert_cuda(launch_mark(&journal, 2, stream));
    assert_cuda(rmm_sim_end_capture(stream, &outer));
    assert_cuda(rmm_sim_graph_destroy(inner));
    assert_cuda(rmm_sim_graph_launch(outer, stream));
    assert_cuda(rmm__sim_stream_synchronize(stream));
    assert_int_equal(journal.count, 6);
    assert_int_equal(journal.entries[0], 1);
    assert_int_equal(journal.entries[5], 2);
    assert_cuda(rmm_sim_graph_destroy(outer));
}

CASE(refuses_a_fork_that_is_not_joined)
{
    journal_t journal = {.count = 0};
    rmm_sim_graph_t graph = NULL;

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_cuda(sim_driver()->event_record(event, stream));
    assert_cuda(sim_driver()->stream_wait_event(side, event));
    assert_cuda(launch_mark(&journal, 1, side));
    assert_int_equal(rmm_sim_end_capture(stream, &graph), 904);
    assert_null(graph);
    assert_int_equal(capture_id(side), 0);
    assert_cuda(launch_mark(&journal, 2, side)); /* works as before */
    assert_cuda(rmm__sim_stream_synchronize(side));
    assert_int_equal(journal.entries[0], 2);
}

static int try_alloc(void)
{
    void *ptr;
    int error = sim_driver()->mem_alloc(&ptr, 512);

    return error != RMM_DRIVER_OK ? error : sim_driver()->mem_free(ptr);
}

static void *alloc_in_thread(void *argument)
{
    *(int *)argument = try_alloc();
    return NULL;
}

static void *alloc_relaxed_in_thread(void *argument)
{
    int mode = RELAXED;

    *(int *)argument = sim_driver()->capture_mode_exchange(&mode);
    if (*(int *)argument == RMM_DRIVER_OK &&
        mode == GLOBAL) { /* each thread's default */
        *(int *)argument = try_alloc();
    }
    return NULL;
}

static int in_thread(void *(*function)(void *))
{
    pthread_t thread;
    int error = -1;

    assert_int_equal(pthread_create(&thread, NULL, function, &error), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return error;
}

CASE(forbids_allocation_to_all_threads_in_global_mode)
{
    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_int_equal(try_alloc(), RMM_DRIVER_CAPTURE_UNSUPPORTED);
    assert_ruined(stream);
    assert_cuda(try_alloc());

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_int_equal(in_thread(alloc_in_thread), RMM_DRIVER_CAPTURE_UNSUPPORTED);
    assert_ruined(stream);

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_cuda(in_thread(alloc_relaxed_in_thread));
    assert_whole(stream);
}

CASE(forbids_allocation_to_its_own_thread_in_thread_local_mode)
{
    assert_cuda(rmm_sim_begin_capture(stream, LOCAL));
    assert_cuda(in_thread(alloc_in_thread));
    assert_whole(stream);

    assert_cuda(rmm_sim_begin_capture(stream, LOCAL));
    assert_int_equal(try_alloc(), RMM_DRIVER_CAPTURE_UNSUPPORTED);
    assert_ruined(stream);
}

CASE(forbids_allocation_to_nobody_in_relaxed_mode)
{
    assert_cuda(rmm_sim_begin_capture(stream, RELAXED));
    assert_cuda(try_alloc());
    assert_cuda(in_thread(alloc_in_thread));
    assert_whole(stream);
}

CASE(lets_a_relaxed_thread_allocate_in_its_own_capture)
{
    int mode = RELAXED;

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_cuda(sim_driver()->capture_mode_exchange(&mode));
    assert_int_equal(mode, GLOBAL);
    assert_cuda(try_alloc());
    assert_cuda(sim_driver()->capture_mode_exchange(&mode));
    assert_int_equal(mode, RELAXED);
    assert_whole(stream);
    mode = 3;
    assert_int_equal(
        sim_driver()->capture_mode_exchange(&mode), RMM_DRIVER_INVALID_VALUE);
}

CASE(forbids_event_queries_as_it_does_allocation)
{
    const rmm_driver_t *driver = sim_driver();
    int mode = RELAXED;

    assert_cuda(driver->event_record(event, side));
    assert_cuda(driver->event_synchronize(event));
    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_int_equal(driver->event_query(event), RMM_DRIVER_CAPTURE_UNSUPPORTED);
    assert_ruined(stream);
    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_int_equal(driver->event_synchronize(event), RMM_DRIVER_CAPTURE_UNSUPPORTED);
    assert_ruined(stream);
    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_cuda(driver->capture_mode_exchange(&mode));
    assert_cuda(driver->event_query(event));
    assert_cuda(driver->event_synchronize(event));
    assert_cuda(driver->capture_mode_exchange(&mode));
    assert_whole(stream);
}

CASE(ruins_a_capture_by_waiting_for_it)
{
    const rmm_driver_t *driver = sim_driver();
    int mode = RELAXED;

    assert_cuda(rmm_sim_begin_capture(stream, RELAXED));
    assert_int_equal(
        driver->stream_synchronize(stream), RMM_DRIVER_CAPTURE_UNSUPPORTED);
    assert_int_equal(
        driver->stream_synchronize(stream), RMM_DRIVER_CAPTURE_INVALIDATED);
    assert_ruined(stream);

    assert_cuda(rmm_sim_begin_capture(stream, RELAXED));
    assert_int_equal(driver->device_synchronize(), RMM_DRIVER_CAPTURE_UNSUPPORTED);
    assert_ruined(stream);

    assert_cuda(rmm_sim_begin_capture(stream, RELAXED));
    assert_cuda(driver->event_record(event, stream));
    assert_int_equal(driver->event_query(event), 907);
    assert_ruined(stream);
    assert_int_equal(driver->event_query(event), 907); /* until it is recorded again */
    assert_int_equal(driver->event_synchronize(event), 907);
    assert_int_equal(driver->stream_wait_event(side, event), 907);
    assert_cuda(driver->event_record(event, side));
    assert_cuda(driver->event_synchronize(event));

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL)); /* even by another stream */
    assert_int_equal(driver->stream_synchronize(side), RMM_DRIVER_CAPTURE_UNSUPPORTED);
    assert_ruined(stream);

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_cuda(driver->capture_mode_exchange(&mode));
    assert_cuda(driver->stream_synchronize(side));
    assert_cuda(driver->capture_mode_exchange(&mode));
    assert_whole(stream);
}

CASE(refuses_work_of_a_ruined_capture)
{
    journal_t journal = {.count = 0};

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_int_equal(try_alloc(), RMM_DRIVER_CAPTURE_UNSUPPORTED);
    assert_int_equal(launch_mark(&journal, 1, stream), RMM_DRIVER_CAPTURE_INVALIDATED);
    assert_int_equal(
        sim_driver()->event_record(event, stream), RMM_DRIVER_CAPTURE_INVALIDATED);
    assert_ruined(stream);
    assert_cuda(launch_mark(&journal, 1, stream));
    assert_cuda(rmm__sim_stream_synchronize(stream));
    assert_int_equal(journal.count, 1);
}

CASE(keeps_dependencies_inside_a_capture)
{
    const rmm_driver_t *driver = sim_driver();

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_cuda(driver->stream_wait_event(stream, event)); /* never recorded */
    assert_whole(stream);

    assert_cuda(driver->event_record(event, side)); /* outside */
    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_int_equal(driver->stream_wait_event(stream, event), 905);
    assert_ruined(stream);

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_cuda(rmm_sim_begin_capture(side, GLOBAL));
    assert_cuda(driver->event_record(event, side));
    assert_int_equal(driver->stream_wait_event(stream, event), 902);
    assert_ruined(stream);
    assert_ruined(side);
}

CASE(tells_whether_the_legacy_stream_may_be_used)
{
    rmm_stream_t blocking = make_stream(0);
    rmm_sim_graph_t graph;
    int is_open = -1;

    assert_cuda(sim_driver()->legacy_is_open(&is_open));
    assert_int_equal(is_open, 1);
    assert_cuda(rmm_sim_begin_capture(stream, RELAXED)); /* non-blocking */
    assert_cuda(sim_driver()->legacy_is_open(&is_open));
    assert_int_equal(is_open, 1);
    assert_cuda(rmm_sim_begin_capture(blocking, RELAXED));
    assert_cuda(sim_driver()->legacy_is_open(&is_open));
    assert_int_equal(is_open, 0);
    assert_cuda(rmm_sim_end_capture(blocking, &graph)); /* whole */
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->legacy_is_open(&is_open));
    assert_int_equal(is_open, 1);
    assert_cuda(sim_driver()->stream_destroy(blocking));
}

CASE(ruins_a_blocking_streams_capture_through_the_legacy_stream)
{
    rmm_stream_t blocking = make_stream(0);
    journal_t journal = {.count = 0};

    assert_cuda(rmm_sim_begin_capture(blocking, RELAXED));
    assert_int_equal(launch_mark(&journal, 1, NULL), 906);
    assert_ruined(blocking);
    assert_cuda(rmm_sim_begin_capture(blocking, RELAXED));
    assert_int_equal(rmm__sim_stream_synchronize(NULL), 906);
    assert_ruined(blocking);
    assert_cuda(sim_driver()->stream_destroy(blocking));

    assert_cuda(rmm_sim_begin_capture(stream, RELAXED)); /* non-blocking */
    assert_cuda(launch_mark(&journal, 1, NULL));
    assert_cuda(rmm__sim_stream_synchronize(NULL));
    assert_int_equal(journal.count, 1);
    assert_whole(stream);
}

static void *end_in_thread(void *argument)
{
    rmm_sim_graph_t graph;

    *(int *)argument = rmm_sim_end_capture(stream, &graph);
    if (*(int *)argument == RMM_DRIVER_OK) {
        *(int *)argument = rmm_sim_graph_destroy(graph);
    }
    return NULL;
}

CASE(ends_a_capture_only_where_it_began)
{
    rmm_sim_graph_t graph;

    assert_int_equal(rmm_sim_end_capture(stream, &graph), 401);
    assert_int_equal(rmm_sim_begin_capture(NULL, GLOBAL), 900);
    assert_int_equal(rmm_sim_begin_capture(stream, 3), RMM_DRIVER_INVALID_VALUE);

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_int_equal(rmm_sim_begin_capture(stream, GLOBAL), 401);
    assert_cuda(sim_driver()->event_record(event, stream));
    assert_cuda(sim_driver()->stream_wait_event(side, event));
    assert_int_equal(rmm_sim_end_capture(side, &graph), 903);
    assert_ruined(stream);

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_int_equal(in_thread(end_in_thread), 908);
    assert_ruined(stream);
    assert_cuda(rmm_sim_begin_capture(stream, RELAXED));
    assert_cuda(in_thread(end_in_thread));
}

CASE(forgets_the_capture_of_a_destroyed_stream)
{
    rmm_stream_t gone = make_stream(RMM_STREAM_NON_BLOCKING);

    assert_cuda(rmm_sim_begin_capture(gone, GLOBAL));
    assert_cuda(sim_driver()->event_record(event, gone));
    assert_cuda(sim_driver()->stream_wait_event(side, event));
    assert_cuda(sim_driver()->stream_destroy(gone));
    assert_int_equal(capture_id(side), 0);
    assert_cuda(try_alloc());

    gone = make_stream(RMM_STREAM_NON_BLOCKING);
    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_cuda(sim_driver()->event_record(event, stream));
    assert_cuda(sim_driver()->stream_wait_event(gone, event));
    assert_cuda(sim_driver()->stream_destroy(gone));
    assert_ruined(stream);
}

CASE(captures_the_per_thread_default_stream)
{
    journal_t journal = {.count = 0};
    rmm_sim_graph_t graph;

    assert_cuda(rmm_sim_begin_capture(RMM_STREAM_PER_THREAD, GLOBAL));
    assert_int_not_equal(capture_id(RMM_STREAM_PER_THREAD), 0);
    assert_cuda(launch_mark(&journal, 1, RMM_STREAM_PER_THREAD));
    assert_cuda(rmm_sim_end_capture(RMM_STREAM_PER_THREAD, &graph));
    assert_cuda(rmm_sim_graph_launch(graph, RMM_STREAM_PER_THREAD));
    assert_cuda(rmm__sim_stream_synchronize(RMM_STREAM_PER_THREAD));
    assert_int_equal(journal.count, 1);
    assert_cuda(rmm_sim_graph_destroy(graph));
}

/* --- watching ----------------------------------------------------------------------- */

static void count_up(void *context)
{
    ++*(int *)context;
}

/* One mark on `stream`, and who watches. */
static rmm_sim_graph_t captured_and_watched(journal_t *journal, int *gone)
{
    rmm_sim_graph_t graph;

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_cuda(launch_mark(journal, 1, stream));
    assert_cuda(sim_driver()->capture_watch(stream, count_up, gone));
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_int_equal(*gone, 0);
    return graph;
}

CASE(tells_when_a_graph_is_gone)
{
    journal_t journal = {.count = 0};
    int gone = 0;
    rmm_sim_graph_t graph = captured_and_watched(&journal, &gone);

    assert_cuda(rmm_sim_graph_launch(graph, side));
    assert_cuda(rmm__sim_stream_synchronize(side));
    assert_int_equal(gone, 0);
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_int_equal(gone, 1);
}

CASE(a_running_launch_keeps_its_graph)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        journal_t journal = {.count = 0};
        int gone = 0;
        rmm_sim_graph_t graph = captured_and_watched(&journal, &gone);

        rmm__sim_reseed(seed);
        assert_cuda(rmm_sim_graph_launch(graph, side));
        assert_cuda(rmm_sim_graph_launch(graph, stream));
        assert_cuda(rmm_sim_graph_destroy(graph));
        assert_true(gone == 0 || journal.count == 2);
        assert_cuda(rmm_sim_device_synchronize());
        assert_int_equal(journal.count, 2);
        assert_int_equal(gone, 1);
    }
}

CASE(an_executable_and_a_larger_graph_keep_what_is_in_them)
{
    journal_t journal = {.count = 0};
    int gone = 0;
    rmm_sim_graph_t graph = captured_and_watched(&journal, &gone);
    rmm_sim_graph_t executable, larger;

    assert_cuda(rmm__sim_graph_copy(graph, &executable));
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(rmm_sim_begin_capture(side, GLOBAL));
    assert_cuda(rmm_sim_graph_launch(executable, side));
    assert_cuda(rmm_sim_end_capture(side, &larger));
    assert_cuda(rmm_sim_graph_launch(executable, stream));
    assert_cuda(rmm_sim_graph_destroy(executable));
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(journal.count, 1);
    assert_int_equal(gone, 0);
    assert_cuda(rmm_sim_graph_launch(larger, stream));
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(journal.count, 2);
    assert_cuda(rmm_sim_graph_destroy(larger));
    assert_int_equal(gone, 1);
}

CASE(a_ruined_capture_takes_its_graph_along)
{
    int gone = 0;

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_cuda(sim_driver()->capture_watch(stream, count_up, &gone));
    assert_int_equal(
        sim_driver()->stream_synchronize(stream), RMM_DRIVER_CAPTURE_UNSUPPORTED);
    assert_true(capture_id(stream) == RMM_CAPTURE_RUINED);
    assert_int_equal(
        sim_driver()->capture_watch(stream, count_up, &gone),
        RMM_DRIVER_CAPTURE_INVALIDATED);
    assert_int_equal(gone, 1); /* of the second, which failed */
    assert_ruined(stream);
    assert_int_equal(gone, 2);
}

CASE(calls_the_callback_when_watching_a_capture_fails)
{
    int gone = 0;

    assert_int_not_equal(
        sim_driver()->capture_watch(stream, count_up, &gone), RMM_DRIVER_OK);
    assert_int_equal(gone, 1);
    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_true(rmm_sim_fail("capture_watch:1"));
    assert_int_not_equal(
        sim_driver()->capture_watch(stream, count_up, &gone), RMM_DRIVER_OK);
    assert_int_equal(gone, 2);
    assert_whole(stream);
    assert_int_equal(gone, 2);
}
