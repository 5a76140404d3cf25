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
#include "harness/in_child.h"

static rmm_resource_t *set_pool(int device, uint64_t maximum_bytes)
{
    rmm_resource_t *pool;

    assert_cuda(rmm_sim_set_device(device));
    pool = make_pool(0, maximum_bytes);
    assert_cuda(rmm_sim_set_device(0));
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

static void serves_from_the_default_of_the_device(void **state)
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

static void no_bytes_are_null_and_cost_nothing(void **state)
{
    rmm_resource_t *pool = set_pool(0, 0);

    assert_null(rmm_torch_malloc(0, 0, NULL));
    rmm_torch_free(NULL, 0, 0, NULL);
    assert_int_equal(stats_of(pool).total_count, 0);
    drop(0, pool);
}

static void frees_to_where_it_came_from(void **state)
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

static void leaves_a_strange_pointer_alone(void **state)
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

static void a_failure_is_null_with_the_reason(void **state)
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
static void a_failure_costs_nothing(void **state)
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

static void every_request_for_host_memory_may_fail(void **state)
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

static void threads_may_use_it_at_once(void **state)
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
static void a_forked_child_may_free_and_is_refused(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_from_the_default_of_the_device),
        cmocka_unit_test(no_bytes_are_null_and_cost_nothing),
        cmocka_unit_test(frees_to_where_it_came_from),
        cmocka_unit_test(leaves_a_strange_pointer_alone),
        cmocka_unit_test(a_failure_costs_nothing),
        cmocka_unit_test(a_failure_is_null_with_the_reason),
        cmocka_unit_test(every_request_for_host_memory_may_fail),
        cmocka_unit_test(threads_may_use_it_at_once),
        cmocka_unit_test(a_forked_child_may_free_and_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
