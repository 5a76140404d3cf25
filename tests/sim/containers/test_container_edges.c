/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What containers promise at their edges: behind the last byte, for themselves as a source,
 * without a GPU, and of what is not theirs when something failed.
 */
#include "sim/containers/container_harness.h"

#include <stdlib.h>
#include <unistd.h>

#include <rmm/device_array.h>
#include <rmm/device_buffer.h>
#include <rmm/device_scalar.h>
#include <rmm/host_resource.h>
#include <rmm/managed_resource.h>
#include <rmm/stream_pool.h>

#include "harness/in_child.h"

/* --- without a GPU: the first case, in a child, before any other opens the driver - */

static int use_host_memory_only(void)
{
    static const char text[] = "copied by the host";
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    rmm_resource_t *host;
    int differs;

    setenv("RMM_DRIVER", "cuda", 1);
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    if (rmm_host_resource_create(&host) != RMM_OK ||
        rmm_device_buffer_init_copy_from(&buffer, text, sizeof(text), NULL, host) !=
            RMM_OK) {
        return 2;
    }
    differs = memcmp(rmm_device_buffer_data(&buffer), text, sizeof(text)) != 0;
    rmm_device_buffer_fini(&buffer);
    rmm_resource_release(host);
    return differs;
}

TEST_CASE(host_memory_is_copied_where_no_gpu_is)
{
    pid_t pid = fork_child();

    if (pid == 0) {
        alarm(100);
        _exit(use_host_memory_only());
    }
    assert_int_equal(exit_status_of(pid), 0);
}

/* --- buffers -------------------------------------------------------------------------- */

TEST_CASE(a_copy_onto_itself_is_freed_behind_the_copy)
{
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    rmm_stream_t first, second;
    recorder_t recorder;

    recorder_open(&recorder);
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &first));
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &second));
    assert_ok(rmm_device_buffer_init(&buffer, 1000, first, recorder.mr));
    assert_ok(rmm_device_buffer_copy(&buffer, &buffer, second, recorder.mr));
    assert_int_equal(recorder.frees, 1);
    assert_ptr_equal(recorder.free_stream, second); /* which reads what is freed */
    assert_ok(rmm_stream_destroy(first));
    rmm_device_buffer_fini(&buffer);
    assert_ok(rmm_stream_destroy(second));
    recorder_close(&recorder);
}

enum { REGION = 4096, SIZE = 256, CAPACITY = 1024, UNTOUCHED = 0x5a };

typedef struct region {
    char *begin;
    size_t used;
} region_t;

static rmm_status_t
region_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    region_t *region = payload;

    *ptr_out = region->begin + region->used;
    region->used += bytes;
    return RMM_OK;
}

static void region_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
}

/* Each block of the region stands behind the one before; nothing stands behind the last. */
TEST_CASE(a_shrunk_buffer_writes_nothing_behind_its_end)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    rmm_resource_t *cuda = make_cuda();
    region_t region = {take(cuda, REGION, NULL), 0};
    rmm_resource_t *mr;

    memset(region.begin, UNTOUCHED, REGION);
    options.alloc = region_alloc;
    options.dealloc = region_dealloc;
    options.payload = &region;
    assert_ok(rmm_callback_resource_create(&options, &mr));
    assert_ok(rmm_device_buffer_init(&buffer, CAPACITY, NULL, mr));
    memset(region.begin, 1, CAPACITY);
    assert_ok(rmm_device_buffer_resize(&buffer, SIZE, NULL));
    assert_ok(rmm_device_buffer_shrink_to_fit(&buffer, NULL));
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(region.used, CAPACITY + SIZE);
    for (size_t i = CAPACITY; i < REGION; i++) {
        assert_int_equal(region.begin[i], i < CAPACITY + SIZE ? 1 : UNTOUCHED);
    }
    rmm_device_buffer_fini(&buffer);
    rmm_resource_release(mr);
    give(cuda, region.begin, REGION, NULL);
    rmm_resource_release(cuda);
}

/* --- arrays and scalars --------------------------------------------------------------- */

TEST_CASE(only_elements_of_the_array_are_prefetched)
{
    rmm_device_array_t array = {0};
    rmm_resource_t *managed;

    assert_ok(rmm_managed_resource_create(&managed));
    assert_ok(rmm_device_array_init(&array, 8, 100, NULL, managed));
    assert_ok(rmm_device_array_prefetch(&array, 2, 98, 0, NULL));
    assert_ok(rmm_device_array_prefetch(&array, 100, 0, 0, NULL));
    assert_int_equal(
        rmm_device_array_prefetch(&array, 2, 99, 0, NULL), RMM_ERR_OUT_OF_RANGE);
    assert_int_equal(
        rmm_device_array_prefetch(&array, 101, 0, 0, NULL), RMM_ERR_OUT_OF_RANGE);
    rmm_device_array_fini(&array);
    rmm_resource_release(managed);
}

TEST_CASE(a_scalar_of_no_bytes_is_refused)
{
    rmm_device_scalar_t scalar = {0};
    rmm_resource_t *cuda = make_cuda();
    int value = 1;

    assert_int_equal(
        rmm_device_scalar_init_value(&scalar, 0, &value, NULL, cuda),
        RMM_ERR_INVALID_ARGUMENT);
    rmm_resource_release(cuda);
}

/* Two captures; a value is asked for on the stream of one. */
TEST_CASE(a_failed_query_ruins_no_other_capture)
{
    rmm_device_array_t array = {0};
    rmm_resource_t *cuda = make_cuda();
    rmm_stream_t own, other;
    rmm_sim_graph_t graph;
    uint64_t value;

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &own));
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &other));
    assert_ok(rmm_device_array_init(&array, 8, 1, own, cuda));
    assert_cuda(rmm_sim_begin_capture(own, RMM_CAPTURE_MODE_RELAXED));
    assert_cuda(rmm_sim_begin_capture(other, RMM_CAPTURE_MODE_RELAXED));
    assert_int_equal(
        rmm_device_array_get_element(&array, 0, &value, own), RMM_ERR_CUDA);
    assert_cuda(rmm_sim_end_capture(other, &graph));
    assert_int_not_equal(rmm_sim_end_capture(own, &graph), 0);
    rmm_device_array_fini(&array);
    assert_ok(rmm_stream_destroy(own));
    assert_ok(rmm_stream_destroy(other));
    rmm_resource_release(cuda);
}

/* --- stream pools --------------------------------------------------------------------- */

/* Handles of destroyed streams are the next to be given out. */
TEST_CASE(a_failed_pool_of_streams_gives_them_back)
{
    rmm_stream_pool_t *pool = NULL;
    rmm_stream_t before, after[3];
    bool found = false;

    assert_ok(rmm_stream_create(0, &before));
    assert_ok(rmm_stream_destroy(before));
    assert_true(rmm_sim_fail("stream_create:4"));
    assert_int_equal(rmm_stream_pool_create(5, 0, &pool), RMM_ERR_CUDA);
    assert_true(rmm_sim_fail(NULL));
    for (int i = 0; i < 3; i++) {
        assert_ok(rmm_stream_create(0, &after[i]));
        found |= after[i] == before;
    }
    assert_true(found);
    for (int i = 0; i < 3; i++) {
        assert_ok(rmm_stream_destroy(after[i]));
    }
}
