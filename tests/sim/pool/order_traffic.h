/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a block ever handed out before the work that still uses it is over? Kernels of
 * random traffic write into their blocks and look for what they wrote; the simulated GPU
 * runs them late and in a seeded order, so that a missing order shows as mixed-up data.
 */
#ifndef RMM_TESTS_SIM_ORDER_TRAFFIC_H
#define RMM_TESTS_SIM_ORDER_TRAFFIC_H

#include "sim/pool/pool_harness.h"

#include <stdlib.h>

#include "base/resource_impl.h"
#include "driver/sim/control.h"
#include "harness/random.h"

enum { STREAMS = 5, LIVE = 48, STEPS = 400 };

/* What the traffic is over, and its sizes: all but every sixteenth are small. */
typedef struct order_subject {
    rmm_resource_t *(*make)(void);
    void (*use_driver)(rmm_resource_t *mr, const rmm_driver_t *driver);
    uint64_t small_units, large_units; /* of 256 bytes; large 0: none */
} order_subject_t;

/* Called now and then in between, where a test sets it. */
static void (*disturb)(rmm_resource_t *mr);

typedef struct live_block {
    void *ptr;
    size_t bytes;
    uint64_t number;
    int stream;
} live_block_t;

typedef struct traffic {
    const order_subject_t *subject;
    rmm_resource_t *mr;
    rmm_stream_t streams[STREAMS];
    live_block_t live[LIVE];
    int live_count;
    uint64_t random;
    uint64_t mixups; /* words that another use had overwritten */
    uint64_t tried, served;
} traffic_t;

/* What the resource had to do for the traffic, over all seeds. */
typedef struct effort {
    uint64_t served, crossings, synchronises, mixups;
} effort_t;

static inline void free_one(traffic_t *traffic, int index)
{
    live_block_t block = traffic->live[index];
    rmm_stream_t stream = traffic->streams[block.stream];

    launch_check(block.ptr, block.bytes, block.number, &traffic->mixups, stream);
    give(traffic->mr, block.ptr, block.bytes, stream);
    traffic->live[index] = traffic->live[--traffic->live_count];
}

static inline size_t draw_size(traffic_t *traffic)
{
    const order_subject_t *subject = traffic->subject;
    bool large = subject->large_units != 0 && draw(&traffic->random, 16) == 0;

    return 256 * (large ? subject->large_units + draw(&traffic->random, 64)
                        : 1 + draw(&traffic->random, subject->small_units));
}

static inline void allocate_one(traffic_t *traffic, uint64_t number)
{
    live_block_t block = {
        .bytes = draw_size(traffic),
        .number = number,
        .stream = (int)draw(&traffic->random, STREAMS),
    };
    rmm_stream_t stream = traffic->streams[block.stream];
    rmm_status_t status =
        rmm_resource_alloc(traffic->mr, block.bytes, 0, stream, &block.ptr);

    traffic->tried++;
    if (status == RMM_ERR_OUT_OF_MEMORY) {
        return; /* what is live leaves no room: the next step frees */
    }
    assert_int_equal(status, RMM_OK);
    launch_fill(block.ptr, block.bytes, number, stream);
    traffic->live[traffic->live_count++] = block;
    traffic->served++;
}

/* A stream ends with its memory freed but its work still queued; its handle comes again. */
static inline void replace_stream(traffic_t *traffic)
{
    int stream = 1 + (int)draw(&traffic->random, STREAMS - 1);

    for (int i = traffic->live_count - 1; i >= 0; i--) {
        if (traffic->live[i].stream == stream) {
            free_one(traffic, i);
        }
    }
    assert_cuda(sim_driver()->stream_destroy(traffic->streams[stream]));
    traffic->streams[stream] = make_stream(RMM_STREAM_NON_BLOCKING);
}

static inline void step(traffic_t *traffic, uint64_t number)
{
    uint64_t dice = draw(&traffic->random, 100);

    if (dice < 2) {
        replace_stream(traffic);
    } else if (dice == 2 && disturb != NULL) {
        disturb(traffic->mr);
    } else if (traffic->live_count > 0 && (traffic->live_count == LIVE || dice < 45)) {
        free_one(traffic, (int)draw(&traffic->random, (uint64_t)traffic->live_count));
    } else {
        allocate_one(traffic, number);
    }
}

static inline void run(traffic_t *traffic)
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

static inline void sum_up(const traffic_t *traffic, effort_t *effort)
{
    const rmm_segment_slot_t *slot = traffic->mr->accounting.slot;

    effort->served += traffic->served;
    effort->mixups += traffic->mixups;
    effort->crossings += atomic_load(&slot->cross_stream_count);
    effort->synchronises += atomic_load(&slot->sync_count);
}

static inline uint64_t seed_count(void)
{
    return getenv("RMM_TEST_QUICK") != NULL ? SEEDS / 5 : SEEDS;
}

/* broken: a driver table that the resource is made to use, until it shows; NULL: the real
 * one. */
static inline effort_t
run_seeds(const order_subject_t *subject, const rmm_driver_t *broken)
{
    effort_t effort = {0};
    bool is_shown = false;

    for (uint64_t seed = 1; seed <= seed_count() && !is_shown; seed++) {
        traffic_t traffic = {.subject = subject, .random = seed, .mr = subject->make()};

        if (broken != NULL) {
            subject->use_driver(traffic.mr, broken);
        }
        rmm__sim_reseed(seed);
        run(&traffic);
        if (traffic.mixups != 0 && broken == NULL) {
            print_error(
                "seed %lu: %lu words\n", (unsigned long)seed,
                (unsigned long)traffic.mixups);
        }
        sum_up(&traffic, &effort);
        is_shown = broken != NULL && effort.mixups != 0;
        assert_int_equal(stats_of(traffic.mr).current_bytes, 0);
        rmm_resource_release(traffic.mr);
    }
    return effort;
}

static inline void never_reuses_before_its_order(const order_subject_t *subject)
{
    effort_t effort = run_seeds(subject, NULL);

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

static inline int query_says_done(rmm_driver_event_t event)
{
    (void)event;
    return RMM_DRIVER_OK;
}

static inline int wait_does_nothing(rmm_stream_t stream, rmm_driver_event_t event)
{
    (void)stream;
    (void)event;
    return RMM_DRIVER_OK;
}

/* The same traffic over a resource that is broken on purpose must show it. */
static inline void catches_wrong_queries(const order_subject_t *subject)
{
    rmm_driver_t broken = *sim_driver();

    broken.event_query = query_says_done;
    assert_true(run_seeds(subject, &broken).mixups > 0);
}

static inline void catches_missing_waits(const order_subject_t *subject)
{
    rmm_driver_t broken = *sim_driver();

    broken.stream_wait_event = wait_does_nothing;
    assert_true(run_seeds(subject, &broken).mixups > 0);
}

#endif /* RMM_TESTS_SIM_ORDER_TRAFFIC_H */
