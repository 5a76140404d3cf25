/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statistics adaptor: RMM's cases by name with RMM's figures, and scopes per thread,
 * which RMM does not have.
 */
#include "sim/adaptors/adaptor_harness.h"

#include <pthread.h>

#define THREADS 4

static rmm_resource_t *make_statistics(rmm_resource_t *upstream)
{
    rmm_resource_t *mr;

    assert_ok(rmm_statistics_adaptor_create(upstream, NULL, &mr));
    rmm_resource_release(upstream);
    return mr;
}

static rmm_stats_t figures(rmm_resource_t *mr)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    assert_ok(rmm_statistics_get(mr, &stats));
    return stats;
}

static rmm_stats_t push(rmm_resource_t *mr)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    assert_ok(rmm_statistics_push(mr, &stats));
    return stats;
}

static rmm_stats_t pop(rmm_resource_t *mr)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    assert_ok(rmm_statistics_pop(mr, &stats));
    return stats;
}

static void
assert_bytes(const rmm_stats_t *stats, int64_t now, int64_t peak, int64_t total)
{
    assert_int_equal(rmm_stats_difference(stats->current_bytes), now);
    assert_int_equal(stats->peak_bytes, peak);
    assert_int_equal(stats->total_bytes, total);
}

static void
assert_counts(const rmm_stats_t *stats, int64_t now, int64_t peak, int64_t total)
{
    assert_int_equal(rmm_stats_difference(stats->current_count), now);
    assert_int_equal(stats->peak_count, peak);
    assert_int_equal(stats->total_count, total);
}

#define M(n) ((int64_t)(n) * (int64_t)MIB)

/* --- the first case: no thread has a number yet -------------------------------------- */

/* Threads are numbered, and so many share a place in the table. */
enum { NUMBERS = 64 };

static void *push_and_pop(void *mr)
{
    assert_ok(rmm_statistics_thread_push(mr, NULL));
    assert_ok(rmm_statistics_thread_pop(mr, NULL));
    return NULL;
}

static void *allocate_in_a_scope(void *mr)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    assert_ok(rmm_statistics_thread_push(mr, NULL));
    give(mr, take(mr, 100, NULL), 100, NULL);
    assert_ok(rmm_statistics_thread_get(mr, &stats));
    assert_int_equal(stats.total_bytes, 100);
    return NULL; /* and leaves its scope there */
}

TEST_CASE(threads_of_one_place_have_scopes_of_their_own)
{
    rmm_resource_t *mr = make_statistics(make_cuda());
    rmm_stats_t stats = RMM_STATS_INIT;
    pthread_t thread;

    assert_ok(rmm_statistics_thread_push(mr, NULL));
    for (int i = 0; i < NUMBERS; i++) {
        assert_int_equal(
            pthread_create(
                &thread, NULL, i < NUMBERS - 1 ? push_and_pop : allocate_in_a_scope,
                mr),
            0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    assert_ok(rmm_statistics_thread_get(mr, &stats));
    assert_int_equal(stats.total_bytes, 0);
    assert_ok(rmm_statistics_thread_pop(mr, NULL));
    end_adaptor(mr);
}

/* --- figures and scopes ----------------------------------------------------------- */

TEST_CASE(is_empty_at_first)
{
    rmm_resource_t *mr = make_statistics(make_cuda());
    rmm_stats_t stats = figures(mr);

    assert_bytes(&stats, 0, 0, 0);
    assert_counts(&stats, 0, 0, 0);
    end_adaptor(mr);
}

TEST_CASE(is_empty_again_when_all_is_freed)
{
    rmm_resource_t *mr = make_statistics(make_cuda());
    void *blocks[10];
    rmm_stats_t stats;

    for (size_t i = 0; i < 10; i++) {
        blocks[i] = take(mr, 10 * MIB, NULL);
    }
    for (size_t i = 0; i < 10; i++) {
        give(mr, blocks[i], 10 * MIB, NULL);
    }
    stats = figures(mr);
    assert_bytes(&stats, 0, M(100), M(100));
    assert_counts(&stats, 0, 10, 10);
    end_adaptor(mr);
}

TEST_CASE(knows_peak_allocations)
{
    rmm_resource_t *mr = make_statistics(make_cuda());
    void *blocks[20];
    rmm_stats_t stats;

    for (size_t i = 0; i < 10; i++) {
        blocks[i] = take(mr, 10 * MIB, NULL);
    }
    for (size_t i = 0; i < 5; i++) {
        give(mr, blocks[i], 10 * MIB, NULL);
    }
    stats = figures(mr);
    assert_bytes(&stats, M(50), M(100), M(100));
    assert_counts(&stats, 5, 10, 10);
    for (size_t i = 10; i < 20; i++) {
        blocks[i] = take(mr, 10 * MIB, NULL);
    }
    for (size_t i = 5; i < 20; i++) {
        give(mr, blocks[i], 10 * MIB, NULL);
    }
    stats = figures(mr);
    assert_bytes(&stats, 0, M(150), M(200));
    assert_counts(&stats, 0, 15, 20);
    end_adaptor(mr);
}

TEST_CASE(tracks_at_several_levels)
{
    rmm_resource_t *outer = make_statistics(make_cuda());
    rmm_resource_t *inner;
    rmm_stats_t stats;
    void *blocks[15];

    for (size_t i = 0; i < 10; i++) {
        blocks[i] = take(outer, 10 * MIB, NULL);
    }
    inner = make_statistics(rmm_resource_retain(outer));
    for (size_t i = 10; i < 15; i++) {
        blocks[i] = take(inner, 10 * MIB, NULL);
    }
    stats = figures(outer);
    assert_bytes(&stats, M(150), M(150), M(150));
    stats = figures(inner);
    assert_bytes(&stats, M(50), M(50), M(50));
    assert_counts(&stats, 5, 5, 5);
    assert_int_equal(location_bytes(), M(150)); /* once, however many adaptors */
    for (size_t i = 0; i < 15; i++) {
        give(i < 10 ? outer : inner, blocks[i], 10 * MIB, NULL);
    }
    stats = figures(inner);
    assert_bytes(&stats, 0, M(50), M(50));
    rmm_resource_release(inner);
    stats = figures(outer);
    assert_bytes(&stats, 0, M(150), M(150));
    assert_counts(&stats, 0, 15, 15);
    end_adaptor(outer);
}

TEST_CASE(goes_below_zero_in_inner_tracking)
{
    rmm_resource_t *outer = make_statistics(make_cuda());
    rmm_resource_t *inner = make_statistics(rmm_resource_retain(outer));
    rmm_stats_t stats;
    void *blocks[10];

    for (size_t i = 0; i < 10; i++) {
        blocks[i] = take(outer, 10 * MIB, NULL);
    }
    for (size_t i = 0; i < 10; i++) {
        give(inner, blocks[i], 10 * MIB, NULL);
    }
    stats = figures(inner);
    assert_bytes(&stats, M(-100), 0, 0);
    assert_counts(&stats, -10, 0, 0);
    stats = stats_of(inner); /* what /rmm shows knows nothing below none */
    assert_bytes(&stats, 0, 0, 0);
    assert_counts(&stats, 0, 0, 0);
    (void)take(inner, 110 * MIB, NULL);
    stats = stats_of(inner);
    assert_bytes(&stats, M(10), M(10), M(110));
    rmm_resource_release(inner);
    rmm_resource_release(outer);
}

TEST_CASE(nests_scopes_as_rmm)
{
    rmm_resource_t *mr = make_statistics(make_cuda());
    void *first = take(mr, 10 * MIB, NULL);
    void *second, *third;
    rmm_stats_t stats = push(mr);

    assert_bytes(&stats, M(10), M(10), M(10));
    second = take(mr, 30 * MIB, NULL);
    give(mr, second, 30 * MIB, NULL);
    second = take(mr, 5 * MIB, NULL);
    stats = push(mr);
    assert_bytes(&stats, M(5), M(30), M(35));
    assert_counts(&stats, 1, 1, 2);
    third = take(mr, 40 * MIB, NULL);
    give(mr, first, 10 * MIB, NULL);
    stats = figures(mr);
    assert_bytes(&stats, M(30), M(40), M(40));
    assert_counts(&stats, 0, 1, 1);
    give(mr, third, 40 * MIB, NULL);
    stats = pop(mr);
    assert_bytes(&stats, M(-10), M(40), M(40));
    assert_counts(&stats, -1, 1, 1);
    stats = figures(mr); /* the scope around it has risen with it */
    assert_bytes(&stats, M(-5), M(45), M(75));
    assert_counts(&stats, 0, 2, 3);
    stats = pop(mr);
    assert_bytes(&stats, M(-5), M(45), M(75));
    stats = figures(mr);
    assert_bytes(&stats, M(5), M(55), M(85));
    assert_counts(&stats, 1, 3, 4);
    assert_int_equal(rmm_statistics_pop(mr, &stats), RMM_ERR_OUT_OF_RANGE);
    assert_bytes(&stats, M(5), M(55), M(85)); /* untouched */
    give(mr, second, 5 * MIB, NULL);
    end_adaptor(mr);
}

TEST_CASE(counts_nothing_of_no_bytes_as_one)
{
    rmm_resource_t *mr = make_statistics(make_cuda());
    rmm_stats_t stats;
    void *ptr;

    assert_ok(rmm_resource_alloc(mr, 0, 0, NULL, &ptr));
    stats = figures(mr);
    assert_counts(&stats, 1, 1, 1);
    rmm_resource_dealloc(mr, NULL, 0, 0, NULL);
    stats = figures(mr);
    assert_counts(&stats, 0, 1, 1);
    end_adaptor(mr);
}

TEST_CASE(counts_no_failure)
{
    mock_t *mock = make_mock();
    rmm_resource_t *mr = make_statistics(&mock->base);
    rmm_stats_t stats;
    void *ptr = NULL;

    mock->failures = 1;
    assert_ok(rmm_statistics_push(mr, NULL));
    assert_ok(rmm_statistics_thread_push(mr, NULL));
    assert_int_equal(rmm_resource_alloc(mr, 9, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    ptr = take(mr, 1000, NULL);
    mock->refuses_frees = true;
    give(mr, ptr, 1000, NULL);
    mock->refuses_frees = false;
    stats = figures(mr);
    assert_bytes(&stats, 1000, 1000, 1000);
    assert_counts(&stats, 1, 1, 1);
    assert_ok(rmm_statistics_thread_pop(mr, &stats));
    assert_bytes(&stats, 1000, 1000, 1000);
    assert_int_equal(stats_of(mr).oom_count, 1);
    assert_int_equal(stats_of(mr).invalid_free_count, 1);
    give(mr, ptr, 1000, NULL);
    rmm_resource_release(mr);
}

TEST_CASE(fills_no_more_than_the_caller_knows)
{
    rmm_resource_t *mr = make_statistics(make_cuda());
    rmm_stats_t stats = RMM_STATS_INIT;
    rmm_resource_t *cuda = make_cuda();

    stats.struct_size = offsetof(rmm_stats_t, peak_bytes);
    stats.peak_bytes = 77;
    give(mr, take(mr, 5, NULL), 5, NULL);
    assert_ok(rmm_statistics_get(mr, &stats));
    assert_int_equal(stats.peak_bytes, 77);
    stats.struct_size = 0;
    assert_int_equal(rmm_statistics_get(mr, &stats), RMM_ERR_INVALID_ARGUMENT);
    stats.struct_size = sizeof(stats);
    assert_int_equal(rmm_statistics_get(cuda, &stats), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_statistics_get(NULL, &stats), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_statistics_get(mr, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_statistics_push(cuda, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_statistics_pop(cuda, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_statistics_thread_get(cuda, &stats), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_statistics_thread_push(cuda, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_statistics_thread_pop(cuda, NULL), RMM_ERR_INVALID_ARGUMENT);
    rmm_resource_release(cuda);
    end_adaptor(mr);
}

/* --- threads ------------------------------------------------------------------------ */

typedef struct worker {
    rmm_resource_t *mr;
    size_t bytes;
    rmm_stats_t inner, outer;
    int failures;
} worker_t;

static void note(worker_t *worker, bool holds)
{
    worker->failures += !holds;
}

static void use_a_block(worker_t *worker, size_t bytes)
{
    void *ptr;
    bool got = rmm_resource_alloc(worker->mr, bytes, 0, NULL, &ptr) == RMM_OK;

    note(worker, got);
    if (got) {
        rmm_resource_dealloc(worker->mr, ptr, bytes, 0, NULL);
    }
}

/* Each thread with its own figures, however they interleave. */
static void *count_in_scopes(void *argument)
{
    worker_t *worker = argument;

    worker->inner = (rmm_stats_t)RMM_STATS_INIT;
    worker->outer = (rmm_stats_t)RMM_STATS_INIT;
    note(worker, rmm_statistics_thread_push(worker->mr, NULL) == RMM_OK);
    for (int round = 0; round < 50; round++) {
        use_a_block(worker, worker->bytes);
    }
    note(worker, rmm_statistics_thread_push(worker->mr, NULL) == RMM_OK);
    for (int round = 0; round < 50; round++) {
        use_a_block(worker, 2 * worker->bytes);
    }
    note(worker, rmm_statistics_thread_pop(worker->mr, &worker->inner) == RMM_OK);
    note(worker, rmm_statistics_thread_pop(worker->mr, &worker->outer) == RMM_OK);
    note(worker, rmm_statistics_thread_pop(worker->mr, NULL) == RMM_ERR_OUT_OF_RANGE);
    return NULL;
}

TEST_CASE(keeps_the_scopes_of_threads_apart)
{
    rmm_resource_t *mr = make_statistics(make_pool(0, 0));
    worker_t workers[THREADS];
    pthread_t threads[THREADS];
    rmm_stats_t stats;
    int64_t total = 0;

    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){.mr = mr, .bytes = 1000 * (i + 1)};
        assert_int_equal(
            pthread_create(&threads[i], NULL, count_in_scopes, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        int64_t bytes = 1000 * ((int64_t)i + 1);

        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].failures, 0);
        assert_bytes(&workers[i].inner, 0, 2 * bytes, 100 * bytes);
        assert_counts(&workers[i].inner, 0, 1, 50);
        assert_bytes(&workers[i].outer, 0, 2 * bytes, 150 * bytes);
        assert_counts(&workers[i].outer, 0, 1, 100);
        total += 150 * bytes;
    }
    stats = figures(mr);
    assert_int_equal(stats.total_bytes, total);
    assert_int_equal(stats.current_bytes, 0);
    end_adaptor(mr);
}

static void *use_blocks(void *argument)
{
    worker_t *worker = argument;

    for (int round = 0; round < 500; round++) {
        use_a_block(worker, worker->bytes);
    }
    return NULL;
}

/* Scopes come and go; nothing that passed is lost between them, or counted in two. */
TEST_CASE(pushes_and_pops_while_others_allocate)
{
    rmm_resource_t *mr = make_statistics(make_pool(0, 0));
    worker_t workers[THREADS];
    pthread_t threads[THREADS];
    uint64_t in_scopes = 0;
    rmm_stats_t stats;

    push(mr);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){.mr = mr, .bytes = 1000};
        assert_int_equal(pthread_create(&threads[i], NULL, use_blocks, &workers[i]), 0);
    }
    for (int round = 0; round < 200; round++) {
        push(mr);
        stats = pop(mr);
        assert_int_equal(stats.total_bytes, 1000 * stats.total_count);
        in_scopes += stats.total_count;
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].failures, 0);
    }
    stats = pop(mr);
    assert_int_equal(stats.total_count, THREADS * 500);
    assert_in_range(in_scopes, 0, THREADS * 500);
    assert_bytes(&stats, 0, (int64_t)stats.peak_bytes, THREADS * 500 * 1000);
    assert_in_range(stats.peak_bytes, 1000, THREADS * 1000);
    stats = figures(mr);
    assert_int_equal(stats.total_count, THREADS * 500);
    end_adaptor(mr);
}

static void *free_in_a_scope(void *argument)
{
    worker_t *worker = argument;
    void *ptr = (void *)(uintptr_t)worker->outer.peak_bytes;

    worker->inner = (rmm_stats_t)RMM_STATS_INIT;
    note(worker, rmm_statistics_thread_push(worker->mr, NULL) == RMM_OK);
    rmm_resource_dealloc(worker->mr, ptr, worker->bytes, 0, NULL);
    note(worker, rmm_statistics_thread_get(worker->mr, &worker->inner) == RMM_OK);
    return NULL; /* leaves its scope behind: the adaptor's end takes it along */
}

TEST_CASE(counts_a_free_in_the_scope_of_the_thread_that_frees)
{
    rmm_resource_t *mr = make_statistics(make_cuda());
    worker_t worker = {.mr = mr, .bytes = 1000};
    rmm_stats_t stats = RMM_STATS_INIT;
    pthread_t thread;

    assert_int_equal(rmm_statistics_thread_get(mr, &stats), RMM_ERR_OUT_OF_RANGE);
    assert_ok(rmm_statistics_thread_push(mr, &stats));
    assert_bytes(&stats, 0, 0, 0);
    worker.outer.peak_bytes = (uintptr_t)take(mr, 1000, NULL);
    assert_int_equal(pthread_create(&thread, NULL, free_in_a_scope, &worker), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(worker.failures, 0);
    assert_bytes(&worker.inner, -1000, 0, 0);
    assert_counts(&worker.inner, -1, 0, 0);
    assert_ok(rmm_statistics_thread_pop(mr, &stats));
    assert_bytes(&stats, 1000, 1000, 1000);
    end_adaptor(mr);
}

/* RMM's MultiThreaded: as if the deallocation had come first, which it had. */
TEST_CASE(counts_down_before_a_block_can_be_reused)
{
    mock_t *mock = make_mock();
    rmm_resource_t *mr = make_statistics(&mock->base);
    reuse_t reuse = {mr, 1000, NULL};
    rmm_stats_t stats;
    void *ptr;

    mock->address = 4096;
    mock->freed = reuse_on_another_thread;
    mock->argument = &reuse;
    ptr = take(mr, 1000, NULL);
    give(mr, ptr, 1000, NULL);
    assert_ptr_equal(reuse.ptr, ptr);
    give(mr, ptr, 1000, NULL);
    stats = figures(mr);
    assert_bytes(&stats, 0, 1000, 2000);
    assert_counts(&stats, 0, 1, 2);
    end_adaptor(mr);
}

TEST_CASE(survives_failing_requests_for_host_memory)
{
    rmm_resource_t *mr = make_statistics(make_cuda());

    rmm__host_memory_fail(1);
    assert_int_equal(rmm_statistics_push(mr, NULL), RMM_ERR_OUT_OF_HOST_MEMORY);
    rmm__host_memory_fail(1);
    assert_int_equal(rmm_statistics_thread_push(mr, NULL), RMM_ERR_OUT_OF_HOST_MEMORY);
    rmm__host_memory_fail(0);
    assert_int_equal(rmm_statistics_pop(mr, NULL), RMM_ERR_OUT_OF_RANGE);
    assert_int_equal(rmm_statistics_thread_pop(mr, NULL), RMM_ERR_OUT_OF_RANGE);
    assert_ok(rmm_statistics_push(mr, NULL)); /* not popped: nothing is left behind */
    end_adaptor(mr);
}
