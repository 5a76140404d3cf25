/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool that sleeps on a real GPU: every byte is back after a thousand cycles, the device gets
 * its memory, a graph runs again, and the copies take about as long as one of pinned memory.
 *
 * Without a usable GPU, or one that can map, the program says so and exits 77.
 */
#include "gpu/gpu_harness.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rmm/rmm.h>
#include <rmm/sim.h>

#include "driver/driver.h"

#define GIB ((size_t)1 << 30)

enum { BLOCKS = 12 };

static const size_t sizes[BLOCKS] = {8,          1000,    MIB,      3 * MIB + 8,
                                     256 * 1024, 7 * MIB, 2 * MIB,  100 * 1024,
                                     5 * MIB,    16,      12 * MIB, 4 * MIB};

static rmm_resource_t *make_pool(uint64_t initial)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *pool;

    options.initial_bytes = initial;
    options.flags = RMM_POOL_VIRTUAL;
    assert_ok(rmm_pool_resource_create(NULL, &options, &pool));
    return pool;
}

static void *take(rmm_resource_t *pool, size_t bytes, rmm_stream_t stream)
{
    void *ptr = NULL;

    assert_ok(rmm_resource_alloc(pool, bytes, 0, stream, &ptr));
    return ptr;
}

static void sleep_with(rmm_resource_t *pool, uint64_t flags)
{
    rmm_pool_sleep_options_t options = RMM_POOL_SLEEP_OPTIONS_INIT;

    options.flags = flags;
    assert_ok(rmm_pool_sleep(pool, &options));
}

static size_t device_free(void)
{
    size_t free_bytes, total;

    assert_cuda(cudaMemGetInfo(&free_bytes, &total));
    return free_bytes;
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Random bytes in pinned memory. */
static unsigned char *make_bytes(size_t bytes)
{
    unsigned char *made = NULL;
    uint64_t state = 1;

    assert_cuda(cudaMallocHost((void **)&made, bytes));
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        memcpy(made + i, &state, 8);
    }
    return made;
}

static unsigned long wanted(const char *variable, unsigned long otherwise)
{
    const char *text = getenv(variable);

    return text != NULL ? strtoul(text, NULL, 10) : otherwise;
}

static void every_byte_is_there_after_a_thousand_cycles(void **state)
{
    const unsigned long cycles = wanted("RMM_TEST_SLEEP_CYCLES", 1000);
    unsigned char *expected = make_bytes(16 * MIB);
    unsigned char *copy = make_bytes(16 * MIB);
    rmm_resource_t *pool = make_pool(0);
    void *blocks[BLOCKS], *gap;

    (void)state;
    assert_real_gpu();
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = take(pool, sizes[i], NULL);
        gap = take(pool, 3 * MIB, NULL);
        assert_cuda(
            cudaMemcpy(blocks[i], expected + i * 64, sizes[i], cudaMemcpyHostToDevice));
        rmm_resource_dealloc(pool, gap, 3 * MIB, 0, NULL);
    }
    for (unsigned long cycle = 0; cycle < cycles; cycle++) {
        sleep_with(pool, cycle % 10 != 0 ? RMM_POOL_SLEEP_KEEP_HOST : 0);
        assert_ok(rmm_pool_wake(pool));
        for (int i = 0; i < BLOCKS; i++) {
            assert_cuda(cudaMemcpy(copy, blocks[i], sizes[i], cudaMemcpyDeviceToHost));
            assert_memory_equal(copy, expected + i * 64, sizes[i]);
        }
    }
    for (int i = 0; i < BLOCKS; i++) {
        rmm_resource_dealloc(pool, blocks[i], sizes[i], 0, NULL);
    }
    rmm_resource_release(pool);
    assert_cuda(cudaFreeHost(copy));
    assert_cuda(cudaFreeHost(expected));
}

static void the_device_gets_the_memory(void **state)
{
    rmm_resource_t *pool = make_pool(GIB);
    void *block = take(pool, 512 * MIB, NULL);
    size_t before = device_free();

    (void)state;
    sleep_with(pool, RMM_POOL_SLEEP_DISCARD);
    assert_true(device_free() >= before + GIB);
    assert_ok(rmm_pool_wake(pool));
    assert_true(device_free() < before + 64 * MIB);
    assert_cuda(cudaMemset(block, 1, 512 * MIB));
    assert_filled(block, 1, 512 * MIB);
    rmm_resource_dealloc(pool, block, 512 * MIB, 0, NULL);
    rmm_resource_release(pool);
}

static void a_graph_runs_again(void **state)
{
    rmm_resource_t *pool = make_pool(0);
    void *out = take(pool, MIB, NULL);
    rmm_stream_t stream;
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    void *inside;

    (void)state;
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    inside = take(pool, MIB, stream);
    assert_cuda(cudaMemsetAsync(inside, 7, MIB, stream));
    assert_cuda(cudaMemcpyAsync(out, inside, MIB, cudaMemcpyDeviceToDevice, stream));
    rmm_resource_dealloc(pool, inside, MIB, 0, stream);
    assert_cuda(cudaStreamEndCapture(stream, &graph));
    assert_cuda(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++) {
        assert_cuda(cudaMemset(out, i, MIB));
        sleep_with(pool, 0);
        assert_ok(rmm_pool_wake(pool));
        assert_filled(out, i, MIB);
        assert_cuda(cudaGraphLaunch(exec, stream));
        assert_filled(out, 7, MIB);
    }
    assert_cuda(cudaGraphExecDestroy(exec));
    assert_cuda(cudaGraphDestroy(graph));
    rmm_resource_dealloc(pool, out, MIB, 0, NULL);
    rmm_resource_release(pool);
    assert_ok(rmm_stream_destroy(stream));
}

/* A capture on another stream stays whole while a pool sleeps and wakes. */
static void *sleep_and_wake(void *pool)
{
    return rmm_pool_sleep(pool, NULL) == RMM_OK && rmm_pool_wake(pool) == RMM_OK
               ? NULL
               : (void *)(uintptr_t)rmm_last_error_message();
}

static void a_sleep_does_not_ruin_another_threads_capture(void **state)
{
    rmm_resource_t *pool = make_pool(0);
    void *block = take(pool, 8 * MIB, NULL);
    cudaStream_t stream;

    (void)state;
    assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    assert_cuda(cudaMemset(block, 3, 8 * MIB));
    assert_capture_survives(stream, block, sleep_and_wake, pool);
    rmm_resource_dealloc(pool, block, 8 * MIB, 0, NULL);
    rmm_resource_release(pool);
    assert_cuda(cudaStreamDestroy(stream));
}

/* Bytes a second of a copy of 1 GiB, the best of five. */
static double one_copy(void *block, enum cudaMemcpyKind kind)
{
    void *pinned;
    double best = 0;

    assert_cuda(cudaMallocHost(&pinned, GIB));
    for (int i = 0; i < 5; i++) {
        double before = seconds();

        assert_cuda(cudaMemcpy(
            kind == cudaMemcpyDeviceToHost ? pinned : block,
            kind == cudaMemcpyDeviceToHost ? block : pinned, GIB, kind));
        best = (double)GIB / (seconds() - before) > best
                   ? (double)GIB / (seconds() - before)
                   : best;
    }
    assert_cuda(cudaFreeHost(pinned));
    return best;
}

static void tells_how_fast_it_is(void **state)
{
    size_t gib = wanted("RMM_TEST_SLEEP_GIB", 16);
    rmm_resource_t *pool;
    double out, in;
    void *block;

    (void)state;
    if (device_free() < (gib + 1) * GIB) {
        printf("the device has no %zu GiB free\n", gib);
        return;
    }
    pool = make_pool(gib * GIB);
    block = take(pool, gib * GIB, NULL);
    assert_cuda(cudaMemset(block, 5, gib * GIB));
    out = one_copy(block, cudaMemcpyDeviceToHost);
    in = one_copy(block, cudaMemcpyHostToDevice);
    assert_cuda(cudaMemset(block, 5, gib * GIB));
    for (int i = 0; i < 4; i++) {
        double begun = seconds(), slept, woken;

        sleep_with(pool, RMM_POOL_SLEEP_KEEP_HOST);
        slept = seconds();
        assert_ok(rmm_pool_wake(pool));
        woken = seconds();
        printf(
            "%zu GiB, cycle %d: sleep %.3f s %.1f GB/s (%.0f %% of one copy), "
            "wake %.3f s %.1f GB/s (%.0f %%)\n",
            gib, i + 1, slept - begun, (double)(gib * GIB) / (slept - begun) * 1e-9,
            (double)(gib * GIB) / (slept - begun) / out * 100, woken - slept,
            (double)(gib * GIB) / (woken - slept) * 1e-9,
            (double)(gib * GIB) / (woken - slept) / in * 100);
    }
    assert_filled(block, 5, 64 * MIB);
    assert_filled((char *)block + (gib * GIB - 64 * MIB), 5, 64 * MIB);
    rmm_resource_dealloc(pool, block, gib * GIB, 0, NULL);
    rmm_resource_release(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_is_there_after_a_thousand_cycles),
        cmocka_unit_test(the_device_gets_the_memory),
        cmocka_unit_test(a_graph_runs_again),
        cmocka_unit_test(a_sleep_does_not_ruin_another_threads_capture),
        cmocka_unit_test(tells_how_fast_it_is),
    };
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    int able = 0;

    if (gpu_is_missing()) {
        return SKIPPED;
    }
    if (driver == NULL || rmm_sim_active() ||
        driver->device_attribute(RMM_ATTRIBUTE_VIRTUAL_MEMORY, 0, &able) !=
            RMM_DRIVER_OK) {
        return 1;
    }
    if (!able) {
        printf("skipped: device 0 cannot map virtual memory\n");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
