/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena under order_traffic.h, small and large blocks; blocks that change streams,
 * threads and superblocks; streams and threads that end; captures.
 */
#include "sim/driver/driver_hooks.h"
#include "sim/pool/order_traffic.h"
#include "sim/resources/arena_harness.h"

#include <pthread.h>

#include "driver/sim/control.h"
#include "resources/arena_impl.h"

static rmm_resource_t *make_subject(void)
{
    return make_arena(2 * MIB);
}

static void use_driver(rmm_resource_t *mr, const rmm_driver_t *driver)
{
    arena_resource_t *arena = arena_from_base(mr);

    arena->pool.driver = driver;
    arena->pool.engine->driver = driver;
}

/* Small ones of up to 64 KiB, which are arenas' here, large ones just above 1 MiB. */
static const order_subject_t subject = {make_subject, use_driver, 256, 4097};

TEST_CASE(never_reuses_before_its_order_under_200_seeds)
{
    never_reuses_before_its_order(&subject);
}

TEST_CASE(catches_an_arena_that_takes_every_event_for_finished)
{
    catches_wrong_queries(&subject);
}

TEST_CASE(catches_an_arena_that_does_not_wait_for_events)
{
    catches_missing_waits(&subject);
}

static int no_memory(void **ptr, size_t bytes)
{
    return RMM_DRIVER_MEMORY_ALLOCATION;
}

static int waits_for_nothing(void)
{
    return RMM_DRIVER_OK;
}

TEST_CASE(catches_an_arena_that_does_not_wait_for_the_device)
{
    rmm_driver_t broken = *sim_driver();

    broken.mem_alloc = no_memory; /* the barrier falls back to the other one */
    broken.device_synchronize = waits_for_nothing;
    assert_true(run_seeds(&subject, &broken).mixups > 0);
}

static int cannot_wait(void *ptr)
{
    return RMM_DRIVER_INVALID_VALUE;
}

static int fails(void)
{
    return RMM_DRIVER_INVALID_VALUE;
}

/* No barrier works, so what another stream freed stays that stream's. */
TEST_CASE(gives_nothing_away_after_a_wait_that_failed)
{
    const size_t bytes = 3 * MIB;
    rmm_resource_t *arena = make_arena(4 * MIB);
    rmm_stream_t donor = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_t taker = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_driver_t broken = *sim_driver();
    void *block = take(arena, bytes, donor);
    void *none = NULL;

    broken.mem_alloc = no_memory;
    broken.mem_free = cannot_wait;
    broken.device_synchronize = fails;
    broken.event_query = is_never_done;
    broken.stream_wait_event = refuse_to_wait;
    give(arena, block, bytes, donor);
    use_driver(arena, &broken);
    assert_int_equal(
        rmm_resource_alloc(arena, bytes, 0, taker, &none), RMM_ERR_OUT_OF_MEMORY);
    /* a refusal that a later wait may change is not for ever */
    broken.mem_alloc = sim_driver()->mem_alloc;
    broken.mem_free = sim_driver()->mem_free;
    broken.device_synchronize = sim_driver()->device_synchronize;
    give(arena, take(arena, bytes, taker), bytes, taker);
    use_driver(arena, sim_driver());
    assert_cuda(sim_driver()->stream_destroy(donor));
    assert_cuda(sim_driver()->stream_destroy(taker));
    rmm_resource_release(arena);
}

/* --- from stream to stream ---------------------------------------------------------- */

static uint32_t home_of(rmm_stream_t stream)
{
    rmm_stream_key_t key;

    assert_cuda(sim_driver()->stream_key(stream, &key));
    return rmm__arena_own_shard(key);
}

/* Without a wait: what is queued on it comes first anyway. */
TEST_CASE(a_stream_has_small_blocks_of_a_large_one_that_it_freed)
{
    rmm_resource_t *arena = make_arena(4 * MIB);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_driver_t busy = *sim_driver();
    void *large = take(arena, 4 * MIB, stream);
    engine_figures_t figures;
    void *small;

    busy.event_query = is_never_done;
    use_driver(arena, &busy);
    give(arena, large, 4 * MIB, stream);
    small = take(arena, 1000, stream);
    assert_int_equal(rmm__figure_get(&arena->accounting.slot->sync_count), 0);
    rmm__engine_figures(
        rmm__arena_at(arena_from_base(arena), home_of(stream)), &figures);
    assert_in_range(figures.largest_free_bytes, MIB / 2, MIB);
    use_driver(arena, sim_driver());
    give(arena, small, 1000, stream);
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(arena);
}

/* Less than a granule is free, so that the arena that has it cannot give it back. */
TEST_CASE(serves_a_stream_from_a_granule_that_another_one_uses)
{
    enum { BLOCKS = MIB / (16 * KIB) };
    rmm_resource_t *arena = make_arena(MIB);
    rmm_stream_t owner = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_t other = make_stream(RMM_STREAM_NON_BLOCKING);
    void *blocks[BLOCKS];

    assert_int_not_equal(home_of(owner), home_of(other));
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = take(arena, 16 * KIB, owner);
    }
    give(arena, blocks[BLOCKS / 2], 16 * KIB, owner);
    assert_ptr_equal(take(arena, 16 * KIB, other), blocks[BLOCKS / 2]);
    for (int i = 0; i < BLOCKS; i++) {
        give(arena, blocks[i], 16 * KIB, i == BLOCKS / 2 ? other : owner);
    }
    assert_cuda(sim_driver()->stream_destroy(owner));
    assert_cuda(sim_driver()->stream_destroy(other));
    rmm_resource_release(arena);
}

/* Use a block on a stream, from `number` to `number`. */
static void
use(void *block, size_t bytes, uint64_t number, uint64_t *mixups, rmm_stream_t on)
{
    launch_fill(block, bytes, number, on);
    launch_check(block, bytes, number, mixups, on);
}

TEST_CASE(orders_a_large_block_behind_its_last_stream)
{
    const size_t bytes = 3 * MIB;

    for (uint64_t seed = 0; seed < 20; seed++) {
        rmm_resource_t *arena = make_arena(4 * MIB);
        rmm_stream_t donor = make_stream(RMM_STREAM_NON_BLOCKING);
        rmm_stream_t taker = make_stream(RMM_STREAM_NON_BLOCKING);
        void *block = take(arena, bytes, donor);
        uint64_t mixups = 0;

        rmm__sim_reseed(seed);
        use(block, bytes, 1, &mixups, donor);
        give(arena, block, bytes, donor);
        assert_ptr_equal(take(arena, bytes, taker), block);
        use(block, bytes, 2, &mixups, taker);
        give(arena, block, bytes, taker);
        assert_cuda(rmm_sim_device_synchronize());
        assert_int_equal(mixups, 0);
        assert_cuda(sim_driver()->stream_destroy(donor));
        assert_cuda(sim_driver()->stream_destroy(taker));
        rmm_resource_release(arena);
    }
}

/* Allocated on one stream, freed on another: the second's order counts. RMM looks for the
 * block in all arenas and synchronises the stream. */
TEST_CASE(keeps_the_order_of_the_stream_that_frees)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        rmm_resource_t *arena = make_arena(MIB);
        rmm_stream_t owner = make_stream(RMM_STREAM_NON_BLOCKING);
        rmm_stream_t user = make_stream(RMM_STREAM_NON_BLOCKING);
        uint64_t mixups = 0;

        rmm__sim_reseed(seed);
        for (uint64_t i = 0; i < 40; i++) {
            size_t bytes = 100 * KIB;
            void *block = take(arena, bytes, owner);

            /* the program orders the second stream behind the first by what it knows */
            launch_fill(block, bytes, i, owner);
            assert_cuda(rmm__sim_stream_synchronize(owner));
            launch_check(block, bytes, i, &mixups, user);
            give(arena, block, bytes, user);
        }
        assert_cuda(rmm_sim_device_synchronize());
        assert_int_equal(mixups, 0);
        assert_cuda(sim_driver()->stream_destroy(owner));
        assert_cuda(sim_driver()->stream_destroy(user));
        rmm_resource_release(arena);
    }
}

/* A new stream may have the handle of one whose work is still queued: the id tells. */
TEST_CASE(does_not_take_a_stream_for_another_with_its_handle)
{
    bool came_again = false;

    for (uint64_t seed = 0; seed < 20; seed++) {
        rmm_resource_t *arena = make_arena(MIB);
        rmm_stream_t first = make_stream(RMM_STREAM_NON_BLOCKING);
        rmm_stream_t second;
        void *block = take(arena, MIB, first);
        uint64_t mixups = 0;

        rmm__sim_reseed(seed);
        use(block, MIB, 1, &mixups, first);
        give(arena, block, MIB, first);
        assert_cuda(sim_driver()->stream_destroy(first));
        second = make_stream(RMM_STREAM_NON_BLOCKING);
        came_again |= first == second;
        block = take(arena, MIB, second);
        use(block, MIB, 2, &mixups, second);
        give(arena, block, MIB, second);
        assert_cuda(rmm_sim_device_synchronize());
        assert_int_equal(mixups, 0);
        assert_cuda(sim_driver()->stream_destroy(second));
        rmm_resource_release(arena);
    }
    assert_true(came_again);
}

TEST_CASE(does_not_grow_with_the_number_of_streams_that_were)
{
    rmm_resource_t *mr = make_arena(8 * MIB);
    arena_resource_t *arena = arena_from_base(mr);

    for (int i = 0; i < 5000; i++) {
        rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
        void *small = take(mr, 1000, stream);
        void *large = take(mr, 2 * MIB, stream);

        give(mr, small, 1000, stream);
        give(mr, large, 2 * MIB, stream);
        assert_cuda(sim_driver()->stream_destroy(stream));
    }
    for (uint32_t i = 0; i <= ARENA_GLOBAL; i++) {
        const engine_t *one = rmm__arena_at(arena, i);

        assert_true(one == NULL || one->streams.capacity <= 128);
    }
    assert_int_equal(rmm_sim_violations(), 0);
    rmm_resource_release(mr);
}

TEST_CASE(waits_for_a_stream_of_another_device_before_reuse)
{
    rmm_resource_t *arena = make_arena(MIB);
    rmm_stream_t foreign;
    uint64_t mixups = 0;

    assert_cuda(rmm__sim_device_set(1));
    foreign = make_stream(RMM_STREAM_NON_BLOCKING);
    assert_cuda(rmm__sim_device_set(0));
    for (int i = 0; i < 3; i++) {
        void *block = take(arena, MIB, foreign);

        assert_cuda(rmm__sim_device_set(1)); /* kernels are launched where they run */
        use(block, MIB, 1, &mixups, foreign);
        assert_cuda(rmm__sim_device_set(0));
        give(arena, block, MIB, foreign);
        block = take(arena, MIB, NULL);
        use(block, MIB, 2, &mixups, NULL);
        assert_cuda(rmm_sim_device_synchronize());
        give(arena, block, MIB, NULL);
    }
    assert_int_equal(mixups, 0);
    assert_cuda(sim_driver()->stream_destroy(foreign));
    rmm_resource_release(arena);
}

/* What its stream freed, and nobody could wait for, stays that stream's in a superblock. */
TEST_CASE(gives_nobody_what_another_device_may_still_use)
{
    rmm_resource_t *arena = make_arena(MIB);
    rmm_stream_t foreign;
    uint64_t mixups = 0;
    void *block;
    void *small;

    assert_cuda(rmm__sim_device_set(1));
    foreign = make_stream(RMM_STREAM_NON_BLOCKING);
    block = take(arena, MIB, foreign);
    use(block, MIB, 1, &mixups, foreign);
    assert_cuda(rmm__sim_device_set(0));
    assert_true(rmm_sim_fail("stream_synchronize:1"));
    give(arena, block, MIB, foreign);
    assert_true(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));

    small = take(arena, 1000, foreign); /* all of it goes to the stream's arena */
    assert_false(has_room(arena, 1000, NULL));
    give(arena, small, 1000, foreign); /* this free waits */
    assert_true(has_room(arena, MIB, NULL));
    assert_int_equal(mixups, 0);
    assert_cuda(sim_driver()->stream_destroy(foreign));
    rmm_resource_release(arena);
}

/* --- threads ------------------------------------------------------------------------ */

typedef struct errand {
    rmm_resource_t *arenas[2];
    rmm_stream_t stream;
    uint64_t *mixups;
    void *kept; /* what the thread leaves behind */
} errand_t;

static void elsewhere(void *(*body)(void *), errand_t *errand)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, body, errand), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void *use_both_arenas(void *argument)
{
    errand_t *errand = argument;

    for (int i = 0; i < 2; i++) {
        for (uint64_t k = 0; k < 20; k++) {
            void *block = take(errand->arenas[i], 40 * KIB, RMM_STREAM_PER_THREAD);

            use(block, 40 * KIB, k, errand->mixups, RMM_STREAM_PER_THREAD);
            give(errand->arenas[i], block, 40 * KIB, RMM_STREAM_PER_THREAD);
        }
    }
    errand->kept = take(errand->arenas[1], 1000, RMM_STREAM_PER_THREAD);
    return NULL;
}

/* RMM's cleaner knows the first arena resource that a thread used, and no thread whose id
 * had another before. Here nothing hangs on the end of a thread. */
TEST_CASE(gets_all_back_from_threads_that_used_two_arenas_and_ended)
{
    uint64_t mixups = 0;
    errand_t errand = {{make_arena(2 * MIB), make_arena(2 * MIB)}, NULL, &mixups, NULL};

    for (int i = 0; i < 30; i++) { /* thread ids come again */
        elsewhere(use_both_arenas, &errand);
        give(errand.arenas[1], errand.kept, 1000, RMM_STREAM_PER_THREAD);
    }
    for (int i = 0; i < 2; i++) {
        void *all = take(errand.arenas[i], 2 * MIB, NULL);

        use(all, 2 * MIB, 1, &mixups, NULL);
        give(errand.arenas[i], all, 2 * MIB, NULL);
    }
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(mixups, 0);
    rmm_resource_release(errand.arenas[0]);
    rmm_resource_release(errand.arenas[1]);
}

static void *take_on_the_thread(void *argument)
{
    errand_t *errand = argument;

    errand->kept = take(errand->arenas[0], 1000, RMM_STREAM_PER_THREAD);
    return NULL;
}

/* RMM's PerThreadToStreamDealloc. */
TEST_CASE(frees_a_threads_block_on_a_stream)
{
    errand_t errand = {.arenas = {make_arena(4 * MIB)}};
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    void *all;

    elsewhere(take_on_the_thread, &errand);
    give(errand.arenas[0], errand.kept, 1000, stream);
    assert_int_equal(stats_of(errand.arenas[0]).invalid_free_count, 0);
    all = take(errand.arenas[0], 4 * MIB, stream);
    give(errand.arenas[0], all, 4 * MIB, stream);
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(errand.arenas[0]);
}

/* --- captures ----------------------------------------------------------------------- */

enum { GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = 2 };

static void *allocate_through_every_step(void *argument)
{
    errand_t *errand = argument;
    rmm_resource_t *arena = errand->arenas[0];
    void *ptr;

    for (int i = 0; i < 3; i++) {
        ptr = take(arena, 512 * KIB, errand->stream);
        give(arena, ptr, 512 * KIB, errand->stream);
        ptr = take(arena, 2 * MIB, NULL); /* takes over, or waits for the device */
        give(arena, ptr, 2 * MIB, NULL);
    }
    assert_int_equal(
        rmm_resource_alloc(arena, 2 * MIB + 1, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    return NULL;
}

TEST_CASE(keeps_another_threads_capture_whole_in_every_mode)
{
    rmm_stream_t capturing = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);

    for (int mode = GLOBAL; mode <= RELAXED; mode++) {
        errand_t errand = {.arenas = {make_arena(2 * MIB)}, .stream = stream};
        journal_t journal = {.count = 0};
        rmm_sim_graph_t graph;

        assert_cuda(rmm_sim_begin_capture(capturing, mode));
        assert_cuda(launch_mark(&journal, 1, capturing));
        elsewhere(allocate_through_every_step, &errand);
        assert_cuda(rmm_sim_end_capture(capturing, &graph));
        assert_cuda(rmm_sim_graph_launch(graph, stream));
        assert_cuda(rmm_sim_device_synchronize());
        assert_int_equal(journal.count, 1);
        assert_cuda(rmm_sim_graph_destroy(graph));
        rmm_resource_release(errand.arenas[0]);
    }
    assert_cuda(sim_driver()->stream_destroy(capturing));
    assert_cuda(sim_driver()->stream_destroy(stream));
}

/* Capture a graph that writes 7 into a block which is freed while it is captured. */
static rmm_sim_graph_t
capture_with_a_block(rmm_resource_t *arena, size_t bytes, rmm_stream_t stream)
{
    rmm_sim_graph_t graph;
    void *block;

    assert_cuda(rmm_sim_begin_capture(stream, GLOBAL));
    block = take(arena, bytes, stream);
    launch_fill(block, bytes, 7, stream);
    give(arena, block, bytes, stream);
    assert_ptr_equal(take(arena, bytes, stream), block); /* the graph runs in order */
    give(arena, block, bytes, stream);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    return graph;
}

static void keep_a_graphs_block(uint64_t seed, size_t bytes)
{
    rmm_resource_t *arena = make_arena(4 * MIB);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_t other = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_sim_graph_t graph = capture_with_a_block(arena, bytes, stream);
    uint64_t mixups = 0;
    void *block;

    rmm__sim_reseed(seed);
    for (int i = 0; i < 6; i++) {
        rmm_stream_t user = i % 2 == 0 ? other : stream;
        size_t most = i < 2 ? 200 * KIB : 2 * MIB;

        block = take(arena, most, user);
        launch_fill(block, most, 1, user);
        assert_cuda(rmm_sim_graph_launch(graph, i % 2 == 0 ? stream : other));
        launch_check(block, most, 1, &mixups, user);
        give(arena, block, most, user);
    }
    assert_int_equal(
        rmm_resource_alloc(arena, 4 * MIB, 0, NULL, &block), RMM_ERR_OUT_OF_MEMORY);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(mixups, 0);
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->stream_destroy(stream));
    assert_cuda(sim_driver()->stream_destroy(other));
    rmm_resource_release(arena);
}

TEST_CASE(gives_nobody_else_what_a_graph_uses)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        keep_a_graphs_block(seed, 100 * KIB);
        keep_a_graphs_block(seed, MIB + 256);
    }
}

/* What is left of a superblock that a capture borrowed is for everybody. */
TEST_CASE(keeps_no_more_for_a_graph_than_it_uses)
{
    rmm_resource_t *arena = make_arena(4 * MIB);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_sim_graph_t graph = capture_with_a_block(arena, 256, stream);
    void *block = take(arena, 3 * MIB, NULL);

    give(arena, block, 3 * MIB, NULL);
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(arena);
}
