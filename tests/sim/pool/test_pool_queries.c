/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While one thread queries events, their batches are out of their streams. Another thread
 * that finds no block then must not grow or synchronise for memory that they cover.
 */
#include "sim/driver/driver_hooks.h"

#include <pthread.h>
#include <time.h>

#define BLOCK (4 * MIB)
#define STREAMS_MOST 20

static rmm_driver_t hooked; /* the simulated driver, whose first query is slow */
static rmm_resource_t *pool;
static rmm_stream_t streams[STREAMS_MOST];
static bool is_slow; /* the next query: another thread takes a block meanwhile */
static bool is_done; /* what queries say */

static pthread_t other_thread;
static rmm_stream_t other_stream;
static void *other_block;

static void *take_meanwhile(void *argument)
{
    other_block = take(pool, BLOCK, other_stream);
    return NULL;
}

static int query_slowly(rmm_driver_event_t event)
{
    const struct timespec a_while = {0, 30 * 1000 * 1000};

    if (is_slow) {
        is_slow = false;
        assert_int_equal(pthread_create(&other_thread, NULL, take_meanwhile, NULL), 0);
        (void)nanosleep(&a_while, NULL); /* the other thread is to get no further */
    }
    return is_done ? sim_driver()->event_query(event) : RMM_DRIVER_NOT_READY;
}

/* Each stream has freed a block, behind an event; beside them much is live, so that no
 * event is due. */
static void *free_on_streams(int count)
{
    void *blocks[STREAMS_MOST];
    void *live = take(pool, 1024 * MIB, NULL);

    for (int i = 0; i < count; i++) {
        streams[i] = make_stream(RMM_STREAM_NON_BLOCKING);
        blocks[i] = take(pool, BLOCK, streams[i]);
    }
    for (int i = 0; i < count; i++) {
        give(pool, blocks[i], BLOCK, streams[i]);
    }
    assert_cuda(rmm_sim_device_synchronize());
    return live;
}

static void hook(rmm_resource_t *mr)
{
    pool = mr;
    hooked = *sim_driver();
    hooked.event_query = query_slowly;
    pool_use_driver(pool, &hooked);
    is_slow = is_done = false;
}

static void serve_two(int count, bool are_done)
{
    engine_figures_t before, after;
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    void *live = free_on_streams(count);
    void *block;

    other_stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm__engine_figures(pool_from_base(pool)->engine, &before);
    is_slow = true;
    is_done = are_done;
    block = take(pool, BLOCK, stream);
    assert_false(is_slow);
    assert_int_equal(pthread_join(other_thread, NULL), 0);
    rmm__engine_figures(pool_from_base(pool)->engine, &after);
    assert_int_equal(after.growth_count, before.growth_count);
    assert_int_equal(after.sync_count, before.sync_count);
    give(pool, block, BLOCK, stream);
    give(pool, other_block, BLOCK, other_stream);
    give(pool, live, 1024 * MIB, NULL);
    assert_ok(rmm_stream_destroy(stream));
    assert_ok(rmm_stream_destroy(other_stream));
}

static void serves_both(rmm_resource_t *mr, int count, bool are_done)
{
    hook(mr);
    serve_two(count, are_done);
    pool_use_driver(pool, sim_driver());
    rmm_resource_release(pool);
    for (int i = 0; i < count; i++) {
        assert_ok(rmm_stream_destroy(streams[i]));
    }
    assert_int_equal(rmm_sim_violations(), 0);
}

TEST_CASE(finished_events_serve_two_threads)
{
    serves_both(make_pool(1024 * MIB + 4 * BLOCK, 0), 4, true);
    serves_both(make_virtual_pool(1024 * MIB + 4 * BLOCK, 0), 4, true);
}

/* The device is not done: both streams wait for others there. */
TEST_CASE(unfinished_events_serve_two_threads)
{
    serves_both(make_pool(1024 * MIB + STREAMS_MOST * BLOCK, 0), STREAMS_MOST, false);
}
