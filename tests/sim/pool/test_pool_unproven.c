/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unproven memory (lib/pool/waits.c) in a process that sees two devices: blocks that were allocated
 * before a graph capture and freed in it. They do not make a pool grow, or fail if it cannot, and
 * nobody gets one while work of the other device may still use it. And frees on the other
 * device's streams, which wait for them.
 *
 * The first case needs a process without a context on the second device; the others make one.
 */
#include "sim/pool/capture_harness.h"

#include <pthread.h>

#include "driver/sim/control.h"
#include "sim/driver/driver_hooks.h"

static rmm_resource_t *a_pool_that_grows(void)
{
    return make_pool(0, 0);
}

/* A graph in which the block is freed, and which nobody launches. */
static rmm_sim_graph_t
capture_of_a_free(rmm_resource_t *mr, void *block, size_t bytes, rmm_stream_t stream)
{
    rmm_sim_graph_t graph;

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    give(mr, block, bytes, stream);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    return graph;
}

/* A program that does so at each of its steps. */
static void free_in_captures_again_and_again(rmm_resource_t *mr, rmm_stream_t stream)
{
    for (int round = 0; round < 200; round++) {
        void *block = take(mr, BLOCK, stream);
        rmm_sim_graph_t graph;

        launch_fill(block, BLOCK, 1, stream);
        graph = capture_of_a_free(mr, block, BLOCK, stream);
        assert_cuda(rmm_sim_graph_launch(graph, stream));
        assert_cuda(rmm_sim_graph_destroy(graph));
        assert_cuda(rmm__sim_stream_synchronize(stream));
    }
}

/* What it frees never makes the pool grow. No device but the first has a context yet. */
TEST_CASE(blocks_freed_in_captures_serve_the_next_steps)
{
    setting_t here = setting_begin(a_pool_that_grows);

    free_in_captures_again_and_again(here.mr, here.stream);
    assert_true(stats_of(here.mr).reserved_bytes <= 8 * BLOCK);
    setting_end(&here);
}

static void end_stream_elsewhere(rmm_stream_t stream)
{
    assert_cuda(rmm__sim_stream_synchronize(stream));
    assert_cuda(sim_driver()->stream_destroy(stream));
}

/* A pool that cannot grow serves a request from unproven blocks, while another device works. */
TEST_CASE(blocks_freed_in_captures_return_before_a_refusal)
{
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        setting_t here = setting_begin(makers[i]);
        rmm_stream_t elsewhere = make_stream_elsewhere();

        free_in_captures_again_and_again(here.mr, here.stream);
        assert_cuda(rmm__sim_device_set(1));
        free_in_captures_again_and_again(here.mr, elsewhere);
        assert_cuda(rmm__sim_device_set(0));
        end_stream_elsewhere(elsewhere);
        setting_end(&here);
    }
}

/* A synchronise of the own device would be of no use. */
TEST_CASE(growth_waits_for_no_device_while_another_works)
{
    setting_t here = setting_begin(a_pool_that_grows);
    rmm_stream_t elsewhere = make_stream_elsewhere();

    free_in_captures_again_and_again(here.mr, here.stream);
    assert_true(pool_from_base(here.mr)->engine->figures.sync_count <= 2);
    end_stream_elsewhere(elsewhere);
    setting_end(&here);
}

/* Which stream that handle means depends on the current device. */
TEST_CASE(blocks_freed_in_a_capture_of_a_per_thread_stream_return)
{
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        setting_t here = setting_begin(makers[i]);

        for (int device = 0; device < 2; device++) {
            assert_cuda(rmm__sim_device_set(device));
            free_in_captures_again_and_again(here.mr, RMM_STREAM_PER_THREAD);
        }
        assert_cuda(rmm__sim_device_set(0));
        setting_end(&here);
    }
}

/* The stream of another device has work queued on the block that its capture frees. */
static void free_under_work_elsewhere(
    rmm_resource_t *mr, size_t bytes, rmm_stream_t elsewhere, uint64_t *mixups)
{
    void *block = take(mr, bytes, elsewhere);
    rmm_sim_graph_t graph;

    assert_cuda(rmm__sim_device_set(1));
    for (uint64_t i = 0; i < 5; i++) {
        launch_fill(block, bytes, 1, elsewhere);
        launch_check(block, bytes, 1, mixups, elsewhere);
    }
    graph = capture_of_a_free(mr, block, bytes, elsewhere);
    assert_cuda(rmm__sim_device_set(0));
    assert_cuda(rmm_sim_graph_destroy(graph));
}

/* Use all memory. False: a part was refused. */
static bool use_all(const setting_t *here, uint64_t *mixups)
{
    void *blocks[2] = {NULL, NULL};
    bool all = true;

    for (int i = 0; i < 2; i++) {
        if (rmm_resource_alloc(here->mr, BLOCK, 0, here->other, &blocks[i]) != RMM_OK) {
            all = false;
            continue;
        }
        launch_fill(blocks[i], BLOCK, 9, here->other);
    }
    for (int i = 0; i < 2; i++) {
        if (blocks[i] != NULL) {
            launch_check(blocks[i], BLOCK, 9, mixups, here->other);
            give(here->mr, blocks[i], BLOCK, here->other);
        }
    }
    return all;
}

/* Whichever call fails when the other device is to be waited for. True: a call failed. */
static bool next_use_under_a_fault(
    rmm_resource_t *(*make)(void), const char *plan_or_NULL, uint64_t seed)
{
    setting_t here = setting_begin(make);
    rmm_stream_t elsewhere = make_stream_elsewhere();
    uint64_t mixups = 0;
    bool struck;

    rmm__sim_reseed(seed);
    free_under_work_elsewhere(here.mr, BLOCK, elsewhere, &mixups);
    assert_true(rmm_sim_fail(plan_or_NULL));
    (void)use_all(&here, &mixups);
    struck = rmm__sim_fault_has_struck();
    assert_true(rmm_sim_fail(NULL));
    assert_true(use_all(&here, &mixups));
    end_stream_elsewhere(elsewhere);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(mixups, 0);
    setting_end(&here);
    return struck;
}

TEST_CASE(work_of_another_device_is_over_before_the_next_use)
{
    static const char *const plans[] = {
        NULL,         "device_active:1", "device_count:1",
        "mem_free:1", "mem_free:2",      "device_set:1"};

    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        bool any_struck = false;

        for (uint64_t seed = 1; seed <= 20; seed++) {
            any_struck |= next_use_under_a_fault(makers[seed % 4], plans[i], seed);
        }
        assert_int_equal(any_struck, plans[i] != NULL);
    }
}

static int tell_nothing(int device, int *active)
{
    (void)device;
    (void)active;
    return RMM_DRIVER_INVALID_VALUE;
}

/* All steps once, and a wait for the others that fails. It is tried again at the next request. */
TEST_CASE(a_refusal_though_blocks_are_unproven_comes_at_once)
{
    rmm_driver_t hooked = *sim_driver();
    setting_t here = setting_begin(a_pool);
    rmm_stream_t elsewhere = make_stream_elsewhere();
    const engine_figures_t *figures = &pool_from_base(here.mr)->engine->figures;
    uint64_t mixups = 0;
    void *all = NULL;

    free_under_work_elsewhere(here.mr, BLOCK, elsewhere, &mixups);
    hooked.device_active = tell_nothing;
    pool_use_driver(here.mr, &hooked);
    for (int i = 0; i < 2; i++) {
        uint64_t before = figures->sync_count;

        assert_int_equal(
            rmm_resource_alloc(here.mr, 2 * BLOCK, 0, here.other, &all),
            RMM_ERR_OUT_OF_MEMORY);
        assert_in_range(figures->sync_count - before, 2, 3);
    }
    pool_use_driver(here.mr, sim_driver());
    all = take(here.mr, 2 * BLOCK, here.other);
    give(here.mr, all, 2 * BLOCK, here.other);
    end_stream_elsewhere(elsewhere);
    assert_int_equal(mixups, 0);
    setting_end(&here);
}

/* The resource's memory goes to another user when it ends. */
static rmm_resource_t *a_pool_over(rmm_resource_t *upstream)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *pool;

    options.initial_bytes = 2 * BLOCK;
    assert_ok(rmm_pool_resource_create(upstream, &options, &pool));
    return share(pool);
}

static rmm_resource_t *an_arena_over(rmm_resource_t *upstream)
{
    rmm_arena_options_t options = RMM_ARENA_OPTIONS_INIT;
    rmm_resource_t *arena;

    options.arena_bytes = 2 * BLOCK;
    assert_ok(rmm_arena_resource_create(upstream, &options, &arena));
    return arena;
}

/* If a call fails that waits for the other device, the memory goes to nobody. Its upstream,
 * whose end would give it back as well, outlives the program's last reference. */
static void
end_amid_work_elsewhere(make_over_fn make_over, size_t bytes, const char *plan_or_NULL)
{
    setting_t here = setting_begin(a_pool);
    rmm_resource_t *over = make_over(here.mr);
    rmm_stream_t elsewhere = make_stream_elsewhere();
    uint64_t mixups = 0;

    free_under_work_elsewhere(over, bytes, elsewhere, &mixups);
    assert_true(rmm_sim_fail(plan_or_NULL));
    rmm_resource_release(over);
    assert_true(plan_or_NULL == NULL || rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    assert_true(use_all(&here, &mixups) == (plan_or_NULL == NULL));
    if (plan_or_NULL != NULL) {
        rmm_resource_release(here.mr);
        assert_true(rmm_sim_allocated_bytes(0) >= 2 * BLOCK);
    }
    end_stream_elsewhere(elsewhere);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(mixups, 0);
    setting_end(&here);
}

TEST_CASE(work_of_another_device_is_over_when_a_resource_ends)
{
    static const char *const plans[] = {
        NULL, "device_active:1", "device_count:1", "mem_free:1", "device_set:1"};
    static const make_over_fn makers_over[] = {a_pool_over, an_arena_over};
    enum { PLANS = sizeof(plans) / sizeof(plans[0]) };

    for (uint64_t seed = 1; seed <= 20 * PLANS; seed++) {
        rmm__sim_reseed(seed);
        for (size_t i = 0; i < 2; i++) {
            /* an arena's shards have small blocks, its global engine has large ones */
            end_amid_work_elsewhere(makers_over[i], BLOCK, plans[seed % PLANS]);
            end_amid_work_elsewhere(makers_over[i], 4 * KIB, plans[seed % PLANS]);
        }
    }
}

/* The graph that runs there has used a block of its own. */
TEST_CASE(a_graph_on_another_device_is_over_when_a_pool_ends)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        setting_t here = setting_begin(a_pool);
        rmm_resource_t *over = a_pool_over(here.mr);
        rmm_stream_t elsewhere = make_stream_elsewhere();
        uint64_t mixups = 0;
        rmm_sim_graph_t graph;
        void *block;

        rmm__sim_reseed(seed);
        assert_cuda(rmm__sim_device_set(1));
        assert_cuda(rmm_sim_begin_capture(elsewhere, GLOBAL));
        block = take(over, BLOCK, elsewhere);
        launch_fill(block, BLOCK, 1, elsewhere);
        launch_check(block, BLOCK, 1, &mixups, elsewhere);
        give(over, block, BLOCK, elsewhere);
        assert_cuda(rmm_sim_end_capture(elsewhere, &graph));
        assert_cuda(rmm_sim_graph_launch(graph, elsewhere));
        assert_cuda(rmm__sim_device_set(0));
        rmm_resource_release(over);
        assert_true(use_all(&here, &mixups));
        end_stream_elsewhere(elsewhere);
        assert_cuda(rmm_sim_graph_destroy(graph));
        assert_cuda(rmm_sim_device_synchronize());
        assert_int_equal(mixups, 0);
        setting_end(&here);
    }
}

/* The other device's stream waits for a larger block than it needs, and ends without a free:
 * nothing of its own ever used the rest. */
TEST_CASE(the_unused_rest_of_a_block_that_another_device_waited_for_is_reused)
{
    rmm_driver_t hooked = *sim_driver();

    hooked.event_query = is_never_done;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        setting_t here = setting_begin(a_pool);
        rmm_stream_t elsewhere = make_stream_elsewhere();
        void *block = take(here.mr, 2 * BLOCK, here.stream);
        uint64_t mixups = 0;

        rmm__sim_reseed(seed);
        pool_use_driver(here.mr, &hooked);
        for (uint64_t i = 0; i < 5; i++) {
            launch_fill(block, 2 * BLOCK, i, here.stream);
        }
        give(here.mr, block, 2 * BLOCK, here.stream);
        block = take(here.mr, BLOCK, elsewhere);
        pool_use_driver(here.mr, sim_driver());
        assert_int_equal(
            pool_from_base(here.mr)->engine->figures.cross_stream_count, 1);
        end_stream_elsewhere(elsewhere);
        give(here.mr, block, BLOCK, here.stream);
        assert_true(use_all(&here, &mixups));
        assert_cuda(rmm_sim_device_synchronize());
        assert_int_equal(mixups, 0);
        setting_end(&here);
    }
}

/* --- a free before the wait for a stream of another device begins --------------------- */

enum { LOWER = 2 * KIB, UPPER = 4 * KIB, CUT = 256 };

static setting_t amid;
static void *upper, *cut;

static void *free_upper(void *unused)
{
    give(amid.mr, upper, UPPER, amid.other);
    upper = NULL;
    return unused;
}

static void *cut_a_block(void *unused)
{
    cut = take(amid.mr, CUT, amid.other);
    return unused;
}

static void run_thread(void *(*run)(void *unused))
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static int record_after_a_free(rmm_driver_event_t event, rmm_stream_t stream)
{
    if (upper != NULL && stream != amid.other) {
        run_thread(free_upper);
    }
    return sim_driver()->event_record(event, stream);
}

/* The request sees the latest free, and is itself no change that lets others succeed. */
static int wait_after_a_request(rmm_stream_t stream)
{
    run_thread(cut_a_block);
    return sim_driver()->stream_synchronize(stream);
}

/* A free learns that no event fits its stream, and waits for it. In between another thread
 * frees the upper block, on a stream that has freed the lower one before. */
TEST_CASE(a_free_before_an_uncovered_free_waits_merges_with_an_older_one)
{
    rmm_driver_t hooked = *sim_driver();
    rmm_stream_t elsewhere = make_stream_elsewhere();
    void *lower, *waited_for;

    amid = setting_begin(a_pool);
    hooked.event_query = is_never_done;
    hooked.event_record = record_after_a_free;
    hooked.stream_synchronize = wait_after_a_request;
    pool_use_driver(amid.mr, &hooked);
    waited_for = take(amid.mr, BLOCK, elsewhere);
    lower = take(amid.mr, LOWER, amid.other);
    upper = take(amid.mr, UPPER, amid.other);
    assert_ptr_equal(upper, (char *)lower + LOWER);
    give(amid.mr, lower, LOWER, amid.other);
    give(amid.mr, waited_for, BLOCK, elsewhere);
    assert_null(upper);
    assert_null(rmm__blocks_check(pool_from_base(amid.mr)->engine->blocks));
    pool_use_driver(amid.mr, sim_driver());
    give(amid.mr, cut, CUT, amid.other);
    end_stream_elsewhere(elsewhere);
    setting_end(&amid);
}

static bool is_recorded_next;

static int refuse_the_first_event(rmm_driver_event_t event, rmm_stream_t stream)
{
    return is_recorded_next ? sim_driver()->event_record(event, stream)
                            : RMM_DRIVER_INVALID_VALUE;
}

/* Another thread frees on the stream, which gets an event: it is alone, and of this device. */
static int wait_after_a_recorded_free(rmm_stream_t stream)
{
    is_recorded_next = true;
    run_thread(free_upper);
    return sim_driver()->stream_synchronize(stream);
}

/* What it freed is in the clean heap by then. */
TEST_CASE(a_stream_that_a_free_waits_for_may_be_known_to_be_alone_meanwhile)
{
    rmm_driver_t hooked = *sim_driver();
    void *lower, *all;

    amid = setting_begin(a_pool);
    is_recorded_next = false;
    hooked.event_record = refuse_the_first_event;
    hooked.stream_synchronize = wait_after_a_recorded_free;
    pool_use_driver(amid.mr, &hooked);
    lower = take(amid.mr, LOWER, amid.other);
    upper = take(amid.mr, UPPER, amid.other);
    give(amid.mr, lower, LOWER, amid.other);
    assert_null(upper);
    pool_use_driver(amid.mr, sim_driver());
    all = take(amid.mr, 2 * BLOCK, amid.stream);
    give(amid.mr, all, 2 * BLOCK, amid.stream);
    setting_end(&amid);
}
