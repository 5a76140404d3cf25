/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is what the async resources tell the driver in the right order? Kernels of random traffic
 * write into their blocks and look for what they wrote; half of the blocks change streams,
 * behind an event, and are freed where they went. The simulated GPU runs all of it late and
 * in a seeded order, also the allocations and frees themselves, so that one on a wrong
 * stream shows as mixed-up data: the same traffic over resources that were broken on
 * purpose must show it.
 */
#include "sim/pool/pool_harness.h"

#include <pthread.h>
#include <stdlib.h>

#include "driver/sim/control.h"
#include "harness/random.h"
#include "resources/mempool.h"

enum { STREAMS = 5, LIVE = 24, STEPS = 200 };

typedef struct live_block {
    void *ptr;
    size_t bytes;
    uint64_t number;
    int stream; /* that it is used on now */
} live_block_t;

typedef struct traffic {
    rmm_resource_t *mr;
    rmm_stream_t streams[STREAMS];
    live_block_t live[LIVE];
    int live_count;
    uint64_t random;
    uint64_t mixups; /* words that another use had overwritten */
    uint64_t moves;
} traffic_t;

static void allocate_one(traffic_t *traffic, uint64_t number)
{
    live_block_t block = {
        .bytes = 256 * (1 + draw(&traffic->random, 64)),
        .number = number,
        .stream = (int)draw(&traffic->random, STREAMS)};
    rmm_stream_t stream = traffic->streams[block.stream];

    block.ptr = take(traffic->mr, block.bytes, stream);
    launch_fill(block.ptr, block.bytes, number, stream);
    traffic->live[traffic->live_count++] = block;
}

/* The other stream comes behind the block's last use, as a program has to see to. */
static void move(traffic_t *traffic, live_block_t *block)
{
    int target = (int)draw(&traffic->random, STREAMS);
    rmm_sim_event_t event;

    assert_cuda(rmm_sim_event_create(&event));
    assert_cuda(rmm_sim_event_record(event, traffic->streams[block->stream]));
    assert_cuda(rmm_sim_stream_wait_event(traffic->streams[target], event));
    assert_cuda(rmm_sim_event_destroy(event));
    traffic->moves += target != block->stream;
    block->stream = target;
}

static void free_one(traffic_t *traffic, int index)
{
    live_block_t block = traffic->live[index];

    if (draw(&traffic->random, 2) == 0) {
        move(traffic, &block);
    }
    launch_check(
        block.ptr, block.bytes, block.number, &traffic->mixups,
        traffic->streams[block.stream]);
    give(traffic->mr, block.ptr, block.bytes, traffic->streams[block.stream]);
    traffic->live[index] = traffic->live[--traffic->live_count];
}

static void run(traffic_t *traffic)
{
    traffic->streams[0] = RMM_STREAM_LEGACY;
    for (int i = 1; i < STREAMS; i++) {
        traffic->streams[i] = make_stream(RMM_STREAM_NON_BLOCKING);
    }
    for (uint64_t i = 1; i <= STEPS; i++) {
        bool is_full = traffic->live_count == LIVE;

        if (traffic->live_count > 0 && (is_full || draw(&traffic->random, 100) < 45)) {
            free_one(
                traffic, (int)draw(&traffic->random, (uint64_t)traffic->live_count));
        } else {
            allocate_one(traffic, i);
        }
    }
    while (traffic->live_count > 0) {
        free_one(traffic, 0);
    }
    for (int i = 1; i < STREAMS; i++) { /* their work is still queued */
        assert_cuda(sim_driver()->stream_destroy(traffic->streams[i]));
    }
    assert_cuda(rmm_sim_device_synchronize());
}

typedef rmm_status_t (*create_fn)(rmm_resource_t **out);

static uint64_t seed_count(void)
{
    return getenv("RMM_TEST_QUICK") != NULL ? SEEDS / 5 : SEEDS;
}

/* broken: a driver table that the resource is made to use; NULL: the real one. Words that
 * were mixed up. */
static uint64_t run_seeds(create_fn create, const rmm_driver_t *broken)
{
    uint64_t mixups = 0;
    uint64_t moves = 0;

    for (uint64_t seed = 1; seed <= seed_count(); seed++) {
        traffic_t traffic = {.random = seed};
        rmm_mempool_resource_t *inside;

        assert_ok(create(&traffic.mr));
        inside = RMM_CONTAINER_OF(
            rmm__tracked_from_base(traffic.mr), rmm_mempool_resource_t, tracked);
        if (broken != NULL) {
            inside->pool->driver = broken;
        }
        rmm__sim_reseed(seed);
        run(&traffic);
        mixups += traffic.mixups;
        moves += traffic.moves;
        assert_int_equal(stats_of(traffic.mr).current_bytes, 0);
        inside->pool->driver = sim_driver();
        rmm_resource_release(traffic.mr);
        assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    }
    assert_true(moves > seed_count() * 10);
    return mixups;
}

TEST_CASE(async_keeps_the_order_under_200_seeds)
{
    assert_int_equal(run_seeds(create_async, NULL), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

TEST_CASE(async_managed_keeps_the_order_under_200_seeds)
{
    assert_int_equal(run_seeds(rmm_async_managed_resource_create, NULL), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

/* --- captures ----------------------------------------------------------------------- */

static void *use_it_all(void *argument)
{
    rmm_resource_t *mr = argument;
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_resource_t *second;
    void *block = take(mr, 100 * MIB, stream); /* the pool grows */

    give(mr, block, 100 * MIB, stream);
    give(mr, take(mr, MIB, NULL), MIB, NULL);
    assert_ok(rmm_resource_alloc_sync(mr, MIB, 0, &block));
    rmm_resource_dealloc_sync(mr, block, MIB, 0);
    assert_ok(rmm_resource_trim(mr, 0));
    assert_ok(create_async(&second));
    rmm_resource_release(second);
    assert_cuda(sim_driver()->stream_destroy(stream));
    return NULL;
}

TEST_CASE(nothing_another_thread_does_ruins_a_capture)
{
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    journal_t journal = {.count = 0};
    rmm_sim_graph_t graph;
    rmm_resource_t *mr;
    pthread_t thread;

    assert_ok(create_async(&mr));
    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_GLOBAL));
    assert_cuda(launch_mark(&journal, 1, stream));
    assert_int_equal(pthread_create(&thread, NULL, use_it_all, mr), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_graph_launch(graph, stream));
    assert_cuda(rmm__sim_stream_synchronize(stream));
    assert_int_equal(journal.count, 1);
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_violations(), 0);
}

/* Inside a capture the driver makes nodes of both, and the graph has memory of its own. */
TEST_CASE(a_graph_has_memory_of_its_own)
{
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_sim_graph_t graph;
    rmm_resource_t *mr;
    uint64_t mixups = 0;
    void *block;

    assert_ok(create_async(&mr));
    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_GLOBAL));
    block = take(mr, MIB, stream);
    launch_fill(block, MIB, 7, stream);
    launch_check(block, MIB, 7, &mixups, stream);
    give(mr, block, MIB, stream);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_int_equal(stats_of(mr).current_bytes, 0);
    for (uint64_t i = 0; i < 20; i++) {
        rmm__sim_reseed(i);
        block = take(mr, MIB, stream);
        launch_fill(block, MIB, i, stream);
        assert_cuda(rmm_sim_graph_launch(graph, stream));
        launch_check(block, MIB, i, &mixups, stream);
        give(mr, block, MIB, stream);
    }
    assert_cuda(rmm__sim_stream_synchronize(stream));
    assert_int_equal(mixups, 0);
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

/* --- broken on purpose: last, because the simulated GPU finds more wrong with them ---- */

static rmm_stream_t elsewhere; /* a stream that waits for nothing */

static int alloc_elsewhere(
    rmm_driver_mempool_t pool, void **ptr, size_t bytes, rmm_stream_t stream)
{
    return sim_driver()->mempool_alloc(pool, ptr, bytes, elsewhere);
}

static int free_elsewhere(void *ptr, rmm_stream_t stream)
{
    return sim_driver()->mempool_free(ptr, elsewhere);
}

TEST_CASE(catches_allocations_on_another_stream)
{
    rmm_driver_t broken = *sim_driver();

    broken.mempool_alloc = alloc_elsewhere;
    elsewhere = make_stream(RMM_STREAM_NON_BLOCKING);
    assert_true(run_seeds(create_async, &broken) > 0);
    assert_cuda(sim_driver()->stream_destroy(elsewhere));
}

TEST_CASE(catches_frees_on_another_stream)
{
    rmm_driver_t broken = *sim_driver();

    broken.mempool_free = free_elsewhere;
    elsewhere = make_stream(RMM_STREAM_NON_BLOCKING);
    assert_true(run_seeds(create_async, &broken) > 0);
    assert_cuda(sim_driver()->stream_destroy(elsewhere));
}

/* CUDA refuses the free; the graph may use the block at each launch. */
TEST_CASE(a_block_freed_in_a_later_capture_lives_as_long_as_the_pool)
{
    rmm_resource_t *mr;
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    uint64_t violations = rmm_sim_violations(); /* of the cases before */
    rmm_sim_graph_t graph;
    void *block;

    assert_ok(rmm_async_resource_create(NULL, &mr));
    block = take(mr, KIB, stream);
    assert_ok(rmm_stream_synchronize(stream));
    assert_cuda(rmm_sim_begin_capture(stream, 1));
    assert_cuda(rmm_sim_memset_async(block, 7, KIB, stream));
    give(mr, block, KIB, stream);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_int_equal(stats_of(mr).current_count, 0);
    for (int i = 0; i < 2; i++) {
        give(mr, take(mr, KIB, NULL), KIB, NULL);
        assert_ok(rmm_resource_trim(mr, 0));
        assert_cuda(rmm_sim_graph_launch(graph, stream));
    }
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(rmm_sim_violations(), violations);
}
