/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool over virtual memory on a real GPU: data, what the device itself says of its free
 * memory, and what mapping does to other threads' captures.
 *
 * Without a usable GPU, or one that can map, the program says so and exits 77.
 */
#include "gpu/gpu_harness.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rmm/rmm.h>
#include <rmm/sim.h>

#include "driver/driver.h"
#include "pool/engine_impl.h"
#include "resources/pool_resource.h"

#define PIECE (2 * MIB)

enum { BLOCKS = 16 };

static rmm_resource_t *make_pool(uint64_t initial, uint64_t maximum, uint64_t flags)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *pool;

    options.initial_bytes = initial;
    options.maximum_bytes = maximum;
    options.flags = RMM_POOL_VIRTUAL | flags;
    assert_ok(rmm_pool_resource_create(NULL, &options, &pool));
    return pool;
}

static void *take(rmm_resource_t *pool, size_t bytes, rmm_stream_t stream)
{
    void *ptr = NULL;

    assert_ok(rmm_resource_alloc(pool, bytes, 0, stream, &ptr));
    return ptr;
}

static uint64_t reserved_of(const rmm_resource_t *pool)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    assert_ok(rmm_resource_get_stats(pool, &stats));
    return stats.reserved_bytes;
}

static size_t device_free(void)
{
    size_t free_bytes;
    size_t total;

    assert_cuda(cudaMemGetInfo(&free_bytes, &total));
    return free_bytes;
}

/* Blocks of a piece with their number in them; then every second one is free. */
static void scatter(rmm_resource_t *pool, void **blocks, rmm_stream_t stream)
{
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = take(pool, PIECE, stream);
        assert_cuda(cudaMemsetAsync(blocks[i], i + 1, PIECE, stream));
    }
    for (int i = 0; i < BLOCKS; i += 2) {
        rmm_resource_dealloc(pool, blocks[i], PIECE, 0, stream);
    }
}

static void check_and_give(rmm_resource_t *pool, void **blocks, rmm_stream_t stream)
{
    for (int i = 1; i < BLOCKS; i += 2) {
        assert_filled(blocks[i], i + 1, PIECE);
        rmm_resource_dealloc(pool, blocks[i], PIECE, 0, stream);
    }
}

static void a_block_is_device_memory_that_the_gpu_writes(void **state)
{
    rmm_resource_t *pool = make_pool(0, 0, 0);
    struct cudaPointerAttributes attributes;
    void *block = take(pool, 100 * MIB + 1, NULL);

    assert_cuda(cudaPointerGetAttributes(&attributes, block));
    assert_int_equal(attributes.type, cudaMemoryTypeDevice);
    assert_cuda(cudaMemsetAsync(block, 3, 100 * MIB + 1, NULL));
    assert_filled(block, 3, 100 * MIB + 1);
    rmm_resource_dealloc(pool, block, 100 * MIB + 1, 0, NULL);
    rmm_resource_release(pool);
}

static void grows_in_place_behind_data(void **state)
{
    rmm_resource_t *pool = make_pool(0, 0, 0);
    void *first = take(pool, 64 * MIB, NULL);
    void *second;

    assert_cuda(cudaMemsetAsync(first, 1, 64 * MIB, NULL));
    second = take(pool, 256 * MIB, NULL);
    assert_ptr_equal(second, (char *)first + 64 * MIB);
    assert_cuda(cudaMemsetAsync(second, 2, 256 * MIB, NULL));
    assert_filled(first, 1, 64 * MIB);
    assert_filled(second, 2, 256 * MIB);
    rmm_resource_dealloc(pool, first, 64 * MIB, 0, NULL);
    rmm_resource_dealloc(pool, second, 256 * MIB, 0, NULL);
    rmm_resource_release(pool);
}

static void trim_gives_the_device_its_memory_back(void **state)
{
    rmm_resource_t *pool = make_pool(0, 0, 0);
    void *blocks[BLOCKS];
    size_t before;

    scatter(pool, blocks, NULL);
    before = device_free();
    assert_int_equal(reserved_of(pool), BLOCKS * PIECE);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(reserved_of(pool), BLOCKS / 2 * PIECE);
    assert_true(device_free() >= before + BLOCKS / 2 * PIECE);
    check_and_give(pool, blocks, NULL);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(reserved_of(pool), 0);
    assert_true(device_free() >= before + BLOCKS * PIECE);
    rmm_resource_release(pool);
}

static void scattered_memory_makes_one_block_and_keeps_the_others_data(void **state)
{
    rmm_resource_t *pool = make_pool(BLOCKS * PIECE, BLOCKS * PIECE, 0);
    void *blocks[BLOCKS];
    void *large;

    scatter(pool, blocks, NULL);
    large = take(pool, BLOCKS / 2 * PIECE, NULL);
    assert_cuda(cudaMemsetAsync(large, 99, BLOCKS / 2 * PIECE, NULL));
    assert_int_equal(reserved_of(pool), BLOCKS * PIECE);
    check_and_give(pool, blocks, NULL);
    assert_filled(large, 99, BLOCKS / 2 * PIECE);
    rmm_resource_dealloc(pool, large, BLOCKS / 2 * PIECE, 0, NULL);
    rmm_resource_release(pool);
}

/* Late writes of one stream, a trim and a gather meanwhile: they wait. */
static void nothing_is_unmapped_under_late_work(void **state)
{
    rmm_resource_t *pool = make_pool(512 * MIB, 512 * MIB, 0);
    rmm_stream_t stream;
    void *block;

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    for (int round = 0; round < 3; round++) {
        block = take(pool, 400 * MIB, stream);
        for (int i = 0; i < 40; i++) {
            assert_cuda(cudaMemsetAsync(block, i, 400 * MIB, stream));
        }
        rmm_resource_dealloc(pool, block, 400 * MIB, 0, stream);
        assert_ok(rmm_resource_trim(pool, 0));
        block = take(pool, 500 * MIB, NULL);
        assert_cuda(cudaMemsetAsync(block, 77, 500 * MIB, NULL));
        assert_filled(block, 77, 500 * MIB);
        rmm_resource_dealloc(pool, block, 500 * MIB, 0, NULL);
    }
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(pool);
}

/* --- what it costs: printed, not judged ---------------------------------------------- */

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static uint32_t pieces_of(rmm_resource_t *pool)
{
    return pool_from_base(pool)->engine->range.piece_count;
}

static void tells_what_growing_and_giving_back_cost(void **state)
{
    enum { COUNT = 64 };
    rmm_resource_t *pool = make_pool(0, 0, 0);
    void *blocks[COUNT];
    double begin = now_us();
    uint32_t pieces;

    for (int i = 0; i < COUNT; i++) {
        blocks[i] = take(pool, 16 * MIB, NULL);
    }
    pieces = pieces_of(pool);
    print_message(
        "fact: growth to 1 GiB in blocks of 16 MiB: %.0f us, %u pieces\n",
        now_us() - begin, pieces);
    /* of 2 MiB each, and the last of a growth may be smaller */
    assert_in_range(pieces, 1, COUNT * (16 / 2 + 1));
    for (int i = 0; i < COUNT; i++) {
        assert_cuda(cudaMemsetAsync(blocks[i], i + 1, 16 * MIB, NULL));
    }
    for (int i = 0; i < COUNT; i++) {
        assert_filled(blocks[i], i + 1, 16 * MIB);
        rmm_resource_dealloc(pool, blocks[i], 16 * MIB, 0, NULL);
    }
    begin = now_us();
    assert_ok(rmm_resource_trim(pool, 0));
    print_message("fact: trim of these %u: %.0f us\n", pieces, now_us() - begin);
    assert_int_equal(reserved_of(pool), 0);
    rmm_resource_release(pool);

    begin = now_us();
    pool = make_pool(1024 * MIB, 0, 0);
    print_message(
        "fact: a pool that begins with 1 GiB: %.0f us, %u pieces\n", now_us() - begin,
        pieces_of(pool));
    rmm_resource_release(pool);
}

/* Every second piece of 1 GiB, side by side again, with the others' data in place. */
static void tells_what_gathering_costs(void **state)
{
    rmm_resource_t *pool = make_pool(1024 * MIB, 1024 * MIB, 0);
    uint32_t count = pieces_of(pool);
    size_t piece = 1024 * MIB / count;
    void **blocks = calloc(count, sizeof(*blocks));
    void *large;
    double begin;

    assert_non_null(blocks);
    for (uint32_t i = 0; i < count; i++) {
        blocks[i] = take(pool, piece, NULL);
        assert_cuda(cudaMemsetAsync(blocks[i], (int)i % 250 + 1, piece, NULL));
    }
    for (uint32_t i = 0; i < count; i += 2) {
        rmm_resource_dealloc(pool, blocks[i], piece, 0, NULL);
    }
    assert_cuda(cudaDeviceSynchronize());
    begin = now_us();
    large = take(pool, 512 * MIB, NULL);
    print_message(
        "fact: gathering 512 MiB from %u pieces: %.0f us\n", count / 2,
        now_us() - begin);
    assert_cuda(cudaMemsetAsync(large, 255, 512 * MIB, NULL));
    for (uint32_t i = 1; i < count; i += 2) {
        assert_filled(blocks[i], (int)i % 250 + 1, piece);
        rmm_resource_dealloc(pool, blocks[i], piece, 0, NULL);
    }
    assert_filled(large, 255, 512 * MIB);
    rmm_resource_dealloc(pool, large, 512 * MIB, 0, NULL);
    rmm_resource_release(pool);
    free(blocks);
}

enum { MIX_LIVE = 512, MIX_STEPS = 20000 };

/* One of many blocks of up to 64 MiB is freed, another taken, always the same ones. */
static double mix_once(rmm_resource_t *pool, void **ptr, size_t *bytes)
{
    double begin = now_us();
    uint64_t seed = 7;

    for (int step = 0; step < MIX_STEPS + MIX_LIVE; step++) {
        size_t at = step < MIX_STEPS ? (size_t)(seed >> 33) % MIX_LIVE
                                     : (size_t)(step - MIX_STEPS);

        if (ptr[at] != NULL) {
            rmm_resource_dealloc(pool, ptr[at], bytes[at], 0, NULL);
            ptr[at] = NULL;
        }
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        if (step < MIX_STEPS) {
            bytes[at] = 1 + (size_t)(seed >> 20) % (64 * MIB);
            ptr[at] = take(pool, bytes[at], NULL);
        }
    }
    return (now_us() - begin) * 1e3 / (2 * MIX_STEPS);
}

static void tells_when_a_steady_mix_needs_the_driver_no_more(void **state)
{
    rmm_resource_t *pool = make_pool(0, 0, 0);
    engine_t *engine = pool_from_base(pool)->engine;
    engine_figures_t before, after;
    void **ptr = calloc(MIX_LIVE, sizeof(*ptr));
    size_t *bytes = calloc(MIX_LIVE, sizeof(*bytes));

    assert_non_null(ptr);
    assert_non_null(bytes);
    for (int round = 1; round <= 4; round++) {
        double ns;

        rmm__engine_figures(engine, &before);
        ns = mix_once(pool, ptr, bytes);
        rmm__engine_figures(engine, &after);

        print_message(
            "fact: mix up to 64 MiB, round %d: %.0f ns an operation, %llu pieces "
            "mapped, %llu waits for the device, "
            "%lu MiB held\n",
            round, ns, (unsigned long long)(after.map_count - before.map_count),
            (unsigned long long)(after.sync_count - before.sync_count),
            (unsigned long)(reserved_of(pool) / MIB));
    }
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(reserved_of(pool), 0);
    rmm_resource_release(pool);
    free(ptr);
    free(bytes);
}

/* --- captures ------------------------------------------------------------------------ */

/* Grow, gather, trim, fail: all that a pool may tell the driver; NULL or what failed. */
static void *use_every_step(void *argument)
{
    rmm_resource_t *pool = argument;
    void *blocks[4] = {NULL};
    void *large = NULL;

    for (int i = 0; i < 4; i++) {
        if (rmm_resource_alloc(pool, PIECE, 0, RMM_STREAM_PER_THREAD, &blocks[i]) !=
            RMM_OK) {
            return (void *)(uintptr_t) "growth";
        }
    }
    rmm_resource_dealloc(pool, blocks[0], PIECE, 0, RMM_STREAM_PER_THREAD);
    rmm_resource_dealloc(pool, blocks[2], PIECE, 0, RMM_STREAM_PER_THREAD);
    if (rmm_resource_alloc(pool, 2 * PIECE, 0, RMM_STREAM_PER_THREAD, &large) !=
        RMM_OK) {
        return (void *)(uintptr_t) "gathering";
    }
    rmm_resource_dealloc(pool, large, 2 * PIECE, 0, RMM_STREAM_PER_THREAD);
    if (rmm_resource_trim(pool, 0) != RMM_OK) {
        return (void *)(uintptr_t) "trim";
    }
    rmm_resource_dealloc(pool, blocks[1], PIECE, 0, RMM_STREAM_PER_THREAD);
    rmm_resource_dealloc(pool, blocks[3], PIECE, 0, RMM_STREAM_PER_THREAD);
    rmm_resource_release(pool);
    return NULL;
}

static void mapping_does_not_ruin_another_threads_capture(void **state)
{
    rmm_resource_t *pool = make_pool(0, 4 * PIECE, 0);
    rmm_stream_t stream;
    void *target;

    assert_cuda(cudaMalloc(&target, MIB));
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    assert_capture_survives(stream, target, use_every_step, pool);
    assert_cuda(cudaFree(target));
    assert_ok(rmm_stream_destroy(stream));
}

static void grows_on_the_capturing_stream_itself(void **state)
{
    rmm_resource_t *pool = make_pool(0, 0, 0);
    rmm_stream_t stream;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t runnable;
    void *block;

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    block = take(pool, 8 * MIB, stream);
    assert_cuda(cudaMemsetAsync(block, 5, 8 * MIB, stream));
    assert_cuda(cudaStreamEndCapture(stream, &graph));
    assert_cuda(cudaGraphInstantiate(&runnable, graph, 0));
    assert_cuda(cudaGraphLaunch(runnable, stream));
    assert_filled(block, 5, 8 * MIB);
    assert_cuda(cudaGraphExecDestroy(runnable));
    assert_cuda(cudaGraphDestroy(graph));
    rmm_resource_dealloc(pool, block, 8 * MIB, 0, stream);
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(pool);
}

/* --- peers --------------------------------------------------------------------------- */

static void another_gpu_reads_what_is_shared(void **state)
{
    int can = 0;
    int count;
    rmm_resource_t *pool;
    void *block;

    assert_cuda(cudaGetDeviceCount(&count));
    if (count > 1) {
        assert_cuda(cudaDeviceCanAccessPeer(&can, 1, 0));
    }
    if (!can) {
        print_message("no two GPUs that reach each other: nothing to look at\n");
        skip();
    }
    pool = make_pool(0, 0, RMM_POOL_PEER_ACCESS);
    block = take(pool, 4 * MIB, NULL);
    assert_cuda(cudaSetDevice(1));
    assert_cuda(cudaMemset(block, 9, 4 * MIB)); /* written by the other GPU */
    assert_cuda(cudaDeviceSynchronize());
    assert_cuda(cudaSetDevice(0));
    assert_filled(block, 9, 4 * MIB);
    rmm_resource_dealloc(pool, block, 4 * MIB, 0, NULL);
    rmm_resource_release(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_device_memory_that_the_gpu_writes),
        cmocka_unit_test(grows_in_place_behind_data),
        cmocka_unit_test(trim_gives_the_device_its_memory_back),
        cmocka_unit_test(scattered_memory_makes_one_block_and_keeps_the_others_data),
        cmocka_unit_test(nothing_is_unmapped_under_late_work),
        cmocka_unit_test(tells_what_growing_and_giving_back_cost),
        cmocka_unit_test(tells_what_gathering_costs),
        cmocka_unit_test(tells_when_a_steady_mix_needs_the_driver_no_more),
        cmocka_unit_test(mapping_does_not_ruin_another_threads_capture),
        cmocka_unit_test(grows_on_the_capturing_stream_itself),
        cmocka_unit_test(another_gpu_reads_what_is_shared),
    };
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    int able = 0;

    if (driver == NULL && status == RMM_ERR_NO_DEVICE) {
        printf("skipped: %s\n", rmm_last_error_message());
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
