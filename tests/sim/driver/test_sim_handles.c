/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and events of the simulated GPU as things that live and end: identities, stale
 * and recycled handles, devices, threads. Runs with two devices.
 */
#include "sim/driver/sim_harness.h"

#include <pthread.h>

#include "driver/sim/control.h"

static void assert_refused(int error, const char *sentence)
{
    assert_int_equal(error, RMM_DRIVER_INVALID_HANDLE);
    assert_non_null(strstr(rmm__sim_violation_text(), sentence));
}

TEST_CASE(refuses_every_use_of_a_destroyed_stream)
{
    const rmm_driver_t *driver = sim_driver();
    rmm_stream_t stream = make_stream(0);
    uint64_t before = rmm_sim_violations();
    journal_t journal = {.count = 0};
    rmm_driver_event_t event;
    rmm_sim_graph_t graph;
    rmm_stream_key_t key;

    assert_cuda(driver->event_create(&event));
    assert_cuda(driver->stream_destroy(stream));
    assert_refused(driver->stream_destroy(stream), "stream_destroy: destroyed stream");
    assert_refused(driver->stream_key(stream, &key), "stream_key: destroyed stream");
    assert_refused(driver->stream_synchronize(stream), "stream_synchronize: destroyed");
    assert_refused(driver->event_record(event, stream), "event_record: destroyed");
    assert_refused(driver->stream_wait_event(stream, event), "stream_wait_event: ");
    assert_refused(launch_mark(&journal, 1, stream), "launch: destroyed stream");
    assert_refused(rmm_sim_memset_async(&key, 0, 1, stream), "memset_async: ");
    assert_refused(rmm_sim_memcpy_async(&key, &key, 1, stream), "memcpy_async: ");
    assert_refused(rmm_sim_begin_capture(stream, 0), "begin_capture: ");
    assert_refused(rmm_sim_end_capture(stream, &graph), "end_capture: ");
    assert_int_equal(rmm_sim_violations(), before + 10);
    assert_cuda(driver->event_destroy(event));
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(journal.count, 0);
}

TEST_CASE(refuses_every_use_of_a_destroyed_event)
{
    const rmm_driver_t *driver = sim_driver();
    uint64_t before = rmm_sim_violations();
    rmm_driver_event_t event;

    assert_cuda(driver->event_create(&event));
    assert_cuda(driver->event_destroy(event));
    assert_refused(driver->event_destroy(event), "event_destroy: destroyed event");
    assert_refused(driver->event_record(event, NULL), "event_record: destroyed event");
    assert_refused(driver->event_query(event), "event_query: destroyed event");
    assert_refused(driver->event_synchronize(event), "event_synchronize: destroyed");
    assert_refused(driver->stream_wait_event(NULL, event), "stream_wait_event: dest");
    assert_int_equal(rmm_sim_violations(), before + 5);
}

TEST_CASE(refuses_what_never_was_a_handle)
{
    const rmm_driver_t *driver = sim_driver();
    rmm_stream_key_t key;
    int local;

    assert_refused(
        driver->stream_key((rmm_stream_t)(void *)&local, &key), "unknown stream");
    assert_refused(driver->stream_synchronize((rmm_stream_t)0x3), "unknown stream");
    assert_refused(driver->event_query(NULL), "unknown event");
    assert_refused(
        driver->stream_synchronize((rmm_stream_t)(0x535400000010 + 7)), "unknown");
    assert_refused(
        rmm_sim_graph_launch((rmm_sim_graph_t)(void *)&local, NULL), "unknown graph");
}

TEST_CASE(counts_a_repeated_violation_every_time)
{
    uint64_t before = rmm_sim_violations();

    for (int i = 0; i < 1000; i++) {
        assert_refused(sim_driver()->event_query(NULL), "unknown event");
    }
    assert_int_equal(rmm_sim_violations(), before + 1000);
}

TEST_CASE(recycles_a_handle_at_once_but_never_an_identity)
{
    const rmm_driver_t *driver = sim_driver();
    rmm_stream_t first = make_stream(0);
    uint64_t violations = rmm_sim_violations();
    rmm_stream_key_t key, next_key;
    uint64_t last_id = 0;

    assert_cuda(driver->stream_key(first, &key));
    for (int i = 0; i < 100; i++) {
        assert_cuda(driver->stream_destroy(first));
        assert_ptr_equal(make_stream(0), first);
        assert_cuda(driver->stream_key(first, &next_key)); /* accepted, as CUDA does */
        assert_true(next_key.stream_id > key.stream_id);
        assert_true(next_key.stream_id > last_id);
        last_id = next_key.stream_id;
    }
    assert_cuda(driver->stream_destroy(first));
    assert_int_equal(rmm_sim_violations(), violations);
}

TEST_CASE(knows_many_streams_at_once)
{
    enum { MANY = 3000 };
    static rmm_stream_t streams[MANY];
    static rmm_stream_key_t keys[MANY];

    for (int i = 0; i < MANY; i++) {
        streams[i] = make_stream(0);
        assert_cuda(sim_driver()->stream_key(streams[i], &keys[i]));
        assert_true(i == 0 || keys[i].stream_id > keys[i - 1].stream_id);
        assert_int_equal(keys[i].capture_id, 0);
    }
    for (int i = 0; i < MANY; i++) {
        assert_cuda(sim_driver()->stream_destroy(streams[i]));
    }
}

TEST_CASE(gives_the_legacy_stream_identity_zero)
{
    rmm_stream_key_t key = {.stream_id = 1, .capture_id = 1};

    assert_cuda(sim_driver()->stream_key(NULL, &key));
    assert_int_equal(key.stream_id, 0);
    assert_int_equal(key.capture_id, 0);
    key.stream_id = 1;
    assert_cuda(sim_driver()->stream_key(RMM_STREAM_LEGACY, &key));
    assert_int_equal(key.stream_id, 0);
    assert_int_equal(
        sim_driver()->stream_destroy(RMM_STREAM_LEGACY), RMM_DRIVER_INVALID_HANDLE);
}

static uint64_t own_stream_id(void)
{
    rmm_stream_key_t key = {.stream_id = 0};

    if (sim_driver()->stream_key(RMM_STREAM_PER_THREAD, &key) != RMM_DRIVER_OK) {
        return 0;
    }
    return key.stream_id;
}

typedef struct own_stream_run {
    journal_t *journal;
    uint64_t id;
    int error;
} own_stream_run_t;

static void *use_own_stream(void *argument)
{
    own_stream_run_t *run = argument;

    run->id = own_stream_id();
    run->error = launch_mark(run->journal, 5, RMM_STREAM_PER_THREAD);
    return NULL;
}

TEST_CASE(gives_each_thread_and_device_its_own_default_stream)
{
    journal_t journal = {.count = 0};
    own_stream_run_t run = {.journal = &journal};
    uint64_t here = own_stream_id();
    pthread_t thread;

    assert_int_not_equal(here, 0);
    assert_int_equal(own_stream_id(), here);
    assert_int_equal(pthread_create(&thread, NULL, use_own_stream, &run), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_cuda(run.error);
    assert_int_not_equal(run.id, 0);
    assert_int_not_equal(run.id, here);
    assert_cuda(rmm_sim_device_synchronize()); /* work outlives the thread */
    assert_int_equal(journal.count, 1);

    assert_cuda(rmm__sim_device_set(1));
    assert_int_not_equal(own_stream_id(), here);
    assert_cuda(rmm__sim_device_set(0));
    assert_int_equal(own_stream_id(), here);
}

TEST_CASE(binds_streams_and_events_to_their_device)
{
    const rmm_driver_t *driver = sim_driver();
    uint64_t violations = rmm_sim_violations();
    journal_t journal = {.count = 0};
    rmm_stream_t on_0 = make_stream(0);
    rmm_driver_event_t of_0, of_1;
    rmm_stream_t on_1;

    assert_cuda(driver->event_create(&of_0));
    assert_cuda(driver->device_set(1));
    on_1 = make_stream(0);
    assert_cuda(driver->event_create(&of_1));

    assert_int_equal(driver->event_record(of_0, on_1), RMM_DRIVER_INVALID_HANDLE);
    assert_int_equal(driver->event_record(of_1, on_0), RMM_DRIVER_INVALID_HANDLE);
    assert_int_equal(launch_mark(&journal, 1, on_0), RMM_DRIVER_INVALID_HANDLE);
    assert_cuda(driver->event_record(of_1, on_1));
    assert_cuda(driver->event_record(of_0, on_0));      /* whatever device is current */
    assert_cuda(driver->stream_wait_event(on_0, of_1)); /* across devices is right */
    assert_cuda(driver->stream_synchronize(on_0));
    assert_cuda(driver->event_query(of_1));
    assert_int_equal(rmm_sim_violations(), violations);

    assert_cuda(driver->stream_destroy(on_1));
    assert_cuda(driver->event_destroy(of_1));
    assert_cuda(driver->device_set(0));
    assert_cuda(driver->stream_destroy(on_0));
    assert_cuda(driver->event_destroy(of_0));
}

TEST_CASE(synchronises_one_device_only)
{
    int late = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        journal_t journal = {.count = 0};

        rmm__sim_reseed(seed);
        assert_cuda(launch_mark(&journal, 0, NULL));
        assert_cuda(rmm__sim_device_set(1));
        assert_cuda(launch_mark(&journal, 1, NULL));
        assert_cuda(rmm_sim_device_synchronize());
        (void)position_of(&journal, 1);
        late += journal.count == 1;
        assert_cuda(rmm__sim_device_set(0));
        assert_cuda(rmm_sim_device_synchronize());
        assert_int_equal(journal.count, 2);
    }
    assert_true(late > SEEDS / 4);
}

static int kernel_error;

static void calling_kernel(const void *const *params)
{
    void *ptr;

    kernel_error = sim_driver()->mem_alloc(&ptr, 64);
}

TEST_CASE(refuses_calls_from_inside_a_kernel)
{
    uint64_t violations = rmm_sim_violations();

    assert_cuda(rmm_sim_launch("calls", calling_kernel, NULL, NULL, NULL, 0));
    assert_cuda(rmm__sim_stream_synchronize(NULL));
    assert_int_equal(kernel_error, 800);
    assert_int_equal(rmm_sim_violations(), violations + 1);
    assert_non_null(strstr(rmm__sim_violation_text(), "inside a kernel"));
}

TEST_CASE(refuses_parameters_that_cannot_be_right)
{
    static char big[5000];
    const void *params[] = {big, NULL};
    size_t param_bytes[] = {sizeof(big), 4};
    rmm_stream_t stream;

    assert_int_equal(
        rmm_sim_launch("big", calling_kernel, NULL, params, param_bytes, 1),
        RMM_DRIVER_INVALID_VALUE);
    param_bytes[0] = 8;
    assert_int_equal(
        rmm_sim_launch("null", calling_kernel, NULL, params, param_bytes, 2),
        RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(
        rmm_sim_launch("none", NULL, NULL, NULL, NULL, 0), RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(
        rmm_sim_memcpy_async(NULL, big, 8, NULL), RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(rmm_sim_memset_async(NULL, 0, 8, NULL), RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(sim_driver()->stream_create(4, &stream), RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(rmm_sim_event_create(NULL), RMM_DRIVER_INVALID_VALUE);
}
