/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_traffic.h on two simulated devices: a million operations, which every resource serves
 * that another device can use. Then with an order left out, which has to be seen.
 *
 * RMM_SIM_SEED begins other sequences; the seed is printed. RMM_TEST_QUICK: a tenth.
 */
#include "harness/stream_traffic.h"

#include <inttypes.h>
#include <stdio.h>

#include <rmm/sim.h>

#include "driver/sim/control.h"

enum { ROUNDS = 20, STEPS = 50000, MOST_BYTES = 600 };

static const char *const all_specs[] = {"cuda",       "pool:16MiB", "managed",
                                        "pinned",     "async",      "arena:16MiB",
                                        "fixed_size", "binning",    NULL};

/* A late read of memory that went back to the host's heap would end the test. */
static const char *const pools[] = {"pool:16MiB", "pool:16MiB", NULL};

static uint64_t first_seed(void)
{
    const char *text = getenv("RMM_SIM_SEED");

    return text != NULL ? strtoull(text, NULL, 10) : 1;
}

static uint64_t steps(void)
{
    return getenv("RMM_TEST_QUICK") != NULL ? STEPS / 10 : STEPS;
}

static void add_resources(traffic_t *t, int device, const char *const *specs)
{
    assert_ok(rmm_device_set(device));
    for (size_t i = 0; specs[i] != NULL; i++) {
        assert_ok(rmm_resource_create_from_spec(
            specs[i], &t->resources[t->resource_count++]));
    }
}

static void begin(traffic_t *t, uint64_t seed, traffic_wrong_t wrong)
{
    *t = (traffic_t){.most_bytes = MOST_BYTES, .random = seed, .wrong = wrong};
    rmm__sim_reseed(seed);
    for (int device = 0; device < TRAFFIC_DEVICES; device++) {
        add_resources(t, device, wrong == TRAFFIC_RIGHT ? all_specs : pools);
    }
    traffic_begin(t);
}

static void run(traffic_t *t, uint64_t seed, uint64_t count, traffic_wrong_t wrong)
{
    begin(t, seed, wrong);
    while (t->operations < count && (wrong == TRAFFIC_RIGHT || t->wrong_bytes == 0)) {
        traffic_step(t);
        if (wrong == TRAFFIC_RIGHT && t->wrong_bytes != 0) {
            fail_msg(
                "seed %" PRIu64
                ": a read came too early or too late, found at operation "
                "%" PRIu64,
                seed, t->operations);
        }
    }
    traffic_end(t);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(rmm_sim_allocated_bytes(1), 0);
}

TEST_CASE(every_read_sees_what_was_written_before)
{
    static traffic_t traffic;
    uint64_t seed = first_seed();
    uint64_t operations = 0;
    uint64_t compared = 0;

    for (uint64_t round = 0; round < ROUNDS; round++) {
        run(&traffic, seed + round, steps(), TRAFFIC_RIGHT);
        assert_int_equal(traffic.wrong_bytes, 0);
        operations += traffic.operations;
        compared += traffic.compared;
    }
    printf(
        "seeds from %" PRIu64 ": %" PRIu64 " operations, %" PRIu64 " bytes compared\n",
        seed, operations, compared);
    assert_true(compared > operations);
    assert_int_equal(rmm_sim_violations(), 0);
}

/* Within a few thousand operations. Last: the simulated GPU may count violations. */
static void assert_is_seen(traffic_wrong_t wrong)
{
    static traffic_t traffic;

    run(&traffic, first_seed(), STEPS, wrong);
    assert_int_not_equal(traffic.wrong_bytes, 0);
    printf(
        "seen within %" PRIu64 " operations, RMM_SIM_SEED=%" PRIu64 "\n",
        traffic.operations, first_seed());
}

TEST_CASE(a_free_without_order_is_seen)
{
    assert_is_seen(TRAFFIC_WRONG_FREE);
}

TEST_CASE(a_copy_without_order_is_seen)
{
    assert_is_seen(TRAFFIC_WRONG_COPY);
}
