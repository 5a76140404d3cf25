/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limiting adaptor: RMM's cases by name, and that a refused request never takes the
 * place of one that fits.
 */
#include "sim/adaptors/adaptor_harness.h"

#include <pthread.h>

#define THREADS 4

static rmm_resource_t *make_limiting(rmm_resource_t *upstream, uint64_t limit_bytes)
{
    rmm_limiting_options_t options = RMM_LIMITING_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.limit_bytes = limit_bytes;
    assert_ok(rmm_limiting_adaptor_create(upstream, &options, &mr));
    rmm_resource_release(upstream);
    return mr;
}

static uint64_t allocated(const rmm_resource_t *mr)
{
    uint64_t bytes = UINT64_MAX;

    assert_ok(rmm_limiting_get_allocated(mr, &bytes));
    return bytes;
}

static void assert_refuses(rmm_resource_t *mr, size_t bytes)
{
    void *mark = &mark;
    void *ptr = mark;

    assert_int_equal(
        rmm_resource_alloc(mr, bytes, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_ptr_equal(ptr, mark);
}

TEST_CASE(refuses_what_is_too_big)
{
    rmm_resource_t *mr = make_limiting(make_cuda(), 5 * MIB);

    assert_refuses(mr, 5 * MIB + 1);
    assert_non_null(strstr(rmm_last_error_message(), "limit of 5242880 bytes"));
    assert_non_null(strstr(
        rmm_last_error_message(), "5242881 requested (rounded up to 5243136), 0 "));
    assert_int_equal(stats_of(mr).oom_count, 1);
    assert_refuses(mr, (size_t)PTRDIFF_MAX);
    give(mr, take(mr, 5 * MIB, NULL), 5 * MIB, NULL);
    end_adaptor(mr);
}

TEST_CASE(takes_nothing_when_upstream_fails)
{
    rmm_resource_t *inner = make_limiting(make_cuda(), 2 * MIB);
    rmm_resource_t *mr = make_limiting(rmm_resource_retain(inner), 5 * MIB);

    assert_refuses(mr, 4 * MIB);
    assert_int_equal(allocated(mr), 0);
    assert_int_equal(allocated(inner), 0);
    assert_int_equal(stats_of(mr).oom_count, 1);
    assert_int_equal(stats_of(inner).oom_count, 1);
    rmm_resource_release(inner);
    end_adaptor(mr);
}

TEST_CASE(stays_under_the_limit_due_to_frees)
{
    rmm_resource_t *mr = make_limiting(make_cuda(), 10 * MIB);
    uint64_t limit = 0;
    void *first, *second, *third;

    assert_ok(rmm_limiting_get_limit(mr, &limit));
    assert_int_equal(limit, 10 * MIB);
    first = take(mr, 4 * MIB, NULL);
    assert_int_equal(allocated(mr), 4 * MIB);
    second = take(mr, 4 * MIB, NULL);
    assert_int_equal(allocated(mr), 8 * MIB);
    give(mr, first, 4 * MIB, NULL);
    assert_int_equal(allocated(mr), 4 * MIB);
    third = take(mr, 6 * MIB, NULL);
    assert_int_equal(allocated(mr), 10 * MIB);
    give(mr, second, 4 * MIB, NULL);
    give(mr, third, 6 * MIB, NULL);
    assert_int_equal(allocated(mr), 0);
    end_adaptor(mr);
}

TEST_CASE(refuses_what_comes_over_the_limit)
{
    rmm_resource_t *mr = make_limiting(make_cuda(), 10 * MIB);
    void *first = take(mr, 4 * MIB, NULL);
    void *second = take(mr, 4 * MIB, NULL);

    assert_refuses(mr, 3 * MIB);
    assert_int_equal(allocated(mr), 8 * MIB);
    give(mr, first, 4 * MIB, NULL);
    give(mr, second, 4 * MIB, NULL);
    end_adaptor(mr);
}

TEST_CASE(counts_sizes_rounded_up)
{
    rmm_limiting_options_t options = RMM_LIMITING_OPTIONS_INIT;
    rmm_resource_t *mr = make_limiting(make_cuda(), 1000);
    rmm_resource_t *cuda = make_cuda();
    void *ptr = take(mr, 1, NULL);

    assert_int_equal(allocated(mr), 256);
    assert_int_equal(stats_of(mr).current_bytes, 1); /* the accounting: as requested */
    assert_refuses(mr, 513);                         /* 768, 1000 are the limit */
    give(mr, ptr, 1, NULL);
    assert_refuses(mr, 1000); /* 1024 */
    end_adaptor(mr);

    options.limit_bytes = 1000;
    options.alignment_bytes = 1;
    assert_ok(rmm_limiting_adaptor_create(cuda, &options, &mr));
    ptr = take(mr, 1000, NULL);
    assert_int_equal(allocated(mr), 1000);
    give(mr, ptr, 1000, NULL);
    rmm_resource_release(cuda);
    end_adaptor(mr);
}

TEST_CASE(refuses_options_that_cannot_be)
{
    rmm_limiting_options_t options = RMM_LIMITING_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr = NULL;
    uint64_t bytes;

    assert_int_equal(
        rmm_limiting_adaptor_create(cuda, NULL, &mr), RMM_ERR_INVALID_ARGUMENT);
    options.limit_bytes = 1;
    options.alignment_bytes = 768;
    assert_int_equal(
        rmm_limiting_adaptor_create(cuda, &options, &mr), RMM_ERR_INVALID_ALIGNMENT);
    options.alignment_bytes = 2 * RMM_ALIGN_MAX;
    assert_int_equal(
        rmm_limiting_adaptor_create(cuda, &options, &mr), RMM_ERR_INVALID_ALIGNMENT);
    assert_null(mr);
    assert_int_equal(
        rmm_limiting_get_allocated(cuda, &bytes), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_limiting_get_limit(NULL, &bytes), RMM_ERR_INVALID_ARGUMENT);
    rmm_resource_release(cuda);
}

TEST_CASE(a_limit_of_zero_lets_nothing_through)
{
    rmm_resource_t *mr = make_limiting(make_cuda(), 0);
    uint64_t bytes;
    void *ptr = &ptr;

    assert_refuses(mr, 1);
    assert_ok(rmm_resource_alloc(mr, 0, 0, NULL, &ptr));
    assert_null(ptr);
    rmm_resource_dealloc(mr, NULL, 0, 0, NULL);
    assert_ok(rmm_limiting_get_limit(mr, &bytes));
    assert_int_equal(bytes, 0);
    assert_ok(rmm_limiting_get_alignment(mr, &bytes));
    assert_int_equal(bytes, 256);
    end_adaptor(mr);
}

TEST_CASE(keeps_its_count_when_a_free_is_refused)
{
    rmm_resource_t *mr = make_limiting(make_cuda(), 1 * MIB);
    char *ptr = take(mr, 1000, NULL);

    give(mr, ptr + 256, 1000, NULL);
    give(mr, ptr, 999, NULL);
    assert_int_equal(allocated(mr), 1024);
    assert_int_equal(stats_of(mr).current_bytes, 1000);
    assert_int_equal(stats_of(mr).invalid_free_count, 2);
    assert_int_equal(location_bytes(), 1000);
    give(mr, ptr, 1000, NULL);
    assert_int_equal(allocated(mr), 0);
    rmm_resource_release(mr);
}

TEST_CASE(frees_blocks_of_its_upstream_down_to_nothing)
{
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr = make_limiting(rmm_resource_retain(cuda), 2 * MIB);
    void *own = take(mr, 1 * MIB, NULL);
    void *other = take(cuda, 3 * MIB, NULL);

    give(mr, other, 3 * MIB, NULL);
    assert_int_equal(allocated(mr), 0); /* and not 2^64 less 2 MiB */
    give(mr, own, 1 * MIB, NULL);
    give(mr, take(mr, 2 * MIB, NULL), 2 * MIB, NULL);
    assert_int_equal(location_bytes(), 0);
    rmm_resource_release(mr);
    rmm_resource_release(cuda);
}

/* --- threads ------------------------------------------------------------------------ */

typedef struct worker {
    rmm_resource_t *mr;
    size_t bytes;
    uint64_t refused;
    pthread_t thread;
} worker_t;

static void *take_and_give(void *argument)
{
    worker_t *worker = argument;

    for (int round = 0; round < 2000; round++) {
        void *ptr;

        if (rmm_resource_alloc(worker->mr, worker->bytes, 0, NULL, &ptr) == RMM_OK) {
            rmm_resource_dealloc(worker->mr, ptr, worker->bytes, 0, NULL);
        } else {
            worker->refused++;
        }
    }
    return NULL;
}

/* Room for each thread that stays within it; one that asks for more never gets it, and
 * never disturbs the others, as adding first and taking back afterwards would. */
TEST_CASE(lets_no_refusal_hurt_a_bystander)
{
    rmm_resource_t *mr = make_limiting(make_pool(0, 0), 3 * 4096);
    worker_t workers[THREADS];

    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){mr, i < 3 ? 4096 : 4 * 4096, 0, 0};
        assert_int_equal(
            pthread_create(&workers[i].thread, NULL, take_and_give, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_int_equal(workers[i].refused, i < 3 ? 0 : 2000);
    }
    assert_int_equal(allocated(mr), 0);
    end_adaptor(mr);
}
