/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph capture. While one thread captures, allocations of another neither fail nor ruin
 * the capture, whatever step of the slow path they need. What is freed on a capturing stream
 * is used again by every launch of the graph, so nobody else gets it.
 */
#include "sim/pool/capture_harness.h"

#include <pthread.h>

#include "core/host_memory.h"
#include "driver/sim/control.h"

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

static void allocate_through_every_step(errand_t *errand)
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

TEST_CASE(keeps_another_threads_capture_whole_in_every_mode)
{
    rmm_stream_t capturing = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);

    for (int mode = GLOBAL; mode <= RELAXED; mode++) {
        rmm_resource_t *pool = make_pool(0, MIB);
        errand_t errand = {pool, stream, allocate_through_every_step};
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

TEST_CASE(allocates_on_the_capturing_stream_itself)
{
    rmm_resource_t *pool = make_pool(0, 8 * MIB);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_sim_graph_t graph;
    void *first;
    void *second;

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

TEST_CASE(gives_nobody_else_what_a_graph_uses)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        rmm_resource_t *pool = make_pool(2 * MIB, 2 * MIB);
        rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
        rmm_stream_t other = make_stream(RMM_STREAM_NON_BLOCKING);
        rmm_sim_graph_t graph = capture_with_a_block(pool, stream);
        uint64_t mixups = 0;
        void *block;

        rmm__sim_reseed(seed);
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
TEST_CASE(keeps_what_a_graph_uses_when_trimmed)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_sim_graph_t graph = capture_with_a_block(pool, stream);

    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(stats_of(pool).reserved_bytes, MIB);
    assert_cuda(rmm_sim_graph_launch(graph, stream));
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(rmm_sim_violations(), 0);
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(pool);
}

TEST_CASE(a_virtual_pool_grows_while_a_stream_captures)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_sim_graph_t graph;
    void *inside;
    void *beside;

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    inside = take(pool, 3 * MIB, stream);
    launch_fill(inside, 3 * MIB, 5, stream);
    beside = take(pool, 9 * MIB, NULL);
    give(pool, inside, 3 * MIB, stream);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_ok(rmm_resource_trim(pool, 0)); /* what the graph uses stays */
    assert_true(stats_of(pool).reserved_bytes >= 12 * MIB);
    assert_cuda(rmm_sim_graph_launch(graph, stream));
    assert_cuda(rmm_sim_device_synchronize());
    assert_cuda(rmm_sim_graph_destroy(graph));
    give(pool, beside, 9 * MIB, NULL);
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(pool);
    assert_int_equal(rmm_sim_violations(), 0);
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

TEST_CASE(a_barrier_on_a_full_device_leaves_captures_whole)
{
    rmm_stream_t capturing = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_resource_t *pool = make_pool(MIB, 0);
    rmm_sim_graph_t graph;
    void *blocks[200];
    int count = fill_device(blocks, 200);

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

/* --- graphs that are gone ------------------------------------------------------------- */

/* Can another stream have all of it? */
static bool all_is_free(const setting_t *here)
{
    void *blocks[2] = {NULL, NULL};
    bool all = true;

    for (int i = 0; i < 2; i++) {
        all &=
            rmm_resource_alloc(here->mr, BLOCK, 0, here->other, &blocks[i]) == RMM_OK;
    }
    for (int i = 0; i < 2; i++) {
        if (blocks[i] != NULL) {
            give(here->mr, blocks[i], BLOCK, here->other);
        }
    }
    return all;
}

TEST_CASE(gives_back_what_a_graph_used_when_its_last_copy_is_gone)
{
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        setting_t here = setting_begin(makers[i]);
        rmm_sim_graph_t graph = capture_with_a_block(here.mr, here.stream);
        rmm_sim_graph_t executable;

        assert_cuda(rmm__sim_graph_copy(graph, &executable));
        assert_false(all_is_free(&here));
        assert_cuda(rmm_sim_graph_destroy(graph));
        assert_cuda(rmm_sim_graph_launch(executable, here.other));
        assert_false(all_is_free(&here));
        assert_cuda(rmm_sim_graph_destroy(executable));
        assert_true(all_is_free(&here));
        setting_end(&here);
    }
}

/* Nothing else is freed meanwhile. */
TEST_CASE(a_refusal_is_forgotten_when_a_graph_is_gone)
{
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        setting_t here = setting_begin(makers[i]);
        void *kept = take(here.mr, BLOCK, here.other);
        rmm_sim_graph_t graph = capture_with_a_block(here.mr, here.stream);
        void *block = NULL;

        for (int k = 0; k < 2; k++) {
            assert_int_equal(
                rmm_resource_alloc(here.mr, BLOCK, 0, here.other, &block),
                RMM_ERR_OUT_OF_MEMORY);
        }
        assert_cuda(rmm_sim_graph_destroy(graph));
        block = take(here.mr, BLOCK, here.other);
        give(here.mr, block, BLOCK, here.other);
        give(here.mr, kept, BLOCK, here.other);
        setting_end(&here);
    }
}

TEST_CASE(waits_for_the_last_launch_of_a_graph)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        setting_t here = setting_begin(makers[seed % 4]);
        rmm_sim_graph_t graph = capture_with_a_block(here.mr, here.stream);
        uint64_t mixups = 0;
        void *blocks[2];

        rmm__sim_reseed(seed);
        assert_cuda(rmm_sim_graph_launch(graph, here.stream));
        assert_cuda(rmm_sim_graph_destroy(graph));
        for (int i = 0; i < 2; i++) {
            blocks[i] = take(here.mr, BLOCK, here.other);
            launch_fill(blocks[i], BLOCK, 1, here.other);
        }
        for (int i = 0; i < 2; i++) {
            launch_check(blocks[i], BLOCK, 1, &mixups, here.other);
            give(here.mr, blocks[i], BLOCK, here.other);
        }
        assert_cuda(rmm_sim_device_synchronize());
        assert_int_equal(mixups, 0);
        setting_end(&here);
    }
}

TEST_CASE(gives_back_what_a_ruined_capture_used)
{
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        setting_t here = setting_begin(makers[i]);
        rmm_sim_graph_t graph;
        void *blocks[2];

        assert_cuda(rmm_sim_begin_capture(here.stream, GLOBAL));
        for (int k = 0; k < 2; k++) {
            blocks[k] = take(here.mr, BLOCK, here.stream);
        }
        give(here.mr, blocks[0], BLOCK, here.stream);
        assert_int_not_equal(
            sim_driver()->stream_synchronize(here.stream), RMM_DRIVER_OK);
        give(here.mr, blocks[1], BLOCK, here.stream); /* after it was ruined */
        assert_int_not_equal(rmm_sim_end_capture(here.stream, &graph), RMM_DRIVER_OK);
        assert_true(all_is_free(&here));
        setting_end(&here);
    }
}

TEST_CASE(a_graph_may_outlive_its_resource)
{
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        setting_t here = setting_begin(makers[i]);
        rmm_sim_graph_t graph = capture_with_a_block(here.mr, here.stream);

        rmm_resource_release(here.mr);
        assert_cuda(rmm_sim_graph_destroy(graph));
        here.mr = makers[i]();
        setting_end(&here);
    }
}

/* A new graph each time, and never more memory, nor more heaps. */
TEST_CASE(captures_for_ever_in_the_same_memory)
{
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        setting_t here = setting_begin(makers[i]);

        for (int round = 0; round < 500; round++) {
            rmm_sim_graph_t graph = capture_with_a_block(here.mr, here.stream);

            assert_cuda(rmm_sim_graph_launch(graph, here.other));
            assert_cuda(rmm_sim_graph_destroy(graph));
            assert_cuda(rmm__sim_stream_synchronize(here.other));
        }
        if (makers[i] != an_arena) {
            assert_true(pool_from_base(here.mr)->engine->blocks->heap_count <= 32);
        }
        setting_end(&here);
    }
}

TEST_CASE(keeps_the_memory_of_a_graph_that_it_cannot_watch)
{
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        setting_t here = setting_begin(makers[i]);
        rmm_sim_graph_t graph;

        assert_true(rmm_sim_fail("capture_watch:1,capture_watch:2,capture_watch:3"));
        graph = capture_with_a_block(here.mr, here.stream);
        assert_true(rmm__sim_fault_has_struck());
        assert_true(rmm_sim_fail(NULL));
        assert_cuda(rmm_sim_graph_destroy(graph));
        assert_false(all_is_free(&here));
        setting_end(&here);
    }
}

static setting_t watching;

/* Before the pool knows the watch, its graph is gone, and another request has noticed that. */
static int
watch_a_graph_that_ends(rmm_stream_t stream, void (*gone)(void *context), void *context)
{
    int error = sim_driver()->capture_watch(stream, gone, context);
    rmm_sim_graph_t graph;

    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    (void)rmm__engine_reclaim(pool_from_base(watching.mr)->engine, 1);
    return error;
}

TEST_CASE(forgets_a_graph_that_is_gone_before_it_is_watched)
{
    rmm_driver_t hooked = *sim_driver();
    void *block;

    watching = setting_begin(a_pool);
    hooked.capture_watch = watch_a_graph_that_ends;
    pool_use_driver(watching.mr, &hooked);
    assert_cuda(rmm_sim_begin_capture(watching.stream, GLOBAL));
    block = take(watching.mr, BLOCK, watching.stream);
    pool_use_driver(watching.mr, sim_driver());
    assert_null(pool_from_base(watching.mr)->engine->captures.first);
    give(watching.mr, block, BLOCK, watching.stream);
    setting_end(&watching);
}

/* Whatever host memory is missing: no crash, no loss of order, nothing left behind. */
TEST_CASE(copes_without_host_memory_in_a_capture)
{
    bool struck = true;

    for (uint64_t nth = 1; struck; nth++) {
        setting_t here = setting_begin(makers[nth % 4]);
        rmm_sim_graph_t graph;
        void *block = NULL;
        rmm_status_t status;

        assert_cuda(rmm_sim_begin_capture(here.stream, GLOBAL));
        rmm__host_memory_fail(nth);
        status = rmm_resource_alloc(here.mr, BLOCK, 0, here.stream, &block);
        if (status == RMM_OK) {
            give(here.mr, block, BLOCK, here.stream);
        } else {
            assert_int_equal(status, RMM_ERR_OUT_OF_HOST_MEMORY);
        }
        struck = rmm__host_memory_fail_struck();
        rmm__host_memory_fail(0);
        assert_cuda(rmm_sim_end_capture(here.stream, &graph));
        assert_cuda(rmm_sim_graph_destroy(graph));
        assert_int_equal(stats_of(here.mr).current_bytes, 0);
        setting_end(&here);
        assert_true(nth < 100);
    }
}

TEST_CASE(a_block_that_cannot_be_set_aside_is_neither_live_nor_free)
{
    rmm_resource_t *pool = make_pool(8 * MIB, 8 * MIB);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    void *block = take(pool, MIB, stream);
    rmm_sim_graph_t graph;

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    rmm__host_memory_fail(1);
    give(pool, block, MIB, stream);
    assert_true(rmm__host_memory_fail_struck());
    rmm__host_memory_fail(0);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_int_equal(stats_of(pool).current_bytes, 0);
    assert_int_equal(rmm__accounting_free_bytes(&pool->accounting), 7 * MIB);
    give(pool, block, MIB, stream); /* a second free */
    assert_int_equal(stats_of(pool).invalid_free_count, 1);
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(pool);
}

/* --- work from before the capture ----------------------------------------------------- */

/* A graph that fills a block of its own with 7 and looks for that. */
static rmm_sim_graph_t
capture_checking(rmm_resource_t *mr, rmm_stream_t stream, void *freed, uint64_t *mixups)
{
    rmm_sim_graph_t graph;
    void *block;

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    if (freed != NULL) {
        give(mr, freed, BLOCK, stream);
    }
    block = take(mr, BLOCK, stream);
    launch_fill(block, BLOCK, 7, stream);
    launch_check(block, BLOCK, 7, mixups, stream);
    give(mr, block, BLOCK, stream);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    return graph;
}

/* A block that work queued on the stream still writes, freed before or in the capture: the
 * graph runs on another stream, in no order with that work. */
TEST_CASE(a_graph_runs_beside_work_from_before_its_capture)
{
    for (uint64_t seed = 1; seed <= 120; seed++) {
        setting_t here = setting_begin(makers[seed % 4]);
        bool inside = seed % 8 < 4;
        uint64_t mixups = 0;
        rmm_sim_graph_t graph;
        void *block;

        rmm__sim_reseed(seed);
        block = take(here.mr, BLOCK, here.stream);
        for (uint64_t i = 0; i < 5; i++) {
            launch_fill(block, BLOCK, i, here.stream);
        }
        if (!inside) {
            give(here.mr, block, BLOCK, here.stream);
            block = NULL;
        }
        graph = capture_checking(here.mr, here.stream, block, &mixups);
        assert_cuda(rmm_sim_graph_launch(graph, here.other));
        assert_cuda(rmm_sim_device_synchronize());
        assert_int_equal(mixups, 0);
        assert_cuda(rmm_sim_graph_destroy(graph));
        setting_end(&here);
    }
}

/* The same block, when the graph is gone, which nobody launched: the work from before the
 * capture has to be waited for. */
TEST_CASE(a_block_from_before_a_capture_is_reused_only_after_a_wait)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        setting_t here = setting_begin(makers[seed % 4]);
        uint64_t mixups = 0;
        rmm_sim_graph_t graph;
        void *blocks[2];
        void *block;

        rmm__sim_reseed(seed);
        block = take(here.mr, BLOCK, here.stream);
        for (uint64_t i = 0; i < 5; i++) {
            launch_fill(block, BLOCK, i, here.stream);
        }
        assert_cuda(rmm_sim_begin_capture(here.stream, GLOBAL));
        give(here.mr, block, BLOCK, here.stream);
        assert_cuda(rmm_sim_end_capture(here.stream, &graph));
        assert_cuda(rmm_sim_graph_destroy(graph));
        for (int i = 0; i < 2; i++) {
            blocks[i] = take(here.mr, BLOCK, here.other);
            launch_fill(blocks[i], BLOCK, 9, here.other);
        }
        for (int i = 0; i < 2; i++) {
            launch_check(blocks[i], BLOCK, 9, &mixups, here.other);
            give(here.mr, blocks[i], BLOCK, here.other);
        }
        assert_cuda(rmm_sim_device_synchronize());
        assert_int_equal(mixups, 0);
        setting_end(&here);
    }
}

/* One synchronise ends the last launch of a graph, and proves what was freed in its capture. */
TEST_CASE(a_request_beside_the_last_launch_gets_what_the_capture_freed)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        rmm_resource_t *pool = make_virtual_pool(0, 6 * BLOCK);
        rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
        void *block = take(pool, 2 * BLOCK, stream); /* a piece */
        const uint64_t syncs = pool_from_base(pool)->engine->figures.sync_count;
        rmm_sim_graph_t graph;

        rmm__sim_reseed(seed);
        assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
        for (uint64_t i = 0; i < 5; i++) {
            launch_fill(block, 2 * BLOCK, i, stream);
        }
        give(pool, block, 2 * BLOCK, stream);
        assert_cuda(rmm_sim_end_capture(stream, &graph));
        assert_cuda(rmm_sim_graph_launch(graph, stream));
        assert_cuda(rmm_sim_graph_destroy(graph));
        block = take(pool, 6 * BLOCK, NULL);
        assert_int_equal(pool_from_base(pool)->engine->figures.sync_count, syncs + 1);
        give(pool, block, 6 * BLOCK, NULL);
        assert_cuda(rmm_sim_device_synchronize());
        assert_cuda(sim_driver()->stream_destroy(stream));
        rmm_resource_release(pool);
        assert_int_equal(rmm_sim_violations(), 0);
        assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    }
}

/* Streams of one capture: what one took and the other freed, the other may take again. */
TEST_CASE(streams_of_one_capture_share_what_they_took)
{
    setting_t here = setting_begin(a_pool);
    rmm_driver_event_t event;
    rmm_sim_graph_t graph;
    void *first, *second;

    assert_cuda(sim_driver()->event_create(&event));
    assert_cuda(rmm_sim_begin_capture(here.stream, GLOBAL));
    first = take(here.mr, BLOCK, here.stream);
    assert_cuda(sim_driver()->event_record(event, here.stream));
    assert_cuda(sim_driver()->stream_wait_event(here.other, event));
    give(here.mr, first, BLOCK, here.other);
    second = take(here.mr, BLOCK, here.other);
    assert_ptr_equal(first, second);
    give(here.mr, second, BLOCK, here.other);
    second = take(here.mr, BLOCK, here.stream); /* behind nothing of the other's */
    assert_ptr_not_equal(first, second);
    give(here.mr, second, BLOCK, here.stream);
    assert_cuda(sim_driver()->event_record(event, here.other));
    assert_cuda(sim_driver()->stream_wait_event(here.stream, event));
    assert_cuda(rmm_sim_end_capture(here.stream, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->event_destroy(event));
    assert_true(all_is_free(&here));
    setting_end(&here);
}

/* --- the threads' own default streams -------------------------------------------------- */

typedef struct branch {
    rmm_resource_t *mr;
    rmm_driver_event_t fork, join;
    uint64_t *mixups;
    pthread_barrier_t steps; /* the branch is captured; the capture has ended */
    void *block;
} branch_t;

static void *use_in_own_stream(rmm_resource_t *mr, uint64_t number, uint64_t *mixups)
{
    void *block = take(mr, BLOCK, RMM_STREAM_PER_THREAD);

    launch_fill(block, BLOCK, number, RMM_STREAM_PER_THREAD);
    launch_check(block, BLOCK, number, mixups, RMM_STREAM_PER_THREAD);
    give(mr, block, BLOCK, RMM_STREAM_PER_THREAD);
    return block;
}

/* The thread lives until the capture has ended, as its stream ends with it. */
static void *capture_a_branch(void *argument)
{
    branch_t *branch = argument;

    assert_cuda(sim_driver()->stream_wait_event(RMM_STREAM_PER_THREAD, branch->fork));
    branch->block = use_in_own_stream(branch->mr, 2, branch->mixups);
    assert_cuda(sim_driver()->event_record(branch->join, RMM_STREAM_PER_THREAD));
    pthread_barrier_wait(&branch->steps);
    pthread_barrier_wait(&branch->steps);
    return NULL;
}

/* The graph of two branches, each on its thread's own default stream. */
static rmm_sim_graph_t capture_two_branches(branch_t *branch, void **block_out)
{
    rmm_sim_graph_t graph;
    pthread_t thread;

    assert_int_equal(pthread_barrier_init(&branch->steps, NULL, 2), 0);
    assert_cuda(rmm_sim_begin_capture(RMM_STREAM_PER_THREAD, RELAXED));
    assert_cuda(sim_driver()->event_record(branch->fork, RMM_STREAM_PER_THREAD));
    *block_out = use_in_own_stream(branch->mr, 1, branch->mixups);
    assert_int_equal(pthread_create(&thread, NULL, capture_a_branch, branch), 0);
    pthread_barrier_wait(&branch->steps);
    assert_cuda(sim_driver()->stream_wait_event(RMM_STREAM_PER_THREAD, branch->join));
    assert_cuda(rmm_sim_end_capture(RMM_STREAM_PER_THREAD, &graph));
    pthread_barrier_wait(&branch->steps);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_barrier_destroy(&branch->steps), 0);
    return graph;
}

TEST_CASE(threads_own_streams_of_one_capture_share_no_memory)
{
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        setting_t here = setting_begin(makers[i]);
        uint64_t mixups = 0;
        branch_t branch = {.mr = here.mr, .mixups = &mixups};
        rmm_sim_graph_t graph;
        void *block;

        assert_cuda(sim_driver()->event_create(&branch.fork));
        assert_cuda(sim_driver()->event_create(&branch.join));
        graph = capture_two_branches(&branch, &block);
        for (int launch = 0; launch < 50; launch++) {
            assert_cuda(rmm_sim_graph_launch(graph, here.stream));
            assert_cuda(rmm_sim_device_synchronize());
        }
        assert_int_equal(mixups, 0);
        assert_ptr_not_equal(block, branch.block);
        assert_cuda(rmm_sim_graph_destroy(graph));
        assert_cuda(sim_driver()->event_destroy(branch.fork));
        assert_cuda(sim_driver()->event_destroy(branch.join));
        assert_true(all_is_free(&here));
        setting_end(&here);
    }
}

/* --- many threads --------------------------------------------------------------------- */

static void capture_again_and_again(errand_t *errand)
{
    for (int i = 0; i < 100; i++) {
        rmm_sim_graph_t graph = capture_with_a_block(errand->pool, errand->stream);

        if (i % 10 == 0) { /* and may run on for long */
            assert_cuda(rmm_sim_graph_launch(graph, errand->stream));
        }
        assert_cuda(rmm_sim_graph_destroy(graph));
    }
}

TEST_CASE(threads_capture_beside_each_other)
{
    enum { THREADS = 4 };
    rmm_resource_t *pool = make_pool(0, 0);
    pthread_t threads[THREADS];
    errand_t errands[THREADS];

    for (int i = 0; i < THREADS; i++) {
        errands[i] = (errand_t){
            pool, make_stream(RMM_STREAM_NON_BLOCKING), capture_again_and_again};
        assert_int_equal(
            pthread_create(&threads[i], NULL, errand_main, &errands[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_cuda(sim_driver()->stream_destroy(errands[i].stream));
    }
    assert_cuda(rmm_sim_device_synchronize());
    assert_true(stats_of(pool).reserved_bytes <= 64 * MIB);
    rmm_resource_release(pool);
}
