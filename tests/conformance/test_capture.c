/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph capture with every subject: whatever another thread does with it, also what the
 * driver forbids during a capture, the capture stays whole; and so does that of the stream
 * that it is used on.
 *
 *   test_capture SUBJECT
 */
#include "harness/harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rmm/sim.h>

#include "conformance/worker.h"
#include "driver/driver.h"
#include "gpu/real_graph.h"

enum {
    SKIPPED = 77,
    ROUNDS = 3,
    TARGET_BYTES = 4096,
    WRITTEN = 7,
    PATIENCE_MS = 10000
};

static const subject_t *subject;

static const rmm_driver_t *gpu(void)
{
    rmm_status_t status;

    return rmm__driver(&status);
}

/* --- a graph of either GPU ---------------------------------------------------------- */

typedef struct graph {
    rmm_sim_graph_t simulated;
    real_graph_t real;
} graph_t;

#ifndef RMM_TEST_CUDA /* a build without CUDA has none of the real ones */
int real_graph_begin(rmm_stream_t stream)
{
    return RMM_DRIVER_NOT_SUPPORTED;
}

int real_graph_end(rmm_stream_t stream, real_graph_t *graph)
{
    return real_graph_begin(stream);
}

int real_graph_launch(const real_graph_t *graph, rmm_stream_t stream)
{
    return real_graph_begin(stream);
}

int real_graph_destroy(real_graph_t *graph)
{
    return RMM_DRIVER_NOT_SUPPORTED;
}
#endif

/* In the mode that forbids most, to other threads as well. */
static void begin_capture(rmm_stream_t stream)
{
    int error = rmm_sim_active()
                    ? rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_GLOBAL)
                    : real_graph_begin(stream);

    assert_int_equal(error, RMM_DRIVER_OK);
}

static graph_t end_capture(rmm_stream_t stream)
{
    graph_t graph = {NULL, {NULL, NULL}};
    int error = rmm_sim_active() ? rmm_sim_end_capture(stream, &graph.simulated)
                                 : real_graph_end(stream, &graph.real);

    assert_int_equal(error, RMM_DRIVER_OK);
    return graph;
}

static void launch(const graph_t *graph, rmm_stream_t stream)
{
    int error = rmm_sim_active() ? rmm_sim_graph_launch(graph->simulated, stream)
                                 : real_graph_launch(&graph->real, stream);

    assert_int_equal(error, RMM_DRIVER_OK);
    assert_ok(rmm_stream_synchronize(stream));
}

static void destroy_graph(graph_t *graph)
{
    int error = rmm_sim_active() ? rmm_sim_graph_destroy(graph->simulated)
                                 : real_graph_destroy(&graph->real);

    assert_int_equal(error, RMM_DRIVER_OK);
}

/* --- what is captured, and what happens meanwhile ------------------------------------ */

static rmm_stream_t new_stream(void)
{
    rmm_stream_t stream;

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    return stream;
}

static void fill(void *target, int value, rmm_stream_t stream)
{
    assert_int_equal(
        gpu()->memset_async(target, value, TARGET_BYTES, stream), RMM_DRIVER_OK);
}

static void assert_holds(const void *target, int value, rmm_stream_t stream)
{
    unsigned char bytes[TARGET_BYTES];

    memset(bytes, 0, sizeof(bytes));
    assert_int_equal(
        gpu()->memcpy_async(bytes, target, sizeof(bytes), stream), RMM_DRIVER_OK);
    assert_ok(rmm_stream_synchronize(stream));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        assert_int_equal(bytes[i], value);
    }
}

typedef struct errand {
    worker_t worker;
    rmm_status_t made, trimmed;
} errand_t;

/* All of a resource's life, in the synchronous twins as well. */
static void *live_a_life(void *argument)
{
    errand_t *errand = argument;
    worker_t *worker = &errand->worker;
    rmm_stream_t stream = worker->stream;

    errand->made = subject_make(subject, &worker->mr);
    if (errand->made != RMM_OK) {
        return NULL;
    }
    for (int i = 0; i < ROUNDS; i++) {
        block_t blocks[2] = {{NULL, 0, 0}, {NULL, 0, 0}};

        worker->order = i == 0 ? ORDER_SYNC : ORDER_STREAM;
        worker->stream = i == 0 ? NULL : stream;
        if (worker_take(worker, 3000, &blocks[0]) &&
            worker_take(worker, 900 * KIB, &blocks[1])) {
            worker_give(worker, &blocks[1]);
            worker_give(worker, &blocks[0]);
        }
        worker_compare(worker);
    }
    errand->trimmed = rmm_resource_trim(worker->mr, 0);
    rmm_resource_release(worker->mr);
    return NULL;
}

static void another_threads_capture_stays_whole(void **state)
{
    rmm_resource_t *cuda;
    rmm_stream_t capturing = new_stream();
    errand_t *errand = test_calloc(1, sizeof(*errand));
    pthread_t thread;
    graph_t graph;
    void *target;

    assert_ok(rmm_cuda_resource_create(&cuda));
    assert_ok(rmm_resource_alloc_sync(cuda, TARGET_BYTES, 0, &target));
    errand->worker = (worker_t){
        .subject = subject,
        .stream = new_stream(),
        .spares_captures = true,
        .random = 1};
    begin_capture(capturing);
    fill(target, WRITTEN, capturing);
    assert_int_equal(pthread_create(&thread, NULL, live_a_life, errand), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    graph = end_capture(capturing);
    launch(&graph, capturing);
    assert_holds(target, WRITTEN, capturing);
    destroy_graph(&graph);

    assert_ok(errand->made);
    worker_assert(&errand->worker);
    assert_true(errand->trimmed == RMM_OK || errand->trimmed == RMM_ERR_UNSUPPORTED);
    assert_ok(rmm_stream_destroy(errand->worker.stream));
    assert_ok(rmm_stream_destroy(capturing));
    test_free(errand);
    rmm_resource_dealloc_sync(cuda, target, TARGET_BYTES, 0);
    subject_end(cuda);
}

/* CUDA's pools of the host's memory do not allocate in a capture. It is told so, and goes on. */
static bool is_refused_in_a_capture(rmm_resource_t *mr, rmm_stream_t stream)
{
    graph_t graph;
    void *block;

    if (strcmp(rmm_resource_type(mr), "async_pinned") != 0) {
        return false;
    }
    begin_capture(stream);
    assert_int_equal(
        rmm_resource_alloc(mr, TARGET_BYTES, 0, stream, &block), RMM_ERR_UNSUPPORTED);
    graph = end_capture(stream);
    destroy_graph(&graph);
    assert_ok(rmm_stream_destroy(stream));
    subject_end(mr);
    return true;
}

/* Taken inside, used by the graph, freed after it. */
static void a_block_taken_in_a_capture_is_the_graphs(void **state)
{
    rmm_resource_t *mr = subject_begin(subject);
    rmm_stream_t stream = new_stream();
    bool on_device = (rmm_resource_properties(mr) & RMM_DEVICE_ACCESSIBLE) != 0;
    graph_t graph;
    void *block;

    if (is_refused_in_a_capture(mr, stream)) {
        return;
    }
    begin_capture(stream);
    assert_ok(rmm_resource_alloc(mr, TARGET_BYTES, 0, stream, &block));
    if (on_device) {
        fill(block, WRITTEN, stream);
    }
    graph = end_capture(stream);
    launch(&graph, stream);
    if (on_device) {
        assert_holds(block, WRITTEN, stream);
    }
    rmm_resource_dealloc(mr, block, TARGET_BYTES, 0, stream);
    assert_ok(rmm_stream_synchronize(stream));
    destroy_graph(&graph);
    assert_ok(rmm_stream_destroy(stream));
    subject_end(mr);
}

/* The graph is not launched: not every resource keeps for it what was freed inside. */
static void a_free_in_a_capture_leaves_it_whole(void **state)
{
    rmm_resource_t *mr = subject_begin(subject);
    rmm_stream_t stream = new_stream();
    graph_t graph;
    void *block;

    if (is_refused_in_a_capture(mr, stream)) {
        return;
    }
    begin_capture(stream);
    for (int i = 0; i < ROUNDS; i++) {
        assert_ok(rmm_resource_alloc(mr, TARGET_BYTES, 0, stream, &block));
        rmm_resource_dealloc(mr, block, TARGET_BYTES, 0, stream);
    }
    graph = end_capture(stream);
    destroy_graph(&graph);
    assert_ok(rmm_stream_destroy(stream));
    subject_end(mr);
}

/* From the device, with what can be given back. */
static uint64_t held_after_trim(rmm_resource_t *mr)
{
    rmm_stats_t stats = RMM_STATS_INIT;
    rmm_status_t status = rmm_resource_trim(mr, 0);

    assert_true(status == RMM_OK || status == RMM_ERR_UNSUPPORTED);
    assert_ok(rmm_resource_get_stats(mr, &stats));
    return rmm_sim_active() ? rmm_sim_allocated_bytes(0) : stats.reserved_bytes;
}

/* A real GPU says that a graph is gone a moment later. */
static uint64_t held_in_the_end(rmm_resource_t *mr, uint64_t hoped_for)
{
    uint64_t held = held_after_trim(mr);

    for (int ms = 0; ms < PATIENCE_MS && held > hoped_for; ms++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        held = held_after_trim(mr);
    }
    return held;
}

static void use_blocks(rmm_resource_t *mr, rmm_stream_t stream)
{
    void *block;

    for (int i = 0; i < ROUNDS; i++) {
        assert_ok(rmm_resource_alloc(mr, TARGET_BYTES, 0, stream, &block));
        rmm_resource_dealloc(mr, block, TARGET_BYTES, 0, stream);
    }
}

/* When the graph is gone, as much goes back as if the capture had not been. */
static void what_a_capture_used_comes_back_with_its_graph(void **state)
{
    rmm_resource_t *mr = subject_begin(subject);
    rmm_stream_t stream = new_stream();
    uint64_t held;
    graph_t graph;

    if (is_refused_in_a_capture(mr, stream)) {
        return;
    }
    use_blocks(mr, stream);
    assert_ok(rmm_stream_synchronize(stream));
    held = held_after_trim(mr);
    for (int i = 0; i < ROUNDS; i++) {
        begin_capture(stream);
        use_blocks(mr, stream);
        graph = end_capture(stream);
        destroy_graph(&graph);
    }
    assert_int_equal(held_in_the_end(mr, held), held);
    assert_ok(rmm_stream_destroy(stream));
    subject_end(mr);
}

/* --- all of it ---------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_threads_capture_stays_whole),
        cmocka_unit_test(a_block_taken_in_a_capture_is_the_graphs),
        cmocka_unit_test(a_free_in_a_capture_leaves_it_whole),
        cmocka_unit_test(what_a_capture_used_comes_back_with_its_graph),
    };
    int result;

    subject = subject_of_arguments(argc, argv);
    result = subject_look_at_machine(subject);
    return result != 0 ? result : cmocka_run_group_tests(tests, NULL, NULL);
}
