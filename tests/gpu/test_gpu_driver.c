/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver table on a real GPU: each call for copies, managed memory, memory pools and
 * virtual memory, and the facts that the simulated GPU assumes of them. What CUDA leaves
 * open is printed as a line "fact: ...", to compare with what the simulated GPU does.
 *
 * Without a usable GPU the program says so and exits 77; a case that this GPU or driver
 * cannot do is skipped.
 */
#include "gpu/gpu_harness.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/rmm.h>
#include <rmm/sim.h>

#include "driver/driver.h"
#include "driver/sim/control.h"

#define KIB ((size_t)1 << 10)
#define BLOCK (64 * KIB)

static const rmm_driver_t *driver;

/* A refusal, of which the program's last error knows nothing. */
static void assert_refused(int error, int expected)
{
    assert_int_equal(error, expected);
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
}

static int attribute(rmm_driver_attribute_t which)
{
    int value = -1;

    assert_cuda(driver->device_attribute(which, 0, &value));
    return value;
}

static rmm_stream_t make_stream(void)
{
    rmm_stream_t stream = NULL;

    assert_cuda(driver->stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    return stream;
}

/* ---- attributes, streams, copies ---- */

static void every_attribute_has_an_answer(void **state)
{
    assert_string_equal(driver->name, "cuda");
    assert_false(rmm_sim_active());
#define X(name, ours, cuda, value)                                                     \
    print_message("fact: " #name " %d\n", attribute(ours));                            \
    assert_true(attribute(ours) >= 0);
    RMM_DRIVER_ATTRIBUTE_MAP(X)
#undef X
#define X(name, ours, cuda, value)                                                     \
    print_message("fact: " #name " %d\n", attribute(ours));                            \
    assert_true(attribute(ours) >= -1);
    RMM_DRIVER_HOST_ATTRIBUTE_MAP(X)
#undef X
    assert_refused(
        driver->device_attribute(RMM_ATTRIBUTE_VIRTUAL_MEMORY, 999, &(int){0}),
        RMM_DRIVER_INVALID_DEVICE);
}

static void a_stream_reports_its_flags(void **state)
{
    rmm_stream_t blocking = NULL, other = make_stream();
    uint32_t flags = 77;

    assert_cuda(driver->stream_create(0, &blocking));
    assert_cuda(driver->stream_flags(blocking, &flags));
    assert_int_equal(flags, 0);
    assert_cuda(driver->stream_flags(other, &flags));
    assert_int_equal(flags, RMM_STREAM_NON_BLOCKING);
    assert_cuda(driver->stream_flags(RMM_STREAM_LEGACY, &flags));
    assert_int_equal(flags, 0);
    assert_cuda(driver->stream_flags(RMM_STREAM_PER_THREAD, &flags));
    assert_int_equal(flags, 0);
    assert_cuda(driver->stream_destroy(blocking));
    assert_cuda(driver->stream_destroy(other));
}

static void copies_and_fills_take_any_address(void **state)
{
    rmm_stream_t stream = make_stream();
    void *device = NULL, *other = NULL, *pinned = NULL;

    assert_cuda(driver->mem_alloc(&device, BLOCK));
    assert_cuda(driver->mem_alloc(&other, BLOCK));
    assert_cuda(driver->host_alloc(&pinned, BLOCK));
    memset(pinned, 5, BLOCK);
    assert_cuda(driver->memcpy_async(device, pinned, BLOCK, stream));
    assert_cuda(driver->memcpy_async(other, device, BLOCK, stream));
    assert_cuda(driver->memset_async(device, 6, BLOCK, stream));
    assert_cuda(driver->memset_async(pinned, 7, BLOCK, stream));
    assert_filled(other, 5, BLOCK);
    assert_filled(device, 6, BLOCK);
    assert_filled(pinned, 7, BLOCK);
    assert_cuda(driver->memcpy_async(device, pinned, 0, stream));
    assert_cuda(driver->stream_synchronize(stream));
    assert_cuda(driver->host_free(pinned));
    assert_cuda(driver->mem_free(other));
    assert_cuda(driver->mem_free(device));
    assert_cuda(driver->stream_destroy(stream));
}

static void a_device_is_its_own_peer(void **state)
{
    int can = -1, count = 0;

    assert_cuda(driver->device_count(&count));
    assert_cuda(driver->peer_can_access(0, 0, &can));
    assert_int_equal(can, 1);
    if (count > 1) {
        assert_cuda(driver->peer_can_access(0, 1, &can));
        print_message("fact: device 0 and 1 are peers: %d\n", can);
    }
    assert_refused(driver->peer_can_access(0, count, &can), RMM_DRIVER_INVALID_DEVICE);
}

/* ---- managed memory ---- */

static int prefetched_to(void *ptr)
{
    int device = -99;

    assert_cuda(cudaMemRangeGetAttribute(
        &device, sizeof(device), cudaMemRangeAttributeLastPrefetchLocation, ptr,
        BLOCK));
    return device;
}

static void managed_memory_goes_where_it_is_sent(void **state)
{
    int preferred = -99;
    void *ptr = NULL;

    if (attribute(RMM_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) == 0) {
        skip();
    }
    assert_cuda(driver->managed_alloc(&ptr, BLOCK));
    assert_int_equal(prefetched_to(ptr), SIM_NOWHERE);
    assert_cuda(driver->mem_prefer(ptr, BLOCK, 0));
    assert_cuda(cudaMemRangeGetAttribute(
        &preferred, sizeof(preferred), cudaMemRangeAttributePreferredLocation, ptr,
        BLOCK));
    assert_int_equal(preferred, 0);
    assert_cuda(driver->mem_prefetch(ptr, BLOCK, 0, RMM_STREAM_LEGACY));
    assert_cuda(cudaDeviceSynchronize());
    assert_int_equal(prefetched_to(ptr), 0);
    assert_cuda(driver->mem_prefetch(ptr, BLOCK, RMM_DRIVER_HOST, RMM_STREAM_LEGACY));
    assert_cuda(cudaDeviceSynchronize());
    assert_int_equal(prefetched_to(ptr), cudaCpuDeviceId);
    assert_refused(
        driver->mem_prefetch(ptr, BLOCK, 999, RMM_STREAM_LEGACY),
        RMM_DRIVER_INVALID_DEVICE);
    assert_cuda(driver->mem_free(ptr));
}

static void device_memory_cannot_be_sent_anywhere(void **state)
{
    void *ptr = NULL, *system = NULL;
    int error;

    assert_cuda(driver->mem_alloc(&ptr, BLOCK));
    assert_refused(
        driver->mem_prefetch(ptr, BLOCK, 0, RMM_STREAM_LEGACY),
        RMM_DRIVER_INVALID_VALUE);
    assert_refused(driver->mem_prefer(ptr, BLOCK, 0), RMM_DRIVER_INVALID_VALUE);
    assert_cuda(driver->mem_free(ptr));

    system = malloc(BLOCK);
    assert_non_null(system);
    error = driver->mem_prefetch(system, BLOCK, 0, RMM_STREAM_LEGACY);
    assert_cuda(cudaDeviceSynchronize());
    print_message(
        "fact: prefetch of system memory answers %d, pageable_memory_access %d\n",
        error, attribute(RMM_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS));
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
    if (attribute(RMM_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) == 0) {
        assert_int_not_equal(error, RMM_DRIVER_OK);
    }
    free(system);
}

/* End a capture that a call may have ruined; true if it was not. */
static bool capture_survives(rmm_stream_t stream, cudaGraph_t *graph_out)
{
    cudaGraph_t graph = NULL;
    cudaError_t error = cudaStreamEndCapture(stream, &graph);

    (void)cudaGetLastError();
    if (graph_out != NULL) {
        *graph_out = graph;
    } else if (graph != NULL) {
        assert_cuda(cudaGraphDestroy(graph));
    }
    return error == cudaSuccess;
}

static void a_capture_does_not_take_a_prefetch(void **state)
{
    rmm_stream_t stream = make_stream();
    void *ptr = NULL;
    int error;
    bool survives;

    if (attribute(RMM_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) == 0) {
        skip();
    }
    assert_cuda(driver->managed_alloc(&ptr, BLOCK));
    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    error = driver->mem_prefetch(ptr, BLOCK, 0, stream);
    survives = capture_survives(stream, NULL);
    print_message(
        "fact: prefetch in a capture answers %d, the capture survives: %d\n", error,
        survives);
    assert_refused(error, RMM_DRIVER_CAPTURE_UNSUPPORTED);
    assert_cuda(driver->mem_free(ptr));
    assert_cuda(driver->stream_destroy(stream));
}

/* ---- memory pools ---- */

static rmm_driver_mempool_t make_pool(void)
{
    rmm_driver_mempool_t pool = NULL;

    if (attribute(RMM_ATTRIBUTE_MEMORY_POOLS) == 0) {
        skip();
    }
    assert_cuda(driver->mempool_create(0, RMM_DRIVER_ON_DEVICE, &pool));
    return pool;
}

static rmm_driver_mempool_figures_t figures_of(rmm_driver_mempool_t pool)
{
    rmm_driver_mempool_figures_t figures;

    assert_cuda(driver->mempool_figures(pool, &figures));
    return figures;
}

static void *alloc_from(rmm_driver_mempool_t pool, size_t bytes, rmm_stream_t stream)
{
    void *ptr = NULL;

    assert_cuda(driver->mempool_alloc(pool, &ptr, bytes, stream));
    assert_int_equal((uintptr_t)ptr % 512, 0); /* as the simulated GPU */
    return ptr;
}

static void a_pool_keeps_to_its_threshold(void **state)
{
    rmm_driver_mempool_t pool = make_pool();
    rmm_stream_t stream = make_stream();
    uint64_t threshold = 1;
    void *ptr;

    assert_cuda(driver->mempool_get_threshold(pool, &threshold));
    assert_int_equal(threshold, 0);
    ptr = alloc_from(pool, 1, stream);
    print_message(
        "fact: a block of 1 byte reserves %llu and uses %llu\n",
        (unsigned long long)figures_of(pool).reserved_bytes,
        (unsigned long long)figures_of(pool).used_bytes);
    assert_true(figures_of(pool).reserved_bytes >= figures_of(pool).used_bytes);
    assert_true(figures_of(pool).used_bytes >= 1);
    assert_cuda(driver->mempool_free(ptr, stream));
    assert_cuda(driver->stream_synchronize(stream));
    assert_int_equal(figures_of(pool).used_bytes, 0);
    assert_int_equal(figures_of(pool).reserved_bytes, 0);

    assert_cuda(driver->mempool_set_threshold(pool, UINT64_MAX));
    assert_cuda(driver->mempool_get_threshold(pool, &threshold));
    assert_true(threshold == UINT64_MAX);
    assert_cuda(driver->mempool_free(alloc_from(pool, 100 * MIB, stream), stream));
    assert_cuda(driver->stream_synchronize(stream));
    assert_true(figures_of(pool).reserved_bytes >= 100 * MIB);
    assert_cuda(driver->mempool_trim(pool, 50 * MIB));
    print_message(
        "fact: a trim to 50 MiB leaves %llu\n",
        (unsigned long long)figures_of(pool).reserved_bytes);
    assert_true(figures_of(pool).reserved_bytes >= 50 * MIB);
    assert_cuda(driver->mempool_trim(pool, 0));
    assert_int_equal(figures_of(pool).reserved_bytes, 0);
    assert_cuda(driver->mempool_destroy(pool));
    assert_cuda(driver->stream_destroy(stream));
}

static void a_pools_block_holds_data_in_stream_order(void **state)
{
    rmm_driver_mempool_t pool = make_pool();
    rmm_stream_t stream = make_stream();
    void *first, *second, *seen = NULL;

    assert_cuda(driver->mempool_set_threshold(pool, UINT64_MAX));
    assert_cuda(driver->mem_alloc(&seen, 16 * MIB));
    first = alloc_from(pool, 16 * MIB, stream);
    for (int i = 0; i < 50; i++) {
        assert_cuda(driver->memset_async(first, 9, 16 * MIB, stream));
    }
    assert_cuda(driver->memcpy_async(seen, first, 16 * MIB, stream));
    assert_cuda(driver->mempool_free(first, stream));
    print_message(
        "fact: behind a queued free used is %llu\n",
        (unsigned long long)figures_of(pool).used_bytes);
    second = alloc_from(pool, 16 * MIB, stream);
    print_message("fact: the same stream reuses at once: %d\n", first == second);
    assert_cuda(driver->memset_async(second, 8, 16 * MIB, stream));
    assert_filled(seen, 9, 16 * MIB);
    assert_filled(second, 8, 16 * MIB);
    assert_cuda(driver->mempool_free(second, stream));
    assert_cuda(driver->mem_free(seen));
    assert_cuda(driver->mempool_destroy(pool));
    assert_cuda(driver->stream_destroy(stream));
}

static void a_destroyed_pools_block_lives_on(void **state)
{
    rmm_driver_mempool_t pool = make_pool();
    rmm_stream_t stream = make_stream();
    void *ptr = alloc_from(pool, BLOCK, stream);

    assert_cuda(driver->mempool_destroy(pool));
    assert_cuda(driver->memset_async(ptr, 4, BLOCK, stream));
    assert_filled(ptr, 4, BLOCK);
    assert_cuda(driver->mempool_free(ptr, stream));
    assert_cuda(driver->stream_synchronize(stream));
    assert_cuda(driver->stream_destroy(stream));
}

static void mem_free_takes_a_pools_block(void **state)
{
    rmm_driver_mempool_t pool = make_pool();
    rmm_stream_t stream = make_stream();
    void *ptr = alloc_from(pool, BLOCK, stream);

    assert_cuda(driver->memset_async(ptr, 4, BLOCK, stream));
    assert_cuda(driver->mem_free(ptr));
    print_message(
        "fact: behind mem_free() used is %llu\n",
        (unsigned long long)figures_of(pool).used_bytes);
    assert_cuda(driver->stream_synchronize(stream));
    print_message(
        "fact: and behind a synchronisation %llu\n",
        (unsigned long long)figures_of(pool).used_bytes);
    assert_cuda(driver->mempool_destroy(pool));
    assert_cuda(driver->stream_destroy(stream));
}

static void a_pool_refuses_what_it_cannot_give(void **state)
{
    rmm_driver_mempool_t pool = make_pool();
    rmm_driver_mempool_t shared = NULL;
    void *ptr = NULL;
    int error;

    assert_refused(
        driver->mempool_alloc(pool, &ptr, (size_t)1 << 44, RMM_STREAM_LEGACY),
        RMM_DRIVER_MEMORY_ALLOCATION);
    error = driver->mempool_alloc(pool, &ptr, 0, RMM_STREAM_LEGACY);
    print_message("fact: a block of 0 bytes answers %d, address %p\n", error, ptr);
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
    error = driver->mempool_free(NULL, RMM_STREAM_LEGACY);
    print_message("fact: mempool_free(NULL) answers %d\n", error);
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
    error = driver->mempool_create(2, RMM_DRIVER_ON_DEVICE, &shared);
    print_message("fact: handles of another system answer %d\n", error);
    assert_int_not_equal(error, RMM_DRIVER_OK);
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
    if ((attribute(RMM_ATTRIBUTE_MEMORY_POOL_HANDLE_TYPES) & 1) != 0) {
        assert_cuda(driver->mempool_create(1, RMM_DRIVER_ON_DEVICE, &shared));
        assert_cuda(driver->mempool_free(
            alloc_from(shared, BLOCK, RMM_STREAM_LEGACY), RMM_STREAM_LEGACY));
        assert_cuda(driver->stream_synchronize(RMM_STREAM_LEGACY));
        assert_cuda(driver->mempool_destroy(shared));
    }
    assert_cuda(driver->mempool_destroy(pool));
}

static void the_managed_pool_is_one(void **state)
{
    rmm_driver_mempool_t pool = NULL, again = NULL;
    uint64_t threshold = 77;
    int version = 0;
    char *ptr;
    int error = driver->mempool_managed(&pool);

    assert_cuda(cudaDriverGetVersion(&version));
    if (error != RMM_DRIVER_OK) {
        print_message("fact: no managed pool, answer %d\n", error);
        assert_true(
            CUDART_VERSION < 13000 || version < 13000 ||
            attribute(RMM_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) == 0);
        assert_refused(error, RMM_DRIVER_NOT_SUPPORTED);
        skip();
    }
    assert_cuda(driver->mempool_managed(&again));
    assert_ptr_equal(pool, again);
    assert_cuda(driver->mempool_get_threshold(pool, &threshold));
    print_message(
        "fact: threshold of the managed pool %llu\n", (unsigned long long)threshold);
    ptr = alloc_from(pool, BLOCK, RMM_STREAM_LEGACY);
    assert_cuda(driver->mem_prefetch(ptr, BLOCK, 0, RMM_STREAM_LEGACY));
    assert_cuda(driver->memset_async(ptr, 3, BLOCK, RMM_STREAM_LEGACY));
    assert_cuda(driver->stream_synchronize(RMM_STREAM_LEGACY));
    assert_int_equal(ptr[BLOCK - 1], 3); /* the host reads it */
    assert_cuda(driver->mempool_free(ptr, RMM_STREAM_LEGACY));
    assert_cuda(driver->stream_synchronize(RMM_STREAM_LEGACY));
    error = driver->mempool_destroy(pool);
    print_message("fact: destroying the managed pool answers %d\n", error);
    assert_int_not_equal(error, RMM_DRIVER_OK);
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
}

static void a_graph_allocates_and_frees(void **state)
{
    rmm_driver_mempool_t pool = make_pool();
    rmm_stream_t stream = make_stream();
    cudaGraphExec_t executable = NULL;
    cudaGraph_t graph = NULL;
    void *ptr, *seen = NULL;

    assert_cuda(driver->mem_alloc(&seen, BLOCK));
    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    ptr = alloc_from(pool, BLOCK, stream);
    assert_cuda(driver->memset_async(ptr, 2, BLOCK, stream));
    assert_cuda(driver->memcpy_async(seen, ptr, BLOCK, stream));
    assert_cuda(driver->mempool_free(ptr, stream));
    assert_true(capture_survives(stream, &graph));
    print_message(
        "fact: a capture's block counts %llu in its pool\n",
        (unsigned long long)figures_of(pool).used_bytes);
    assert_cuda(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 3; i++) {
        assert_cuda(driver->memset_async(seen, 1, BLOCK, stream));
        assert_cuda(cudaGraphLaunch(executable, stream));
        assert_filled(seen, 2, BLOCK);
    }
    assert_cuda(cudaGraphExecDestroy(executable));
    assert_cuda(cudaGraphDestroy(graph));
    assert_cuda(driver->mem_free(seen));
    assert_cuda(driver->mempool_destroy(pool));
    assert_cuda(driver->stream_destroy(stream));
}

static void what_a_capture_says_to_pools(void **state)
{
    rmm_driver_mempool_t pool = make_pool(), another = NULL;
    rmm_stream_t stream = make_stream(), other = make_stream();
    void *ptr = alloc_from(pool, BLOCK, stream), *outside = NULL;
    int error;

    assert_cuda(driver->stream_synchronize(stream));
    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    error = driver->mempool_free(ptr, stream);
    print_message(
        "fact: a free of an outer block in a capture answers %d, the capture "
        "survives: %d\n",
        error, capture_survives(stream, NULL));
    assert_int_not_equal(error, RMM_DRIVER_OK);

    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    error = driver->mempool_alloc(pool, &outside, BLOCK, other);
    if (error == RMM_DRIVER_OK) {
        assert_cuda(driver->mempool_free(outside, other));
    }
    print_message(
        "fact: an allocation on another stream answers %d, the capture survives: %d\n",
        error, capture_survives(stream, NULL));

    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    error = driver->mempool_create(0, RMM_DRIVER_ON_DEVICE, &another);
    print_message(
        "fact: a new pool in a global capture answers %d, the capture survives: %d\n",
        error, capture_survives(stream, NULL));
    if (error == RMM_DRIVER_OK) {
        assert_cuda(driver->mempool_destroy(another));
    }
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
    assert_cuda(driver->mempool_free(ptr, stream));
    assert_cuda(driver->stream_synchronize(stream));
    assert_cuda(driver->mempool_destroy(pool));
    assert_cuda(driver->stream_destroy(stream));
    assert_cuda(driver->stream_destroy(other));
}

/* One call between the begin and the end of a global capture, in this thread's mode or
 * relaxed. */
typedef int (*asked_fn)(rmm_driver_mempool_t pool, rmm_stream_t other);

static int ask_alloc(rmm_driver_mempool_t pool, rmm_stream_t other)
{
    void *ptr = NULL;
    int error = driver->mempool_alloc(pool, &ptr, BLOCK, other);

    return error == RMM_DRIVER_OK ? driver->mempool_free(ptr, other) : error;
}

static int ask_figures(rmm_driver_mempool_t pool, rmm_stream_t other)
{
    rmm_driver_mempool_figures_t figures;

    return driver->mempool_figures(pool, &figures);
}

static int ask_trim(rmm_driver_mempool_t pool, rmm_stream_t other)
{
    return driver->mempool_trim(pool, 0);
}

static int ask_synchronize(rmm_driver_mempool_t pool, rmm_stream_t other)
{
    return driver->stream_synchronize(other);
}

static int ask_stream(rmm_driver_mempool_t pool, rmm_stream_t other)
{
    rmm_stream_t fresh = NULL;
    int error = driver->stream_create(1, &fresh);

    return error == RMM_DRIVER_OK ? driver->stream_destroy(fresh) : error;
}

static int ask_reserve(rmm_driver_mempool_t pool, rmm_stream_t other)
{
    void *ptr = NULL;
    int error;

    if (attribute(RMM_ATTRIBUTE_VIRTUAL_MEMORY) == 0) {
        return RMM_DRIVER_OK;
    }
    error = driver->address_reserve(&ptr, 2 * MIB);
    return error == RMM_DRIVER_OK ? driver->address_free(ptr, 2 * MIB) : error;
}

static bool ask_in_capture(
    const char *name, asked_fn ask, rmm_driver_mempool_t pool, bool is_relaxed)
{
    rmm_stream_t stream = make_stream(), other = make_stream();
    int mode = is_relaxed ? RMM_CAPTURE_MODE_RELAXED : RMM_CAPTURE_MODE_GLOBAL;
    bool survives;
    int error;

    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    assert_cuda(driver->capture_mode_exchange(&mode));
    error = ask(pool, other);
    assert_cuda(driver->capture_mode_exchange(&mode));
    survives = capture_survives(stream, NULL);
    print_message(
        "fact: %s in a global capture, %s: answers %d, the capture survives: %d\n",
        name, is_relaxed ? "relaxed" : "not relaxed", error, survives);
    assert_cuda(driver->stream_destroy(stream));
    assert_cuda(driver->stream_destroy(other));
    return survives && error == RMM_DRIVER_OK;
}

/* What the library calls in relaxed mode has to be safe in it; the rest is printed. */
static void relaxed_calls_leave_captures_alone(void **state)
{
    static const struct {
        const char *name;
        asked_fn ask;
    } calls[] = {
        {"alloc and free", ask_alloc},
        {"figures", ask_figures},
        {"trim", ask_trim},
        {"synchronize", ask_synchronize},
        {"a new stream", ask_stream},
        {"a reservation", ask_reserve},
    };
    rmm_driver_mempool_t pool = make_pool();

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        (void)ask_in_capture(calls[i].name, calls[i].ask, pool, false);
        assert_true(ask_in_capture(calls[i].name, calls[i].ask, pool, true));
    }
    assert_cuda(driver->mempool_destroy(pool));
}

/* ---- virtual memory ---- */

static size_t granularity(void)
{
    size_t bytes = 0;

    if (attribute(RMM_ATTRIBUTE_VIRTUAL_MEMORY) == 0) {
        assert_refused(driver->virtual_granularity(&bytes), RMM_DRIVER_NOT_SUPPORTED);
        skip();
    }
    assert_cuda(driver->virtual_granularity(&bytes));
    return bytes;
}

static rmm_driver_physical_t create(size_t bytes)
{
    rmm_driver_physical_t physical = 0;

    assert_cuda(driver->physical_create(bytes, 0, &physical));
    return physical;
}

static void mapped_memory_holds_data(void **state)
{
    size_t granule = granularity();
    rmm_driver_physical_t one, two;
    void *reserved = NULL;
    char *ptr;

    print_message("fact: granularity %zu\n", granule);
    assert_int_equal(granule, 2 * MIB); /* as the simulated GPU */
    assert_cuda(driver->address_reserve(&reserved, 64 * granule));
    ptr = reserved;
    print_message("fact: a reservation begins at %p\n", reserved);
    assert_int_equal((uintptr_t)ptr % granule, 0);
    one = create(granule);
    two = create(2 * granule);
    assert_cuda(driver->address_map(ptr, granule, one));
    assert_cuda(driver->address_map(ptr + granule, 2 * granule, two));
    assert_cuda(driver->address_access(
        ptr, 3 * granule, RMM_DRIVER_DEVICE(0))); /* both at once */
    assert_cuda(driver->physical_release(two));   /* lives while it is mapped */
    assert_cuda(driver->memset_async(ptr, 1, 3 * granule, RMM_STREAM_LEGACY));
    assert_cuda(
        driver->address_access(ptr, 3 * granule, RMM_DRIVER_DEVICE(0))); /* again */
    assert_filled(ptr, 1, 3 * granule);

    assert_cuda(driver->address_unmap(ptr, granule));
    assert_cuda(driver->address_map(ptr + 8 * granule, granule, one)); /* moved */
    assert_cuda(
        driver->address_access(ptr + 8 * granule, granule, RMM_DRIVER_DEVICE(0)));
    assert_filled(ptr + 8 * granule, 1, granule);
    assert_filled(ptr + granule, 1, 2 * granule);
    assert_cuda(driver->address_unmap(ptr + 8 * granule, granule));
    assert_cuda(driver->address_unmap(ptr + granule, 2 * granule));
    assert_cuda(driver->physical_release(one));
    assert_cuda(driver->address_free(reserved, 64 * granule));
}

static void physical_memory_goes_back_to_the_device(void **state)
{
    size_t granule = granularity();
    uint64_t before, during, after, total;
    rmm_driver_physical_t physical;

    assert_cuda(driver->memory_info(&before, &total));
    physical = create(256 * granule);
    assert_cuda(driver->memory_info(&during, &total));
    assert_cuda(driver->physical_release(physical));
    assert_cuda(driver->memory_info(&after, &total));
    assert_true(before - during >= 256 * granule);
    assert_true(after - during >= 256 * granule);
    assert_refused(
        driver->physical_create((size_t)1 << 44, 0, &physical),
        RMM_DRIVER_MEMORY_ALLOCATION);
}

static void wrong_orders_are_refused(void **state)
{
    size_t granule = granularity();
    rmm_driver_physical_t one = create(granule), two = create(granule), half = 0;
    void *reserved = NULL;
    char *ptr;

    assert_cuda(driver->address_reserve(&reserved, 4 * granule));
    ptr = reserved;
    print_message(
        "fact: unmap of nothing answers %d\n", driver->address_unmap(ptr, granule));
    assert_cuda(driver->address_map(ptr, granule, one));
    assert_cuda(driver->address_map(ptr + granule, granule, two));
    print_message(
        "fact: map of what is mapped answers %d\n",
        driver->address_map(ptr, granule, two));
    print_message(
        "fact: free of mapped addresses answers %d\n",
        driver->address_free(ptr, 4 * granule));
    print_message(
        "fact: access to more than is mapped answers %d\n",
        driver->address_access(ptr, 3 * granule, RMM_DRIVER_DEVICE(0)));
    print_message(
        "fact: create of half a granule answers %d\n",
        driver->physical_create(granule / 2, 0, &half));
    print_message(
        "fact: unmap of two mappings answers %d\n",
        driver->address_unmap(ptr, 2 * granule));
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
    (void)driver->address_unmap(ptr, granule); /* unless the last one did */
    (void)driver->address_unmap(ptr + granule, granule);
    assert_cuda(driver->physical_release(one));
    assert_cuda(driver->physical_release(two));
    if (half != 0) {
        assert_cuda(driver->physical_release(half));
    }
    assert_cuda(driver->address_free(reserved, 4 * granule));
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
}

static void what_a_capture_says_to_virtual_memory(void **state)
{
    size_t granule = granularity();
    rmm_stream_t stream = make_stream();
    rmm_driver_physical_t physical = 0;
    int error;
    bool survives;

    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    error = driver->physical_create(granule, 0, &physical);
    survives = capture_survives(stream, NULL);
    print_message(
        "fact: physical memory in a global capture answers %d, the capture survives: "
        "%d\n",
        error, survives);
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
    if (error == RMM_DRIVER_OK) {
        assert_cuda(driver->physical_release(physical));
    }
    assert_cuda(driver->stream_destroy(stream));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_attribute_has_an_answer),
        cmocka_unit_test(a_stream_reports_its_flags),
        cmocka_unit_test(copies_and_fills_take_any_address),
        cmocka_unit_test(a_device_is_its_own_peer),
        cmocka_unit_test(managed_memory_goes_where_it_is_sent),
        cmocka_unit_test(device_memory_cannot_be_sent_anywhere),
        cmocka_unit_test(a_capture_does_not_take_a_prefetch),
        cmocka_unit_test(a_pool_keeps_to_its_threshold),
        cmocka_unit_test(a_pools_block_holds_data_in_stream_order),
        cmocka_unit_test(a_destroyed_pools_block_lives_on),
        cmocka_unit_test(mem_free_takes_a_pools_block),
        cmocka_unit_test(a_pool_refuses_what_it_cannot_give),
        cmocka_unit_test(the_managed_pool_is_one),
        cmocka_unit_test(a_graph_allocates_and_frees),
        cmocka_unit_test(what_a_capture_says_to_pools),
        cmocka_unit_test(relaxed_calls_leave_captures_alone),
        cmocka_unit_test(mapped_memory_holds_data),
        cmocka_unit_test(physical_memory_goes_back_to_the_device),
        cmocka_unit_test(wrong_orders_are_refused),
        cmocka_unit_test(what_a_capture_says_to_virtual_memory),
    };
    rmm_status_t status;

    driver = rmm__driver(&status);
    return gpu_is_missing() ? SKIPPED : cmocka_run_group_tests(tests, NULL, NULL);
}
