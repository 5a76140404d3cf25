/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools of the simulated GPU: stream order, reuse, what is reserved, graphs, and
 * that a program which forgets the order is caught. One device of 256 MiB.
 */
#include "sim/driver/sim_harness.h"

#include "driver/sim/control.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)
#define BLOCK 4096
#define KEEP_ALL UINT64_MAX

static rmm_driver_mempool_t make_pool(uint64_t threshold)
{
    rmm_driver_mempool_t pool = NULL;

    assert_cuda(sim_driver()->mempool_create(0, RMM_DRIVER_ON_DEVICE, &pool));
    assert_cuda(sim_driver()->mempool_set_threshold(pool, threshold));
    return pool;
}

static void end_pool(rmm_driver_mempool_t pool)
{
    assert_cuda(sim_driver()->mempool_destroy(pool));
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

static char *alloc_from(rmm_driver_mempool_t pool, size_t bytes, rmm_stream_t stream)
{
    void *ptr = NULL;

    assert_cuda(sim_driver()->mempool_alloc(pool, &ptr, bytes, stream));
    assert_int_equal((uintptr_t)ptr % 512, 0);
    return ptr;
}

static void free_on(void *ptr, rmm_stream_t stream)
{
    assert_cuda(sim_driver()->mempool_free(ptr, stream));
}

static rmm_driver_mempool_figures_t figures_of(rmm_driver_mempool_t pool)
{
    rmm_driver_mempool_figures_t figures;

    assert_cuda(sim_driver()->mempool_figures(pool, &figures));
    return figures;
}

static bool is_all(const char *seen, int value)
{
    for (size_t i = 0; i < BLOCK; i++) {
        if (seen[i] != (char)value) {
            return false;
        }
    }
    return true;
}

/* ---- order ---- */

TEST_CASE(work_sees_the_block_as_its_stream_left_it)
{
    static char fresh[BLOCK], used[BLOCK], freed[BLOCK];
    rmm_driver_mempool_t pool = make_pool(KEEP_ALL);

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
        char *block;

        rmm__sim_reseed(seed);
        block = alloc_from(pool, BLOCK, stream);
        assert_cuda(rmm_sim_memcpy_async(fresh, block, BLOCK, stream));
        assert_cuda(rmm_sim_memset_async(block, 'x', BLOCK, stream));
        assert_cuda(rmm_sim_memcpy_async(used, block, BLOCK, stream));
        free_on(block, stream);
        assert_cuda(rmm_sim_memcpy_async(freed, block, BLOCK, stream)); /* too late */
        assert_cuda(sim_driver()->stream_synchronize(stream));
        assert_true(is_all(fresh, RMM_SIM_POISON_ALLOC));
        assert_true(is_all(used, 'x'));
        assert_true(is_all(freed, RMM_SIM_POISON_FREE));
        assert_cuda(sim_driver()->stream_destroy(stream));
    }
    assert_int_equal(rmm_sim_violations(), 0);
    end_pool(pool);
}

TEST_CASE(the_same_stream_has_a_freed_block_again_at_once)
{
    static char seen[2][BLOCK];
    rmm_driver_mempool_t pool = make_pool(KEEP_ALL);

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
        char *first, *second;

        rmm__sim_reseed(seed);
        first = alloc_from(pool, BLOCK, stream);
        assert_cuda(rmm_sim_memset_async(first, '1', BLOCK, stream));
        assert_cuda(rmm_sim_memcpy_async(seen[0], first, BLOCK, stream));
        free_on(first, stream);
        second = alloc_from(pool, BLOCK, stream);
        assert_ptr_equal(second, first);
        assert_cuda(rmm_sim_memset_async(second, '2', BLOCK, stream));
        assert_cuda(rmm_sim_memcpy_async(seen[1], second, BLOCK, stream));
        free_on(second, stream);
        assert_cuda(sim_driver()->stream_synchronize(stream));
        assert_true(is_all(seen[0], '1'));
        assert_true(is_all(seen[1], '2'));
        assert_cuda(sim_driver()->stream_destroy(stream));
    }
    assert_int_equal(rmm_sim_violations(), 0);
    end_pool(pool);
}

/* Blocks wander between streams as the pool likes; each user sees its own bytes. */
TEST_CASE(no_two_streams_ever_share_a_block)
{
    enum { STREAMS = 4, STEPS = 60 };
    static char seen[STEPS][BLOCK];
    rmm_driver_mempool_t pool = make_pool(KEEP_ALL);

    for (uint64_t seed = 0; seed < SEEDS / 4; seed++) {
        rmm_stream_t streams[STREAMS];

        rmm__sim_reseed(seed);
        for (int i = 0; i < STREAMS; i++) {
            streams[i] = make_stream(RMM_STREAM_NON_BLOCKING);
        }
        for (int step = 0; step < STEPS; step++) {
            rmm_stream_t stream = streams[(step * 7 + (int)seed) % STREAMS];
            size_t bytes = BLOCK + 512 * (size_t)(step % 3);
            char *block = alloc_from(pool, bytes, stream);

            assert_cuda(rmm_sim_memset_async(block, step, BLOCK, stream));
            assert_cuda(rmm_sim_memcpy_async(seen[step], block, BLOCK, stream));
            free_on(block, stream);
        }
        assert_cuda(rmm_sim_device_synchronize());
        for (int step = 0; step < STEPS; step++) {
            assert_true(is_all(seen[step], step));
        }
        for (int i = 0; i < STREAMS; i++) {
            assert_cuda(sim_driver()->stream_destroy(streams[i]));
        }
    }
    assert_int_equal(rmm_sim_violations(), 0);
    end_pool(pool);
}

/* A block of stream a, filled on stream b, with or without waiting for a. */
static bool crosses_safely(rmm_driver_mempool_t pool, bool waits, uint64_t seed)
{
    static char seen[BLOCK];
    rmm_stream_t a = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_t b = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_sim_event_t event;
    char *block;

    rmm__sim_reseed(seed);
    assert_cuda(rmm_sim_event_create(&event));
    block = alloc_from(pool, BLOCK, a);
    if (waits) {
        assert_cuda(rmm_sim_event_record(event, a));
        assert_cuda(rmm_sim_stream_wait_event(b, event));
    }
    assert_cuda(rmm_sim_memset_async(block, 'b', BLOCK, b));
    assert_cuda(rmm_sim_memcpy_async(seen, block, BLOCK, b));
    if (waits) {
        assert_cuda(rmm_sim_event_record(event, b));
        assert_cuda(rmm_sim_stream_wait_event(a, event));
    }
    free_on(block, a);
    assert_cuda(rmm_sim_device_synchronize());
    assert_cuda(rmm_sim_event_destroy(event));
    assert_cuda(sim_driver()->stream_destroy(a));
    assert_cuda(sim_driver()->stream_destroy(b));
    return is_all(seen, 'b');
}

TEST_CASE(catches_a_stream_that_does_not_wait_for_the_allocation)
{
    rmm_driver_mempool_t pool = make_pool(KEEP_ALL);
    int corrupted = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        assert_true(crosses_safely(pool, true, seed));
        corrupted += !crosses_safely(pool, false, seed);
    }
    assert_true(corrupted > SEEDS / 8);
    assert_int_equal(rmm_sim_violations(), 0);
    end_pool(pool);
}

TEST_CASE(catches_a_free_that_does_not_wait_for_the_allocation)
{
    rmm_driver_mempool_t pool = make_pool(KEEP_ALL);
    uint64_t before = rmm_sim_violations();

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        rmm_stream_t a = make_stream(RMM_STREAM_NON_BLOCKING);
        rmm_stream_t b = make_stream(RMM_STREAM_NON_BLOCKING);

        rmm__sim_reseed(seed);
        free_on(alloc_from(pool, BLOCK, a), b);
        assert_cuda(rmm_sim_device_synchronize());
        assert_cuda(sim_driver()->stream_destroy(a));
        assert_cuda(sim_driver()->stream_destroy(b));
    }
    assert_true(rmm_sim_violations() - before > SEEDS / 8);
    assert_non_null(strstr(rmm__sim_violation_text(), "ran before its allocation"));
    end_pool(pool);
}

/* ---- what is reserved ---- */

TEST_CASE(keeps_no_more_than_the_threshold_when_a_program_waits)
{
    rmm_driver_mempool_t pool = make_pool(KEEP_ALL);
    uint64_t threshold = 1, free_bytes, total_bytes;
    char *one, *two;

    assert_cuda(sim_driver()->mempool_get_threshold(pool, &threshold));
    assert_true(threshold == KEEP_ALL);
    one = alloc_from(pool, BLOCK, NULL);
    two = alloc_from(pool, 40 * MIB, NULL);
    assert_int_equal(figures_of(pool).used_bytes, 40 * MIB + BLOCK);
    assert_int_equal(figures_of(pool).reserved_bytes, 96 * MIB);
    assert_int_equal(rmm_sim_allocated_bytes(0), 96 * MIB);
    assert_cuda(sim_driver()->memory_info(&free_bytes, &total_bytes));
    assert_int_equal(total_bytes - free_bytes, 96 * MIB);
    free_on(two, NULL);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(figures_of(pool).used_bytes, BLOCK);
    assert_int_equal(figures_of(pool).reserved_bytes, 96 * MIB);

    assert_cuda(sim_driver()->mempool_set_threshold(pool, 32 * MIB));
    assert_int_equal(figures_of(pool).reserved_bytes, 96 * MIB);
    assert_cuda(sim_driver()->stream_synchronize(NULL));
    assert_int_equal(figures_of(pool).reserved_bytes, 32 * MIB);
    free_on(one, NULL);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(figures_of(pool).reserved_bytes, 32 * MIB);
    assert_cuda(sim_driver()->mempool_trim(pool, 0));
    assert_int_equal(figures_of(pool).reserved_bytes, 0);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    end_pool(pool);
}

TEST_CASE(gives_everything_back_by_default)
{
    rmm_driver_mempool_t pool = NULL;
    uint64_t threshold = 1;

    assert_cuda(sim_driver()->mempool_create(0, RMM_DRIVER_ON_DEVICE, &pool));
    assert_cuda(sim_driver()->mempool_get_threshold(pool, &threshold));
    assert_int_equal(threshold, 0);
    free_on(alloc_from(pool, BLOCK, NULL), NULL);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(figures_of(pool).reserved_bytes, 0);
    end_pool(pool);
}

TEST_CASE(trims_nothing_that_is_in_use)
{
    rmm_driver_mempool_t pool = make_pool(KEEP_ALL);
    char *one = alloc_from(pool, 20 * MIB, NULL);
    char *two = alloc_from(pool, 20 * MIB, NULL);

    assert_int_equal(figures_of(pool).reserved_bytes, 64 * MIB);
    assert_cuda(rmm_sim_memset_async(one, 'k', BLOCK, NULL));
    free_on(two, NULL);
    assert_cuda(rmm_sim_device_synchronize());
    assert_cuda(sim_driver()->mempool_trim(pool, 32 * MIB + 1));
    assert_int_equal(
        figures_of(pool).reserved_bytes, 64 * MIB); /* so many stay at least */
    assert_cuda(sim_driver()->mempool_trim(pool, 32 * MIB));
    assert_int_equal(figures_of(pool).reserved_bytes, 32 * MIB);
    assert_cuda(sim_driver()->mempool_trim(pool, 0));
    assert_int_equal(figures_of(pool).reserved_bytes, 32 * MIB);
    assert_true(is_all(one, 'k'));
    free_on(one, NULL);
    end_pool(pool);
}

TEST_CASE(takes_what_other_pools_do_not_use_before_it_fails)
{
    rmm_driver_mempool_t hoarder = make_pool(KEEP_ALL);
    rmm_driver_mempool_t pool = make_pool(KEEP_ALL);
    void *none = NULL;
    char *all;

    free_on(alloc_from(hoarder, 200 * MIB, NULL), NULL);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(figures_of(hoarder).reserved_bytes, 224 * MIB);
    all = alloc_from(pool, 256 * MIB, NULL);
    assert_int_equal(figures_of(hoarder).reserved_bytes, 0);
    assert_int_equal(
        sim_driver()->mempool_alloc(pool, &none, 1, NULL),
        RMM_DRIVER_MEMORY_ALLOCATION);
    assert_int_equal(
        sim_driver()->mempool_alloc(pool, &none, SIZE_MAX, NULL),
        RMM_DRIVER_MEMORY_ALLOCATION);
    assert_null(none);
    assert_int_equal(figures_of(pool).used_bytes, 256 * MIB);
    free_on(all, NULL);
    assert_cuda(sim_driver()->mempool_destroy(hoarder));
    end_pool(pool);
}

TEST_CASE(a_destroyed_pool_stays_for_its_last_block)
{
    rmm_driver_mempool_t pool = make_pool(0);
    uint64_t before = rmm_sim_violations();
    char *block = alloc_from(pool, BLOCK, NULL);
    void *none = NULL;

    assert_cuda(sim_driver()->mempool_destroy(pool));
    assert_int_equal(
        sim_driver()->mempool_alloc(pool, &none, 1, NULL), RMM_DRIVER_INVALID_HANDLE);
    assert_int_equal(sim_driver()->mempool_destroy(pool), RMM_DRIVER_INVALID_HANDLE);
    assert_int_equal(rmm_sim_violations(), before + 2);
    assert_cuda(rmm_sim_memset_async(block, 'd', BLOCK, NULL));
    assert_cuda(rmm_sim_device_synchronize());
    assert_true(is_all(block, 'd'));
    assert_int_equal(rmm_sim_allocated_bytes(0), 32 * MIB);
    free_on(block, NULL);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

/* ---- frees ---- */

TEST_CASE(refuses_frees_that_cannot_be_right)
{
    rmm_driver_mempool_t pool = make_pool(KEEP_ALL);
    uint64_t before = rmm_sim_violations();
    char *block = alloc_from(pool, BLOCK, NULL);
    void *plain = NULL;

    assert_int_equal(
        sim_driver()->mempool_free(block + 512, NULL), RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(sim_driver()->mem_free(block + 512), RMM_DRIVER_INVALID_VALUE);
    free_on(block, NULL);
    assert_int_equal(sim_driver()->mempool_free(block, NULL), RMM_DRIVER_INVALID_VALUE);
    assert_non_null(strstr(rmm__sim_violation_text(), "freed twice"));
    assert_int_equal(sim_driver()->mem_free(block), RMM_DRIVER_INVALID_VALUE);
    assert_cuda(sim_driver()->mem_alloc(&plain, BLOCK));
    assert_int_equal(sim_driver()->mempool_free(plain, NULL), RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(rmm_sim_violations(), before + 5);
    assert_cuda(sim_driver()->mem_free(plain));
    end_pool(pool);
}

TEST_CASE(mem_free_takes_blocks_of_a_pool_too)
{
    rmm_driver_mempool_t pool = make_pool(KEEP_ALL);
    uint64_t before = rmm_sim_violations();

    for (uint64_t seed = 0; seed < 50; seed++) {
        rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
        static char seen[BLOCK];
        char *block;

        rmm__sim_reseed(seed);
        assert_cuda(sim_driver()->mem_free(alloc_from(pool, BLOCK, stream)));
        block = alloc_from(pool, BLOCK, stream);
        assert_cuda(rmm_sim_memset_async(block, 'm', BLOCK, stream));
        assert_cuda(rmm_sim_memcpy_async(seen, block, BLOCK, stream));
        assert_cuda(sim_driver()->stream_synchronize(stream));
        assert_cuda(sim_driver()->mem_free(block));
        assert_true(is_all(seen, 'm'));
        assert_true(is_all(block, RMM_SIM_POISON_FREE));
        assert_int_equal(figures_of(pool).used_bytes, BLOCK); /* as CUDA counts */
        assert_cuda(sim_driver()->stream_synchronize(stream));
        assert_int_equal(figures_of(pool).used_bytes, 0);
        assert_cuda(sim_driver()->stream_destroy(stream));
    }
    assert_int_equal(rmm_sim_violations(), before);
    end_pool(pool);
}

/* cudaFree "will not perform any implicit synchronization" for it: a program that needs one is
 * caught, unless its work has run by chance. */
TEST_CASE(mem_free_of_a_pools_block_does_not_wait)
{
    rmm_driver_mempool_t pool = make_pool(KEEP_ALL);
    int caught = 0, late = 0;

    for (uint64_t seed = 0; seed < 50; seed++) {
        rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
        uint64_t before = rmm_sim_violations();
        char *block = alloc_from(pool, BLOCK, stream);
        static char seen[BLOCK];

        assert_cuda(sim_driver()->stream_synchronize(stream));
        rmm__sim_reseed(seed);
        memset(seen, 'b', BLOCK);
        assert_cuda(rmm_sim_memset_async(seen, 's', BLOCK, NULL));
        assert_cuda(rmm_sim_memset_async(block, 'm', BLOCK, stream));
        assert_cuda(sim_driver()->mem_free(block));
        caught += rmm_sim_violations() == before + 1;
        late += is_all(seen, 'b');
        assert_cuda(rmm_sim_device_synchronize());
        assert_cuda(sim_driver()->stream_destroy(stream));
    }
    assert_true(caught > 10 && caught < 50);
    assert_true(late > 10);
    assert_non_null(strstr(rmm__sim_violation_text(), "a queued copy or fill uses"));
    end_pool(pool);
}

/* ---- managed pools, properties ---- */

TEST_CASE(the_managed_pool_is_the_devices_own)
{
    uint64_t before = rmm_sim_violations();
    rmm_driver_mempool_t pool = NULL, again = NULL;
    char *block;

    assert_cuda(sim_driver()->mempool_managed(&pool));
    assert_cuda(sim_driver()->mempool_managed(&again));
    assert_ptr_equal(pool, again);
    assert_int_equal(sim_driver()->mempool_destroy(pool), RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(rmm_sim_violations(), before + 1);
    block = alloc_from(pool, BLOCK, NULL);
    assert_cuda(sim_driver()->mem_prefetch(block, BLOCK, 0, NULL));
    assert_int_equal(rmm__sim_prefetched_to(block, BLOCK), 0);
    free_on(block, NULL);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(rmm__sim_prefetched_to(block, BLOCK), SIM_NOWHERE);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0); /* threshold 0 */

    pool = make_pool(0);
    block = alloc_from(pool, BLOCK, NULL);
    assert_int_equal(
        sim_driver()->mem_prefetch(block, BLOCK, 0, NULL), RMM_DRIVER_INVALID_VALUE);
    free_on(block, NULL);
    end_pool(pool);
}

TEST_CASE(refuses_handles_that_cannot_be_shared)
{
    rmm_driver_mempool_t pool = NULL;

    assert_cuda(sim_driver()->mempool_create(1, RMM_DRIVER_ON_DEVICE, &pool));
    end_pool(pool);
    assert_int_equal(
        sim_driver()->mempool_create(2, RMM_DRIVER_ON_DEVICE, &pool),
        RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(
        sim_driver()->mempool_create(16, RMM_DRIVER_ON_DEVICE, &pool),
        RMM_DRIVER_INVALID_VALUE);
}

TEST_CASE(zero_bytes_are_not_a_block)
{
    rmm_driver_mempool_t pool = make_pool(0);
    void *none = &pool;

    assert_cuda(sim_driver()->mempool_alloc(pool, &none, 0, NULL));
    assert_null(none);
    assert_cuda(sim_driver()->mempool_free(none, NULL));
    assert_int_equal(figures_of(pool).reserved_bytes, 0);
    end_pool(pool);
}

/* ---- graphs ---- */

TEST_CASE(a_graph_owns_what_its_capture_allocates)
{
    static char seen[BLOCK];
    rmm_driver_mempool_t pool = make_pool(0);
    uint64_t before = rmm_sim_violations();

    for (uint64_t seed = 0; seed < 50; seed++) {
        rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
        rmm_sim_graph_t graph;
        char *block;

        rmm__sim_reseed(seed);
        assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_GLOBAL));
        block = alloc_from(pool, BLOCK, stream);
        assert_cuda(rmm_sim_memset_async(block, 'g', BLOCK, stream));
        assert_cuda(rmm_sim_memcpy_async(seen, block, BLOCK, stream));
        free_on(block, stream);
        assert_cuda(rmm_sim_end_capture(stream, &graph));
        assert_int_equal(figures_of(pool).used_bytes, 0);
        assert_int_equal(rmm_sim_allocated_bytes(0), BLOCK);
        for (int i = 0; i < 3; i++) {
            memset(seen, 0, sizeof(seen));
            assert_cuda(rmm_sim_graph_launch(graph, stream));
            assert_cuda(sim_driver()->stream_synchronize(stream));
            assert_true(is_all(seen, 'g'));
            assert_true(is_all(block, RMM_SIM_POISON_FREE));
        }
        assert_cuda(rmm_sim_graph_launch(graph, stream));
        assert_cuda(rmm_sim_graph_destroy(graph)); /* and still runs */
        assert_cuda(sim_driver()->stream_synchronize(stream));
        assert_int_equal(rmm_sim_allocated_bytes(0), 0);
        assert_cuda(sim_driver()->stream_destroy(stream));
    }
    assert_int_equal(rmm_sim_violations(), before);
    end_pool(pool);
}

TEST_CASE(memory_of_a_graph_may_be_freed_outside_of_it)
{
    rmm_driver_mempool_t pool = make_pool(0);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    uint64_t before = rmm_sim_violations();
    rmm_sim_graph_t graph;
    char *block;

    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_GLOBAL));
    block = alloc_from(pool, BLOCK, stream);
    assert_cuda(rmm_sim_memset_async(block, 'o', BLOCK, stream));
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    for (int i = 0; i < 2; i++) {
        assert_cuda(rmm_sim_graph_launch(graph, stream));
        assert_cuda(sim_driver()->stream_synchronize(stream));
        assert_true(is_all(block, 'o'));
        if (i == 1) { /* outlives the graph */
            assert_cuda(rmm_sim_graph_destroy(graph));
            assert_int_equal(rmm_sim_allocated_bytes(0), BLOCK);
            assert_true(is_all(block, 'o'));
        }
        free_on(block, stream);
        assert_cuda(sim_driver()->stream_synchronize(stream));
        assert_true(is_all(block, RMM_SIM_POISON_FREE));
    }
    assert_int_equal(rmm_sim_violations(), before);
    assert_cuda(sim_driver()->stream_destroy(stream));
    end_pool(pool);
}

TEST_CASE(catches_a_graph_that_runs_again_with_its_memory_in_use)
{
    rmm_driver_mempool_t pool = make_pool(0);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    uint64_t before = rmm_sim_violations();
    rmm_sim_graph_t graph;
    char *block;

    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_GLOBAL));
    block = alloc_from(pool, BLOCK, stream);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_graph_launch(graph, stream));
    assert_cuda(rmm_sim_graph_launch(graph, stream));
    assert_cuda(sim_driver()->stream_synchronize(stream));
    assert_int_equal(rmm_sim_violations(), before + 1);
    assert_non_null(strstr(rmm__sim_violation_text(), "runs again"));
    free_on(block, stream);
    free_on(block, stream);
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->stream_synchronize(stream));
    assert_int_equal(rmm_sim_violations(), before + 2);
    assert_non_null(strstr(rmm__sim_violation_text(), "freed twice"));
    assert_cuda(sim_driver()->stream_destroy(stream));
    end_pool(pool);
}

TEST_CASE(a_capture_frees_only_what_it_allocated)
{
    rmm_driver_mempool_t pool = make_pool(0);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    char *block = alloc_from(pool, BLOCK, stream);
    rmm_sim_graph_t graph;

    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(
        sim_driver()->mempool_free(block, stream), RMM_DRIVER_INVALID_VALUE);
    assert_cuda(rmm_sim_end_capture(stream, &graph)); /* nothing ruined */
    assert_cuda(rmm_sim_graph_destroy(graph));
    free_on(block, stream);
    assert_cuda(sim_driver()->stream_destroy(stream));
    end_pool(pool);
}

/* As measured: docs/decisions/0004. */
TEST_CASE(pools_ruin_a_capture_that_they_are_not_part_of)
{
    rmm_driver_mempool_t pool = make_pool(KEEP_ALL);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_t other = make_stream(RMM_STREAM_NON_BLOCKING);
    int mode = RMM_CAPTURE_MODE_RELAXED;
    char *block = alloc_from(pool, BLOCK, other);
    uint64_t before = rmm_sim_violations();
    rmm_sim_graph_t graph;
    void *none = NULL;

    assert_cuda(sim_driver()->stream_synchronize(other));
    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(
        sim_driver()->mempool_alloc(pool, &none, BLOCK, other),
        RMM_DRIVER_CAPTURE_UNSUPPORTED);
    assert_int_equal(
        rmm_sim_end_capture(stream, &graph), RMM_DRIVER_CAPTURE_INVALIDATED);
    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(
        sim_driver()->mempool_free(block, other), RMM_DRIVER_CAPTURE_UNSUPPORTED);
    assert_int_equal(
        rmm_sim_end_capture(stream, &graph), RMM_DRIVER_CAPTURE_INVALIDATED);
    assert_int_equal(figures_of(pool).used_bytes, BLOCK);

    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_GLOBAL));
    assert_cuda(sim_driver()->capture_mode_exchange(&mode));
    free_on(block, other);
    free_on(alloc_from(pool, BLOCK, other), other);
    assert_cuda(sim_driver()->capture_mode_exchange(&mode));
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_int_equal(rmm_sim_violations(), before);
    assert_cuda(sim_driver()->stream_destroy(stream));
    assert_cuda(sim_driver()->stream_destroy(other));
    end_pool(pool);
}

/* A trim has to know that a free is done with, and mem_free() tells it nothing. */
TEST_CASE(trims_only_what_a_synchronisation_has_seen)
{
    rmm_driver_mempool_t pool = make_pool(KEEP_ALL);
    void *plain = NULL;

    free_on(alloc_from(pool, BLOCK, NULL), NULL);
    assert_cuda(sim_driver()->mem_alloc(&plain, 1));
    assert_cuda(sim_driver()->mem_free(plain)); /* waits */
    assert_cuda(sim_driver()->mempool_trim(pool, 0));
    assert_int_equal(figures_of(pool).reserved_bytes, 32 * MIB);
    assert_cuda(sim_driver()->stream_synchronize(NULL));
    assert_cuda(sim_driver()->mempool_trim(pool, 0));
    assert_int_equal(figures_of(pool).reserved_bytes, 0);
    end_pool(pool);
}

TEST_CASE(a_ruined_capture_leaves_no_memory_behind)
{
    rmm_driver_mempool_t pool = make_pool(0);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_sim_graph_t graph;
    void *none = NULL;

    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_GLOBAL));
    (void)alloc_from(pool, BLOCK, stream);
    assert_int_equal(
        sim_driver()->stream_synchronize(stream), RMM_DRIVER_CAPTURE_UNSUPPORTED);
    assert_int_equal(
        sim_driver()->mempool_alloc(pool, &none, BLOCK, stream),
        RMM_DRIVER_CAPTURE_INVALIDATED);
    assert_null(none);
    assert_int_equal(
        rmm_sim_end_capture(stream, &graph), RMM_DRIVER_CAPTURE_INVALIDATED);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_cuda(sim_driver()->stream_destroy(stream));
    end_pool(pool);
}
