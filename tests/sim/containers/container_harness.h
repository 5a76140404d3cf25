/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of containers share: a resource that notes how it is called, and data
 * that is written and compared in stream order.
 */
#ifndef RMM_TESTS_SIM_CONTAINER_HARNESS_H
#define RMM_TESTS_SIM_CONTAINER_HARNESS_H

#include "sim/pool/pool_harness.h"

#include <rmm/callback_resource.h>

#include "driver/sim/control.h"

/* A resource over the cuda resource of the current device that notes its calls. */
typedef struct recorder {
    rmm_resource_t *mr; /* what the test gives to containers */
    rmm_resource_t *upstream;
    int allocs, frees;
    size_t last_bytes;
    rmm_stream_t alloc_stream, free_stream;
    int alloc_device, free_device; /* current at the last call */
} recorder_t;

static inline rmm_status_t
recorder_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    recorder_t *recorder = payload;

    recorder->allocs++;
    recorder->last_bytes = bytes;
    recorder->alloc_stream = stream;
    assert_cuda(rmm__sim_device_get(&recorder->alloc_device));
    return rmm_resource_alloc(recorder->upstream, bytes, 0, stream, ptr_out);
}

static inline void
recorder_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    recorder_t *recorder = payload;

    recorder->frees++;
    recorder->free_stream = stream;
    assert_cuda(rmm__sim_device_get(&recorder->free_device));
    rmm_resource_dealloc(recorder->upstream, ptr, bytes, 0, stream);
}

static inline void recorder_open(recorder_t *recorder)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;

    *recorder = (recorder_t){.alloc_device = -1, .free_device = -1};
    recorder->upstream = make_cuda();
    options.alloc = recorder_alloc;
    options.dealloc = recorder_dealloc;
    options.payload = recorder;
    assert_ok(rmm_callback_resource_create(&options, &recorder->mr));
}

/* Everything went back, the references too. */
static inline void recorder_close(recorder_t *recorder)
{
    assert_int_equal(recorder->allocs, recorder->frees);
    assert_int_equal(stats_of(recorder->mr).current_count, 0);
    assert_int_equal(stats_of(recorder->mr).invalid_free_count, 0);
    rmm_resource_release(recorder->mr);
    rmm_resource_release(recorder->upstream);
}

/* Queue bytes that follow from a seed; the host copy lives until `pattern` ends. */
static inline void pattern_fill(unsigned char *pattern, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++) {
        pattern[i] = (unsigned char)(i * 31 + seed);
    }
}

/* What the memory holds once the stream is done. */
static inline void
assert_holds(const void *data, const void *expected, size_t bytes, rmm_stream_t stream)
{
    unsigned char *copy = test_malloc(bytes);

    assert_cuda(rmm_sim_memcpy_async(copy, data, bytes, stream));
    assert_cuda(rmm__sim_stream_synchronize(stream));
    assert_memory_equal(copy, expected, bytes);
    test_free(copy);
}

/* --- a fixture ------------------------------------------------------------------------ */

static struct {
    rmm_resource_t *mr;
    rmm_stream_t stream, other;
} fixture;

static inline int container_set_up_on(rmm_status_t (*create)(rmm_resource_t **))
{
    assert_ok(create(&fixture.mr));
    fixture.stream = make_stream(RMM_STREAM_NON_BLOCKING);
    fixture.other = make_stream(RMM_STREAM_NON_BLOCKING);
    return 0;
}

static inline int container_set_up(void **state)
{
    return container_set_up_on(rmm_cuda_resource_create);
}

/* Each case has given everything back, the references on the resource too. */
static inline int container_tear_down(void **state)
{
    assert_ok(rmm_stream_destroy(fixture.stream));
    assert_ok(rmm_stream_destroy(fixture.other));
    assert_int_equal(stats_of(fixture.mr).current_count, 0);
    assert_int_equal(stats_of(fixture.mr).invalid_free_count, 0);
    rmm_resource_release(fixture.mr);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(rmm_sim_violations(), 0);
    return 0;
}

#endif /* RMM_TESTS_SIM_CONTAINER_HARNESS_H */
