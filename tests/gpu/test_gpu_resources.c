/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resources on a real GPU, each case against data and not only against addresses.
 * Every case first proves that the CUDA driver is the one in use.
 *
 * Without a usable GPU the program says so and exits 77.
 */
#include "gpu/gpu_harness.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/rmm.h>
#include <rmm/sim.h>

#include "driver/driver.h"

static struct {
    rmm_resource_t *cuda, *pool;
    rmm_stream_t streams[2];
    void *handed; /* to a thread */
} fixture;

static int set_up(void **state)
{
    memset(&fixture, 0, sizeof(fixture));
    assert_real_gpu();
    assert_ok(rmm_cuda_resource_create(&fixture.cuda));
    assert_ok(rmm_pool_resource_create(fixture.cuda, NULL, &fixture.pool));
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &fixture.streams[0]));
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &fixture.streams[1]));
    return 0;
}

static int tear_down(void **state)
{
    assert_ok(rmm_stream_destroy(fixture.streams[0]));
    assert_ok(rmm_stream_destroy(fixture.streams[1]));
    rmm_resource_release(fixture.pool);
    rmm_resource_release(fixture.cuda);
    return 0;
}

static void the_device_is_a_real_one(void **state)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    rmm_device_info_t info;
    struct cudaDeviceProp properties;

    assert_int_equal(driver->device_info(0, &info), RMM_DRIVER_OK);
    assert_memory_equal(info.uuid, "GPU-", 4);
    assert_cuda(cudaGetDeviceProperties(&properties, 0));
    assert_string_equal(info.name, properties.name);
    assert_true(info.capacity_bytes == properties.totalGlobalMem);
}

static void blocks_are_device_memory(void **state)
{
    rmm_resource_t *resources[] = {fixture.cuda, fixture.pool};

    for (size_t i = 0; i < 2; i++) {
        struct cudaPointerAttributes attributes;
        void *block = NULL;

        assert_ok(
            rmm_resource_alloc(resources[i], MIB + 1, 0, RMM_STREAM_DEFAULT, &block));
        assert_cuda(cudaPointerGetAttributes(&attributes, block));
        assert_int_equal(attributes.type, cudaMemoryTypeDevice);
        assert_int_equal((uintptr_t)block % RMM_ALIGN_DEFAULT, 0);
        assert_cuda(cudaMemset(block, 1, MIB + 1));
        assert_filled(block, 1, MIB + 1);
        rmm_resource_dealloc(resources[i], block, MIB + 1, 0, RMM_STREAM_DEFAULT);
    }
}

/* Long work on one stream, a free behind it, and the block again on the other stream: the
 * late writes of the first must not land in the second's data. */
static void a_block_that_changes_streams_keeps_its_new_data(void **state)
{
    size_t bytes = 64 * MIB;

    for (int round = 0; round < 50; round++) {
        rmm_stream_t first = fixture.streams[round % 2];
        rmm_stream_t second = fixture.streams[1 - round % 2];
        void *block = NULL;

        assert_ok(rmm_resource_alloc(fixture.pool, bytes, 0, first, &block));
        for (int i = 0; i < 20; i++) {
            assert_cuda(cudaMemsetAsync(block, 0xee, bytes, first));
        }
        rmm_resource_dealloc(fixture.pool, block, bytes, 0, first);
        assert_ok(rmm_resource_alloc(fixture.pool, bytes, 0, second, &block));
        assert_cuda(cudaMemsetAsync(block, round, bytes, second));
        assert_filled(block, round, bytes);
        rmm_resource_dealloc(fixture.pool, block, bytes, 0, second);
    }
}

static void memory_freed_on_a_stream_outlives_the_stream(void **state)
{
    for (int round = 0; round < 100; round++) {
        rmm_stream_t stream;
        void *block = NULL;

        assert_ok(rmm_stream_create(0, &stream));
        assert_ok(rmm_resource_alloc(fixture.pool, 8 * MIB, 0, stream, &block));
        assert_cuda(cudaMemsetAsync(block, 0xee, 8 * MIB, stream));
        rmm_resource_dealloc(fixture.pool, block, 8 * MIB, 0, stream);
        assert_ok(rmm_stream_destroy(stream));

        stream = fixture.streams[round % 2];
        assert_ok(rmm_resource_alloc(fixture.pool, 8 * MIB, 0, stream, &block));
        assert_cuda(cudaMemsetAsync(block, round, 8 * MIB, stream));
        assert_filled(block, round, 8 * MIB);
        rmm_resource_dealloc(fixture.pool, block, 8 * MIB, 0, stream);
    }
}

static void refuses_more_than_the_device_has_and_recovers(void **state)
{
    size_t free_bytes, total_bytes;
    void *block = NULL;

    assert_cuda(cudaMemGetInfo(&free_bytes, &total_bytes));
    assert_int_equal(
        rmm_resource_alloc(fixture.pool, total_bytes, 0, fixture.streams[0], &block),
        RMM_ERR_OUT_OF_MEMORY);
    assert_null(block);
    assert_int_equal(rmm_last_cuda_error(), cudaErrorMemoryAllocation);
    assert_cuda(cudaGetLastError()); /* nothing is left for the program to trip over */
    assert_ok(rmm_resource_alloc(fixture.pool, MIB, 0, fixture.streams[0], &block));
    rmm_resource_dealloc(fixture.pool, block, MIB, 0, fixture.streams[0]);
}

/* Growth needs cudaMalloc, which a capture in global mode forbids and is ruined by. */
static void growth_does_not_ruin_a_capture(void **state)
{
    cudaStream_t stream = fixture.streams[0];
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    void *target = NULL, *grown = NULL;

    assert_ok(rmm_resource_alloc(fixture.pool, MIB, 0, stream, &target));
    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    assert_cuda(cudaMemsetAsync(target, 7, MIB, stream));
    assert_ok(rmm_resource_alloc(
        fixture.pool, (size_t)1 << 30, 0, fixture.streams[1], &grown));
    assert_cuda(cudaStreamEndCapture(stream, &graph));
    assert_cuda(cudaGraphInstantiate(&executable, graph, 0));
    assert_cuda(cudaGraphLaunch(executable, stream));
    assert_filled(target, 7, MIB);
    assert_cuda(cudaGraphExecDestroy(executable));
    assert_cuda(cudaGraphDestroy(graph));
    rmm_resource_dealloc(fixture.pool, grown, (size_t)1 << 30, 0, fixture.streams[1]);
    rmm_resource_dealloc(fixture.pool, target, MIB, 0, stream);
}

/* Sizes up to a fixed-size block; data written by the GPU and read back. Releases mr. */
static void use_and_release(rmm_resource_t *mr, rmm_stream_t stream)
{
    static const size_t sizes[] = {4, 1000, 64 * 1024, MIB};
    rmm_stats_t stats = RMM_STATS_INIT;
    void *blocks[4];

    for (size_t i = 0; i < 4; i++) {
        assert_ok(rmm_resource_alloc(mr, sizes[i], 0, stream, &blocks[i]));
        assert_int_equal((uintptr_t)blocks[i] % RMM_ALIGN_DEFAULT, 0);
        assert_cuda(cudaMemsetAsync(blocks[i], (int)i + 1, sizes[i], stream));
    }
    for (size_t i = 0; i < 4; i++) {
        assert_filled(blocks[i], (int)i + 1, sizes[i]);
        rmm_resource_dealloc(mr, blocks[i], sizes[i], 0, stream);
    }
    assert_ok(rmm_resource_get_stats(mr, &stats));
    assert_int_equal(stats.current_bytes, 0);
    assert_int_equal(stats.total_count, 4);
    assert_int_equal(stats.invalid_free_count, 0);
    rmm_resource_release(mr);
}

static void every_resource_hands_out_memory_that_the_gpu_writes(void **state)
{
    rmm_binning_options_t bins = RMM_BINNING_OPTIONS_INIT;
    rmm_resource_t *mr;

    assert_ok(rmm_pinned_resource_create(&mr));
    use_and_release(mr, fixture.streams[0]);
    assert_ok(rmm_managed_resource_create(&mr));
    use_and_release(mr, fixture.streams[0]);
    assert_ok(rmm_fixed_size_resource_create(fixture.cuda, NULL, &mr));
    use_and_release(mr, fixture.streams[0]);
    bins.min_exponent = 10;
    bins.max_exponent = 16;
    assert_ok(rmm_binning_resource_create(fixture.pool, &bins, &mr));
    use_and_release(mr, fixture.streams[0]);
}

static rmm_resource_t *small_pool(uint64_t bytes)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *pool;

    options.maximum_bytes = bytes;
    assert_ok(rmm_pool_resource_create(fixture.cuda, &options, &pool));
    return pool;
}

/* Grow, take over, wait, synchronise, fail, trim: all that a pool may tell the driver. */
static void *use_every_step(void *argument)
{
    rmm_resource_t *pool = small_pool(2 * MIB);
    const char *failure = NULL;
    void *block;

    for (int i = 0; i < 4 && failure == NULL; i++) {
        rmm_stream_t stream = fixture.streams[1];

        if (rmm_resource_alloc(pool, MIB + 1, 0, stream, &block) != RMM_OK) {
            failure = "own stream";
            break;
        }
        rmm_resource_dealloc(pool, block, MIB + 1, 0, stream);
        if (rmm_resource_alloc(pool, 2 * MIB, 0, RMM_STREAM_PER_THREAD, &block) !=
            RMM_OK) {
            failure = "another stream";
            break;
        }
        rmm_resource_dealloc(pool, block, 2 * MIB, 0, RMM_STREAM_PER_THREAD);
    }
    if (rmm_resource_alloc(pool, 3 * MIB, 0, NULL, &block) != RMM_ERR_OUT_OF_MEMORY) {
        failure = "out of memory";
    }
    if (rmm_resource_trim(pool, 0) != RMM_OK) {
        failure = "trim";
    }
    rmm_resource_release(pool);
    return (void *)(uintptr_t)failure;
}

static void nothing_another_thread_does_ruins_a_capture(void **state)
{
    cudaStream_t stream = fixture.streams[0];
    void *target;

    assert_ok(rmm_resource_alloc(fixture.pool, MIB, 0, stream, &target));
    assert_capture_survives(stream, target, use_every_step, NULL);
    rmm_resource_dealloc(fixture.pool, target, MIB, 0, stream);
}

/* What the pool's last resort stands on: docs/decisions/0004. */
static void a_small_free_waits_for_the_whole_device(void **state)
{
    const size_t bytes = (size_t)4 << 30;
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    cudaEvent_t done;
    rmm_stream_t stream;
    void *block;

    assert_ok(rmm_resource_alloc(fixture.pool, bytes, 0, NULL, &block));
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    assert_cuda(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    for (int i = 0; i < 50; i++) {
        assert_cuda(cudaMemsetAsync(block, i, bytes, stream));
    }
    assert_cuda(cudaEventRecord(done, stream));
    assert_ok(rmm_stream_destroy(stream));
    assert_int_equal(cudaEventQuery(done), cudaErrorNotReady);
    assert_cuda(rmm__driver_barrier(driver));
    assert_int_equal(cudaEventQuery(done), cudaSuccess);
    assert_cuda(cudaEventDestroy(done));
    rmm_resource_dealloc(fixture.pool, block, bytes, 0, NULL);
}

/* The graph writes 7 into a block freed while it was captured; a later user writes 1. */
static void what_a_graph_uses_stays_its_own(void **state)
{
    cudaStream_t stream = fixture.streams[0];
    rmm_resource_t *pool = small_pool(2 * MIB);
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    void *block;

    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    assert_ok(rmm_resource_alloc(pool, MIB, 0, stream, &block));
    assert_cuda(cudaMemsetAsync(block, 7, MIB, stream));
    rmm_resource_dealloc(pool, block, MIB, 0, stream);
    assert_cuda(cudaStreamEndCapture(stream, &graph));
    assert_cuda(cudaGraphInstantiate(&executable, graph, 0));

    for (int i = 0; i < 2; i++) { /* on the stream of the capture, and on another */
        assert_ok(rmm_resource_alloc(pool, MIB, 0, fixture.streams[i], &block));
        assert_cuda(cudaMemsetAsync(block, 1, MIB, fixture.streams[i]));
        assert_cuda(cudaStreamSynchronize(fixture.streams[i]));
        assert_cuda(cudaGraphLaunch(executable, stream));
        assert_filled(block, 1, MIB);
        rmm_resource_dealloc(pool, block, MIB, 0, fixture.streams[i]);
    }
    assert_cuda(cudaGraphExecDestroy(executable));
    assert_cuda(cudaGraphDestroy(graph));
    rmm_resource_release(pool);
}

static void *free_into_capture(void *argument)
{
    /* the thread's first contact with CUDA */
    rmm_resource_dealloc(fixture.pool, fixture.handed, MIB, 0, fixture.streams[0]);
    return NULL;
}

static void a_fresh_thread_may_free_into_a_capture(void **state)
{
    cudaStream_t stream = fixture.streams[0];
    cudaGraph_t graph = NULL;
    pthread_t thread;

    assert_ok(rmm_resource_alloc(fixture.pool, MIB, 0, stream, &fixture.handed));
    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    assert_cuda(cudaMemsetAsync(fixture.handed, 7, MIB, stream));
    assert_int_equal(pthread_create(&thread, NULL, free_into_capture, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_cuda(cudaStreamEndCapture(stream, &graph));
    assert_cuda(cudaGraphDestroy(graph));
}

static void an_invalidated_capture_still_has_a_key_of_its_own(void **state)
{
    cudaStream_t stream = fixture.streams[0];
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    rmm_stream_key_t keys[2] = {{0, 0}, {0, 0}};
    cudaGraph_t graph = NULL;

    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    assert_int_not_equal(cudaDeviceSynchronize(), cudaSuccess);
    for (int i = 0; i < 2; i++) {
        assert_cuda(driver->stream_key(stream, &keys[i]));
        assert_int_not_equal(keys[i].capture_id, 0);
    }
    assert_int_equal(keys[0].capture_id, keys[1].capture_id);
    assert_int_not_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    (void)cudaGetLastError();
}

static void asking_an_event_leaves_the_programs_error_alone(void **state)
{
    const size_t bytes = (size_t)4 << 30;
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    rmm_driver_event_t event;
    void *block;

    assert_ok(rmm_resource_alloc(fixture.pool, bytes, 0, NULL, &block));
    assert_cuda(driver->event_create(&event));
    for (int i = 0; i < 50; i++) {
        assert_cuda(cudaMemsetAsync(block, i, bytes, NULL));
    }
    assert_cuda(driver->event_record(event, NULL));
    assert_int_equal(cudaSetDevice(12345), cudaErrorInvalidDevice);
    assert_int_equal(driver->event_query(event), RMM_DRIVER_NOT_READY);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
    assert_cuda(driver->event_synchronize(event));
    assert_cuda(driver->event_query(event));
    assert_cuda(driver->event_destroy(event));
    rmm_resource_dealloc(fixture.pool, block, bytes, 0, NULL);
}

/* --- traffic: fills of megabytes that overlap on six streams, in a pool so small that
 * blocks change streams all the time ------------------------------------------------ */

enum { STREAMS = 6, LIVE = 12, STEPS = 3000, SAMPLE = 256 };

typedef struct sampled_block {
    void *ptr;
    size_t bytes;
    int value, stream;
} sampled_block_t;

typedef struct traffic {
    rmm_resource_t *pool;
    rmm_stream_t streams[STREAMS];
    sampled_block_t live[LIVE];
    int live_count, freed;
    unsigned seed;
    unsigned char *samples; /* pinned: what a block's ends held when it was freed */
    unsigned char expected[STEPS];
} traffic_t;

static void traffic_free(traffic_t *traffic, int index)
{
    sampled_block_t block = traffic->live[index];
    rmm_stream_t stream = traffic->streams[block.stream];
    unsigned char *sample = traffic->samples + (size_t)2 * SAMPLE * traffic->freed;
    const char *last = (const char *)block.ptr + block.bytes - SAMPLE;

    assert_cuda(
        cudaMemcpyAsync(sample, block.ptr, SAMPLE, cudaMemcpyDeviceToHost, stream));
    assert_cuda(
        cudaMemcpyAsync(sample + SAMPLE, last, SAMPLE, cudaMemcpyDeviceToHost, stream));
    rmm_resource_dealloc(traffic->pool, block.ptr, block.bytes, 0, stream);
    traffic->expected[traffic->freed++] = (unsigned char)block.value;
    traffic->live[index] = traffic->live[--traffic->live_count];
}

static void traffic_allocate(traffic_t *traffic, int step)
{
    sampled_block_t block = {
        .bytes = MIB / 4 * (size_t)(1 + rand_r(&traffic->seed) % 24),
        .value = step % 251,
        .stream = rand_r(&traffic->seed) % STREAMS,
    };
    rmm_stream_t stream = traffic->streams[block.stream];

    if (rmm_resource_alloc(traffic->pool, block.bytes, 0, stream, &block.ptr) ==
        RMM_OK) {
        assert_cuda(cudaMemsetAsync(block.ptr, block.value, block.bytes, stream));
        traffic->live[traffic->live_count++] = block;
    }
}

static void traffic_compare(const traffic_t *traffic)
{
    assert_cuda(cudaDeviceSynchronize());
    for (int i = 0; i < traffic->freed; i++) {
        for (int j = 0; j < 2 * SAMPLE; j++) {
            unsigned char found = traffic->samples[(size_t)2 * SAMPLE * i + j];

            if (found != traffic->expected[i]) {
                fail_msg("block %d held %d, not %d", i, found, traffic->expected[i]);
            }
        }
    }
    assert_true(traffic->freed > STEPS / 3);
}

static void data_never_mixes_between_streams(void **state)
{
    traffic_t *traffic = test_calloc(1, sizeof(*traffic));
    void *samples;

    traffic->pool = small_pool(24 * MIB);
    traffic->seed = 7;
    assert_cuda(cudaMallocHost(&samples, (size_t)2 * SAMPLE * STEPS));
    traffic->samples = samples;
    for (int i = 0; i < STREAMS; i++) {
        assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &traffic->streams[i]));
    }
    for (int step = 0; step < STEPS; step++) {
        bool is_full = traffic->live_count == LIVE;

        if (traffic->live_count > 0 && (is_full || rand_r(&traffic->seed) % 2 == 0)) {
            traffic_free(traffic, rand_r(&traffic->seed) % traffic->live_count);
        } else {
            traffic_allocate(traffic, step);
        }
    }
    while (traffic->live_count > 0) {
        traffic_free(traffic, 0);
    }
    traffic_compare(traffic);
    for (int i = 0; i < STREAMS; i++) {
        assert_ok(rmm_stream_destroy(traffic->streams[i]));
    }
    assert_cuda(cudaFreeHost(samples));
    rmm_resource_release(traffic->pool);
    test_free(traffic);
}

static void the_accounting_agrees_with_what_was_asked(void **state)
{
    rmm_stats_t stats = RMM_STATS_INIT;
    void *blocks[3];

    for (size_t i = 0; i < 3; i++) {
        assert_ok(rmm_resource_alloc(
            fixture.pool, 1000 * (i + 1), 0, fixture.streams[0], &blocks[i]));
    }
    rmm_resource_dealloc(fixture.pool, blocks[2], 3000, 0, fixture.streams[0]);
    assert_ok(rmm_resource_get_stats(fixture.pool, &stats));
    assert_int_equal(stats.current_bytes, 3000);
    assert_int_equal(stats.peak_bytes, 6000);
    assert_int_equal(stats.total_count, 3);
    assert_true(stats.reserved_bytes >= 6000);
    rmm_resource_dealloc(fixture.pool, blocks[0], 1000, 0, fixture.streams[0]);
    rmm_resource_dealloc(fixture.pool, blocks[1], 2000, 0, fixture.streams[0]);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_device_is_a_real_one),
        CASE(blocks_are_device_memory),
        CASE(a_block_that_changes_streams_keeps_its_new_data),
        CASE(memory_freed_on_a_stream_outlives_the_stream),
        CASE(refuses_more_than_the_device_has_and_recovers),
        CASE(growth_does_not_ruin_a_capture),
        CASE(every_resource_hands_out_memory_that_the_gpu_writes),
        CASE(nothing_another_thread_does_ruins_a_capture),
        CASE(a_fresh_thread_may_free_into_a_capture),
        CASE(an_invalidated_capture_still_has_a_key_of_its_own),
        CASE(asking_an_event_leaves_the_programs_error_alone),
        CASE(a_small_free_waits_for_the_whole_device),
        CASE(what_a_graph_uses_stays_its_own),
        CASE(data_never_mixes_between_streams),
        CASE(the_accounting_agrees_with_what_was_asked),
    };
    return gpu_is_missing() ? SKIPPED : cmocka_run_group_tests(tests, NULL, NULL);
}
