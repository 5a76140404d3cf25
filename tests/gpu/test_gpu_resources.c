/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resources on a real GPU, each case against data and not only against addresses.
 * Every case first proves that the CUDA driver is the one in use.
 *
 * Without a usable GPU the program says so and exits 77.
 */
#include "harness/harness.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/rmm.h>
#include <rmm/sim.h>

#include "driver/driver.h"

#define MIB ((size_t)1 << 20)
#define SKIPPED 77

typedef struct fixture {
    rmm_resource_t *cuda, *pool;
    rmm_stream_t streams[2];
} fixture_t;

static void assert_cuda(int error)
{
    if (error != cudaSuccess) {
        fail_msg("%s", cudaGetErrorString((cudaError_t)error));
    }
}

static int set_up(void **state)
{
    fixture_t *fixture = test_calloc(1, sizeof(*fixture));
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);

    assert_non_null(driver);
    assert_string_equal(driver->name, "cuda");
    assert_false(rmm_sim_active());
    assert_ok(rmm_cuda_resource_create(&fixture->cuda));
    assert_ok(rmm_pool_resource_create(fixture->cuda, NULL, &fixture->pool));
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &fixture->streams[0]));
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &fixture->streams[1]));
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    fixture_t *fixture = *state;

    assert_ok(rmm_stream_destroy(fixture->streams[0]));
    assert_ok(rmm_stream_destroy(fixture->streams[1]));
    rmm_resource_release(fixture->pool);
    rmm_resource_release(fixture->cuda);
    test_free(fixture);
    return 0;
}

/* Every byte of a device block, copied back after the device is idle. */
static void assert_filled(const void *block, int value, size_t bytes)
{
    unsigned char *copy = malloc(bytes);

    assert_non_null(copy);
    assert_cuda(cudaDeviceSynchronize());
    assert_cuda(cudaMemcpy(copy, block, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < bytes; i++) {
        if (copy[i] != value) {
            fail_msg("byte %zu is %d, not %d", i, copy[i], value);
        }
    }
    free(copy);
}

static void the_device_is_a_real_one(void **state)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    rmm_device_info_t info;
    struct cudaDeviceProp properties;

    (void)state;
    assert_int_equal(driver->device_info(0, &info), RMM_DRIVER_OK);
    assert_memory_equal(info.uuid, "GPU-", 4);
    assert_cuda(cudaGetDeviceProperties(&properties, 0));
    assert_string_equal(info.name, properties.name);
    assert_true(info.capacity_bytes == properties.totalGlobalMem);
}

static void blocks_are_device_memory(void **state)
{
    fixture_t *fixture = *state;
    rmm_resource_t *resources[] = {fixture->cuda, fixture->pool};

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
    fixture_t *fixture = *state;
    size_t bytes = 64 * MIB;

    for (int round = 0; round < 50; round++) {
        rmm_stream_t first = fixture->streams[round % 2];
        rmm_stream_t second = fixture->streams[1 - round % 2];
        void *block = NULL;

        assert_ok(rmm_resource_alloc(fixture->pool, bytes, 0, first, &block));
        for (int i = 0; i < 20; i++) {
            assert_cuda(cudaMemsetAsync(block, 0xee, bytes, first));
        }
        rmm_resource_dealloc(fixture->pool, block, bytes, 0, first);
        assert_ok(rmm_resource_alloc(fixture->pool, bytes, 0, second, &block));
        assert_cuda(cudaMemsetAsync(block, round, bytes, second));
        assert_filled(block, round, bytes);
        rmm_resource_dealloc(fixture->pool, block, bytes, 0, second);
    }
}

static void memory_freed_on_a_stream_outlives_the_stream(void **state)
{
    fixture_t *fixture = *state;

    for (int round = 0; round < 100; round++) {
        rmm_stream_t stream;
        void *block = NULL;

        assert_ok(rmm_stream_create(0, &stream));
        assert_ok(rmm_resource_alloc(fixture->pool, 8 * MIB, 0, stream, &block));
        assert_cuda(cudaMemsetAsync(block, 0xee, 8 * MIB, stream));
        rmm_resource_dealloc(fixture->pool, block, 8 * MIB, 0, stream);
        assert_ok(rmm_stream_destroy(stream));

        stream = fixture->streams[round % 2];
        assert_ok(rmm_resource_alloc(fixture->pool, 8 * MIB, 0, stream, &block));
        assert_cuda(cudaMemsetAsync(block, round, 8 * MIB, stream));
        assert_filled(block, round, 8 * MIB);
        rmm_resource_dealloc(fixture->pool, block, 8 * MIB, 0, stream);
    }
}

static void refuses_more_than_the_device_has_and_recovers(void **state)
{
    fixture_t *fixture = *state;
    size_t free_bytes, total_bytes;
    void *block = NULL;

    assert_cuda(cudaMemGetInfo(&free_bytes, &total_bytes));
    assert_int_equal(
        rmm_resource_alloc(fixture->pool, total_bytes, 0, fixture->streams[0], &block),
        RMM_ERR_OUT_OF_MEMORY);
    assert_null(block);
    assert_int_equal(rmm_last_cuda_error(), cudaErrorMemoryAllocation);
    assert_cuda(cudaGetLastError()); /* nothing is left for the program to trip over */
    assert_ok(rmm_resource_alloc(fixture->pool, MIB, 0, fixture->streams[0], &block));
    rmm_resource_dealloc(fixture->pool, block, MIB, 0, fixture->streams[0]);
}

/* Growth needs cudaMalloc, which a capture in global mode forbids and is ruined by. */
static void growth_does_not_ruin_a_capture(void **state)
{
    fixture_t *fixture = *state;
    cudaStream_t stream = fixture->streams[0];
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    void *target = NULL, *grown = NULL;

    assert_ok(rmm_resource_alloc(fixture->pool, MIB, 0, stream, &target));
    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    assert_cuda(cudaMemsetAsync(target, 7, MIB, stream));
    assert_ok(rmm_resource_alloc(
        fixture->pool, (size_t)1 << 30, 0, fixture->streams[1], &grown));
    assert_cuda(cudaStreamEndCapture(stream, &graph));
    assert_cuda(cudaGraphInstantiate(&executable, graph, 0));
    assert_cuda(cudaGraphLaunch(executable, stream));
    assert_filled(target, 7, MIB);
    assert_cuda(cudaGraphExecDestroy(executable));
    assert_cuda(cudaGraphDestroy(graph));
    rmm_resource_dealloc(fixture->pool, grown, (size_t)1 << 30, 0, fixture->streams[1]);
    rmm_resource_dealloc(fixture->pool, target, MIB, 0, stream);
}

static void the_books_agree_with_what_was_asked(void **state)
{
    fixture_t *fixture = *state;
    rmm_stats_t stats = RMM_STATS_INIT;
    void *blocks[3];

    for (size_t i = 0; i < 3; i++) {
        assert_ok(rmm_resource_alloc(
            fixture->pool, 1000 * (i + 1), 0, fixture->streams[0], &blocks[i]));
    }
    rmm_resource_dealloc(fixture->pool, blocks[2], 3000, 0, fixture->streams[0]);
    assert_ok(rmm_resource_get_stats(fixture->pool, &stats));
    assert_int_equal(stats.current_bytes, 3000);
    assert_int_equal(stats.peak_bytes, 6000);
    assert_int_equal(stats.total_count, 3);
    assert_true(stats.reserved_bytes >= 6000);
    rmm_resource_dealloc(fixture->pool, blocks[0], 1000, 0, fixture->streams[0]);
    rmm_resource_dealloc(fixture->pool, blocks[1], 2000, 0, fixture->streams[0]);
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
        CASE(the_books_agree_with_what_was_asked),
    };
    rmm_status_t status;

    if (rmm__driver(&status) == NULL && status == RMM_ERR_NO_DEVICE) {
        printf("skipped: %s\n", rmm_last_error_message());
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
