/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resources over CUDA's memory pools, and system memory where the machine has it, on a
 * real GPU: what CUDA itself says of their memory, and data across streams and captures.
 * RMM's cases run in the conformance suite.
 *
 * Prints what some calls cost here; that asserts nothing.
 *
 * Without a usable GPU the program says so and exits 77.
 */
#include "gpu/gpu_harness.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rmm/rmm.h>
#include <rmm/sim.h>

#include "base/resource_impl.h"
#include "driver/driver.h"

static struct {
    rmm_resource_t *async;
    rmm_stream_t streams[2];
} fixture;

/* The errors of a capture that a failed case has left: for the next ones to start clean. */
static void end_captures(void)
{
    for (int i = 0; i < 2; i++) {
        enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        cudaGraph_t graph = NULL;

        if (cudaStreamIsCapturing(fixture.streams[i], &status) == cudaSuccess &&
            status != cudaStreamCaptureStatusNone &&
            cudaStreamEndCapture(fixture.streams[i], &graph) == cudaSuccess) {
            (void)cudaGraphDestroy(graph);
        }
    }
    (void)cudaGetLastError();
}

static int set_up(void **state)
{
    memset(&fixture, 0, sizeof(fixture));
    assert_real_gpu();
    assert_ok(rmm_async_resource_create(NULL, &fixture.async));
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &fixture.streams[0]));
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &fixture.streams[1]));
    return 0;
}

static int tear_down(void **state)
{
    end_captures();
    assert_ok(rmm_stream_destroy(fixture.streams[0]));
    assert_ok(rmm_stream_destroy(fixture.streams[1]));
    rmm_resource_release(fixture.async);
    assert_cuda(cudaDeviceSynchronize());
    return 0;
}

static void *take(rmm_resource_t *mr, size_t bytes, rmm_stream_t stream)
{
    void *block = NULL;

    assert_ok(rmm_resource_alloc(mr, bytes, 0, stream, &block));
    return block;
}

static void give(rmm_resource_t *mr, void *block, size_t bytes, rmm_stream_t stream)
{
    rmm_resource_dealloc(mr, block, bytes, 0, stream);
}

static rmm_stats_t stats_of(const rmm_resource_t *mr)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    assert_ok(rmm_resource_get_stats(mr, &stats));
    return stats;
}

static uint64_t pool_figure(const rmm_resource_t *mr, enum cudaMemPoolAttr attribute)
{
    uint64_t value = 0;

    assert_cuda(
        cudaMemPoolGetAttribute(rmm_async_resource_pool_handle(mr), attribute, &value));
    return value;
}

/* Copied back on its stream, without waiting for anything else. */
static void
assert_filled_on(const void *block, int value, size_t bytes, rmm_stream_t stream)
{
    unsigned char *copy = malloc(bytes);

    assert_non_null(copy);
    assert_cuda(cudaMemcpyAsync(copy, block, bytes, cudaMemcpyDefault, stream));
    assert_cuda(cudaStreamSynchronize(stream));
    for (size_t i = 0; i < bytes; i++) {
        if (copy[i] != value) {
            fail_msg("byte %zu is %d, not %d", i, copy[i], value);
        }
    }
    free(copy);
}

/* --- async -------------------------------------------------------------------------- */

static void blocks_are_device_memory_of_the_pool(void **state)
{
    struct cudaPointerAttributes attributes;
    void *block = take(fixture.async, MIB + 1, NULL);

    assert_cuda(cudaPointerGetAttributes(&attributes, block));
    assert_int_equal(attributes.type, cudaMemoryTypeDevice);
    assert_int_equal((uintptr_t)block % RMM_ALIGN_DEFAULT, 0);
    assert_true(pool_figure(fixture.async, cudaMemPoolAttrUsedMemCurrent) > MIB);
    assert_cuda(cudaMemsetAsync(block, 7, MIB + 1, NULL));
    assert_filled_on(block, 7, MIB + 1, NULL);
    give(fixture.async, block, MIB + 1, NULL);
    assert_cuda(cudaDeviceSynchronize());
    assert_int_equal(pool_figure(fixture.async, cudaMemPoolAttrUsedMemCurrent), 0);
}

/* Late writes of the block's last stream must not land in the data of the next. */
static void a_block_that_changes_streams_keeps_its_new_data(void **state)
{
    size_t bytes = 64 * MIB;

    for (int round = 0; round < 50; round++) {
        rmm_stream_t first = fixture.streams[round % 2];
        rmm_stream_t second = fixture.streams[1 - round % 2];
        void *block = take(fixture.async, bytes, first);

        for (int i = 0; i < 20; i++) {
            assert_cuda(cudaMemsetAsync(block, 0xee, bytes, first));
        }
        give(fixture.async, block, bytes, first);
        block = take(fixture.async, bytes, second);
        assert_cuda(cudaMemsetAsync(block, round, bytes, second));
        assert_cuda(cudaStreamSynchronize(first));
        assert_filled_on(block, round, bytes, second);
        give(fixture.async, block, bytes, second);
    }
}

static void memory_freed_on_a_stream_outlives_the_stream(void **state)
{
    for (int round = 0; round < 100; round++) {
        rmm_stream_t stream;
        void *block;

        assert_ok(rmm_stream_create(0, &stream));
        block = take(fixture.async, 8 * MIB, stream);
        assert_cuda(cudaMemsetAsync(block, 0xee, 8 * MIB, stream));
        give(fixture.async, block, 8 * MIB, stream);
        assert_ok(rmm_stream_destroy(stream));
        stream = fixture.streams[round % 2];
        block = take(fixture.async, 8 * MIB, stream);
        assert_cuda(cudaMemsetAsync(block, round, 8 * MIB, stream));
        assert_cuda(cudaDeviceSynchronize());
        assert_filled_on(block, round, 8 * MIB, stream);
        give(fixture.async, block, 8 * MIB, stream);
    }
}

static void work_that_is_queued_outlives_the_resource(void **state)
{
    rmm_stream_t stream = fixture.streams[0];
    unsigned char *copy;
    rmm_resource_t *mr;
    void *block;

    assert_cuda(cudaMallocHost((void **)&copy, 64 * MIB));
    assert_ok(rmm_async_resource_create(NULL, &mr));
    block = take(mr, 64 * MIB, stream);
    for (int i = 0; i < 50; i++) {
        assert_cuda(cudaMemsetAsync(block, i, 64 * MIB, stream));
    }
    assert_cuda(cudaMemcpyAsync(copy, block, 64 * MIB, cudaMemcpyDeviceToHost, stream));
    give(mr, block, 64 * MIB, stream);
    rmm_resource_release(mr);
    assert_cuda(cudaStreamSynchronize(stream));
    for (size_t i = 0; i < 64 * MIB; i++) {
        assert_int_equal(copy[i], 49);
    }
    assert_cuda(cudaFreeHost(copy));
}

static void refuses_more_than_the_device_has_and_recovers(void **state)
{
    const size_t sizes[] = {(size_t)1 << 40, (size_t)1 << 50, PTRDIFF_MAX, SIZE_MAX};
    void *block = NULL;

    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(
            rmm_resource_alloc(fixture.async, sizes[i], 0, fixture.streams[0], &block),
            RMM_ERR_OUT_OF_MEMORY);
        assert_null(block);
        assert_cuda(cudaGetLastError()); /* nothing for the program to trip over */
    }
    give(
        fixture.async, take(fixture.async, MIB, fixture.streams[0]), MIB,
        fixture.streams[0]);
}

static void the_accounting_agrees_with_the_driver(void **state)
{
    rmm_resource_t *mr = fixture.async;
    rmm_stream_t stream = fixture.streams[0];
    void *block = take(mr, 1000 * MIB, stream);
    uint64_t held;

    assert_int_equal(stats_of(mr).current_bytes, 1000 * MIB);
    held = pool_figure(mr, cudaMemPoolAttrReservedMemCurrent);
    assert_true(held >= 1000 * MIB);
    assert_int_equal(stats_of(mr).reserved_bytes, held);
    give(mr, block, 1000 * MIB, stream);
    assert_cuda(cudaDeviceSynchronize()); /* the threshold keeps it */
    assert_true(stats_of(mr).reserved_bytes >= 1000 * MIB);
    assert_ok(rmm_resource_trim(mr, 0)); /* CUDA has seen that it is done with */
    assert_int_equal(pool_figure(mr, cudaMemPoolAttrReservedMemCurrent), 0);
    assert_int_equal(stats_of(mr).reserved_bytes, 0);
}

/* With work queued, so that the free is not done with when the next call comes. */
static void free_behind_work(rmm_resource_t *mr, rmm_stream_t stream)
{
    void *block = take(mr, MIB, stream);

    assert_cuda(cudaMemsetAsync(block, 1, MIB, stream));
    give(mr, block, MIB, stream);
}

static void trim_pool(const rmm_resource_t *mr, const char *after)
{
    assert_cuda(cudaMemPoolTrimTo(rmm_async_resource_pool_handle(mr), 0));
    print_message(
        "fact: after a free and %s a trim leaves %llu\n", after,
        (unsigned long long)pool_figure(mr, cudaMemPoolAttrReservedMemCurrent));
}

/* Prints what CUDA takes for having seen that a free is done with. */
static void a_trim_gives_back_what_is_seen_to_be_done_with(void **state)
{
    rmm_resource_t *mr = fixture.async;
    rmm_stream_t stream = fixture.streams[0];
    cudaEvent_t event;
    void *plain;

    free_behind_work(mr, stream);
    trim_pool(mr, "nothing");
    free_behind_work(mr, stream);
    assert_cuda(cudaMalloc(&plain, 1));
    assert_cuda(cudaFree(plain));
    trim_pool(mr, "a cudaFree");
    assert_cuda(cudaStreamSynchronize(fixture.streams[1]));
    trim_pool(mr, "a cudaFree and another stream's synchronisation");
    free_behind_work(mr, stream);
    assert_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    assert_cuda(cudaEventRecord(event, stream));
    assert_cuda(cudaEventSynchronize(event));
    assert_cuda(cudaEventDestroy(event));
    trim_pool(mr, "an event behind it");

    free_behind_work(mr, stream);
    assert_ok(rmm_resource_trim(mr, 0));
    print_message(
        "fact: rmm_resource_trim() after a free leaves %llu\n",
        (unsigned long long)pool_figure(mr, cudaMemPoolAttrReservedMemCurrent));
    assert_cuda(cudaStreamSynchronize(stream));
    assert_ok(rmm_resource_trim(mr, 0));
    assert_int_equal(pool_figure(mr, cudaMemPoolAttrReservedMemCurrent), 0);
    assert_int_equal(stats_of(mr).reserved_bytes, 0);
}

static void the_end_gives_the_memory_back(void **state)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    size_t before, during, after, total;
    rmm_resource_t *mr;

    options.initial_pool_bytes = 1000 * MIB;
    assert_cuda(cudaMemGetInfo(&before, &total));
    assert_ok(rmm_async_resource_create(&options, &mr));
    assert_true(stats_of(mr).reserved_bytes >= 1000 * MIB);
    assert_cuda(cudaMemGetInfo(&during, &total));
    assert_true(during + 1000 * MIB <= before);
    rmm_resource_release(mr);
    assert_cuda(cudaMemGetInfo(&after, &total));
    assert_true(after + 100 * MIB > before);
}

static void shareable_handles_are_shareable(void **state)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;
    int fd = -1;

    options.handle_types = RMM_ASYNC_HANDLE_POSIX_FD;
    if (rmm_async_resource_create(&options, &mr) == RMM_ERR_UNSUPPORTED) {
        print_message("%s\n", rmm_last_error_message());
        skip();
    }
    assert_non_null(mr);
    assert_cuda(cudaMemPoolExportToShareableHandle(
        &fd, rmm_async_resource_pool_handle(mr), cudaMemHandleTypePosixFileDescriptor,
        0));
    assert_true(fd >= 0);
    rmm_resource_release(mr);
}

/* --- captures ----------------------------------------------------------------------- */

static void *use_it_all(void *argument)
{
    rmm_resource_t *mr = fixture.async;
    rmm_stream_t stream = fixture.streams[1];
    const char *failure = NULL;
    rmm_resource_t *second;
    void *block;

    if (rmm_resource_alloc(mr, 500 * MIB, 0, stream, &block) != RMM_OK) {
        failure = "growth";
    } else {
        give(mr, block, 500 * MIB, stream);
    }
    if (rmm_resource_alloc(mr, MIB, 0, NULL, &block) != RMM_OK) {
        failure = "the default stream";
    } else {
        give(mr, block, MIB, NULL);
    }
    if (rmm_resource_trim(mr, 0) != RMM_OK) {
        failure = "trim";
    }
    if (rmm_async_resource_create(NULL, &second) != RMM_OK) {
        failure = "creation";
    } else {
        rmm_resource_release(second);
    }
    return (void *)(uintptr_t)failure;
}

static void nothing_another_thread_does_ruins_a_capture(void **state)
{
    cudaStream_t stream = fixture.streams[0];
    void *target = take(fixture.async, MIB, stream);

    assert_capture_survives(stream, target, use_it_all, NULL);
    give(fixture.async, target, MIB, stream);
}

static size_t free_device_bytes(void)
{
    size_t free_bytes, total_bytes;

    assert_cuda(cudaDeviceSynchronize());
    assert_cuda(cudaMemGetInfo(&free_bytes, &total_bytes));
    return free_bytes;
}

static void launch_twice(cudaGraph_t graph, rmm_stream_t stream)
{
    cudaGraphExec_t executable;

    assert_cuda(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 2; i++) {
        assert_cuda(cudaGraphLaunch(executable, stream));
    }
    assert_cuda(cudaStreamSynchronize(stream));
    assert_cuda(cudaGraphExecDestroy(executable));
}

/* CUDA refuses the free, and may ruin the capture; the program goes on, and nothing is lost. */
static void a_block_freed_in_a_later_capture_returns_at_the_end(void **state)
{
    rmm_stream_t stream = fixture.streams[0];
    const size_t before = free_device_bytes();
    cudaGraph_t graph = NULL;
    rmm_resource_t *mr;
    cudaError_t ended;
    void *block;

    assert_ok(rmm_async_resource_create(NULL, &mr));
    block = take(mr, 256 * MIB, stream);
    assert_cuda(cudaStreamSynchronize(stream));
    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    assert_cuda(cudaMemsetAsync(block, 7, 1024, stream));
    give(mr, block, 256 * MIB, stream);
    ended = cudaStreamEndCapture(stream, &graph);
    printf(
        "a free of an earlier block in a capture: its end is %s\n",
        cudaGetErrorName(ended));
    (void)cudaGetLastError();
    assert_int_equal(stats_of(mr).current_count, 0);
    give(mr, take(mr, 1024, NULL), 1024, NULL);
    assert_ok(rmm_resource_trim(mr, 0));
    if (graph != NULL) {
        launch_twice(graph, stream);
        assert_cuda(cudaGraphDestroy(graph));
    }
    rmm_resource_release(mr);
    assert_true(free_device_bytes() + 128 * MIB > before);
}

static void a_graph_has_memory_of_its_own(void **state)
{
    rmm_resource_t *mr = fixture.async;
    cudaStream_t stream = fixture.streams[0];
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    void *block;

    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    block = take(mr, MIB, stream);
    assert_cuda(cudaMemsetAsync(block, 7, MIB, stream));
    give(mr, block, MIB, stream);
    assert_cuda(cudaStreamEndCapture(stream, &graph));
    assert_cuda(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 3; i++) {
        block = take(mr, MIB, stream);
        assert_cuda(cudaMemsetAsync(block, i, MIB, stream));
        assert_cuda(cudaGraphLaunch(executable, stream));
        assert_filled_on(block, i, MIB, stream);
        give(mr, block, MIB, stream);
    }
    assert_int_equal(stats_of(mr).current_bytes, 0);
    assert_int_equal(stats_of(mr).invalid_free_count, 0);
    assert_cuda(cudaGraphExecDestroy(executable));
    assert_cuda(cudaGraphDestroy(graph));
}

/* --- views, managed, system --------------------------------------------------------- */

static void a_view_of_the_devices_own_pool_leaves_it_as_it_is(void **state)
{
    uint64_t before, after;
    rmm_resource_t *view;
    cudaMemPool_t pool;

    assert_cuda(cudaDeviceGetDefaultMemPool(&pool, 0));
    assert_cuda(
        cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &before));
    assert_ok(rmm_async_view_resource_create(pool, &view));
    give(view, take(view, MIB, fixture.streams[0]), MIB, fixture.streams[0]);
    rmm_resource_release(view);
    assert_cuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &after));
    assert_int_equal(before, after);
    assert_cuda(cudaMallocFromPoolAsync((void **)&view, MIB, pool, NULL));
    assert_cuda(cudaFreeAsync(view, NULL));
    assert_cuda(cudaStreamSynchronize(NULL));
}

static void managed_blocks_are_the_hosts_too(void **state)
{
    struct cudaPointerAttributes attributes;
    rmm_resource_t *mr = NULL;
    unsigned char *block;

    if (rmm_async_managed_resource_create(&mr) == RMM_ERR_UNSUPPORTED) {
        print_message("%s\n", rmm_last_error_message());
        skip();
    }
    assert_non_null(mr);
    assert_true(pool_figure(mr, cudaMemPoolAttrReleaseThreshold) == UINT64_MAX);
    block = take(mr, 10 * MIB, fixture.streams[0]);
    assert_cuda(cudaPointerGetAttributes(&attributes, block));
    assert_int_equal(attributes.type, cudaMemoryTypeManaged);
    assert_cuda(cudaMemsetAsync(block, 7, 10 * MIB, fixture.streams[0]));
    assert_cuda(cudaStreamSynchronize(fixture.streams[0]));
    assert_int_equal(block[10 * MIB - 1], 7);
    memset(block, 8, 10 * MIB);
    assert_filled_on(block, 8, 10 * MIB, fixture.streams[0]);
    assert_true(stats_of(mr).reserved_bytes >= 10 * MIB);
    give(mr, block, 10 * MIB, fixture.streams[0]);
    rmm_resource_release(mr);
}

static void use_and_release(rmm_resource_t *mr, rmm_stream_t stream)
{
    unsigned char *block = take(mr, 64 * MIB, stream);

    memset(block, 1, 64 * MIB);
    for (int i = 0; i < 50; i++) {
        assert_cuda(cudaMemsetAsync(block, i, 64 * MIB, stream));
    }
    assert_filled_on(block, 49, 64 * MIB, stream);
    assert_int_equal(block[64 * MIB - 1], 49);
    assert_cuda(cudaMemsetAsync(block, 3, 64 * MIB, stream));
    give(mr, block, 64 * MIB, stream); /* waits */
    assert_cuda(cudaStreamQuery(stream));
    rmm_resource_release(mr);
}

static void system_memory_is_both_sides(void **state)
{
    rmm_sam_headroom_options_t options = RMM_SAM_HEADROOM_OPTIONS_INIT;
    size_t free_bytes, total;
    rmm_resource_t *mr = NULL;

    if (rmm_system_resource_create(&mr) == RMM_ERR_UNSUPPORTED) {
        print_message("%s\n", rmm_last_error_message());
        skip();
    }
    assert_non_null(mr);
    use_and_release(mr, fixture.streams[0]);
    assert_cuda(cudaMemGetInfo(&free_bytes, &total));
    options.headroom_bytes = free_bytes - 20 * MIB; /* some of it on the host */
    assert_ok(rmm_sam_headroom_resource_create(&options, &mr));
    use_and_release(mr, fixture.streams[0]);
}

/* --- decompression: RMM's hwdecompress ------------------------------------------------ */

#if CUDART_VERSION >= 12080

typedef CUresult (*device_attribute_fn)(int *, CUdevice_attribute, CUdevice);
typedef CUresult (*pointer_attribute_fn)(void *, CUpointer_attribute, CUdeviceptr);

static void *entry_point(const char *name)
{
    enum cudaDriverEntryPointQueryResult found;
    void *function = NULL;

    assert_cuda(cudaGetDriverEntryPointByVersion(
        name, &function, 12080, cudaEnableDefault, &found));
    return found == cudaDriverEntryPointSuccess ? function : NULL;
}

/* Ends the case where the device has no engine for it, or the driver knows of none. */
static void need_decompression(void)
{
    void *found = entry_point("cuDeviceGetAttribute");
    device_attribute_fn device_attribute;
    int algorithms = 0;

    memcpy(&device_attribute, &found, sizeof(found));
    if (found == NULL ||
        device_attribute(
            &algorithms, CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, 0) !=
            CUDA_SUCCESS) {
        algorithms = 0;
    }
    if (algorithms == 0) {
        print_message("the device has no decompression engine\n");
        skip();
    }
}

static void assert_decompressible(rmm_resource_t *mr)
{
    void *found = entry_point("cuPointerGetAttribute");
    void *block = take(mr, MIB, NULL);
    pointer_attribute_fn pointer_attribute;
    int capable = 0;

    assert_non_null(found);
    memcpy(&pointer_attribute, &found, sizeof(found));
    assert_int_equal(
        pointer_attribute(
            &capable, CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE,
            (CUdeviceptr)(uintptr_t)block),
        CUDA_SUCCESS);
    assert_true(capable);
    give(mr, block, MIB, NULL);
}

static void the_engine_can_use_cuda_memory(void **state)
{
    rmm_resource_t *cuda;

    need_decompression();
    assert_ok(rmm_cuda_resource_create(&cuda));
    assert_decompressible(cuda);
    rmm_resource_release(cuda);
}

static void the_engine_can_use_async_memory(void **state)
{
    need_decompression();
    assert_decompressible(fixture.async);
}

#endif

/* --- costs -------------------------------------------------------------------------- */

static double now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static double pair_ns(rmm_resource_t *mr, rmm_stream_t stream)
{
    double start;

    for (int i = 0; i < 1000; i++) {
        give(mr, take(mr, 1024, stream), 1024, stream);
    }
    start = now_ns();
    for (int i = 0; i < 20000; i++) {
        give(mr, take(mr, 1024, stream), 1024, stream);
    }
    return (now_ns() - start) / 20000;
}

static double native_pair_ns(cudaMemPool_t pool, cudaStream_t stream)
{
    double start = now_ns();
    void *block;

    for (int i = 0; i < 20000; i++) {
        assert_cuda(cudaMallocFromPoolAsync(&block, 1024, pool, stream));
        assert_cuda(cudaFreeAsync(block, stream));
    }
    return (now_ns() - start) / 20000;
}

static void tells_what_it_costs(void **state)
{
    rmm_resource_t *mr = fixture.async;
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    rmm_driver_mempool_figures_t figures;
    double start = now_ns();

    for (int i = 0; i < 20000; i++) {
        assert_cuda(
            driver->mempool_figures(rmm_async_resource_pool_handle(mr), &figures));
    }
    print_message("asking a pool's figures: %.0f ns\n", (now_ns() - start) / 20000);
    print_message(
        "a pair, created stream: %.0f ns; legacy: %.0f ns; per thread: %.0f ns\n",
        pair_ns(mr, fixture.streams[0]), pair_ns(mr, NULL),
        pair_ns(mr, RMM_STREAM_PER_THREAD));
    print_message(
        "the same with CUDA alone: %.0f ns; legacy: %.0f ns\n",
        native_pair_ns(rmm_async_resource_pool_handle(mr), fixture.streams[0]),
        native_pair_ns(rmm_async_resource_pool_handle(mr), NULL));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(blocks_are_device_memory_of_the_pool),
        CASE(a_block_that_changes_streams_keeps_its_new_data),
        CASE(memory_freed_on_a_stream_outlives_the_stream),
        CASE(work_that_is_queued_outlives_the_resource),
        CASE(refuses_more_than_the_device_has_and_recovers),
        CASE(the_accounting_agrees_with_the_driver),
        CASE(a_trim_gives_back_what_is_seen_to_be_done_with),
        CASE(the_end_gives_the_memory_back),
        CASE(shareable_handles_are_shareable),
        CASE(nothing_another_thread_does_ruins_a_capture),
        CASE(a_block_freed_in_a_later_capture_returns_at_the_end),
        CASE(a_graph_has_memory_of_its_own),
        CASE(a_view_of_the_devices_own_pool_leaves_it_as_it_is),
        CASE(managed_blocks_are_the_hosts_too),
        CASE(system_memory_is_both_sides),
#if CUDART_VERSION >= 12080
        CASE(the_engine_can_use_cuda_memory),
        CASE(the_engine_can_use_async_memory),
#endif
        CASE(tells_what_it_costs),
    };
    return gpu_is_missing() ? SKIPPED : cmocka_run_group_tests(tests, NULL, NULL);
}
