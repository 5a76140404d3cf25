/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and pools of them: RMM's cases of cuda_stream and cuda_stream_pool, and threads
 * that take from one pool.
 */
#include "sim/pool/pool_harness.h"

#include <pthread.h>
#include <stdio.h>

#include "core/host_memory.h"
#include "driver/sim/control.h"

enum { COUNT = 16, THREADS = 4, TURNS = 400 };

static rmm_stream_pool_t *make_stream_pool(size_t count, uint32_t flags)
{
    rmm_stream_pool_t *pool = NULL;

    assert_ok(rmm_stream_pool_create(count, flags, &pool));
    assert_non_null(pool);
    return pool;
}

static uint32_t flags_of(rmm_stream_t stream)
{
    uint32_t flags = ~0u;

    assert_cuda(sim_driver()->stream_flags(stream, &flags));
    return flags;
}

/* --- streams ---------------------------------------------------------------------- */

TEST_CASE(streams_are_equal_only_to_themselves)
{
    rmm_stream_t one = make_stream(0);
    rmm_stream_t two = make_stream(0);

    assert_ptr_not_equal(one, two);
    assert_false(rmm_stream_is_default(one));
    assert_false(rmm_stream_is_per_thread_default(one));
    assert_true(rmm_stream_is_default(RMM_STREAM_LEGACY));
    assert_true(rmm_stream_is_default(RMM_STREAM_DEFAULT));
    assert_true(rmm_stream_is_per_thread_default(RMM_STREAM_PER_THREAD));
    assert_ok(rmm_stream_destroy(one));
    assert_ok(rmm_stream_destroy(two));
}

TEST_CASE(a_stream_has_the_flags_it_was_created_with)
{
    const uint32_t flags[] = {0, RMM_STREAM_NON_BLOCKING};

    for (size_t i = 0; i < 2; i++) {
        rmm_stream_t stream;

        assert_ok(rmm_stream_create(flags[i], &stream));
        assert_int_equal(flags_of(stream), flags[i]);
        assert_ok(rmm_stream_destroy(stream));
    }
}

TEST_CASE(a_blocking_stream_waits_for_the_default_stream)
{
    for (unsigned seed = 1; seed <= 50; seed++) {
        journal_t *journal = test_calloc(1, sizeof(*journal));
        rmm_stream_t stream;

        rmm__sim_reseed(seed);
        assert_ok(rmm_stream_create(0, &stream));
        assert_cuda(launch_mark(journal, 1, RMM_STREAM_LEGACY));
        assert_cuda(launch_mark(journal, 2, stream));
        assert_ok(rmm_stream_synchronize(stream));
        assert_order(journal, 1, 2);
        assert_ok(rmm_stream_destroy(stream));
        test_free(journal);
    }
}

TEST_CASE(synchronize_waits_for_the_default_streams_as_well)
{
    const rmm_stream_t streams[] = {NULL, RMM_STREAM_LEGACY, RMM_STREAM_PER_THREAD};

    for (int i = 0; i < 3; i++) {
        journal_t *journal = test_calloc(1, sizeof(*journal));

        assert_cuda(launch_mark(journal, i, streams[i]));
        assert_ok(rmm_stream_synchronize(streams[i]));
        assert_int_equal(journal->count, 1);
        assert_ok(rmm_stream_destroy(streams[i])); /* ignored */
        test_free(journal);
    }
}

TEST_CASE(a_destroyed_stream_is_an_error_and_no_crash)
{
    rmm_stream_t stream;
    uint64_t before = rmm_sim_violations();

    assert_ok(rmm_stream_create(0, &stream));
    assert_ok(rmm_stream_destroy(stream));
    assert_int_equal(rmm_stream_synchronize(stream), RMM_ERR_CUDA);
    assert_int_equal(rmm_last_cuda_error(), RMM_DRIVER_INVALID_HANDLE);
    assert_int_equal(rmm_stream_destroy(stream), RMM_ERR_CUDA);
    assert_int_equal(rmm_sim_violations(), before + 2);
}

TEST_CASE(refuses_unknown_stream_flags)
{
    rmm_stream_t mark = RMM_STREAM_PER_THREAD;
    rmm_stream_t stream = mark;

    assert_int_equal(rmm_stream_create(4, &stream), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_stream_create(0, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_ptr_equal(stream, mark);
}

/* --- pools ------------------------------------------------------------------------ */

TEST_CASE(zero_size_pool_is_refused)
{
    rmm_stream_pool_t *pool = NULL;

    assert_int_equal(rmm_stream_pool_create(0, 0, &pool), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_stream_pool_create(4, 0x80, &pool), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_stream_pool_create(SIZE_MAX / 8 + 1, 0, &pool), RMM_ERR_OUT_OF_HOST_MEMORY);
    assert_string_equal(
        rmm_last_error_message(), "no host memory for 18446744073709551615 bytes");
    assert_null(pool);
    assert_int_equal(rmm_stream_pool_create(4, 0, NULL), RMM_ERR_INVALID_ARGUMENT);
    rmm_stream_pool_destroy(NULL);
}

TEST_CASE(streams_of_a_pool_are_unequal_and_not_the_default)
{
    rmm_stream_pool_t *pool =
        make_stream_pool(RMM_STREAM_POOL_DEFAULT_COUNT, RMM_STREAM_NON_BLOCKING);
    rmm_stream_t streams[COUNT];

    assert_int_equal(rmm_stream_pool_size(pool), COUNT);
    for (int i = 0; i < COUNT; i++) {
        streams[i] = rmm_stream_pool_get(pool);
        assert_false(rmm_stream_is_default(streams[i]));
        assert_false(rmm_stream_is_per_thread_default(streams[i]));
        for (int j = 0; j < i; j++) {
            assert_ptr_not_equal(streams[i], streams[j]);
        }
    }
    assert_ptr_equal(rmm_stream_pool_get(pool), streams[0]);
    rmm_stream_pool_destroy(pool);
}

TEST_CASE(streams_of_a_pool_are_valid)
{
    rmm_stream_pool_t *pool = make_stream_pool(COUNT, 0);
    rmm_resource_t *mr = make_pool(0, 0);

    for (int i = 0; i < COUNT; i++) {
        rmm_stream_t stream = rmm_stream_pool_get(pool);
        rmm_device_buffer_t buffer;

        assert_ok(rmm_device_buffer_init(&buffer, 1000, stream, mr));
        launch_fill(rmm_device_buffer_data(&buffer), 1000, 7, stream);
        rmm_device_buffer_fini(&buffer);
        assert_ok(rmm_stream_synchronize(stream));
    }
    rmm_resource_release(mr);
    rmm_stream_pool_destroy(pool);
}

TEST_CASE(an_index_counts_modulo_the_size)
{
    rmm_stream_pool_t *pool = make_stream_pool(5, 0);

    for (size_t i = 0; i < 5; i++) {
        rmm_stream_t stream = rmm_stream_pool_get_at(pool, i);

        assert_ptr_equal(rmm_stream_pool_get_at(pool, i), stream);
        assert_ptr_equal(rmm_stream_pool_get_at(pool, i + 5), stream);
        assert_ptr_equal(rmm_stream_pool_get_at(pool, i + 5000), stream);
        if (i > 0) {
            assert_ptr_not_equal(rmm_stream_pool_get_at(pool, i - 1), stream);
        }
    }
    rmm_stream_pool_destroy(pool);
}

TEST_CASE(streams_of_a_pool_have_its_flags)
{
    const uint32_t flags[] = {0, RMM_STREAM_NON_BLOCKING};

    for (int f = 0; f < 2; f++) {
        rmm_stream_pool_t *pool = make_stream_pool(3, flags[f]);

        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(flags_of(rmm_stream_pool_get_at(pool, i)), flags[f]);
        }
        rmm_stream_pool_destroy(pool);
    }
}

TEST_CASE(a_pool_destroys_its_streams)
{
    rmm_stream_pool_t *pool = make_stream_pool(3, 0);
    rmm_stream_t stream = rmm_stream_pool_get_at(pool, 2);

    assert_ok(rmm_stream_synchronize(stream));
    rmm_stream_pool_destroy(pool);
    assert_int_equal(rmm_stream_synchronize(stream), RMM_ERR_CUDA);
}

typedef struct taker {
    rmm_stream_pool_t *pool;
    int taken[COUNT];
} taker_t;

static void *take_turns(void *argument)
{
    taker_t *taker = argument;

    for (int turn = 0; turn < TURNS; turn++) {
        rmm_stream_t stream = rmm_stream_pool_get(taker->pool);

        for (size_t i = 0; i < COUNT; i++) {
            taker->taken[i] += rmm_stream_pool_get_at(taker->pool, i) == stream;
        }
    }
    return NULL;
}

TEST_CASE(threads_share_a_pool_evenly)
{
    rmm_stream_pool_t *pool = make_stream_pool(COUNT, 0);
    taker_t takers[THREADS] = {{pool, {0}}, {pool, {0}}, {pool, {0}}, {pool, {0}}};
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, &takers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (int i = 0; i < COUNT; i++) {
        int taken = 0;

        for (int t = 0; t < THREADS; t++) {
            taken += takers[t].taken[i];
        }
        assert_int_equal(taken, THREADS * TURNS / COUNT);
    }
    rmm_stream_pool_destroy(pool);
}

/* Streams that a failed creation left behind would be a leak for the sanitizer. */
TEST_CASE(a_failed_creation_leaves_nothing)
{
    rmm_stream_pool_t *pool = NULL;
    char plan[32];

    for (int nth = 1; nth <= 5; nth++) {
        snprintf(plan, sizeof(plan), "stream_create:%d", nth);
        assert_true(rmm_sim_fail(plan));
        assert_int_equal(rmm_stream_pool_create(5, 0, &pool), RMM_ERR_CUDA);
        assert_null(pool);
    }
    assert_true(rmm_sim_fail(NULL));
    for (uint64_t nth = 1; nth <= 2; nth++) {
        rmm__host_memory_fail(nth);
        assert_int_equal(
            rmm_stream_pool_create(5, 0, &pool), RMM_ERR_OUT_OF_HOST_MEMORY);
        assert_null(pool);
    }
    rmm__host_memory_fail(0);
}
