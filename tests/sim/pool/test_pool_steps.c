/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The number of steps that the engine takes: it depends neither on how many streams have free
 * memory nor on how many chunks, blocks or graphs there are. A step is a basic block. This program
 * has the sources of lib/pool compiled with -fsanitize-coverage=trace-pc, which calls the function
 * below at each of them; so the counts are the same in every run, whatever the machine does.
 *
 * A search is in a tree, hence the RATIO: a few levels more are allowed, a list is not.
 */
#include "sim/pool/pool_harness.h"

#include <inttypes.h>

#include "driver/sim/control.h"

#define RATIO_PERCENT 150
#define REPEATS 200
#define LARGE_REPEATS 50 /* of 16 queries each: fewer than the 1024 streams */

static _Thread_local uint64_t steps;

void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void)
{
    steps++;
}

static void assert_flat(const char *what, uint64_t few, uint64_t many)
{
    print_message(
        "%s: %" PRIu64 " steps, %" PRIu64 " where there are many\n", what, few, many);
    assert_true(few != 0);
    assert_true(many * 100 <= few * RATIO_PERCENT);
}

/* --- streams -------------------------------------------------------------------------- */

typedef struct costs {
    uint64_t alloc, dealloc, pair, large_pair; /* steps of all repetitions */
} costs_t;

static uint64_t steps_of_pairs(rmm_resource_t *pool, size_t bytes, rmm_stream_t stream)
{
    uint64_t before = steps;

    for (int i = 0; i < REPEATS; i++) {
        give(pool, take(pool, bytes, stream), bytes, stream);
    }
    return steps - before;
}

/* No size was freed last, so each request queries events before it cuts a block. */
static uint64_t steps_of_large(rmm_resource_t *pool, rmm_stream_t stream)
{
    uint64_t before = steps;

    for (size_t i = 0; i < LARGE_REPEATS; i++) {
        size_t bytes = 512 * KIB + i * 256;

        give(pool, take(pool, bytes, stream), bytes, stream);
    }
    return steps - before;
}

static costs_t measure(rmm_resource_t *pool, rmm_stream_t stream)
{
    void *blocks[REPEATS];
    costs_t costs;

    steps = 0;
    for (int i = 0; i < REPEATS; i++) {
        blocks[i] = take(pool, 4 * KIB, stream);
    }
    costs.alloc = steps;
    steps = 0;
    for (int i = 0; i < REPEATS; i++) {
        give(pool, blocks[i], 4 * KIB, stream);
    }
    costs.dealloc = steps;
    costs.pair = steps_of_pairs(pool, 100000, stream);
    costs.large_pair = steps_of_large(pool, stream);
    return costs;
}

/* A stream has two free blocks apart, and an event that covers them. */
static void leave_blocks(rmm_resource_t *pool, rmm_stream_t stream)
{
    void *first = take(pool, KIB, stream);
    void *second = take(pool, KIB, stream);

    give(pool, first, KIB, stream);
    for (int i = 0; i < BATCH_FREES; i++) {
        give(pool, second, KIB, stream);
        second = take(pool, KIB, stream);
    }
    give(pool, second, KIB, stream);
}

/* A pool in which each of many streams has left blocks, and one stream more. */
typedef struct crowd {
    rmm_resource_t *pool;
    rmm_stream_t *streams;
    uint32_t count;
    rmm_stream_t last;
} crowd_t;

static crowd_t crowd_begin(uint32_t count, int device_of_last)
{
    crowd_t crowd = {
        .pool = make_pool(1024 * MIB, 0),
        .streams = calloc(count, sizeof(*crowd.streams)),
        .count = count};

    assert_non_null(crowd.streams);
    for (uint32_t i = 0; i < count; i++) {
        assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &crowd.streams[i]));
    }
    assert_cuda(rmm__sim_device_set(device_of_last));
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &crowd.last));
    assert_cuda(rmm__sim_device_set(0));
    for (uint32_t i = 0; i < count; i++) {
        leave_blocks(crowd.pool, crowd.streams[i]);
    }
    return crowd;
}

static void crowd_end(crowd_t *crowd)
{
    for (uint32_t i = 0; i < crowd->count; i++) {
        assert_ok(rmm_stream_destroy(crowd->streams[i]));
    }
    assert_ok(rmm_stream_destroy(crowd->last));
    rmm_resource_release(crowd->pool);
    free(crowd->streams);
}

static costs_t costs_beside(uint32_t stream_count)
{
    crowd_t crowd = crowd_begin(stream_count, 0);
    costs_t costs = measure(crowd.pool, crowd.last);

    crowd_end(&crowd);
    return costs;
}

TEST_CASE(an_allocation_takes_as_many_steps_beside_4096_streams)
{
    costs_t few = costs_beside(64);
    costs_t some = costs_beside(1024);
    costs_t many = costs_beside(4096);

    assert_flat("allocations of 4 KiB", few.alloc, many.alloc);
    assert_flat("frees of 4 KiB", few.dealloc, many.dealloc);
    assert_flat("pairs of 100 kB", few.pair, many.pair);
    assert_flat("pairs of 512 KiB", some.large_pair, many.large_pair);
}

static uint64_t steps_elsewhere_beside(uint32_t stream_count)
{
    crowd_t crowd = crowd_begin(stream_count, 1);
    uint64_t pairs = steps_of_pairs(crowd.pool, 4 * KIB, crowd.last);

    crowd_end(&crowd);
    return pairs;
}

TEST_CASE(a_free_elsewhere_takes_as_many_steps_beside_4096_streams)
{
    assert_flat(
        "pairs on another device's stream", steps_elsewhere_beside(64),
        steps_elsewhere_beside(4096));
}

/* --- blocks --------------------------------------------------------------------------- */

/* Every second block is free, so no two are neighbours; none fits. */
static uint64_t pair_beside_free_blocks(uint32_t count)
{
    rmm_resource_t *pool = make_pool(1024 * MIB, 0);
    void **blocks = calloc(2 * (size_t)count, sizeof(*blocks));
    uint64_t pairs;

    assert_non_null(blocks);
    for (uint32_t i = 0; i < 2 * count; i++) {
        blocks[i] = take(pool, KIB, NULL);
    }
    for (uint32_t i = 0; i < 2 * count; i += 2) {
        give(pool, blocks[i], KIB, NULL);
    }
    pairs = 0;
    for (size_t bytes = 2 * KIB; bytes < 2 * KIB + 32 * 256; bytes += 256) {
        steps = 0; /* of a size that was not freed last */
        give(pool, take(pool, bytes, NULL), bytes, NULL);
        pairs += steps;
    }
    rmm_resource_release(pool);
    free(blocks);
    return pairs;
}

TEST_CASE(an_allocation_takes_as_many_steps_among_100000_free_blocks)
{
    assert_flat(
        "pairs", pair_beside_free_blocks(1000), pair_beside_free_blocks(100000));
}

/* --- graphs --------------------------------------------------------------------------- */

typedef struct graph_costs {
    uint64_t capture, pair, gone; /* steps of all repetitions */
} graph_costs_t;

/* A graph that keeps 64 KiB of the pool. */
static rmm_sim_graph_t capture_use(rmm_resource_t *pool, rmm_stream_t stream)
{
    rmm_sim_graph_t graph;

    assert_int_equal(rmm_sim_begin_capture(stream, 0), 0);
    give(pool, take(pool, 64 * KIB, stream), 64 * KIB, stream);
    assert_int_equal(rmm_sim_end_capture(stream, &graph), 0);
    return graph;
}

/* Each pair makes the largest free block of the pool one of a graph, and undoes it. */
static uint64_t steps_of_pairs_beside(rmm_resource_t *pool, rmm_stream_t stream)
{
    void *block = take(pool, 65 * KIB, stream);
    void *rest = NULL;

    for (size_t bytes = 1024 * MIB; bytes >= 4 * KIB; bytes /= 2) {
        while (rmm_resource_alloc(pool, bytes, 0, stream, &rest) == RMM_OK) {
        }
    }
    give(pool, block, 65 * KIB, stream);
    return steps_of_pairs(pool, 4 * KIB, stream);
}

/* The pool is told of each graph at the next query of events. */
static uint64_t
steps_of_ends(rmm_resource_t *pool, rmm_stream_t stream, const rmm_sim_graph_t *graphs)
{
    steps = 0;
    for (size_t i = 0; i < REPEATS; i++) {
        assert_int_equal(rmm_sim_graph_destroy(graphs[i]), 0);
        (void)rmm__engine_reclaim(pool_from_base(pool)->engine, 1);
    }
    return steps;
}

static graph_costs_t costs_beside_graphs(uint32_t count)
{
    rmm_resource_t *pool = make_pool(1024 * MIB, 1024 * MIB);
    rmm_sim_graph_t *graphs = calloc(count + REPEATS, sizeof(*graphs));
    rmm_stream_t stream;
    graph_costs_t costs;

    assert_non_null(graphs);
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    for (uint32_t i = 0; i < count + REPEATS; i++) {
        steps = i == count ? 0 : steps;
        graphs[i] = capture_use(pool, stream);
    }
    costs.capture = steps;
    costs.pair = steps_of_pairs_beside(pool, stream);
    costs.gone = steps_of_ends(pool, stream, &graphs[count]);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(rmm_sim_graph_destroy(graphs[i]), 0);
    }
    rmm_resource_release(pool);
    assert_ok(rmm_stream_destroy(stream));
    free(graphs);
    return costs;
}

TEST_CASE(a_capture_takes_as_many_steps_beside_8192_graphs)
{
    graph_costs_t few = costs_beside_graphs(128);
    graph_costs_t many = costs_beside_graphs(8192);

    assert_flat("captures of a pair", few.capture, many.capture);
    assert_flat("pairs of 4 KiB", few.pair, many.pair);
    assert_flat("ends of graphs", few.gone, many.gone);
}

/* --- chunks --------------------------------------------------------------------------- */

typedef struct chunk_costs {
    uint64_t growth; /* steps of the last growths */
    uint64_t trim;   /* steps for each chunk of a trim of which one half goes */
} chunk_costs_t;

/* Each block is a chunk. */
static chunk_costs_t chunk_steps(uint32_t chunk_count)
{
    rmm_resource_t *mr = make_fixed(256, 1);
    void **blocks = calloc(chunk_count, sizeof(*blocks));
    chunk_costs_t costs;

    assert_non_null(blocks);
    for (uint32_t i = 0; i < chunk_count; i++) {
        steps = i == chunk_count - REPEATS ? 0 : steps;
        blocks[i] = take(mr, 256, NULL);
    }
    costs.growth = steps;
    for (uint32_t i = 0; i < chunk_count; i += 2) {
        give(mr, blocks[i], 256, NULL);
    }
    steps = 0;
    assert_ok(rmm_resource_trim(mr, 0));
    assert_int_equal(stats_of(mr).reserved_bytes, chunk_count / 2 * 256);
    costs.trim = steps / chunk_count;
    rmm_resource_release(mr);
    free(blocks);
    return costs;
}

TEST_CASE(growth_and_trim_take_as_many_steps_for_each_of_60000_chunks)
{
    chunk_costs_t few = chunk_steps(5000);
    chunk_costs_t many = chunk_steps(60000);

    assert_flat("growth by a chunk", few.growth, many.growth);
    assert_flat("trim of a chunk", few.trim, many.trim);
}

/* --- pieces --------------------------------------------------------------------------- */

/* Steps of refusals, each after a small free, in a virtual pool whose pieces are all in use. */
static uint64_t steps_of_refusals(uint64_t maximum_bytes)
{
    rmm_resource_t *pool = make_virtual_pool(0, maximum_bytes);
    uint32_t count = (uint32_t)(maximum_bytes / MIB) - 1;
    void **blocks = calloc(count, sizeof(*blocks));
    void *small[REPEATS], *none = NULL;
    uint64_t taken;

    assert_non_null(blocks);
    for (uint32_t i = 0; i < count; i++) {
        blocks[i] = take(pool, MIB, NULL);
    }
    for (int i = 0; i < REPEATS; i++) {
        small[i] = take(pool, KIB, NULL);
    }
    for (uint32_t i = 0; i < count; i += 2) { /* one block of two in each piece */
        give(pool, blocks[i], MIB, NULL);
    }
    assert_int_equal(
        rmm_resource_alloc(pool, 4 * MIB, 0, NULL, &none), RMM_ERR_OUT_OF_MEMORY);
    steps = 0;
    for (int i = 0; i < REPEATS; i++) {
        give(pool, small[i], KIB, NULL);
        assert_int_equal(
            rmm_resource_alloc(pool, 4 * MIB, 0, NULL, &none), RMM_ERR_OUT_OF_MEMORY);
    }
    taken = steps;
    for (uint32_t i = 1; i < count; i += 2) {
        give(pool, blocks[i], MIB, NULL);
    }
    rmm_resource_release(pool);
    free(blocks);
    return taken;
}

/* A look-up of one piece takes some 90 steps, and a refusal would need two. */
TEST_CASE(a_refusal_looks_up_no_pieces_that_are_in_use)
{
    uint64_t pieces = 2048;
    uint64_t taken = steps_of_refusals(pieces * 2 * MIB) / REPEATS / pieces;

    print_message("%" PRIu64 " steps for each piece\n", taken);
    assert_true(taken < 60);
}
