/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph capture. While one thread captures, allocations of another neither fail nor ruin
 * the capture, whatever rung of the ladder they need. What is freed on a capturing stream
 * is used again by every launch of the graph, so nobody else gets it.
 */
#include "sim/pool_harness.h"

#include <pthread.h>

enum { GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = 2 };

typedef struct errand {
    rmm_resource_t *pool;
    rmm_stream_t stream;
    void (*body)(struct errand *);
} errand_t;

static void *errand_main(void *argument)
{
    errand_t *errand = argument;

    errand->body(errand);
    return NULL;
}

/* Run body on another thread and wait for it. */
static void elsewhere(errand_t *errand)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, errand_main, errand), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void allocate_through_every_rung(errand_t *errand)
{
    void *ptr;

    for (int i = 0; i < 3; i++) {
        ptr = take(errand->pool, 512 * KIB, errand->stream); /* grows the first time */
        give(errand->pool, ptr, 512 * KIB, errand->stream);
        ptr = take(errand->pool, MIB, NULL); /* takes over, or synchronises */
        give(errand->pool, ptr, MIB, NULL);
    }
    assert_int_equal(
        rmm_resource_alloc(errand->pool, 2 * MIB, 0, NULL, &ptr),
        RMM_ERR_OUT_OF_MEMORY);
    assert_ok(rmm_resource_trim(errand->pool, 0));
}

static void keeps_another_threads_capture_whole_in_every_mode(void **state)
{
    rmm_stream_t capturing = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);

    (void)state;
    for (int mode = GLOBAL; mode <= RELAXED; mode++) {
        rmm_resource_t *pool = make_pool(0, MIB);
        errand_t errand = {pool, stream, allocate_through_every_rung};
        journal_t journal = {.count = 0};
        rmm_sim_graph_t graph;

        assert_cuda(rmm_sim_begin_capture(capturing, mode));
        assert_cuda(launch_mark(&journal, 1, capturing));
        elsewhere(&errand);
        assert_cuda(rmm_sim_end_capture(capturing, &graph));
        assert_cuda(rmm_sim_graph_launch(graph, stream));
        assert_cuda(rmm_sim_device_synchronize());
        assert_int_equal(journal.count, 1);
        assert_cuda(rmm_sim_graph_destroy(graph));
        rmm_resource_release(pool);
    }
    assert_cuda(sim_driver()->stream_destroy(capturing));
    assert_cuda(sim_driver()->stream_destroy(stream));
}

static void allocates_on_the_capturing_stream_itself(void **state)
{
    rmm_resource_t *pool = make_pool(0, 8 * MIB);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_sim_graph_t graph;
    void *first;
    void *second;

    (void)state;
    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    first = take(pool, MIB, stream); /* grows */
    give(pool, first, MIB, stream);
    second = take(pool, MIB, stream); /* its own again: the graph runs in order */
    assert_ptr_equal(first, second);
    give(pool, second, MIB, stream);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(pool);
}

/* The graph writes 7 into a block that was freed while it was captured. */
static rmm_sim_graph_t capture_with_a_block(rmm_resource_t *pool, rmm_stream_t stream)
{
    rmm_sim_graph_t graph;
    void *block;

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    block = take(pool, MIB, stream);
    launch_fill(block, MIB, 7, stream);
    give(pool, block, MIB, stream);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    return graph;
}

static void gives_nobody_else_what_a_graph_uses(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        rmm_resource_t *pool = make_pool(2 * MIB, 2 * MIB);
        rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
        rmm_stream_t other = make_stream(RMM_STREAM_NON_BLOCKING);
        rmm_sim_graph_t graph = capture_with_a_block(pool, stream);
        uint64_t mixups = 0;
        void *block;

        rmm_sim_reseed(seed);
        for (int i = 0; i < 4; i++) {
            rmm_stream_t user = i % 2 == 0 ? other : stream;

            block = take(pool, MIB, user);
            launch_fill(block, MIB, 1, user);
            assert_cuda(rmm_sim_graph_launch(graph, i % 2 == 0 ? stream : other));
            launch_check(block, MIB, 1, &mixups, user);
            give(pool, block, MIB, user);
        }
        assert_int_equal(
            rmm_resource_alloc(pool, 2 * MIB, 0, NULL, &block), RMM_ERR_OUT_OF_MEMORY);
        assert_cuda(rmm_sim_device_synchronize());
        assert_int_equal(mixups, 0);
        assert_cuda(rmm_sim_graph_destroy(graph));
        assert_cuda(sim_driver()->stream_destroy(stream));
        assert_cuda(sim_driver()->stream_destroy(other));
        rmm_resource_release(pool);
    }
}

/* A whole chunk, freed while the graph was captured: launching it writes there. */
static void keeps_what_a_graph_uses_when_trimmed(void **state)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_sim_graph_t graph = capture_with_a_block(pool, stream);

    (void)state;
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(stats_of(pool).reserved_bytes, MIB);
    assert_cuda(rmm_sim_graph_launch(graph, stream));
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(rmm_sim_violations(), 0);
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(pool);
}

/* Everything that the device has, in ever smaller blocks; how many. */
static int fill_device(void **blocks, int room)
{
    int count = 0;

    for (size_t bytes = (size_t)1 << 40; bytes >= 256; bytes /= 2) {
        while (count < room &&
               sim_driver()->mem_alloc(&blocks[count], bytes) == RMM_DRIVER_OK) {
            count++;
        }
    }
    assert_true(count < room);
    return count;
}

static void a_barrier_on_a_full_device_leaves_captures_whole(void **state)
{
    rmm_stream_t capturing = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_resource_t *pool = make_pool(MIB, 0);
    rmm_sim_graph_t graph;
    void *blocks[200];
    int count = fill_device(blocks, 200);

    (void)state;
    assert_cuda(rmm_sim_begin_capture(capturing, GLOBAL));
    for (int i = 0; i < 3; i++) { /* what is kept for this is kept again */
        assert_ok(rmm_resource_trim(pool, SIZE_MAX));
    }
    assert_cuda(rmm_sim_end_capture(capturing, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    while (count > 0) {
        assert_cuda(sim_driver()->mem_free(blocks[--count]));
    }
    assert_cuda(sim_driver()->stream_destroy(capturing));
    rmm_resource_release(pool);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_another_threads_capture_whole_in_every_mode),
        cmocka_unit_test(allocates_on_the_capturing_stream_itself),
        cmocka_unit_test(gives_nobody_else_what_a_graph_uses),
        cmocka_unit_test(keeps_what_a_graph_uses_when_trimmed),
        cmocka_unit_test(a_barrier_on_a_full_device_leaves_captures_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
