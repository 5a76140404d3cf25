/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of PyTorch's pluggable allocator, as PyTorch calls them. That a failure is
 * raised where PyTorch is in the process is tested in tests/abi, in C++.
 */
#include "sim/pool/pool_harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/host_memory.h"
#include "driver/sim/control.h"
#include "harness/in_child.h"

static rmm_resource_t *set_pool(int device, uint64_t maximum_bytes)
{
    rmm_resource_t *pool;

    assert_non_null(sim_driver()); /* HIP's opens the simulated GPU below it */
    assert_cuda(rmm__sim_device_set(device));
    pool = make_pool(0, maximum_bytes);
    assert_cuda(rmm__sim_device_set(0));
    assert_ok(rmm_set_per_device_resource(device, pool, NULL));
    return pool;
}

static void drop(int device, rmm_resource_t *pool)
{
    assert_ok(rmm_reset_per_device_resource(device));
    rmm_resource_release(pool);
    assert_int_equal(rmm_sim_allocated_bytes(device), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

TEST_CASE(serves_from_the_default_of_the_device)
{
    rmm_resource_t *pool = set_pool(1, 0);
    void *ptr = rmm_torch_malloc(1000, 1, NULL);

    assert_non_null(ptr);
    assert_int_equal((uintptr_t)ptr % 256, 0);
    assert_int_equal(stats_of(pool).current_bytes, 1000);
    rmm_torch_free(ptr, 1000, 1, NULL);
    assert_int_equal(stats_of(pool).current_bytes, 0);
    drop(1, pool);
}

TEST_CASE(no_bytes_are_null_and_cost_nothing)
{
    rmm_resource_t *pool = set_pool(0, 0);

    assert_null(rmm_torch_malloc(0, 0, NULL));
    rmm_torch_free(NULL, 0, 0, NULL);
    assert_int_equal(stats_of(pool).total_count, 0);
    drop(0, pool);
}

TEST_CASE(frees_to_where_it_came_from)
{
    rmm_resource_t *first = set_pool(0, 0);
    void *ptr = rmm_torch_malloc(1000, 0, NULL);
    rmm_resource_t *second = set_pool(0, 0);

    rmm_resource_release(first); /* the block keeps it */
    assert_int_equal(stats_of(first).current_bytes, 1000);
    rmm_torch_free(ptr, 1000, 0, NULL);
    assert_int_equal(stats_of(second).total_count, 0);
    assert_int_equal(stats_of(second).invalid_free_count, 0);
    drop(0, second);
}

TEST_CASE(leaves_a_strange_pointer_alone)
{
    rmm_resource_t *pool = set_pool(0, 0);
    void *ptr = rmm_torch_malloc(1000, 0, NULL);
    int strange;

    rmm_torch_free(&strange, sizeof(strange), 0, NULL);
    rmm_torch_free(ptr, 1000, 0, NULL);
    rmm_torch_free(ptr, 1000, 0, NULL);
    assert_int_equal(stats_of(pool).current_count, 0);
    drop(0, pool);
}

TEST_CASE(a_free_of_a_wrong_size_frees_the_whole_block)
{
    rmm_resource_t *pool = set_pool(0, 0);

    rmm_torch_free(rmm_torch_malloc(1000, 0, NULL), 2000, 0, NULL);
    assert_int_equal(stats_of(pool).current_count, 0);
    assert_int_equal(stats_of(pool).invalid_free_count, 0);
    drop(0, pool);
}

TEST_CASE(a_failure_is_null_with_the_reason)
{
    rmm_resource_t *pool = set_pool(0, MIB);

    assert_null(rmm_torch_malloc(2 * MIB, 0, NULL));
    assert_non_null(strstr(rmm_last_error_message(), "out of memory"));
    assert_non_null(strstr(rmm_last_error_message(), "2097152 bytes for PyTorch"));
    assert_null(rmm_torch_malloc((size_t)-1, 0, NULL));
    assert_non_null(strstr(rmm_last_error_message(), "out of memory"));
    assert_null(rmm_torch_malloc(100, 77, NULL));
    assert_non_null(strstr(rmm_last_error_message(), "device 77"));
    assert_null(rmm_torch_malloc(100, -1, NULL));
    assert_int_equal(stats_of(pool).current_count, 0);
    drop(0, pool);
}

/* Neither room in the table nor a reference of the resource. */
TEST_CASE(a_failure_costs_nothing)
{
    rmm_resource_t *pool = set_pool(0, MIB);

    rmm_torch_free(rmm_torch_malloc(1000, 0, NULL), 1000, 0, NULL);
    assert_null(rmm_torch_malloc(2 * MIB, 0, NULL));
    rmm__host_memory_fail(1);
    for (int i = 0; i < 1000; i++) {
        assert_null(rmm_torch_malloc(2 * MIB, 0, NULL));
    }
    assert_false(rmm__host_memory_fail_struck());
    rmm__host_memory_fail(0);
    drop(0, pool);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

TEST_CASE(every_request_for_host_memory_may_fail)
{
    for (uint64_t nth = 1;; nth++) {
        rmm_resource_t *pool = set_pool(0, 0);
        bool struck;
        void *ptr;

        rmm__host_memory_fail(nth);
        ptr = rmm_torch_malloc(1000, 0, NULL);
        struck = rmm__host_memory_fail_struck();
        rmm__host_memory_fail(0);
        rmm_torch_free(ptr, 1000, 0, NULL);
        assert_int_equal(stats_of(pool).current_count, 0);
        drop(0, pool);
        if (!struck) {
            return;
        }
    }
}

enum { THREADS = 4, BLOCKS = 500 };

static void *fill_and_free(void *argument)
{
    void *ptr[BLOCKS];

    for (size_t i = 0; i < BLOCKS; i++) {
        ptr[i] = rmm_torch_malloc(100 + i, 0, NULL);
        if (ptr[i] == NULL) {
            return argument;
        }
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        rmm_torch_free(ptr[i], 100 + i, 0, NULL);
    }
    return NULL;
}

TEST_CASE(threads_may_use_it_at_once)
{
    rmm_resource_t *pool = set_pool(0, 0);
    pthread_t threads[THREADS];

    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, fill_and_free, &pool), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *failed;

        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(stats_of(pool).current_count, 0);
    assert_int_equal(stats_of(pool).total_count, THREADS * BLOCKS);
    drop(0, pool);
}

/* Python forks with tensors alive, and collects them in the child. */
TEST_CASE(a_forked_child_may_free_and_is_refused)
{
    rmm_resource_t *pool = set_pool(0, 0);
    void *ptr = rmm_torch_malloc(1000, 0, NULL);
    pid_t pid = fork_child();

    if (pid == 0) {
        rmm_torch_free(ptr, 1000, 0, NULL);
        _exit(rmm_torch_malloc(1000, 0, NULL) == NULL ? 0 : 1);
    }
    assert_int_equal(exit_status_of(pid), 0);
    assert_int_equal(stats_of(pool).current_bytes, 1000);
    rmm_torch_free(ptr, 1000, 0, NULL);
    drop(0, pool);
}

/* --- recorded streams ----------------------------------------------------------------- */

typedef struct use {
    rmm_stream_t own, other;
    bool is_recorded;
} use_t;

static void open_use(use_t *use, bool is_recorded)
{
    *use = (use_t){.is_recorded = is_recorded};
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &use->own));
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &use->other));
}

static void close_use(const use_t *use)
{
    assert_ok(rmm_stream_destroy(use->own));
    assert_ok(rmm_stream_destroy(use->other));
}

/* A block that another stream writes after its own, as a tensor that is handed over. */
static void *block_in_use(const use_t *use)
{
    rmm_sim_event_t event;
    void *ptr = rmm_torch_malloc(4096, 0, use->own);

    assert_non_null(ptr);
    assert_cuda(rmm_sim_event_create(&event));
    assert_cuda(rmm_sim_memset_async(ptr, 1, 4096, use->own));
    assert_cuda(rmm_sim_event_record(event, use->own));
    assert_cuda(rmm_sim_stream_wait_event(use->other, event));
    for (int i = 0; i < 64; i++) { /* calls of the driver run some of them */
        assert_cuda(rmm_sim_memset_async(ptr, 2, 4096, use->other));
    }
    assert_cuda(rmm_sim_event_destroy(event));
    if (use->is_recorded) {
        rmm_torch_record_stream(ptr, use->own);
        rmm_torch_record_stream(ptr, use->other);
        rmm_torch_record_stream(ptr, use->other); /* no effect */
    }
    return ptr;
}

/* What the next owner of the block reads after it wrote 3. */
static unsigned char read_by_the_next_owner(const use_t *use, const void *previous)
{
    unsigned char bytes[4096] = {0};
    void *ptr = rmm_torch_malloc(sizeof(bytes), 0, use->own);

    assert_ptr_equal(ptr, previous);
    assert_cuda(rmm_sim_memset_async(ptr, 3, sizeof(bytes), use->own));
    assert_ok(rmm_stream_synchronize(use->other));
    assert_cuda(rmm_sim_memcpy_async(bytes, ptr, sizeof(bytes), use->own));
    assert_ok(rmm_stream_synchronize(use->own));
    rmm_torch_free(ptr, sizeof(bytes), 0, use->own);
    return bytes[100];
}

static unsigned seeds_with_mixed_data(bool is_recorded)
{
    unsigned mixed = 0;

    for (uint64_t seed = 1; seed <= 50; seed++) {
        rmm_resource_t *pool = set_pool(0, 0);
        use_t use;
        void *ptr;

        rmm__sim_reseed(seed);
        open_use(&use, is_recorded);
        ptr = block_in_use(&use);
        rmm_torch_free(ptr, 4096, 0, use.own);
        mixed += read_by_the_next_owner(&use, ptr) != 3;
        close_use(&use);
        drop(0, pool);
    }
    return mixed;
}

TEST_CASE(a_free_is_behind_the_work_of_recorded_streams)
{
    assert_int_not_equal(seeds_with_mixed_data(false), 0); /* the test can fail */
    assert_int_equal(seeds_with_mixed_data(true), 0);
}

TEST_CASE(a_pointer_of_others_is_not_recorded)
{
    rmm_resource_t *pool = set_pool(0, 0);
    int strange;

    rmm_torch_record_stream(NULL, NULL);
    rmm_torch_record_stream(&strange, NULL);
    drop(0, pool);
}

/* The list of the first block is not inherited by the next at its address. */
TEST_CASE(recorded_streams_end_with_their_block)
{
    rmm_resource_t *pool = set_pool(0, 0);
    rmm_stream_t ended;

    for (int i = 0; i < 1000; i++) {
        void *ptr = rmm_torch_malloc(4096, 0, NULL);

        assert_ok(rmm_stream_create(0, &ended));
        rmm_torch_record_stream(ptr, ended);
        rmm_torch_free(ptr, 4096, 0, NULL);
        assert_ok(rmm_stream_destroy(ended)); /* its next use would be a violation */
        rmm_torch_free(rmm_torch_malloc(4096, 0, NULL), 4096, 0, NULL);
    }
    drop(0, pool);
}

/* Capture `captured` while the block is freed; the graph must be whole. */
static void free_in_a_capture(rmm_stream_t captured, use_t *use, void *ptr)
{
    rmm_sim_graph_t graph;

    assert_cuda(rmm_sim_begin_capture(captured, 0));
    rmm_torch_free(ptr, 4096, 0, use->own);
    assert_cuda(rmm_sim_end_capture(captured, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
}

TEST_CASE(a_capture_of_either_stream_stays_whole)
{
    for (int i = 0; i < 2; i++) {
        rmm_resource_t *pool = set_pool(0, 0);
        use_t use;
        void *ptr;

        open_use(&use, true);
        ptr = block_in_use(&use);
        free_in_a_capture(i == 0 ? use.own : use.other, &use, ptr);
        assert_ok(rmm_stream_synchronize(use.own));
        assert_ok(rmm_stream_synchronize(use.other));
        close_use(&use);
        drop(0, pool);
    }
}

TEST_CASE(a_stream_of_another_device_is_waited_for)
{
    rmm_resource_t *pool = set_pool(0, 0);
    unsigned char bytes[4096] = {0};
    rmm_stream_t far;
    void *ptr = rmm_torch_malloc(sizeof(bytes), 0, NULL);

    assert_cuda(rmm__sim_device_set(1));
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &far));
    assert_cuda(rmm_sim_memset_async(ptr, 2, sizeof(bytes), far));
    assert_cuda(rmm__sim_device_set(0));
    rmm_torch_record_stream(ptr, far);
    rmm_torch_free(ptr, sizeof(bytes), 0, NULL);
    assert_ptr_equal(rmm_torch_malloc(sizeof(bytes), 0, NULL), ptr);
    assert_cuda(rmm_sim_memset_async(ptr, 3, sizeof(bytes), NULL));
    assert_ok(rmm_stream_synchronize(far));
    assert_cuda(rmm_sim_memcpy_async(bytes, ptr, sizeof(bytes), NULL));
    assert_ok(rmm_stream_synchronize(NULL));
    assert_int_equal(bytes[7], 3);
    rmm_torch_free(ptr, sizeof(bytes), 0, NULL);
    assert_ok(rmm_stream_destroy(far));
    drop(0, pool);
}

TEST_CASE(recording_without_host_memory_says_so)
{
    rmm_resource_t *pool = set_pool(0, 0);
    void *ptr = rmm_torch_malloc(1000, 0, NULL);
    bool struck = true;

    for (uint64_t nth = 1; struck; nth++) {
        rmm__host_memory_fail(nth);
        rmm_torch_record_stream(ptr, RMM_STREAM_PER_THREAD);
        struck = rmm__host_memory_fail_struck();
        rmm__host_memory_fail(0);
        if (struck) {
            assert_non_null(strstr(rmm_last_error_message(), "out of host memory"));
        }
    }
    rmm_torch_free(ptr, 1000, 0, NULL);
    drop(0, pool);
}
