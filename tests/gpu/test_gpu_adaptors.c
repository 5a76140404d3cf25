/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The adaptors on a real GPU: what CUDA says of prefetched memory, that no capture is
 * ruined, and what each adaptor costs over a pool, which is printed and asserts nothing.
 * RMM's matrix runs over them in the conformance suite.
 *
 * Without a usable GPU the program says so and exits 77.
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

static int check_driver(void **state)
{
    assert_real_gpu();
    return 0;
}

static rmm_resource_t *make_managed(void)
{
    rmm_resource_t *mr;

    assert_ok(rmm_managed_resource_create(&mr));
    return mr;
}

static rmm_resource_t *make_prefetch(void)
{
    rmm_resource_t *managed = make_managed();
    rmm_resource_t *mr;

    assert_ok(rmm_prefetch_adaptor_create(managed, NULL, &mr));
    rmm_resource_release(managed);
    return mr;
}

static int last_prefetch_location(const void *ptr, size_t bytes)
{
    int location = 0;

    assert_cuda(cudaMemRangeGetAttribute(
        &location, sizeof(location), cudaMemRangeAttributeLastPrefetchLocation, ptr,
        bytes));
    return location;
}

/* Where a prefetch brings memory on this machine: the device, or nowhere. */
static int where_prefetched(void)
{
    int concurrent = 0;

    assert_cuda(
        cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
    return concurrent != 0 ? 0 : cudaInvalidDeviceId;
}

/* --- prefetch ----------------------------------------------------------------------- */

static void prefetches_pointer_and_size(void **state)
{
    rmm_resource_t *mr = make_prefetch();
    rmm_stream_t stream;
    void *ptr;

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    assert_ok(rmm_resource_alloc(mr, 3 * MIB + 1, 0, stream, &ptr));
    assert_cuda(cudaStreamSynchronize(stream));
    assert_int_equal(last_prefetch_location(ptr, 3 * MIB + 1), where_prefetched());
    rmm_resource_dealloc(mr, ptr, 3 * MIB + 1, 0, stream);
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(mr);
}

static void is_not_prefetched_without_adaptor(void **state)
{
    rmm_resource_t *mr = make_managed();
    void *ptr;

    assert_ok(rmm_resource_alloc(mr, MIB, 0, NULL, &ptr));
    assert_int_equal(last_prefetch_location(ptr, MIB), cudaInvalidDeviceId);
    rmm_resource_dealloc(mr, ptr, MIB, 0, NULL);
    rmm_resource_release(mr);
}

/* CUDA answers "invalid value", which is no failure of the allocation. */
static void leaves_memory_that_is_not_managed_alone(void **state)
{
    rmm_resource_t *cuda;
    rmm_resource_t *mr;
    void *ptr;

    assert_ok(rmm_cuda_resource_create(&cuda));
    assert_ok(rmm_prefetch_adaptor_create(cuda, NULL, &mr));
    rmm_resource_release(cuda);
    assert_ok(rmm_resource_alloc(mr, MIB, 0, NULL, &ptr));
    assert_cuda(cudaGetLastError());
    rmm_resource_dealloc(mr, ptr, MIB, 0, NULL);
    rmm_resource_release(mr);
}

static void ruins_no_capture(void **state)
{
    rmm_resource_t *mr = make_prefetch();
    rmm_stream_t stream;
    cudaGraph_t graph;
    void *ptr;

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    assert_ok(rmm_resource_alloc(mr, MIB, 0, stream, &ptr));
    assert_cuda(cudaMemsetAsync(ptr, 1, MIB, stream));
    assert_cuda(cudaStreamEndCapture(stream, &graph));
    assert_int_equal(last_prefetch_location(ptr, MIB), cudaInvalidDeviceId);
    assert_cuda(cudaGraphDestroy(graph));
    rmm_resource_dealloc(mr, ptr, MIB, 0, stream);
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(mr);
}

/* --- aligned ------------------------------------------------------------------------ */

static void aligns_what_the_device_writes(void **state)
{
    rmm_aligned_options_t options = RMM_ALIGNED_OPTIONS_INIT;
    rmm_resource_t *pool, *cuda, *mr;
    unsigned char copy[5000];
    char *blocks[16];

    options.alignment_bytes = 4096;
    assert_ok(rmm_cuda_resource_create(&cuda));
    assert_ok(rmm_pool_resource_create(cuda, NULL, &pool));
    assert_ok(rmm_aligned_adaptor_create(pool, &options, &mr));
    rmm_resource_release(cuda);
    rmm_resource_release(pool);
    for (int i = 0; i < 16; i++) {
        void *ptr;

        assert_ok(rmm_resource_alloc(mr, sizeof(copy), 0, NULL, &ptr));
        assert_int_equal((uintptr_t)ptr % 4096, 0);
        assert_cuda(cudaMemsetAsync(ptr, i, sizeof(copy), NULL));
        blocks[i] = ptr;
    }
    for (int i = 0; i < 16; i++) {
        assert_cuda(cudaMemcpy(copy, blocks[i], sizeof(copy), cudaMemcpyDefault));
        for (size_t k = 0; k < sizeof(copy); k++) {
            assert_int_equal(copy[k], i);
        }
        rmm_resource_dealloc(mr, blocks[i], sizeof(copy), 0, NULL);
    }
    rmm_resource_release(mr);
}

/* --- what each costs ---------------------------------------------------------------- */

enum { SUBJECTS = 8, ROUNDS = 101, PAIRS = 2000 };

typedef struct subject {
    const char *name;
    rmm_resource_t *mr;
    double ns[ROUNDS];
} subject_t;

static bool gives_up(size_t bytes, void *arg)
{
    return false;
}

static void make_subjects(rmm_resource_t *pool, subject_t subjects[SUBJECTS])
{
    rmm_failure_callback_options_t failing = RMM_FAILURE_CALLBACK_OPTIONS_INIT;
    rmm_limiting_options_t limiting = RMM_LIMITING_OPTIONS_INIT;
    rmm_tracking_options_t tracking = RMM_TRACKING_OPTIONS_INIT;
    subject_t *next = subjects;

    failing.callback = gives_up;
    limiting.limit_bytes = 1024 * MIB;
    tracking.capture_stacks = true;
    *next++ = (subject_t){.name = "pool", .mr = rmm_resource_retain(pool)};
    next->name = "aligned, passing through";
    assert_ok(rmm_aligned_adaptor_create(pool, NULL, &(next++)->mr));
    next->name = "failure_callback";
    assert_ok(rmm_failure_callback_adaptor_create(pool, &failing, &(next++)->mr));
    next->name = "limiting";
    assert_ok(rmm_limiting_adaptor_create(pool, &limiting, &(next++)->mr));
    next->name = "statistics";
    assert_ok(rmm_statistics_adaptor_create(pool, NULL, &(next++)->mr));
    next->name = "thread_safe";
    assert_ok(rmm_thread_safe_adaptor_create(pool, NULL, &(next++)->mr));
    next->name = "tracking";
    assert_ok(rmm_tracking_adaptor_create(pool, NULL, &(next++)->mr));
    next->name = "tracking with stacks";
    assert_ok(rmm_tracking_adaptor_create(pool, &tracking, &(next++)->mr));
    assert_ptr_equal(next, subjects + SUBJECTS);
}

static double pair_ns(rmm_resource_t *mr)
{
    struct timespec start, end;

    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < PAIRS; i++) {
        void *ptr;

        if (rmm_resource_alloc(mr, 1024, 0, NULL, &ptr) != RMM_OK) {
            fail_msg("%s", rmm_last_error_message());
        }
        rmm_resource_dealloc(mr, ptr, 1024, 0, NULL);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - start.tv_sec) * 1e9 +
            (double)(end.tv_nsec - start.tv_nsec)) /
           PAIRS;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

static void tells_what_each_costs(void **state)
{
    static subject_t subjects[SUBJECTS];
    rmm_resource_t *cuda, *pool;

    assert_ok(rmm_cuda_resource_create(&cuda));
    assert_ok(rmm_pool_resource_create(cuda, NULL, &pool));
    make_subjects(pool, subjects);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < SUBJECTS; i++) {
            subjects[i].ns[round] = pair_ns(subjects[i].mr);
        }
    }
    for (int i = 0; i < SUBJECTS; i++) {
        qsort(subjects[i].ns, ROUNDS, sizeof(double), by_value);
        print_message(
            "%-24s %6.1f ns a pair, %+.1f\n", subjects[i].name,
            subjects[i].ns[ROUNDS / 2],
            subjects[i].ns[ROUNDS / 2] - subjects[0].ns[ROUNDS / 2]);
        rmm_resource_release(subjects[i].mr);
    }
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefetches_pointer_and_size),
        cmocka_unit_test(is_not_prefetched_without_adaptor),
        cmocka_unit_test(leaves_memory_that_is_not_managed_alone),
        cmocka_unit_test(ruins_no_capture),
        cmocka_unit_test(aligns_what_the_device_writes),
        cmocka_unit_test(tells_what_each_costs),
    };
    return gpu_is_missing() ? SKIPPED
                            : cmocka_run_group_tests(tests, check_driver, NULL);
}
