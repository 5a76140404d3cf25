/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA memory pools of the host's memory, on a real GPU: whose memory it is, on which NUMA node it
 * lies, what host and devices see of each other's writes, and what is refused. What CUDA leaves
 * open is printed as a line "fact: ...".
 *
 * Without a usable GPU the program says so and exits 77; what this GPU or driver cannot do is
 * skipped, with the library's reason.
 */
#include "gpu/gpu_harness.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BLOCK ((size_t)1 << 20)
#define NO_SUCH_NODE 4095

/* The resource, or the case is skipped. */
static rmm_resource_t *make_at(uint32_t location, uint32_t node)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;
    rmm_status_t status;

    assert_real_gpu();
    options.location = location;
    options.numa_node = node;
    status = rmm_async_resource_create(&options, &mr);
    if (status == RMM_ERR_UNSUPPORTED) {
        print_message("skipped: %s\n", rmm_last_error_message());
        skip();
    }
    assert_ok(status);
    return mr;
}

static void *take(rmm_resource_t *mr, size_t bytes, rmm_stream_t stream)
{
    void *block = NULL;

    assert_ok(rmm_resource_alloc(mr, bytes, 0, stream, &block));
    return block;
}

/* The node of the page, as the kernel knows it; negative: it does not tell. */
static int node_of(void *block)
{
    int node = -1;

    return syscall(SYS_move_pages, 0, 1UL, &block, NULL, &node, 0) == 0 ? node : -1;
}

static void assert_all(const unsigned char *block, int value)
{
    for (size_t i = 0; i < BLOCK; i++) {
        if (block[i] != value) {
            fail_msg("byte %zu is %d, not %d", i, block[i], value);
        }
    }
}

/* A device fills it, the host reads; the host fills it, and it goes to a device and back. */
static void use_from_both_sides(unsigned char *block, rmm_stream_t stream)
{
    void *on_device = NULL;

    assert_cuda(cudaMalloc(&on_device, BLOCK));
    assert_cuda(cudaMemsetAsync(block, 7, BLOCK, (cudaStream_t)stream));
    assert_cuda(cudaStreamSynchronize((cudaStream_t)stream));
    assert_all(block, 7);
    memset(block, 9, BLOCK);
    assert_cuda(cudaMemcpyAsync(
        on_device, block, BLOCK, cudaMemcpyDefault, (cudaStream_t)stream));
    assert_cuda(cudaMemsetAsync(block, 0, BLOCK, (cudaStream_t)stream));
    assert_cuda(cudaMemcpyAsync(
        block, on_device, BLOCK, cudaMemcpyDefault, (cudaStream_t)stream));
    assert_cuda(cudaStreamSynchronize((cudaStream_t)stream));
    assert_all(block, 9);
    assert_cuda(cudaFree(on_device));
}

static uint64_t reserved_by(const rmm_resource_t *mr)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    assert_ok(rmm_resource_get_stats(mr, &stats));
    return stats.reserved_bytes;
}

static void check_at(uint32_t location, uint32_t node)
{
    rmm_resource_t *mr = make_at(location, node);
    struct cudaPointerAttributes attributes;
    size_t free_before, free_after, total;
    rmm_stream_t stream;
    unsigned char *block;

    assert_string_equal(rmm_resource_type(mr), "async_pinned");
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    assert_cuda(cudaMemGetInfo(&free_before, &total));
    block = take(mr, BLOCK, stream);
    use_from_both_sides(block, stream);
    assert_cuda(cudaMemGetInfo(&free_after, &total));
    assert_cuda(cudaPointerGetAttributes(&attributes, block));
    print_message(
        "fact: location %u: type %d, device %d, on node %d; a block of 1 MiB reserves "
        "%llu, and takes %lld of the device\n",
        location, (int)attributes.type, attributes.device, node_of(block),
        (unsigned long long)reserved_by(mr),
        (long long)free_before - (long long)free_after);
    assert_int_not_equal(attributes.type, cudaMemoryTypeUnregistered);
    if (location == RMM_ASYNC_ON_NODE && node_of(block) >= 0) {
        assert_int_equal(node_of(block), node);
    }
    rmm_resource_dealloc(mr, block, BLOCK, 0, stream);
    assert_cuda(cudaStreamSynchronize((cudaStream_t)stream));
    assert_ok(rmm_resource_trim(mr, 0));
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(mr);
}

static void host_and_device_use_memory_of_any_node(void **state)
{
    (void)state;
    check_at(RMM_ASYNC_ON_HOST, 0);
}

static void host_and_device_use_memory_of_the_first_node(void **state)
{
    (void)state;
    check_at(RMM_ASYNC_ON_NODE, 0);
}

static void host_and_device_use_memory_of_the_nearest_node(void **state)
{
    (void)state;
    check_at(RMM_ASYNC_ON_NEAREST_NODE, 0);
}

static void every_device_uses_the_memory(void **state)
{
    rmm_resource_t *mr = make_at(RMM_ASYNC_ON_HOST, 0);
    unsigned char *block = take(mr, BLOCK, NULL);
    int count = 0;

    (void)state;
    assert_cuda(cudaDeviceSynchronize());
    assert_cuda(cudaGetDeviceCount(&count));
    for (int device = 0; device < count; device++) {
        rmm_stream_t stream;

        assert_cuda(cudaSetDevice(device));
        assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
        use_from_both_sides(block, stream);
        assert_ok(rmm_stream_destroy(stream));
    }
    print_message("fact: %d devices used one block\n", count);
    assert_cuda(cudaSetDevice(0));
    rmm_resource_dealloc(mr, block, BLOCK, 0, NULL);
    rmm_resource_release(mr);
}

static void a_node_that_is_not_there_is_refused(void **state)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;
    rmm_status_t status;

    (void)state;
    rmm_resource_release(make_at(RMM_ASYNC_ON_NODE, 0)); /* or skipped */
    options.location = RMM_ASYNC_ON_NODE;
    options.numa_node = NO_SUCH_NODE;
    status = rmm_async_resource_create(&options, &mr);
    print_message(
        "fact: node %d: %s: %s\n", NO_SUCH_NODE, rmm_status_name(status),
        rmm_last_error_message());
    assert_true(status != RMM_OK);
    assert_null(mr);
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
}

static void more_than_the_host_has_is_refused(void **state)
{
    rmm_resource_t *mr = make_at(RMM_ASYNC_ON_HOST, 0);
    void *block = NULL;
    rmm_status_t status =
        rmm_resource_alloc(mr, (size_t)1 << 45, 0, RMM_STREAM_PER_THREAD, &block);

    (void)state;
    print_message("fact: 32 TiB: %s\n", rmm_last_error_message());
    assert_int_equal(status, RMM_ERR_OUT_OF_MEMORY);
    block = take(mr, BLOCK, NULL);
    rmm_resource_dealloc(mr, block, BLOCK, 0, NULL);
    rmm_resource_release(mr);
}

/* Before the pool's device is let in, which the library does at once. The last case: it may end the
 * context. */
static void memory_that_no_device_was_let_into(void **state)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    rmm_driver_mempool_t pool = NULL;
    void *block = NULL;
    int error;

    (void)state;
    rmm_resource_release(make_at(RMM_ASYNC_ON_HOST, 0)); /* or skipped */
    assert_cuda(driver->mempool_create(0, RMM_DRIVER_HOST, &pool));
    error = driver->mempool_alloc(pool, &block, BLOCK, RMM_STREAM_PER_THREAD);
    print_message("fact: without access an allocation answers %d\n", error);
    if (error == RMM_DRIVER_OK) {
        error = driver->memset_async(block, 1, BLOCK, RMM_STREAM_PER_THREAD);
        print_message("fact: and a fill of it %d\n", error);
        error = (int)cudaStreamSynchronize(cudaStreamPerThread);
        print_message("fact: which ends with %d\n", error);
        (void)driver->mempool_free(block, RMM_STREAM_PER_THREAD);
    }
    (void)cudaGetLastError();
    (void)driver->mempool_destroy(pool);
}

/* The memory of a graph: whether CUDA makes it is printed, that the program goes on asserted. */
static void a_capture_allocates_or_is_told_why_not(void **state)
{
    rmm_resource_t *mr = make_at(RMM_ASYNC_ON_HOST, 0);
    cudaGraph_t graph = NULL;
    rmm_stream_t stream;
    void *block = NULL;
    rmm_status_t status;
    cudaError_t ended;

    (void)state;
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    assert_cuda(
        cudaStreamBeginCapture((cudaStream_t)stream, cudaStreamCaptureModeGlobal));
    status = rmm_resource_alloc(mr, BLOCK, 0, stream, &block);
    print_message(
        "fact: an allocation in a capture: %s%s%s\n", rmm_status_name(status),
        status != RMM_OK ? ": " : "", status != RMM_OK ? rmm_last_error_message() : "");
    if (status == RMM_OK) {
        assert_cuda(cudaMemsetAsync(block, 5, BLOCK, (cudaStream_t)stream));
        rmm_resource_dealloc(mr, block, BLOCK, 0, stream);
    }
    ended = cudaStreamEndCapture((cudaStream_t)stream, &graph);
    print_message("fact: the capture ends with %d\n", (int)ended);
    if (ended == cudaSuccess && graph != NULL) {
        cudaGraphExec_t launch = NULL;

        assert_cuda(cudaGraphInstantiate(&launch, graph, 0));
        for (int i = 0; i < 3; i++) {
            assert_cuda(cudaGraphLaunch(launch, (cudaStream_t)stream));
        }
        assert_cuda(cudaStreamSynchronize((cudaStream_t)stream));
        assert_cuda(cudaGraphExecDestroy(launch));
        assert_cuda(cudaGraphDestroy(graph));
    }
    (void)cudaGetLastError();
    block = take(mr, BLOCK, stream); /* the resource and the stream still work */
    rmm_resource_dealloc(mr, block, BLOCK, 0, stream);
    assert_cuda(cudaStreamSynchronize((cudaStream_t)stream));
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(mr);
}

/* --- costs ---------------------------------------------------------------------------- */

static double now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static double pair_ns(rmm_resource_t *mr, rmm_stream_t stream, int count)
{
    double start = now_ns();

    for (int i = 0; i < count; i++) {
        rmm_resource_dealloc(mr, take(mr, BLOCK, stream), BLOCK, 0, stream);
    }
    return (now_ns() - start) / count;
}

static void tells_what_it_costs(void **state)
{
    rmm_resource_t *mr = make_at(RMM_ASYNC_ON_HOST, 0), *pinned = NULL;
    rmm_stream_t stream;

    (void)state;
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    assert_ok(rmm_pinned_resource_create(&pinned));
    (void)pair_ns(mr, stream, 100);
    print_message(
        "a pair of 1 MiB: async_pinned %.0f ns, pinned %.0f ns\n",
        pair_ns(mr, stream, 10000), pair_ns(pinned, stream, 200));
    rmm_resource_release(pinned);
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(mr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_and_device_use_memory_of_any_node),
        cmocka_unit_test(host_and_device_use_memory_of_the_first_node),
        cmocka_unit_test(host_and_device_use_memory_of_the_nearest_node),
        cmocka_unit_test(every_device_uses_the_memory),
        cmocka_unit_test(a_node_that_is_not_there_is_refused),
        cmocka_unit_test(more_than_the_host_has_is_refused),
        cmocka_unit_test(a_capture_allocates_or_is_told_why_not),
        cmocka_unit_test(tells_what_it_costs),
        cmocka_unit_test(memory_that_no_device_was_let_into),
    };
    return gpu_is_missing() ? SKIPPED : cmocka_run_group_tests(tests, NULL, NULL);
}
