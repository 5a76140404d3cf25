/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a block ever handed out before the work that still uses it is over? Kernels of
 * random traffic write into their blocks and look for what they wrote; the simulated GPU
 * runs them late and in a seeded order, so that a missing order shows as mixed-up data.
 *
 * The same traffic over a pool that was broken on purpose must be caught.
 */
#include "sim/pool_harness.h"

#include <stdlib.h>

#include "resources/pool_impl.h"

enum { STREAMS = 5, LIVE = 48, STEPS = 400 };
#define POOL_BYTES (256 * KIB)

typedef struct live_block {
    void *ptr;
    size_t bytes;
    uint64_t number;
    int stream;
} live_block_t;

typedef struct traffic {
    rmm_resource_t *pool;
    rmm_stream_t streams[STREAMS];
    live_block_t live[LIVE];
    int live_count;
    uint64_t random;
    uint64_t mixups; /* words that another use had overwritten */
    uint64_t served;
} traffic_t;

/* What the pool had to do for the traffic, over all seeds. */
typedef struct effort {
    uint64_t served, crossings, synchronises, mixups;
} effort_t;

static uint64_t draw(traffic_t *traffic, uint64_t bound)
{
    traffic->random = traffic->random * 6364136223846793005ull + 1442695040888963407ull;
    return (traffic->random >> 33) % bound;
}

static void free_one(traffic_t *traffic, int index)
{
    live_block_t block = traffic->live[index];
    rmm_stream_t stream = traffic->streams[block.stream];

    launch_check(block.ptr, block.bytes, block.number, &traffic->mixups, stream);
    give(traffic->pool, block.ptr, block.bytes, stream);
    traffic->live[index] = traffic->live[--traffic->live_count];
}

static void allocate_one(traffic_t *traffic, uint64_t number)
{
    live_block_t block = {
        .bytes = 256 * (1 + draw(traffic, 64)),
        .number = number,
        .stream = (int)draw(traffic, STREAMS),
    };
    rmm_stream_t stream = traffic->streams[block.stream];
    rmm_status_t status =
        rmm_resource_alloc(traffic->pool, block.bytes, 0, stream, &block.ptr);

    if (status == RMM_ERR_OUT_OF_MEMORY) {
        return; /* what is live leaves no room: the next step frees */
    }
    assert_int_equal(status, RMM_OK);
    launch_fill(block.ptr, block.bytes, number, stream);
    traffic->live[traffic->live_count++] = block;
    traffic->served++;
}

/* A stream ends with its memory freed but its work still queued; its handle comes again. */
static void replace_stream(traffic_t *traffic)
{
    int stream = 1 + (int)draw(traffic, STREAMS - 1);

    for (int i = traffic->live_count - 1; i >= 0; i--) {
        if (traffic->live[i].stream == stream) {
            free_one(traffic, i);
        }
    }
    assert_cuda(sim_driver()->stream_destroy(traffic->streams[stream]));
    traffic->streams[stream] = make_stream(RMM_STREAM_NON_BLOCKING);
}

static void step(traffic_t *traffic, uint64_t number)
{
    uint64_t dice = draw(traffic, 100);

    if (dice < 2) {
        replace_stream(traffic);
    } else if (traffic->live_count > 0 && (traffic->live_count == LIVE || dice < 45)) {
        free_one(traffic, (int)draw(traffic, (uint64_t)traffic->live_count));
    } else {
        allocate_one(traffic, number);
    }
}

static void run(traffic_t *traffic)
{
    traffic->streams[0] = RMM_STREAM_LEGACY;
    for (int i = 1; i < STREAMS; i++) {
        traffic->streams[i] = make_stream(RMM_STREAM_NON_BLOCKING);
    }
    for (uint64_t i = 1; i <= STEPS; i++) {
        step(traffic, i);
    }
    while (traffic->live_count > 0) {
        free_one(traffic, 0);
    }
    assert_cuda(rmm_sim_device_synchronize());
    for (int i = 1; i < STREAMS; i++) {
        assert_cuda(sim_driver()->stream_destroy(traffic->streams[i]));
    }
}

static void sum_up(const traffic_t *traffic, effort_t *effort)
{
    const rmm_segment_slot_t *slot = traffic->pool->books.slot;

    effort->served += traffic->served;
    effort->mixups += traffic->mixups;
    effort->crossings += atomic_load(&slot->cross_stream_count);
    effort->synchronises += atomic_load(&slot->sync_count);
}

static uint64_t seed_count(void)
{
    return getenv("RMM_TEST_QUICK") != NULL ? SEEDS / 5 : SEEDS;
}

/* broken: a driver table that the pool is made to use; NULL: the real one. */
static effort_t run_seeds(const rmm_driver_t *broken)
{
    effort_t effort = {0};

    for (uint64_t seed = 1; seed <= seed_count(); seed++) {
        traffic_t traffic = {.random = seed, .pool = make_pool(0, POOL_BYTES)};

        if (broken != NULL) {
            pool_from_base(traffic.pool)->driver = broken;
        }
        rmm_sim_reseed(seed);
        run(&traffic);
        if (traffic.mixups != 0 && broken == NULL) {
            print_error(
                "seed %lu: %lu words\n", (unsigned long)seed,
                (unsigned long)traffic.mixups);
        }
        sum_up(&traffic, &effort);
        assert_int_equal(stats_of(traffic.pool).current_bytes, 0);
        rmm_resource_release(traffic.pool);
    }
    return effort;
}

static void never_reuses_before_its_order_under_200_seeds(void **state)
{
    effort_t effort = run_seeds(NULL);

    (void)state;
    print_message(
        "%lu allocations, %lu taken over from other streams, %lu synchronises\n",
        (unsigned long)effort.served, (unsigned long)effort.crossings,
        (unsigned long)effort.synchronises);
    assert_int_equal(effort.mixups, 0);
    assert_true(effort.served > seed_count() * 100);
    assert_true(effort.crossings > 0);
    assert_true(effort.synchronises > 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

static int query_says_done(rmm_driver_event_t event)
{
    (void)event;
    return RMM_DRIVER_OK;
}

static int wait_does_nothing(rmm_stream_t stream, rmm_driver_event_t event)
{
    (void)stream;
    (void)event;
    return RMM_DRIVER_OK;
}

static void catches_a_pool_that_takes_every_event_for_finished(void **state)
{
    rmm_driver_t broken = *sim_driver();

    (void)state;
    broken.event_query = query_says_done;
    assert_true(run_seeds(&broken).mixups > 0);
}

static void catches_a_pool_that_does_not_wait_for_events(void **state)
{
    rmm_driver_t broken = *sim_driver();

    (void)state;
    broken.stream_wait_event = wait_does_nothing;
    assert_true(run_seeds(&broken).mixups > 0);
}

/* --- single cases ------------------------------------------------------------------- */

static void waits_on_the_device_for_one_other_stream(void **state)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);
    rmm_stream_t donor = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_t taker = make_stream(RMM_STREAM_NON_BLOCKING);
    void *block = take(pool, MIB, donor);
    uint64_t mixups = 0;

    (void)state;
    rmm_sim_reseed(0);
    launch_fill(block, MIB, 1, donor);
    launch_check(block, MIB, 1, &mixups, donor);
    give(pool, block, MIB, donor);
    assert_ptr_equal(take(pool, MIB, taker), block);
    launch_fill(block, MIB, 2, taker);
    launch_check(block, MIB, 2, &mixups, taker);
    give(pool, block, MIB, taker);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(mixups, 0);
    assert_cuda(sim_driver()->stream_destroy(donor));
    assert_cuda(sim_driver()->stream_destroy(taker));
    rmm_resource_release(pool);
}

static void survives_the_end_of_a_stream_that_freed(void **state)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);

    (void)state;
    for (int i = 0; i < 300; i++) {
        rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
        void *block = take(pool, MIB / 2 + 1, stream);

        give(pool, block, MIB / 2 + 1, stream);
        assert_cuda(sim_driver()->stream_destroy(stream));
    }
    assert_true(pool_from_base(pool)->stream_capacity <= 64);
    assert_int_equal(rmm_sim_violations(), 0);
    rmm_resource_release(pool);
}

static void waits_for_a_stream_of_another_device_before_reuse(void **state)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);
    rmm_stream_t foreign;
    uint64_t mixups = 0;
    void *block;

    (void)state;
    assert_cuda(rmm_sim_set_device(1));
    foreign = make_stream(RMM_STREAM_NON_BLOCKING);
    assert_cuda(rmm_sim_set_device(0));
    for (int i = 0; i < 3; i++) {
        block = take(pool, MIB, foreign);
        assert_cuda(rmm_sim_set_device(1)); /* kernels are launched where they run */
        launch_fill(block, MIB, 1, foreign);
        launch_check(block, MIB, 1, &mixups, foreign);
        assert_cuda(rmm_sim_set_device(0));
        give(pool, block, MIB, foreign);
        block = take(pool, MIB, NULL);
        launch_fill(block, MIB, 2, NULL);
        launch_check(block, MIB, 2, &mixups, NULL);
        assert_cuda(rmm_sim_device_synchronize());
        give(pool, block, MIB, NULL);
    }
    assert_int_equal(mixups, 0);
    assert_cuda(sim_driver()->stream_destroy(foreign));
    rmm_resource_release(pool);
}

static void tells_the_per_thread_streams_of_two_threads_apart(void **state)
{
    rmm_stream_key_t mine;
    rmm_stream_key_t again;
    rmm_stream_key_t legacy;

    (void)state;
    assert_cuda(sim_driver()->stream_key(RMM_STREAM_PER_THREAD, &mine));
    assert_cuda(sim_driver()->stream_key(RMM_STREAM_PER_THREAD, &again));
    assert_cuda(sim_driver()->stream_key(NULL, &legacy));
    assert_int_equal(mine.stream_id, again.stream_id);
    assert_int_not_equal(mine.stream_id, 0);
    assert_int_equal(legacy.stream_id, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_reuses_before_its_order_under_200_seeds),
        cmocka_unit_test(catches_a_pool_that_takes_every_event_for_finished),
        cmocka_unit_test(catches_a_pool_that_does_not_wait_for_events),
        cmocka_unit_test(waits_on_the_device_for_one_other_stream),
        cmocka_unit_test(survives_the_end_of_a_stream_that_freed),
        cmocka_unit_test(waits_for_a_stream_of_another_device_before_reuse),
        cmocka_unit_test(tells_the_per_thread_streams_of_two_threads_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
