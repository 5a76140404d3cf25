/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers on a real GPU: where their memory is, and that their data is right behind
 * work that is still queued. Every case first proves that the CUDA driver is the one in
 * use.
 *
 * Without a usable GPU the program says so and exits 77.
 */
#include "gpu/gpu_harness.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rmm/rmm.h>
#include <rmm/sim.h>

#include "driver/driver.h"
#include "harness/in_child.h"

enum { BYTES = 1000000 };

static struct {
    rmm_resource_t *cuda, *pool;
    rmm_stream_t stream;
    unsigned char *pattern, *found; /* BYTES of pageable memory each */
} fixture;

static int set_up(void **state)
{
    memset(&fixture, 0, sizeof(fixture));
    assert_real_gpu();
    assert_ok(rmm_cuda_resource_create(&fixture.cuda));
    assert_ok(rmm_pool_resource_create(fixture.cuda, NULL, &fixture.pool));
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &fixture.stream));
    fixture.pattern = test_malloc(BYTES);
    fixture.found = test_calloc(1, BYTES);
    for (size_t i = 0; i < BYTES; i++) {
        fixture.pattern[i] = (unsigned char)(i * 31 + 7);
    }
    return 0;
}

static int tear_down(void **state)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    assert_ok(rmm_resource_get_stats(fixture.pool, &stats));
    assert_int_equal(stats.current_count, 0);
    assert_int_equal(stats.invalid_free_count, 0);
    assert_ok(rmm_stream_destroy(fixture.stream));
    rmm_resource_release(fixture.pool);
    rmm_resource_release(fixture.cuda);
    test_free(fixture.pattern);
    test_free(fixture.found);
    return 0;
}

/* Some milliseconds of work on the stream, so that what follows is really queued. */
static void queue_work(void *block, size_t bytes)
{
    for (int i = 0; i < 20; i++) {
        assert_cuda(cudaMemsetAsync(block, i, bytes, fixture.stream));
    }
}

static void assert_pattern(const rmm_device_buffer_t *buffer)
{
    memset(fixture.found, 0, BYTES);
    assert_cuda(cudaMemcpyAsync(
        fixture.found, rmm_device_buffer_data(buffer), BYTES, cudaMemcpyDefault,
        fixture.stream));
    assert_cuda(cudaStreamSynchronize(fixture.stream));
    assert_memory_equal(fixture.found, fixture.pattern, BYTES);
}

static enum cudaMemoryType type_of(const rmm_device_buffer_t *buffer)
{
    struct cudaPointerAttributes attributes;

    assert_cuda(cudaPointerGetAttributes(&attributes, rmm_device_buffer_data(buffer)));
    return attributes.type;
}

static void memory_is_of_the_kind_of_the_resource(void **state)
{
    struct {
        rmm_resource_t *mr;
        enum cudaMemoryType type;
    } kinds[] = {
        {rmm_resource_retain(fixture.cuda), cudaMemoryTypeDevice},
        {rmm_resource_retain(fixture.pool), cudaMemoryTypeDevice},
        {NULL, cudaMemoryTypeManaged},
        {NULL, cudaMemoryTypeHost},
    };

    assert_ok(rmm_managed_resource_create(&kinds[2].mr));
    assert_ok(rmm_pinned_resource_create(&kinds[3].mr));
    for (size_t i = 0; i < 4; i++) {
        rmm_device_buffer_t buffer;

        assert_ok(rmm_device_buffer_init_copy_from(
            &buffer, fixture.pattern, BYTES, fixture.stream, kinds[i].mr));
        assert_int_equal(type_of(&buffer), kinds[i].type);
        assert_pattern(&buffer);
        assert_ok(rmm_device_buffer_resize(&buffer, 2 * BYTES, fixture.stream));
        assert_pattern(&buffer);
        assert_ok(rmm_device_buffer_resize(&buffer, BYTES, fixture.stream));
        assert_ok(rmm_device_buffer_shrink_to_fit(&buffer, fixture.stream));
        assert_pattern(&buffer);
        rmm_device_buffer_fini(&buffer);
        rmm_resource_release(kinds[i].mr);
    }
}

static void the_default_resource_is_used(void **state)
{
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;

    assert_ok(rmm_set_current_device_resource(fixture.pool, NULL));
    assert_ok(rmm_device_buffer_resize(&buffer, BYTES, fixture.stream));
    assert_ok(rmm_reset_current_device_resource());
    assert_ptr_equal(rmm_device_buffer_resource(&buffer), fixture.pool);
    assert_int_equal(type_of(&buffer), cudaMemoryTypeDevice);
    rmm_device_buffer_fini(&buffer);
}

static void copies_and_reallocates_behind_queued_work(void **state)
{
    const size_t large = 256 * MIB;
    rmm_device_buffer_t work;
    rmm_device_buffer_t buffer;
    rmm_device_buffer_t copy = RMM_DEVICE_BUFFER_INIT;

    assert_ok(rmm_device_buffer_init(&work, large, fixture.stream, fixture.pool));
    assert_ok(rmm_device_buffer_init(&buffer, BYTES, fixture.stream, fixture.pool));
    queue_work(rmm_device_buffer_data(&work), large);
    assert_cuda(cudaMemcpyAsync(
        rmm_device_buffer_data(&buffer), fixture.pattern, BYTES, cudaMemcpyDefault,
        fixture.stream));
    queue_work(rmm_device_buffer_data(&work), large);
    assert_ok(rmm_device_buffer_resize(&buffer, 3 * BYTES, fixture.stream));
    assert_ok(rmm_device_buffer_copy(&copy, &buffer, fixture.stream, fixture.pool));
    rmm_device_buffer_fini(&work);
    /* what the reallocation freed is handed out again and overwritten */
    assert_ok(rmm_device_buffer_init(&work, BYTES, fixture.stream, fixture.pool));
    assert_cuda(
        cudaMemsetAsync(rmm_device_buffer_data(&work), 0, BYTES, fixture.stream));
    assert_pattern(&buffer);
    assert_pattern(&copy);
    rmm_device_buffer_fini(&work);
    rmm_device_buffer_fini(&copy);
    rmm_device_buffer_fini(&buffer);
}

static void elements_are_read_behind_queued_work(void **state)
{
    const size_t count = 256 * MIB;
    RMM_DEVICE_ARRAY(uint8_t) bytes;
    RMM_DEVICE_ARRAY(double) doubles;
    uint8_t value = 0;
    double minus = 1.0;

    assert_ok(
        rmm_device_array_uint8_t_init(&bytes, count, fixture.stream, fixture.pool));
    queue_work(rmm_device_array_uint8_t_data(&bytes), count);
    assert_ok(rmm_device_array_uint8_t_back(&bytes, &value, fixture.stream));
    assert_int_equal(value, 19);
    queue_work(rmm_device_array_uint8_t_data(&bytes), count);
    assert_ok(
        rmm_device_array_uint8_t_set_element(&bytes, count - 1, 77, fixture.stream));
    assert_ok(rmm_device_array_uint8_t_back(&bytes, &value, fixture.stream));
    assert_int_equal(value, 77);
    assert_ok(
        rmm_device_array_uint8_t_set_element_to_zero_async(&bytes, 0, fixture.stream));
    assert_ok(rmm_device_array_uint8_t_front(&bytes, &value, fixture.stream));
    assert_int_equal(value, 0);
    rmm_device_array_uint8_t_fini(&bytes);

    assert_ok(rmm_device_array_double_init(&doubles, 1, fixture.stream, fixture.pool));
    assert_ok(rmm_device_array_double_set_element(&doubles, 0, -0.0, fixture.stream));
    assert_ok(rmm_device_array_double_front(&doubles, &minus, fixture.stream));
    assert_true(minus == 0.0 && signbit(minus));
    rmm_device_array_double_fini(&doubles);
}

static void a_scalar_comes_back(void **state)
{
    RMM_DEVICE_SCALAR(int) scalar;
    const int first = 42;
    const int second = -7;
    int value = 0;

    assert_ok(rmm_device_scalar_int_init_value(
        &scalar, &first, fixture.stream, fixture.pool));
    assert_ok(rmm_device_scalar_int_value(&scalar, &value, fixture.stream));
    assert_int_equal(value, 42);
    assert_ok(rmm_device_scalar_int_set_value_async(&scalar, &second, fixture.stream));
    assert_ok(rmm_device_scalar_int_value(&scalar, &value, fixture.stream));
    assert_int_equal(value, -7);
    assert_ok(rmm_device_scalar_int_set_value_to_zero_async(&scalar, fixture.stream));
    assert_ok(rmm_device_scalar_int_value(&scalar, &value, fixture.stream));
    assert_int_equal(value, 0);
    rmm_device_scalar_int_fini(&scalar);
}

static void containers_of_a_pool_can_be_captured(void **state)
{
    rmm_device_buffer_t source;
    rmm_device_buffer_t buffer;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;

    assert_ok(rmm_device_buffer_init_copy_from(
        &source, fixture.pattern, BYTES, fixture.stream, fixture.pool));
    assert_cuda(cudaStreamBeginCapture(fixture.stream, cudaStreamCaptureModeGlobal));
    assert_ok(rmm_device_buffer_init_copy_from(
        &buffer, rmm_device_buffer_data(&source), BYTES, fixture.stream, fixture.pool));
    assert_ok(rmm_device_buffer_resize(&buffer, 2 * BYTES, fixture.stream));
    assert_cuda(cudaStreamEndCapture(fixture.stream, &graph));
    assert_cuda(cudaGraphInstantiate(&executable, graph, 0));
    assert_cuda(cudaGraphLaunch(executable, fixture.stream));
    assert_pattern(&buffer);
    assert_cuda(cudaGraphExecDestroy(executable));
    assert_cuda(cudaGraphDestroy(graph));
    rmm_device_buffer_fini(&buffer);
    rmm_device_buffer_fini(&source);
}

static void plain_host_memory_outlives_the_copies_that_use_it(void **state)
{
    rmm_resource_t *host;
    rmm_device_buffer_t source;
    rmm_device_buffer_t work;
    rmm_device_buffer_t copy = RMM_DEVICE_BUFFER_INIT;

    assert_ok(rmm_host_resource_create(&host));
    assert_ok(rmm_device_buffer_init(&source, BYTES, fixture.stream, host));
    memcpy(rmm_device_buffer_data(&source), fixture.pattern, BYTES);
    assert_ok(rmm_device_buffer_init(&work, 256 * MIB, fixture.stream, fixture.pool));
    queue_work(rmm_device_buffer_data(&work), 256 * MIB);
    assert_ok(rmm_device_buffer_copy(&copy, &source, fixture.stream, fixture.pool));
    rmm_device_buffer_fini(&source);
    assert_pattern(&copy);
    rmm_device_buffer_fini(&copy);
    rmm_device_buffer_fini(&work);
    rmm_resource_release(host);
}

static void streams_of_a_pool_have_its_flags(void **state)
{
    const unsigned flags[] = {cudaStreamDefault, cudaStreamNonBlocking};

    for (int i = 0; i < 2; i++) {
        rmm_stream_pool_t *pool;

        assert_ok(
            rmm_stream_pool_create(RMM_STREAM_POOL_DEFAULT_COUNT, flags[i], &pool));
        for (size_t j = 0; j < rmm_stream_pool_size(pool); j++) {
            unsigned found = ~0u;

            assert_cuda(cudaStreamGetFlags(rmm_stream_pool_get(pool), &found));
            assert_int_equal(found, flags[i]);
        }
        rmm_stream_pool_destroy(pool);
    }
}

static int prefetched_to(const void *ptr, size_t bytes)
{
    int device = -99;

    assert_cuda(cudaMemRangeGetAttribute(
        &device, sizeof(device), cudaMemRangeAttributeLastPrefetchLocation, ptr,
        bytes));
    return device;
}

static void prefetches_where_memory_can_move(void **state)
{
    rmm_resource_t *managed;
    rmm_device_array_t array;
    rmm_device_buffer_t fixed;
    int can = 0;

    assert_cuda(cudaDeviceGetAttribute(&can, cudaDevAttrConcurrentManagedAccess, 0));
    assert_ok(rmm_managed_resource_create(&managed));
    assert_ok(rmm_device_array_init(&array, 1, 8 * MIB, fixture.stream, managed));
    assert_ok(rmm_device_array_prefetch(&array, 4 * MIB, 4 * MIB, 0, fixture.stream));
    assert_cuda(cudaStreamSynchronize(fixture.stream));
    if (can != 0) {
        char *data = rmm_device_array_data(&array);

        assert_int_equal(prefetched_to(data + 4 * MIB, 4 * MIB), 0);
        assert_int_equal(prefetched_to(data, 4 * MIB), cudaInvalidDeviceId);
        assert_ok(rmm_prefetch(data, 8 * MIB, RMM_DEVICE_HOST, fixture.stream));
        assert_int_equal(prefetched_to(data, 8 * MIB), cudaCpuDeviceId);
    }
    rmm_device_array_fini(&array);
    rmm_resource_release(managed);
    /* memory that cannot move: ignored, and no error is left behind */
    assert_ok(rmm_device_buffer_init(&fixed, MIB, fixture.stream, fixture.cuda));
    assert_ok(rmm_device_buffer_prefetch(&fixed, 0, fixture.stream));
    assert_cuda(cudaGetLastError());
    rmm_device_buffer_fini(&fixed);
}

static void questions_agree_with_cuda(void **state)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    size_t cuda_free = 0;
    size_t cuda_total = 0;
    size_t half = 0;
    int count = 0;
    int cuda_count = -1;
    int device = -1;

    assert_ok(rmm_device_count(&count));
    assert_cuda(cudaGetDeviceCount(&cuda_count));
    assert_int_equal(count, cuda_count);
    assert_ok(rmm_device_current(&device));
    assert_int_equal(device, 0);
    assert_ok(rmm_available_device_memory(&free_bytes, &total_bytes));
    assert_cuda(cudaMemGetInfo(&cuda_free, &cuda_total));
    assert_int_equal(total_bytes, cuda_total);
    assert_true(free_bytes <= total_bytes && free_bytes > 0);
    assert_ok(rmm_percent_of_free_device_memory(50, &half));
    assert_int_equal(half % 256, 0);
    assert_true(half <= total_bytes / 2 && half > 0);
    assert_int_equal(rmm_device_set(count), RMM_ERR_CUDA);
    assert_cuda(cudaGetLastError()); /* is the program's: we left none */
}

/* CUDA does not survive fork(): the end of a buffer in the child does nothing at all. */
static void a_forked_child_may_end_its_copy_of_a_buffer(void **state)
{
    rmm_device_buffer_t buffer;
    pid_t pid;

    assert_ok(rmm_device_buffer_init_copy_from(
        &buffer, fixture.pattern, BYTES, fixture.stream, fixture.pool));
    pid = fork_child();
    if (pid == 0) {
        bool refused =
            rmm_device_buffer_resize(&buffer, 2 * BYTES, fixture.stream) != RMM_OK;

        rmm_device_buffer_fini(&buffer);
        _exit(refused ? 0 : 1);
    }
    assert_int_equal(exit_status_of(pid), 0);
    assert_pattern(&buffer);
    rmm_device_buffer_fini(&buffer);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(memory_is_of_the_kind_of_the_resource),
        CASE(the_default_resource_is_used),
        CASE(copies_and_reallocates_behind_queued_work),
        CASE(elements_are_read_behind_queued_work),
        CASE(a_scalar_comes_back),
        CASE(containers_of_a_pool_can_be_captured),
        CASE(plain_host_memory_outlives_the_copies_that_use_it),
        CASE(streams_of_a_pool_have_its_flags),
        CASE(prefetches_where_memory_can_move),
        CASE(questions_agree_with_cuda),
        CASE(a_forked_child_may_end_its_copy_of_a_buffer),
    };
    return gpu_is_missing() ? SKIPPED : cmocka_run_group_tests(tests, NULL, NULL);
}
