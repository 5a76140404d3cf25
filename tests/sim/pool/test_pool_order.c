/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool under order_traffic.h, and single cases of a block that changes streams.
 */
#include "driver/sim/control.h"
#include "sim/pool/order_traffic.h"

#include "pool/engine_impl.h"
#include "resources/pool_resource.h"

static rmm_resource_t *make_subject(void)
{
    return make_pool(0, 256 * KIB);
}

static const order_subject_t subject = {make_subject, pool_use_driver, 64, 0};

TEST_CASE(never_reuses_before_its_order_under_200_seeds)
{
    never_reuses_before_its_order(&subject);
}

TEST_CASE(catches_a_pool_that_takes_every_event_for_finished)
{
    catches_wrong_queries(&subject);
}

TEST_CASE(catches_a_pool_that_does_not_wait_for_events)
{
    catches_missing_waits(&subject);
}

/* --- single cases ------------------------------------------------------------------- */

TEST_CASE(waits_on_the_device_for_one_other_stream)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);
    rmm_stream_t donor = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_t taker = make_stream(RMM_STREAM_NON_BLOCKING);
    void *block = take(pool, MIB, donor);
    uint64_t mixups = 0;

    rmm__sim_reseed(0);
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

/* What a stream frees while it is alone is in one heap; another stream gets all of it. */
TEST_CASE(gives_another_stream_what_the_first_freed_alone)
{
    enum { COUNT = 32 };
    rmm_resource_t *pool = make_pool(COUNT * MIB, COUNT * MIB);
    rmm_stream_t first = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_t second = make_stream(RMM_STREAM_NON_BLOCKING);
    void *blocks[COUNT * 16];
    void *all;

    for (int i = 0; i < COUNT * 16; i++) {
        blocks[i] = take(pool, MIB / 16, first);
    }
    for (int i = 0; i < COUNT * 16; i += 2) { /* no two neighbours */
        give(pool, blocks[i], MIB / 16, first);
    }
    give(pool, take(pool, 256, second), 256, second);
    for (int i = 1; i < COUNT * 16; i += 2) {
        give(pool, blocks[i], MIB / 16, first);
    }
    all = take(pool, COUNT * MIB, second);
    give(pool, all, COUNT * MIB, second);
    assert_null(rmm__blocks_check(pool_from_base(pool)->engine->blocks));
    assert_cuda(sim_driver()->stream_destroy(first));
    assert_cuda(sim_driver()->stream_destroy(second));
    rmm_resource_release(pool);
}

TEST_CASE(survives_the_end_of_a_stream_that_freed)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);

    for (int i = 0; i < 300; i++) {
        rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
        void *block = take(pool, MIB / 2 + 1, stream);

        give(pool, block, MIB / 2 + 1, stream);
        assert_cuda(sim_driver()->stream_destroy(stream));
    }
    assert_true(pool_from_base(pool)->engine->streams.capacity <= 64);
    assert_int_equal(rmm_sim_violations(), 0);
    rmm_resource_release(pool);
}

/* Each leaves a small block behind, and there is no need to look for room. */
TEST_CASE(forgets_streams_that_are_gone_where_there_is_plenty)
{
    rmm_resource_t *pool = make_pool(64 * MIB, 64 * MIB);

    for (int i = 0; i < 3000; i++) {
        rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);

        give(pool, take(pool, 1000, stream), 1000, stream);
        assert_cuda(sim_driver()->stream_destroy(stream));
    }
    assert_true(pool_from_base(pool)->engine->streams.capacity <= 128);
    rmm_resource_release(pool);
}

TEST_CASE(waits_for_a_stream_of_another_device_before_reuse)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);
    rmm_stream_t foreign;
    uint64_t mixups = 0;
    void *block;

    assert_cuda(rmm__sim_device_set(1));
    foreign = make_stream(RMM_STREAM_NON_BLOCKING);
    assert_cuda(rmm__sim_device_set(0));
    for (int i = 0; i < 3; i++) {
        block = take(pool, MIB, foreign);
        assert_cuda(rmm__sim_device_set(1)); /* kernels are launched where they run */
        launch_fill(block, MIB, 1, foreign);
        launch_check(block, MIB, 1, &mixups, foreign);
        assert_cuda(rmm__sim_device_set(0));
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

TEST_CASE(distinguishes_the_per_thread_streams_of_two_threads)
{
    rmm_stream_key_t mine;
    rmm_stream_key_t again;
    rmm_stream_key_t legacy;

    assert_cuda(sim_driver()->stream_key(RMM_STREAM_PER_THREAD, &mine));
    assert_cuda(sim_driver()->stream_key(RMM_STREAM_PER_THREAD, &again));
    assert_cuda(sim_driver()->stream_key(NULL, &legacy));
    assert_int_equal(mine.stream_id, again.stream_id);
    assert_int_not_equal(mine.stream_id, 0);
    assert_int_equal(legacy.stream_id, 0);
}
