/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of virtual pools share: what must hold when nothing is under way, and a
 * pool of blocks of a piece each, of which every second one is freed.
 */
#ifndef RMM_TESTS_SIM_VIRTUAL_HARNESS_H
#define RMM_TESTS_SIM_VIRTUAL_HARNESS_H

#include "driver/sim/control.h"
#include "sim/pool/pool_harness.h"

#define PIECE (2 * MIB) /* the smallest */

static inline int nothing_is_left(void **state)
{
    (void)state;
    if (rmm_sim_allocated_bytes(0) != 0 || rmm__sim_address_bytes() != 0) {
        print_error(
            "%lu bytes and %lu addresses left\n",
            (unsigned long)rmm_sim_allocated_bytes(0),
            (unsigned long)rmm__sim_address_bytes());
        return -1;
    }
    return rmm_sim_violations() == 0 ? 0 : -1;
}

static inline uint64_t reserved_of(const rmm_resource_t *pool)
{
    return stats_of(pool).reserved_bytes;
}

/* What is held is what the device gave, but for a block that is kept for a barrier; nothing
 * is on its way. */
static inline void assert_accounting_agrees(rmm_resource_t *pool)
{
    const engine_t *engine = pool_from_base(pool)->engine;
    const engine_range_t *range = &engine->range;

    assert_in_range(rmm_sim_allocated_bytes(0) - reserved_of(pool), 0, 512);
    assert_null(rmm__blocks_check(engine->blocks));
    assert_int_equal(range->piece_promised, 0);
    assert_int_equal(engine->promised_bytes, 0);
    assert_int_equal(engine->transit_units, 0);
    assert_int_equal(
        rmm__blocks_free_units(engine->blocks, range->absent) +
            rmm__blocks_free_units(engine->blocks, range->lost),
        engine->absent_units);
}

static inline uint64_t free_bytes_of(rmm_resource_t *pool)
{
    engine_figures_t figures;

    rmm__engine_figures(pool_from_base(pool)->engine, &figures);
    return figures.free_bytes;
}

enum { BLOCKS = 8 };

/* Blocks of a piece each, with their number in them. */
static inline void fill_pool(rmm_resource_t *pool, void **blocks)
{
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = take(pool, PIECE, NULL);
        launch_fill(blocks[i], PIECE, (uint64_t)i + 1, NULL);
    }
}

static inline void give_every_second(rmm_resource_t *pool, void **blocks)
{
    for (int i = 0; i < BLOCKS; i += 2) {
        give(pool, blocks[i], PIECE, NULL);
    }
}

/* The others still hold what was written. */
static inline void check_and_give_others(rmm_resource_t *pool, void **blocks)
{
    uint64_t mixups = 0;

    for (int i = 1; i < BLOCKS; i += 2) {
        launch_check(blocks[i], PIECE, (uint64_t)i + 1, &mixups, NULL);
    }
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(mixups, 0);
    for (int i = 1; i < BLOCKS; i += 2) {
        give(pool, blocks[i], PIECE, NULL);
    }
}

#endif /* RMM_TESTS_SIM_VIRTUAL_HARNESS_H */
