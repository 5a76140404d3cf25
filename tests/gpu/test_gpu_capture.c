/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captured graphs on a real GPU: what the simulated one assumes of user objects
 * (docs/decisions/0008), whether watching a graph leaves its capture alone, and whether a
 * pool has its blocks back when the graph is gone, and not before. What CUDA leaves open is
 * printed as a line "fact: ...".
 *
 * Without a usable GPU the program says so and exits 77.
 */
#include "gpu/gpu_harness.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rmm/rmm.h>

#include "driver/driver.h"
#include "gpu/makers.h"

#define BLOCK (8 * MIB)
#define LONG_BYTES (256 * MIB)

enum { PATIENCE_MS = 10000, LONG_NODES = 400 };

static const rmm_driver_t *driver;

static rmm_stream_t make_stream(void)
{
    rmm_stream_t stream = NULL;

    assert_cuda(driver->stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    return stream;
}

static void pause_ms(long ms)
{
    nanosleep(
        &(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* --- watching ------------------------------------------------------------------------- */

static void set_flag(void *context)
{
    atomic_store((atomic_int *)context, 1);
}

/* The function is called on a thread of CUDA's own, a moment later. */
static bool comes(const atomic_int *gone)
{
    for (int ms = 0; ms < PATIENCE_MS && atomic_load(gone) == 0; ms++) {
        pause_ms(1);
    }
    return atomic_load(gone) != 0;
}

/* Nothing is to come; a call that was wrong is given a while. */
static bool stays_away(const atomic_int *gone)
{
    pause_ms(50);
    return atomic_load(gone) == 0;
}

/* A graph that fills `target` so many times, and sets the flag when it is gone. */
static cudaGraph_t
captured(rmm_stream_t stream, void *target, size_t bytes, int nodes, atomic_int *gone)
{
    cudaGraph_t graph = NULL;

    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < nodes; i++) {
        assert_cuda(driver->memset_async(target, i, bytes, stream));
    }
    assert_cuda(driver->capture_watch(stream, set_flag, gone));
    assert_cuda(cudaStreamEndCapture(stream, &graph));
    return graph;
}

static cudaGraphExec_t instantiated(cudaGraph_t graph)
{
    cudaGraphExec_t executable = NULL;

    assert_cuda(cudaGraphInstantiate(&executable, graph, 0));
    return executable;
}

static void watching_leaves_a_capture_whole_in_every_mode(void **state)
{
    static const enum cudaStreamCaptureMode modes[] = {
        cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
        cudaStreamCaptureModeRelaxed};
    rmm_stream_t stream = make_stream();

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        atomic_int gone = 0;
        cudaGraph_t graph = NULL;
        struct timespec before, after;

        assert_cuda(cudaStreamBeginCapture(stream, modes[i]));
        clock_gettime(CLOCK_MONOTONIC, &before);
        assert_cuda(driver->capture_watch(stream, set_flag, &gone));
        clock_gettime(CLOCK_MONOTONIC, &after);
        print_message(
            "fact: watching a graph takes %ld ns\n",
            (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec -
                before.tv_nsec);
        assert_cuda(cudaStreamEndCapture(stream, &graph));
        assert_true(stays_away(&gone));
        assert_cuda(cudaGraphDestroy(graph));
        assert_true(comes(&gone));
    }
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
    assert_cuda(driver->stream_destroy(stream));
}

typedef struct elsewhere {
    rmm_stream_t stream;
    atomic_int gone;
    int error;
} elsewhere_t;

static void *watch_from_elsewhere(void *argument)
{
    elsewhere_t *elsewhere = argument;

    elsewhere->error =
        driver->capture_watch(elsewhere->stream, set_flag, &elsewhere->gone);
    return NULL;
}

/* A thread that allocates for the one that captures, and takes turns with it. */
static void another_thread_may_watch(void **state)
{
    static const enum cudaStreamCaptureMode modes[] = {
        cudaStreamCaptureModeGlobal, cudaStreamCaptureModeRelaxed};
    rmm_stream_t stream = make_stream();

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        elsewhere_t elsewhere = {.stream = stream, .gone = 0};
        cudaGraph_t graph = NULL;
        pthread_t thread;

        assert_cuda(cudaStreamBeginCapture(stream, modes[i]));
        assert_int_equal(
            pthread_create(&thread, NULL, watch_from_elsewhere, &elsewhere), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_cuda(elsewhere.error);
        assert_cuda(cudaStreamEndCapture(stream, &graph));
        assert_true(stays_away(&elsewhere.gone));
        assert_cuda(cudaGraphDestroy(graph));
        assert_true(comes(&elsewhere.gone));
    }
    assert_cuda(driver->stream_destroy(stream));
}

static void tells_when_the_last_copy_is_gone(void **state)
{
    rmm_stream_t stream = make_stream();
    atomic_int gone = 0;
    cudaGraph_t graph, copy = NULL;
    cudaGraphExec_t first, second;
    void *target = NULL;

    assert_cuda(driver->mem_alloc(&target, BLOCK));
    graph = captured(stream, target, BLOCK, 1, &gone);
    first = instantiated(graph);
    second = instantiated(graph);
    assert_cuda(cudaGraphClone(&copy, graph));
    assert_cuda(cudaGraphDestroy(graph));
    assert_true(stays_away(&gone));
    assert_cuda(cudaGraphLaunch(first, stream));
    assert_cuda(cudaStreamSynchronize(stream));
    assert_cuda(cudaGraphExecDestroy(first));
    assert_true(stays_away(&gone));
    assert_cuda(cudaGraphDestroy(copy));
    assert_true(stays_away(&gone));
    assert_cuda(cudaGraphExecDestroy(second));
    print_message(
        "fact: gone() has run when the call returns: %d\n", atomic_load(&gone));
    assert_true(comes(&gone));
    assert_cuda(driver->mem_free(target));
    assert_cuda(driver->stream_destroy(stream));
}

static void a_running_launch_keeps_its_graph(void **state)
{
    rmm_stream_t stream = make_stream();
    atomic_int gone = 0;
    rmm_driver_event_t end;
    cudaGraphExec_t executable;
    cudaGraph_t graph;
    void *target = NULL;
    int running = 0;
    int error = RMM_DRIVER_NOT_READY;

    assert_cuda(driver->mem_alloc(&target, LONG_BYTES));
    assert_cuda(driver->event_create(&end));
    graph = captured(stream, target, LONG_BYTES, LONG_NODES, &gone);
    executable = instantiated(graph);
    assert_cuda(cudaGraphLaunch(executable, stream));
    assert_cuda(driver->event_record(end, stream));
    assert_cuda(cudaGraphExecDestroy(executable));
    assert_cuda(cudaGraphDestroy(graph));
    while (error == RMM_DRIVER_NOT_READY) {
        bool was_gone = atomic_load(&gone) != 0;

        error = driver->event_query(end);
        running += error == RMM_DRIVER_NOT_READY;
        if (was_gone &&
            error == RMM_DRIVER_NOT_READY) { /* only the event is behind it */
            pause_ms(1);
            error = driver->event_query(end);
            assert_int_equal(error, RMM_DRIVER_OK);
        }
    }
    assert_cuda(error);
    print_message("fact: a destroyed graph was seen to run %d times\n", running);
    assert_cuda(cudaStreamSynchronize(stream));
    assert_true(comes(&gone));
    assert_cuda(driver->event_destroy(end));
    assert_cuda(driver->mem_free(target));
    assert_cuda(driver->stream_destroy(stream));
}

/* A graph with the launch of another in it; NULL where CUDA refuses that. */
static cudaGraph_t captured_launch(rmm_stream_t stream, cudaGraphExec_t executable)
{
    cudaGraph_t larger = NULL;
    cudaError_t error;

    assert_cuda(cudaGraphUpload(executable, stream));
    assert_cuda(cudaStreamSynchronize(stream));
    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    error = cudaGraphLaunch(executable, stream);
    print_message(
        "fact: capturing the launch of a graph answers %s\n", cudaGetErrorName(error));
    /* ended in any case, or no later test could allocate */
    if (cudaStreamEndCapture(stream, &larger) != cudaSuccess || error != cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    return larger;
}

static cudaGraph_t with_child(cudaGraph_t graph)
{
    cudaGraph_t larger = NULL;
    cudaGraphNode_t node;

    assert_cuda(cudaGraphCreate(&larger, 0));
    assert_cuda(cudaGraphAddChildGraphNode(&node, larger, NULL, 0, graph));
    return larger;
}

/* By capturing a launch of it, and by adding it as a node. */
static void a_larger_graph_keeps_what_is_in_it(void **state)
{
    rmm_stream_t stream = make_stream();
    void *target = NULL;

    assert_cuda(driver->mem_alloc(&target, BLOCK));
    for (int way = 0; way < 2; way++) {
        atomic_int gone = 0;
        cudaGraph_t graph = captured(stream, target, BLOCK, 1, &gone);
        cudaGraphExec_t executable = instantiated(graph);
        cudaGraph_t larger =
            way == 0 ? captured_launch(stream, executable) : with_child(graph);

        assert_cuda(cudaGraphExecDestroy(executable));
        assert_cuda(cudaGraphDestroy(graph));
        if (larger != NULL) {
            assert_true(stays_away(&gone));
            executable = instantiated(larger);
            assert_cuda(cudaGraphDestroy(larger));
            assert_true(stays_away(&gone));
            assert_cuda(cudaGraphExecDestroy(executable));
        } else {
            assert_int_equal(way, 0);
        }
        assert_true(comes(&gone));
    }
    assert_cuda(driver->mem_free(target));
    assert_cuda(driver->stream_destroy(stream));
}

static void an_update_exchanges_what_an_executable_keeps(void **state)
{
    rmm_stream_t stream = make_stream();
    atomic_int gone[2] = {0, 0};
    cudaGraphExecUpdateResultInfo info;
    cudaGraphExec_t executable;
    cudaGraph_t graphs[2];
    void *target = NULL;

    assert_cuda(driver->mem_alloc(&target, BLOCK));
    for (int i = 0; i < 2; i++) {
        graphs[i] = captured(stream, target, BLOCK, 1, &gone[i]);
    }
    executable = instantiated(graphs[0]);
    assert_cuda(cudaGraphDestroy(graphs[0]));
    assert_cuda(cudaGraphExecUpdate(executable, graphs[1], &info));
    assert_cuda(cudaGraphDestroy(graphs[1]));
    assert_true(comes(&gone[0]));
    assert_true(stays_away(&gone[1]));
    assert_cuda(cudaGraphExecDestroy(executable));
    assert_true(comes(&gone[1]));
    assert_cuda(driver->mem_free(target));
    assert_cuda(driver->stream_destroy(stream));
}

static void a_ruined_capture_takes_its_graph_along(void **state)
{
    rmm_stream_t stream = make_stream();
    atomic_int gone = 0, late = 0;
    cudaGraph_t graph = NULL;
    rmm_stream_key_t key;

    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    assert_cuda(driver->capture_watch(stream, set_flag, &gone));
    assert_int_not_equal(driver->stream_synchronize(stream), RMM_DRIVER_OK);
    pause_ms(20);
    print_message("fact: gone when ruined, before the end: %d\n", atomic_load(&gone));
    assert_cuda(driver->stream_key(stream, &key));
    assert_true(key.capture_id == RMM_CAPTURE_RUINED);
    assert_int_not_equal(driver->capture_watch(stream, set_flag, &late), RMM_DRIVER_OK);
    assert_true(comes(&late));
    assert_int_not_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    (void)cudaGetLastError();
    assert_null(graph);
    assert_true(comes(&gone));
    assert_cuda(driver->stream_destroy(stream));
}

static void captures_into_a_graph_that_is_there(void **state)
{
#if CUDART_VERSION >= 12030
    rmm_stream_t stream = make_stream();
    atomic_int gone = 0;
    cudaGraph_t graph = NULL, same = NULL;

    assert_cuda(cudaGraphCreate(&graph, 0));
    assert_cuda(cudaStreamBeginCaptureToGraph(
        stream, graph, NULL, NULL, 0, cudaStreamCaptureModeGlobal));
    assert_cuda(driver->capture_watch(stream, set_flag, &gone));
    assert_cuda(cudaStreamEndCapture(stream, &same));
    assert_ptr_equal(graph, same);
    assert_true(stays_away(&gone));
    assert_cuda(cudaGraphDestroy(graph));
    assert_true(comes(&gone));
    assert_cuda(driver->stream_destroy(stream));
#else
    skip();
#endif
}

static bool sees_two_devices(void)
{
    int devices = 0;

    assert_cuda(driver->device_count(&devices));
    return devices > 1;
}

/* Neither the question for contexts nor the wait for another device ruins a capture. */
static void waits_for_another_device_beside_a_capture(void **state)
{
    rmm_stream_t stream = make_stream();
    cudaGraph_t graph = NULL;
    rmm_driver_scope_t scope;
    int own = 0, other = 0, current;

    if (!sees_two_devices()) {
        skip();
    }
    assert_cuda(driver->device_active(0, &own));
    assert_cuda(driver->device_active(1, &other));
    print_message("fact: contexts on devices 0 and 1: %d %d\n", own, other);
    assert_true(own != 0);
    assert_cuda(driver->device_set(1));
    assert_cuda(driver->device_active(1, &other));
    assert_true(other != 0);
    assert_cuda(driver->device_set(0));
    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    assert_ok(rmm__driver_scope_enter(&scope, driver, 0));
    assert_false(rmm__driver_others_idle(driver, 0, false));
    assert_true(rmm__driver_others_idle(driver, 0, true));
    rmm__driver_scope_leave(&scope);
    assert_cuda(cudaStreamEndCapture(stream, &graph));
    assert_cuda(driver->device_get(&current));
    assert_int_equal(current, 0);
    assert_cuda(cudaGraphDestroy(graph));
    assert_cuda(driver->stream_destroy(stream));
}

/* --- resources ------------------------------------------------------------------------ */

/* A resource with room for one block, which cannot grow. */
static rmm_resource_t *make_for_one_block(size_t i)
{
    return makers[i](BLOCK, BLOCK);
}

/* Can this stream have the block? */
static bool is_free(rmm_resource_t *mr, rmm_stream_t stream)
{
    void *block = NULL;

    if (rmm_resource_alloc(mr, BLOCK, 0, stream, &block) != RMM_OK) {
        return false;
    }
    rmm_resource_dealloc(mr, block, BLOCK, 0, stream);
    return true;
}

static bool becomes_free(rmm_resource_t *mr, rmm_stream_t stream)
{
    bool free_now = is_free(mr, stream);

    for (int ms = 0; ms < PATIENCE_MS && !free_now; ms++) {
        pause_ms(1);
        free_now = is_free(mr, stream);
    }
    return free_now;
}

static cudaGraph_t capture_with_the_block(rmm_resource_t *mr, rmm_stream_t stream)
{
    cudaGraph_t graph = NULL;
    void *block = NULL;

    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < 3; i++) {
        assert_ok(rmm_resource_alloc(mr, BLOCK, 0, stream, &block));
        assert_cuda(driver->memset_async(block, 7, BLOCK, stream));
        rmm_resource_dealloc(mr, block, BLOCK, 0, stream);
    }
    assert_cuda(cudaStreamEndCapture(stream, &graph));
    return graph;
}

static void a_resource_has_back_what_a_graph_used(void **state)
{
    rmm_stream_t stream = make_stream(), other = make_stream();

    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        rmm_resource_t *mr = make_for_one_block(i);
        cudaGraph_t graph = capture_with_the_block(mr, stream);
        cudaGraphExec_t executable = instantiated(graph);

        assert_cuda(cudaGraphDestroy(graph));
        assert_cuda(cudaGraphLaunch(executable, stream));
        assert_cuda(cudaStreamSynchronize(stream));
        pause_ms(20);
        assert_false(is_free(mr, other));
        assert_false(is_free(mr, stream));
        assert_cuda(cudaGraphExecDestroy(executable));
        assert_true(becomes_free(mr, other));
        rmm_resource_release(mr);
    }
    assert_cuda(driver->stream_destroy(stream));
    assert_cuda(driver->stream_destroy(other));
}

static void a_resource_has_back_what_a_ruined_capture_used(void **state)
{
    rmm_stream_t stream = make_stream(), other = make_stream();

    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        for (int late = 0; late < 2; late++) {
            rmm_resource_t *mr = make_for_one_block(i);
            cudaGraph_t graph = NULL;
            void *block = NULL;

            assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
            assert_ok(rmm_resource_alloc(mr, BLOCK, 0, stream, &block));
            if (late == 0) {
                rmm_resource_dealloc(mr, block, BLOCK, 0, stream);
            }
            assert_int_not_equal(driver->stream_synchronize(stream), RMM_DRIVER_OK);
            if (late != 0) {
                rmm_resource_dealloc(mr, block, BLOCK, 0, stream);
            }
            assert_int_not_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
            (void)cudaGetLastError();
            assert_true(becomes_free(mr, other));
            rmm_resource_release(mr);
        }
    }
    assert_cuda(driver->stream_destroy(stream));
    assert_cuda(driver->stream_destroy(other));
}

/* The first moment that the block can be had, it is filled with 9. */
static void write_when_free(rmm_resource_t *mr, rmm_stream_t stream)
{
    void *block = NULL;
    rmm_status_t status = RMM_ERR_OUT_OF_MEMORY;

    for (int ms = 0; ms < PATIENCE_MS && status != RMM_OK; ms++) {
        status = rmm_resource_alloc(mr, BLOCK, 0, stream, &block);
        if (status != RMM_OK) {
            pause_ms(1);
        }
    }
    assert_ok(status);
    assert_cuda(driver->memset_async(block, 9, BLOCK, stream));
    rmm_resource_dealloc(mr, block, BLOCK, 0, stream);
    assert_cuda(driver->stream_synchronize(stream));
}

/* The block is written behind long work on its stream, which may be of another device, freed in
 * a capture there, and the graph that this leaves is destroyed: whoever has the block next finds
 * what he wrote. */
static void work_from_before_a_capture_is_over(rmm_resource_t *mr, int device)
{
    rmm_stream_t other = make_stream(), stream;
    unsigned char *seen = malloc(BLOCK);
    cudaGraph_t graph = NULL;
    void *target = NULL, *block = NULL;

    assert_non_null(seen);
    assert_ok(rmm_resource_alloc(mr, BLOCK, 0, other, &block));
    assert_cuda(driver->device_set(device));
    stream = make_stream();
    assert_cuda(driver->mem_alloc(&target, LONG_BYTES));
    for (int k = 0; k < LONG_NODES; k++) {
        assert_cuda(driver->memset_async(target, 1, LONG_BYTES, stream));
    }
    assert_cuda(driver->memcpy_async(block, target, BLOCK, stream));
    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    rmm_resource_dealloc(mr, block, BLOCK, 0, stream);
    assert_cuda(cudaStreamEndCapture(stream, &graph));
    assert_cuda(cudaGraphDestroy(graph));
    assert_cuda(driver->device_set(0));
    write_when_free(mr, other);
    assert_cuda(driver->stream_synchronize(stream));
    assert_ok(rmm_resource_alloc(mr, BLOCK, 0, other, &block));
    assert_cuda(driver->memcpy_async(seen, block, BLOCK, other));
    assert_cuda(driver->stream_synchronize(other));
    for (size_t k = 0; k < BLOCK; k++) {
        assert_int_equal(seen[k], 9);
    }
    rmm_resource_dealloc(mr, block, BLOCK, 0, other);
    free(seen);
    assert_cuda(driver->mem_free(target));
    assert_cuda(driver->stream_destroy(stream));
    assert_cuda(driver->stream_destroy(other));
}

static void work_from_before_a_capture_is_waited_for(void **state)
{
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        rmm_resource_t *mr = make_for_one_block(i);

        work_from_before_a_capture_is_over(mr, 0);
        rmm_resource_release(mr);
    }
}

static void work_of_another_device_is_waited_for(void **state)
{
    if (!sees_two_devices()) {
        skip();
    }
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        rmm_resource_t *mr = make_for_one_block(i);

        work_from_before_a_capture_is_over(mr, 1);
        rmm_resource_release(mr);
    }
}

static rmm_resource_t *a_virtual_pool_that_grows(void)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *pool;

    options.flags = RMM_POOL_VIRTUAL;
    assert_ok(rmm_pool_resource_create(NULL, &options, &pool));
    return pool;
}

/* Round after round, each a capture with a block of the pool. */
static void holds_little_after(void (*round)(rmm_resource_t *pool, rmm_stream_t stream))
{
    rmm_stream_t stream = make_stream();
    rmm_stats_t stats = RMM_STATS_INIT;
    rmm_resource_t *pool = a_virtual_pool_that_grows();

    for (int i = 0; i < 300; i++) {
        round(pool, stream);
        if (i % 10 == 9) {
            pause_ms(5); /* what CUDA calls later */
        }
    }
    assert_ok(rmm_resource_get_stats(pool, &stats));
    print_message(
        "fact: 300 captures of 8 MiB hold %llu MiB\n",
        (unsigned long long)stats.reserved_bytes / MIB);
    assert_true(stats.reserved_bytes <= 40 * BLOCK);
    rmm_resource_release(pool);
    assert_cuda(driver->stream_destroy(stream));
}

static void capture_and_launch(rmm_resource_t *pool, rmm_stream_t stream)
{
    cudaGraph_t graph = capture_with_the_block(pool, stream);
    cudaGraphExec_t executable = instantiated(graph);

    assert_cuda(cudaGraphLaunch(executable, stream));
    assert_cuda(cudaGraphExecDestroy(executable));
    assert_cuda(cudaGraphDestroy(graph));
    assert_cuda(cudaStreamSynchronize(stream));
}

static void captures_for_ever_in_the_same_memory(void **state)
{
    holds_little_after(capture_and_launch);
}

static void free_in_a_capture(rmm_resource_t *pool, rmm_stream_t stream)
{
    cudaGraph_t graph = NULL;
    void *block = NULL;

    assert_ok(rmm_resource_alloc(pool, BLOCK, 0, stream, &block));
    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    rmm_resource_dealloc(pool, block, BLOCK, 0, stream);
    assert_cuda(cudaStreamEndCapture(stream, &graph));
    assert_cuda(cudaGraphDestroy(graph));
}

/* Blocks from before the capture, in a process that sees other devices and does not use them. */
static void frees_in_captures_for_ever_in_the_same_memory(void **state)
{
    holds_little_after(free_in_a_capture);
}

static void a_graph_may_outlive_its_resource(void **state)
{
    rmm_stream_t stream = make_stream();

    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        rmm_resource_t *mr = make_for_one_block(i);
        cudaGraph_t graph = capture_with_the_block(mr, stream);

        rmm_resource_release(mr);
        assert_cuda(cudaGraphDestroy(graph));
    }
    pause_ms(50);
    assert_cuda(driver->stream_destroy(stream));
}

/* --- exit ----------------------------------------------------------------------------- */

static cudaGraph_t left_graph;
static cudaGraphExec_t left_executable;

/* Registered before the library's own handler, so it runs after it. */
static void destroy_late(void)
{
    if (left_executable != NULL) {
        (void)cudaGraphExecDestroy(left_executable);
        (void)cudaGraphDestroy(left_graph);
    }
}

/* In a child that has not seen CUDA yet: 0 a graph is left, 1 it also runs, 2 it is
 * destroyed by the last exit handler. */
static void leave_a_graph(int how)
{
    rmm_status_t status;
    rmm_resource_t *mr;
    rmm_stream_t stream;

    if (how == 2 && atexit(destroy_late) != 0) {
        _exit(2);
    }
    driver = rmm__driver(&status);
    if (driver == NULL) {
        _exit(status == RMM_ERR_NO_DEVICE ? SKIPPED : 3);
    }
    mr = make_pool(BLOCK, BLOCK);
    stream = make_stream();
    left_graph = capture_with_the_block(mr, stream);
    left_executable = instantiated(left_graph);
    if (how == 1) {
        for (int i = 0; i < 1000; i++) {
            assert_cuda(cudaGraphLaunch(left_executable, stream));
        }
    }
    if (how == 0) {
        rmm_resource_release(mr);
    }
    exit(0);
}

/* 0 all three ended well, SKIPPED no GPU, else what went wrong was said. */
static int exits_well(void)
{
    for (int how = 0; how < 3; how++) {
        pid_t pid = fork();
        int status = 0;

        if (pid == 0) {
            leave_a_graph(how);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid) {
            perror("a child");
            return 1;
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
            return SKIPPED;
        }
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            printf("exit with a graph left, case %d: wait status %#x\n", how, status);
            return 1;
        }
        printf("fact: exit with a graph left, case %d: ends well\n", how);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watching_leaves_a_capture_whole_in_every_mode),
        cmocka_unit_test(another_thread_may_watch),
        cmocka_unit_test(tells_when_the_last_copy_is_gone),
        cmocka_unit_test(a_running_launch_keeps_its_graph),
        cmocka_unit_test(a_larger_graph_keeps_what_is_in_it),
        cmocka_unit_test(an_update_exchanges_what_an_executable_keeps),
        cmocka_unit_test(a_ruined_capture_takes_its_graph_along),
        cmocka_unit_test(captures_into_a_graph_that_is_there),
        cmocka_unit_test(a_resource_has_back_what_a_graph_used),
        cmocka_unit_test(a_resource_has_back_what_a_ruined_capture_used),
        cmocka_unit_test(work_from_before_a_capture_is_waited_for),
        cmocka_unit_test(captures_for_ever_in_the_same_memory),
        cmocka_unit_test(frees_in_captures_for_ever_in_the_same_memory),
        cmocka_unit_test(a_graph_may_outlive_its_resource),
        /* from here on device 1 has a context, if there is one */
        cmocka_unit_test(waits_for_another_device_beside_a_capture),
        cmocka_unit_test(work_of_another_device_is_waited_for),
    };
    rmm_status_t status;
    int exits = exits_well();
    int result;

    if (exits == SKIPPED) {
        printf("skipped: no usable GPU\n");
        return SKIPPED;
    }
    driver = rmm__driver(&status);
    if (driver == NULL) {
        fprintf(stderr, "%s\n", rmm_last_error_message());
        return 1;
    }
    result = cmocka_run_group_tests(tests, NULL, NULL);
    return exits != 0 ? exits : result;
}
