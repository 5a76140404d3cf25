/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams on a real GPU: who they are is told as CUDA tells it, whatever the library
 * remembers of them. What it costs to ask is printed as a line "fact: ...".
 *
 * Without a usable GPU the program says so and exits 77.
 */
#include "gpu/gpu_harness.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <time.h>

#include <rmm/rmm.h>

#include "driver/driver.h"

static const rmm_driver_t *driver;

static void assert_key_is_of(rmm_stream_t stream)
{
    rmm_stream_key_t key = {77, 77};
    unsigned long long id = 0;

    assert_cuda(cudaStreamGetId(stream, &id));
    assert_cuda(driver->stream_key(stream, &key));
    assert_int_equal(key.stream_id, id);
    assert_int_equal(key.capture_id, 0);
}

static double key_ns(rmm_stream_t stream)
{
    enum { ROUNDS = 200000 };
    struct timespec from, to;
    rmm_stream_key_t key;

    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < ROUNDS; i++) {
        (void)driver->stream_key(stream, &key);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    return ((double)(to.tv_sec - from.tv_sec) * 1e9 +
            (double)(to.tv_nsec - from.tv_nsec)) /
           ROUNDS;
}

/* Also when handles are used again, and around a capture. */
static void a_stream_made_here_has_cudas_id(void **state)
{
    rmm_stream_t other, stream, seen = NULL;
    rmm_stream_key_t key;
    cudaGraph_t graph;
    int recycled = 0;

    assert_string_equal(driver->name, "cuda");
    assert_cuda(cudaStreamCreate(&other));
    for (int i = 0; i < 100; i++) {
        assert_ok(rmm_stream_create(0, &stream));
        assert_key_is_of(stream);
        recycled += stream == seen;
        seen = stream;
        assert_ok(rmm_stream_destroy(stream));
    }
    print_message("fact: %d of 99 new streams had the handle of the last\n", recycled);
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    assert_cuda(driver->stream_key(stream, &key));
    assert_true(key.capture_id != 0);
    assert_cuda(cudaStreamEndCapture(stream, &graph));
    assert_cuda(cudaGraphDestroy(graph));
    assert_key_is_of(stream);
    print_message(
        "fact: stream_key takes %.1f ns, of a stream of CUDA's %.1f, the per-thread "
        "one %.1f\n",
        key_ns(stream), key_ns(other), key_ns(RMM_STREAM_PER_THREAD));
    assert_ok(rmm_stream_destroy(stream));
    assert_cuda(cudaStreamDestroy(other));
}

static void a_stream_that_never_captures_is_not_asked(void **state)
{
    rmm_stream_t stream;

    assert_ok(rmm_stream_create(
        RMM_STREAM_NON_BLOCKING | RMM_STREAM_NEVER_CAPTURES, &stream));
    assert_key_is_of(stream);
    print_message(
        "fact: stream_key takes %.1f ns of a stream that never captures\n",
        key_ns(stream));
    assert_ok(rmm_stream_destroy(stream));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_made_here_has_cudas_id),
        cmocka_unit_test(a_stream_that_never_captures_is_not_asked),
    };
    rmm_status_t status;

    driver = rmm__driver(&status);
    return gpu_is_missing() ? SKIPPED : cmocka_run_group_tests(tests, NULL, NULL);
}
