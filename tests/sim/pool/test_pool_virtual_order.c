/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual pool under order_traffic.h: pieces of its memory are unmapped, mapped elsewhere
 * and given back while late kernels of other blocks run. A kernel that touches what is
 * unmapped too early crashes; a copy that does is a violation.
 */
#include "driver/sim/control.h"
#include "sim/pool/order_traffic.h"

#include "pool/engine_impl.h"
#include "resources/pool_resource.h"

static rmm_resource_t *make_subject(void)
{
    return make_virtual_pool(0, 8 * MIB);
}

static void trim_half(rmm_resource_t *mr)
{
    assert_ok(rmm_resource_trim(mr, 3 * MIB));
    assert_null(rmm__blocks_check(pool_from_base(mr)->engine->blocks));
}

/* Every sixteenth block is 1.5 MiB: three of them fill most of the pool. */
static const order_subject_t subject = {make_subject, pool_use_driver, 64, 6144};

TEST_CASE(never_reuses_before_its_order_under_200_seeds)
{
    disturb = trim_half;
    never_reuses_before_its_order(&subject);
}

/* Blocks of a piece, so that every round needs free pieces from both ends. */
TEST_CASE(pieces_are_mapped_elsewhere_only_after_their_last_use)
{
    for (uint64_t seed = 1; seed <= seed_count() / 4; seed++) {
        rmm_resource_t *pool = make_virtual_pool(0, 16 * MIB);
        rmm_stream_t streams[2];
        uint64_t mixups = 0;
        void *blocks[8];
        void *large;

        rmm__sim_reseed(seed);
        streams[0] = make_stream(RMM_STREAM_NON_BLOCKING);
        streams[1] = make_stream(RMM_STREAM_NON_BLOCKING);
        for (int i = 0; i < 8; i++) {
            blocks[i] = take(pool, 2 * MIB, streams[i % 2]);
            launch_fill(blocks[i], 64 * KIB, (uint64_t)i, streams[i % 2]);
            launch_check(blocks[i], 64 * KIB, (uint64_t)i, &mixups, streams[i % 2]);
        }
        for (int i = 0; i < 8; i += 2) {
            give(pool, blocks[i], 2 * MIB, streams[0]);
        }
        large = take(pool, 8 * MIB, streams[1]);
        launch_fill(large, 8 * MIB, 99, streams[1]);
        launch_check(large, 8 * MIB, 99, &mixups, streams[1]);
        give(pool, large, 8 * MIB, streams[1]);
        for (int i = 1; i < 8; i += 2) {
            launch_check(blocks[i], 64 * KIB, (uint64_t)i, &mixups, streams[1]);
            give(pool, blocks[i], 2 * MIB, streams[1]);
        }
        assert_cuda(rmm_sim_device_synchronize());
        assert_int_equal(mixups, 0);
        assert_cuda(sim_driver()->stream_destroy(streams[0]));
        assert_cuda(sim_driver()->stream_destroy(streams[1]));
        rmm_resource_release(pool);
    }
    assert_int_equal(rmm_sim_violations(), 0);
}
