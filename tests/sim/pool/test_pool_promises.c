/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pools promise, counted and not timed: memory bounded by use, all of a pool's bytes
 * served, cost that does not grow with streams or chunks, captures and growth at the limit.
 */
#include "sim/pool/pool_harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#ifdef NDEBUG
enum { SHORT_STREAMS = 20000, SHORT_THREADS = 4000, PASSED_ON = 100000 };
enum { MANY_CHUNKS = 8000 };
#else /* heavy checks look at each chunk after each step */
enum { SHORT_STREAMS = 4000, SHORT_THREADS = 400, PASSED_ON = 20000 };
enum { MANY_CHUNKS = 1000 };
#endif
enum { MANY_STREAMS = 4096, IN_FLIGHT = 16 };

static engine_t *engine_of(rmm_resource_t *mr)
{
    return pool_from_base(mr)->engine;
}

/* --- memory bounded by use ----------------------------------------------------------- */

static void use_a_little(rmm_resource_t *pool, rmm_stream_t stream)
{
    void *small = take(pool, 256, stream);
    void *large = take(pool, 60 * KIB, stream);

    give(pool, small, 256, stream);
    give(pool, large, 60 * KIB, stream);
}

static void expect_little(rmm_resource_t *pool)
{
    assert_true(stats_of(pool).reserved_bytes <= 16 * MIB);
    assert_true(engine_of(pool)->streams.capacity <= 2048);
    assert_true(engine_of(pool)->blocks->heap_count <= 1024);
}

static void streams_that_end(bool are_synchronised)
{
    rmm_resource_t *pool = make_pool(0, 0);

    for (int i = 0; i < SHORT_STREAMS; i++) {
        rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);

        use_a_little(pool, stream);
        if (are_synchronised) {
            assert_ok(rmm_stream_synchronize(stream));
        }
        assert_ok(rmm_stream_destroy(stream));
    }
    expect_little(pool);
    rmm_resource_release(pool);
}

TEST_CASE(streams_that_end_leave_little_behind)
{
    streams_that_end(true);
}

TEST_CASE(streams_that_end_with_work_queued_leave_little_behind)
{
    streams_that_end(false);
}

static void *use_own_stream(void *argument)
{
    rmm_resource_t *pool = argument;

    for (int i = 0; i < 4; i++) {
        use_a_little(pool, RMM_STREAM_PER_THREAD);
    }
    assert_ok(rmm_stream_synchronize(RMM_STREAM_PER_THREAD));
    return NULL;
}

TEST_CASE(threads_that_end_leave_little_behind)
{
    rmm_resource_t *pool = make_pool(0, 0);

    for (int i = 0; i < SHORT_THREADS; i++) {
        pthread_t threads[2];

        for (int j = 0; j < 2; j++) {
            assert_int_equal(
                pthread_create(&threads[j], NULL, use_own_stream, pool), 0);
        }
        for (int j = 0; j < 2; j++) {
            assert_int_equal(pthread_join(threads[j], NULL), 0);
        }
    }
    expect_little(pool);
    rmm_resource_release(pool);
}

typedef struct line {
    rmm_resource_t *pool;
    rmm_stream_t streams[2];
    rmm_sim_event_t events[IN_FLIGHT];
    void *ring[IN_FLIGHT];
    atomic_int head, tail;
} line_t;

static size_t bytes_of_item(int i)
{
    return 20000 + (size_t)(i % 7) * 5000;
}

static void *consume(void *argument)
{
    line_t *line = argument;

    for (int i = 0; i < PASSED_ON; i++) {
        while (atomic_load(&line->head) <= i) {
            (void)sched_yield();
        }
        assert_cuda(
            rmm_sim_stream_wait_event(line->streams[1], line->events[i % IN_FLIGHT]));
        give(line->pool, line->ring[i % IN_FLIGHT], bytes_of_item(i), line->streams[1]);
        atomic_store(&line->tail, i + 1);
    }
    return NULL;
}

TEST_CASE(what_one_stream_allocates_and_another_frees_is_used_again)
{
    line_t line = {.pool = make_pool(0, 0)};
    pthread_t thread;

    for (int i = 0; i < 2; i++) {
        line.streams[i] = make_stream(RMM_STREAM_NON_BLOCKING);
    }
    for (int i = 0; i < IN_FLIGHT; i++) {
        assert_cuda(rmm_sim_event_create(&line.events[i]));
    }
    assert_int_equal(pthread_create(&thread, NULL, consume, &line), 0);
    for (int i = 0; i < PASSED_ON; i++) {
        while (i - atomic_load(&line.tail) >= IN_FLIGHT) {
            (void)sched_yield();
        }
        line.ring[i % IN_FLIGHT] = take(line.pool, bytes_of_item(i), line.streams[0]);
        assert_cuda(rmm_sim_event_record(line.events[i % IN_FLIGHT], line.streams[0]));
        atomic_store(&line.head, i + 1);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(stats_of(line.pool).reserved_bytes <= 16 * MIB);
    for (int i = 0; i < IN_FLIGHT; i++) {
        assert_cuda(rmm_sim_event_destroy(line.events[i]));
    }
    for (int i = 0; i < 2; i++) {
        assert_ok(rmm_stream_destroy(line.streams[i]));
    }
    rmm_resource_release(line.pool);
}

/* --- all bytes of a pool ------------------------------------------------------------- */

enum { BLOCKS_MOST = 70000 };
static void *blocks[BLOCKS_MOST];

static uint32_t take_all(rmm_resource_t *mr, size_t bytes, rmm_stream_t stream)
{
    uint32_t count = 0;

    while (count < BLOCKS_MOST &&
           rmm_resource_alloc(mr, bytes, 0, stream, &blocks[count]) == RMM_OK) {
        count++;
    }
    return count;
}

static void
give_all(rmm_resource_t *mr, uint32_t count, size_t bytes, rmm_stream_t stream)
{
    for (uint32_t i = 0; i < count; i++) {
        give(mr, blocks[i], bytes, stream);
    }
}

static void *churn(void *argument)
{
    rmm_resource_t *mr = argument;
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    void *mine[16];

    for (size_t i = 0; i < 2000; i++) {
        for (size_t j = 0; j < 16; j++) {
            mine[j] = take(mr, 256 * (1 + (i + j) % 40), stream);
        }
        for (size_t j = 0; j < 16; j++) {
            give(mr, mine[j], 256 * (1 + (i + j) % 40), stream);
        }
    }
    assert_ok(rmm_stream_destroy(stream));
    return NULL;
}

TEST_CASE(a_pool_of_so_many_bytes_serves_them)
{
    static const size_t sizes[] = {256, 4096, 5000, 65536, 209920, MIB, 16 * MIB};
    rmm_resource_t *pool = make_pool(16 * MIB, 16 * MIB);
    rmm_stream_t streams[4];
    pthread_t threads[4];

    for (int i = 0; i < 4; i++) {
        streams[i] = make_stream(RMM_STREAM_NON_BLOCKING);
    }
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            size_t units = (sizes[i] + 255) / 256;
            rmm_stream_t stream = streams[round == 0 ? 0 : i % 4];
            uint32_t count = take_all(pool, sizes[i], stream);

            assert_int_equal(count, 65536 / units);
            give_all(pool, count, sizes[i], stream);
        }
        for (int i = 0; i < 4 && round == 0; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, churn, pool), 0);
        }
        for (int i = 0; i < 4 && round == 0; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        }
    }
    for (int i = 0; i < 4; i++) {
        assert_ok(rmm_stream_destroy(streams[i]));
    }
    rmm_resource_release(pool);
}

TEST_CASE(blocks_of_one_size_fill_chunks_that_begin_anywhere)
{
    rmm_fixed_size_options_t options = RMM_FIXED_SIZE_OPTIONS_INIT;
    rmm_resource_t *upstream = make_pool(34 * MIB, 34 * MIB);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    void *first = take(upstream, 256, NULL); /* so that chunks begin behind a granule */
    rmm_resource_t *mr;
    uint32_t count;

    options.block_bytes = 64 * KIB;
    options.blocks_per_chunk = 128;
    assert_ok(rmm_fixed_size_resource_create(upstream, &options, &mr));
    count = take_all(mr, 64 * KIB, stream);
    assert_int_equal(count, 34 * 16 - 1); /* the last chunks are smaller */
    assert_int_equal(stats_of(mr).reserved_bytes, count * 64 * KIB);
    give_all(mr, count, 64 * KIB, stream);
    assert_int_equal(take_all(mr, 64 * KIB, NULL), count);
    give_all(mr, count, 64 * KIB, NULL);
    rmm_resource_release(mr);
    give(upstream, first, 256, NULL);
    rmm_resource_release(upstream);
    assert_ok(rmm_stream_destroy(stream));
}

/* --- cost ---------------------------------------------------------------------------- */

static rmm_driver_t counting;
static uint64_t queries, records, waits, barriers;

static int count_query(rmm_driver_event_t event)
{
    queries++;
    return sim_driver()->event_query(event);
}

static int count_record(rmm_driver_event_t event, rmm_stream_t stream)
{
    records++;
    return sim_driver()->event_record(event, stream);
}

static int count_wait(rmm_stream_t stream, rmm_driver_event_t event)
{
    waits++;
    return sim_driver()->stream_wait_event(stream, event);
}

static int count_barrier(void *ptr)
{
    barriers++;
    return sim_driver()->mem_free(ptr);
}

static void count_calls(rmm_resource_t *pool)
{
    counting = *sim_driver();
    counting.event_query = count_query;
    counting.event_record = count_record;
    counting.stream_wait_event = count_wait;
    counting.mem_free = count_barrier;
    pool_use_driver(pool, &counting);
    queries = records = waits = barriers = 0;
}

/* Pairs of one size; calls of the driver for all of them. */
static uint64_t
calls_of(rmm_resource_t *pool, size_t bytes, int pairs, rmm_stream_t stream)
{
    queries = records = waits = barriers = 0;
    for (int i = 0; i < pairs; i++) {
        give(pool, take(pool, bytes, stream), bytes, stream);
    }
    return queries + records + waits + barriers;
}

TEST_CASE(a_request_costs_as_many_calls_with_4096_streams)
{
    static rmm_stream_t streams[MANY_STREAMS];
    rmm_resource_t *pool = make_pool(1024 * MIB, 0);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);

    count_calls(pool);
    for (int i = 0; i < MANY_STREAMS; i++) {
        void *one;

        streams[i] = make_stream(RMM_STREAM_NON_BLOCKING);
        one = take(pool, KIB, streams[i]);
        give(pool, take(pool, KIB, streams[i]), KIB, streams[i]);
        give(pool, one, KIB, streams[i]);
    }
    assert_true(queries <= 66 * (uint64_t)MANY_STREAMS);
    assert_true(calls_of(pool, 4 * KIB, 1000, stream) <= 200);
    assert_true(calls_of(pool, 100 * KIB, 1000, stream) <= 400);
    assert_true(calls_of(pool, 512 * KIB, 100, stream) <= 100 * 34);
    assert_true(calls_of(pool, 64 * MIB, 10, stream) <= 10 * 200);
    for (int i = 0; i < MANY_STREAMS; i++) {
        assert_ok(rmm_stream_destroy(streams[i]));
    }
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(pool);
}

/* A large block in a bad place makes a later one fail: so it is worth asking what is done. */
TEST_CASE(only_a_large_request_asks_before_it_cuts_a_block)
{
    rmm_resource_t *pool = make_pool(1024 * MIB, 0);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_t other = make_stream(RMM_STREAM_NON_BLOCKING);
    void *small, *large[3];

    give(pool, take(pool, KIB, other), KIB, other);
    count_calls(pool);
    for (int i = 0; i < 64; i++) {
        give(pool, take(pool, KIB, stream), KIB, stream);
    }
    assert_int_equal(records, 1); /* an event covers these */
    small = take(pool, 64 * KIB, other);
    assert_int_equal(queries, 0);
    large[0] = take(pool, 512 * KIB, other);
    assert_true(queries > 0);
    assert_cuda(rmm_sim_device_synchronize());
    large[1] = take(pool, MIB, other); /* finds that all is done */
    queries = 0;
    large[2] = take(pool, 2 * MIB, other);
    assert_int_equal(queries, 0);
    give(pool, large[2], 2 * MIB, other);
    give(pool, large[1], MIB, other);
    give(pool, large[0], 512 * KIB, other);
    give(pool, small, 64 * KIB, other);
    assert_ok(rmm_stream_destroy(stream));
    assert_ok(rmm_stream_destroy(other));
    rmm_resource_release(pool);
}

/* A pair of the largest block of a pool whose streams have all the rest, in ns; the least of
 * some rounds. */
static uint64_t cost_of_largest(int streams_used)
{
    static rmm_stream_t streams[MANY_STREAMS];
    rmm_resource_t *pool = make_pool(64 * MIB, 64 * MIB);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    uint64_t least = UINT64_MAX;
    void *block;

    for (int i = 0; i < streams_used; i++) {
        streams[i] = make_stream(RMM_STREAM_NON_BLOCKING);
        block = take(pool, KIB, streams[i]);
        (void)take(pool, KIB, streams[i]);
        give(pool, block, KIB, streams[i]);
    }
    block = take(pool, 4 * KIB, stream);
    (void)take_all(pool, MIB, stream);
    (void)take_all(pool, 4 * KIB, stream);
    for (int round = 0; round < 20; round++) {
        struct timespec before, after;
        uint64_t took;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
        for (int i = 0; i < 50; i++) {
            give(pool, block, 4 * KIB, stream);
            block = take(pool, 4 * KIB, stream);
        }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
        took = (uint64_t)(after.tv_sec - before.tv_sec) * 1000000000 +
               (uint64_t)(after.tv_nsec - before.tv_nsec);
        least = took < least ? took : least;
    }
    for (int i = 0; i < streams_used; i++) {
        assert_ok(rmm_stream_destroy(streams[i]));
    }
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(pool);
    return least;
}

/* No call tells what is looked at: two costs on one machine do, far apart. */
TEST_CASE(a_pair_in_a_full_pool_looks_at_few_of_4096_streams)
{
    uint64_t few = cost_of_largest(16);

    assert_true(cost_of_largest(MANY_STREAMS) < 20 * few);
}

/* --- a request that is known to fail -------------------------------------------------- */

static uint64_t syncs_of(rmm_resource_t *pool)
{
    return engine_of(pool)->figures.sync_count;
}

/* Half of the pool is free, in two places. */
static void refuse_twice(rmm_resource_t *pool, rmm_stream_t stream)
{
    void *ptr = NULL;
    uint64_t syncs;

    assert_int_equal(take_all(pool, MIB, stream), 4);
    give(pool, blocks[0], MIB, stream);
    give(pool, blocks[2], MIB, stream);
    assert_int_equal(
        rmm_resource_alloc(pool, 2 * MIB, 0, stream, &ptr), RMM_ERR_OUT_OF_MEMORY);
    syncs = syncs_of(pool);
    assert_int_equal(
        rmm_resource_alloc(pool, 2 * MIB, 0, stream, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(syncs_of(pool), syncs);
    give(pool, blocks[1], MIB, stream);
    give(pool, take(pool, 2 * MIB, stream), 2 * MIB, stream);
    give(pool, blocks[3], MIB, stream);
    rmm_resource_release(pool);
}

TEST_CASE(what_was_refused_is_refused_at_once)
{
    rmm_resource_t *pool = make_virtual_pool(4 * MIB, 4 * MIB);

    refuse_twice(make_pool(4 * MIB, 4 * MIB), NULL);
    assert_ok(rmm_resource_trim(pool, 0)); /* takes memory out, and ends that */
    refuse_twice(pool, NULL);
}

/* --- a trim of many chunks ----------------------------------------------------------- */

static rmm_resource_t *trimmed;
static uint64_t returns, obtained;

static rmm_status_t
obtain_chunk(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    obtained++;
    return sim_driver()->mem_alloc(ptr_out, bytes) == RMM_DRIVER_OK
               ? RMM_OK
               : RMM_ERR_OUT_OF_MEMORY;
}

/* Not under the lock: the resource can be used from here. */
static void return_chunk(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    returns++;
    if (trimmed != NULL && returns % 100 == 0) {
        give(trimmed, take(trimmed, 256, NULL), 256, NULL);
    }
    assert_cuda(sim_driver()->mem_free(ptr));
}

TEST_CASE(a_trim_gives_each_chunk_back_once_and_without_the_lock)
{
    rmm_callback_options_t callbacks = RMM_CALLBACK_OPTIONS_INIT;
    rmm_fixed_size_options_t options = RMM_FIXED_SIZE_OPTIONS_INIT;
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_resource_t *upstream;
    rmm_resource_t *mr;

    callbacks.alloc = obtain_chunk;
    callbacks.dealloc = return_chunk;
    assert_ok(rmm_callback_resource_create(&callbacks, &upstream));
    options.block_bytes = 256;
    options.blocks_per_chunk = 8;
    assert_ok(rmm_fixed_size_resource_create(upstream, &options, &mr));
    rmm_resource_release(upstream);
    for (int i = 0; i < 8 * MANY_CHUNKS; i++) {
        blocks[i] = take(mr, 256, stream);
    }
    assert_int_equal(engine_of(mr)->chunks.count, MANY_CHUNKS);
    for (int i = 0; i < 8 * MANY_CHUNKS; i++) {
        if (i / 8 % 2 != 0) {
            give(mr, blocks[i], 256, stream);
        }
    }
    trimmed = mr;
    returns = 0;
    obtained = 0;
    assert_ok(rmm_resource_trim(mr, 0));
    trimmed = NULL;
    assert_true(returns >= MANY_CHUNKS / 2 - 1);
    assert_true(returns <= MANY_CHUNKS / 2 + obtained);
    assert_true(stats_of(mr).reserved_bytes <= (MANY_CHUNKS / 2 + 2) * 8 * 256);
    for (int i = 0; i < 8 * MANY_CHUNKS; i++) {
        if (i / 8 % 2 == 0) {
            give(mr, blocks[i], 256, stream);
        }
    }
    rmm_resource_release(mr);
    assert_ok(rmm_stream_destroy(stream));
}

/* --- captures ------------------------------------------------------------------------ */

static void capture_all(rmm_resource_t *pool, int streams_used)
{
    rmm_stream_t streams[2] = {
        make_stream(RMM_STREAM_NON_BLOCKING), make_stream(RMM_STREAM_NON_BLOCKING)};
    rmm_sim_graph_t graph;
    uint32_t count = 0;

    for (; count < 256; count++) {
        blocks[count] = take(pool, 64 * KIB, streams[count % (uint32_t)streams_used]);
    }
    for (uint32_t i = 0; i < count; i++) {
        give(pool, blocks[i], 64 * KIB, streams[i % (uint32_t)streams_used]);
    }
    assert_cuda(rmm_sim_begin_capture(streams[0], RMM_CAPTURE_MODE_THREAD_LOCAL));
    assert_int_equal(take_all(pool, 64 * KIB, streams[0]), 256);
    give_all(pool, 256, 64 * KIB, streams[0]);
    assert_cuda(rmm_sim_end_capture(streams[0], &graph));
    assert_cuda(rmm_sim_graph_launch(graph, streams[0]));
    assert_cuda(rmm_sim_graph_destroy(graph));
    for (int i = 0; i < 2; i++) {
        assert_ok(rmm_stream_destroy(streams[i]));
    }
    rmm_resource_release(pool);
}

TEST_CASE(a_capture_can_have_all_that_its_stream_freed)
{
    capture_all(make_pool(16 * MIB, 16 * MIB), 1);
    capture_all(make_virtual_pool(0, 16 * MIB), 1);
}

TEST_CASE(a_capture_can_have_all_that_two_streams_freed)
{
    capture_all(make_pool(16 * MIB, 16 * MIB), 2);
    capture_all(make_virtual_pool(0, 16 * MIB), 2);
}

TEST_CASE(a_capture_in_an_arena_can_have_what_another_stream_freed)
{
    rmm_resource_t *arena = make_arena(8 * MIB);
    rmm_stream_t streams[2] = {
        make_stream(RMM_STREAM_NON_BLOCKING), make_stream(RMM_STREAM_NON_BLOCKING)};
    rmm_sim_graph_t graph;
    uint32_t count;

    count = take_all(arena, 4 * KIB, streams[0]);
    give_all(arena, count, 4 * KIB, streams[0]);
    assert_cuda(rmm_sim_device_synchronize());
    assert_cuda(rmm_sim_begin_capture(streams[1], RMM_CAPTURE_MODE_THREAD_LOCAL));
    assert_true(take_all(arena, 4 * KIB, streams[1]) >= count / 2);
    assert_cuda(rmm_sim_end_capture(streams[1], &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    rmm_resource_release(arena);
    for (int i = 0; i < 2; i++) {
        assert_ok(rmm_stream_destroy(streams[i]));
    }
}

/* --- growth at the limit ------------------------------------------------------------- */

TEST_CASE(growth_takes_no_more_than_the_limit_leaves)
{
    rmm_limiting_options_t limit = RMM_LIMITING_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *limited;
    rmm_resource_t *pool;
    void *first;
    void *second;

    limit.limit_bytes = 6000;
    assert_ok(rmm_limiting_adaptor_create(cuda, &limit, &limited));
    rmm_resource_release(cuda);
    assert_ok(rmm_pool_resource_create(limited, NULL, &pool));
    rmm_resource_release(limited);
    first = take(share(pool), 1000, NULL);
    second = take(pool, 4000, NULL);
    give(pool, first, 1000, NULL);
    give(pool, second, 4000, NULL);
    rmm_resource_release(pool);
}

TEST_CASE(two_chunks_that_are_too_small_make_one_that_fits)
{
    rmm_resource_t *pool = make_pool(2 * MIB, 4 * MIB);
    rmm_stream_t streams[2] = {
        make_stream(RMM_STREAM_NON_BLOCKING), make_stream(RMM_STREAM_NON_BLOCKING)};
    void *first = take(pool, 2 * MIB, streams[0]);
    void *second = take(pool, 2 * MIB, streams[1]);

    assert_int_equal(engine_of(pool)->chunks.count, 2);
    give(pool, first, 2 * MIB, streams[0]);
    give(pool, second, 2 * MIB, streams[1]);
    first = take(pool, 4 * MIB, streams[0]);
    assert_int_equal(stats_of(pool).reserved_bytes, 4 * MIB);
    give(pool, first, 4 * MIB, streams[0]);
    for (int i = 0; i < 2; i++) {
        assert_ok(rmm_stream_destroy(streams[i]));
    }
    rmm_resource_release(pool);
}
