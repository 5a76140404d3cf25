/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools and arenas over an upstream that works in stream order, while a blocking stream
 * captures: any operation on the legacy stream would ruin that capture.
 */
#include "sim/pool/pool_harness.h"

enum { GLOBAL = 0, RELAXED = 2 };

/* The upstream allocates on another stream than it freed on, and records an event for each
 * chunk that comes back. */
static void grow_and_trim_in_captures(rmm_resource_t *upstream)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_stream_t stream = make_stream(0);
    rmm_resource_t *pool;

    assert_ok(rmm_pool_resource_create(upstream, &options, &pool));
    for (int mode = GLOBAL; mode <= RELAXED; mode++) {
        rmm_stream_t other = make_stream(RMM_STREAM_NON_BLOCKING);
        rmm_sim_graph_t graph;
        void *block;

        give(upstream, take(upstream, 8 * MIB, other), 8 * MIB, other);
        assert_cuda(rmm_sim_begin_capture(stream, mode));
        block = take(pool, 8 * MIB, stream);
        give(pool, take(pool, 2 * MIB, other), 2 * MIB, other);
        (void)!rmm_resource_trim(pool, 0);
        give(pool, block, 8 * MIB, stream);
        assert_cuda(rmm_sim_end_capture(stream, &graph));
        assert_cuda(rmm_sim_graph_destroy(graph));
        assert_cuda(sim_driver()->stream_destroy(other));
    }
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(pool);
    rmm_resource_release(upstream);
}

TEST_CASE(grows_over_a_pool_in_captures_of_blocking_streams)
{
    grow_and_trim_in_captures(make_pool(0, 0));
}

TEST_CASE(grows_over_cudas_pool_in_captures_of_blocking_streams)
{
    rmm_resource_t *async;

    assert_ok(rmm_async_resource_create(NULL, &async));
    grow_and_trim_in_captures(async);
}

TEST_CASE(an_arena_begins_in_a_capture_of_a_blocking_stream)
{
    rmm_arena_options_t options = RMM_ARENA_OPTIONS_INIT;
    rmm_stream_t stream = make_stream(0);
    rmm_resource_t *pool = make_pool(0, 0);
    rmm_sim_graph_t graph;
    rmm_resource_t *arena;

    options.arena_bytes = 4 * MIB;
    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    assert_ok(rmm_arena_resource_create(pool, &options, &arena));
    give(arena, take(arena, MIB, stream), MIB, stream);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(arena);
    rmm_resource_release(pool);
}
