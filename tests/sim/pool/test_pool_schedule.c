/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules that random traffic meets rarely: another call of the pool in the middle of
 * one, forced through a changed driver table, and threads whose current device is not the
 * pool's.
 */
#include "sim/pool/pool_harness.h"

#include <pthread.h>

#include "driver/sim/control.h"
#include "pool/engine_impl.h"
#include "resources/pool_resource.h"
#include "sim/driver/driver_hooks.h"

#define DEVICE_SEEDS 40
#define BATCH_BYTES (64 * MIB)

/* --- in the middle of a call -------------------------------------------------------- */

static rmm_driver_t hooked; /* the simulated driver, with one call changed */
static void (*interlude)(void);
static rmm_resource_t *hooked_pool;
static rmm_stream_t hooked_stream;
static rmm_status_t interlude_status;

static void run_interlude_once(void)
{
    void (*run)(void) = interlude;

    interlude = NULL;
    if (run != NULL) {
        run();
    }
}

static int free_after_interlude(void *ptr)
{
    run_interlude_once();
    return sim_driver()->mem_free(ptr);
}

static int synchronize_after_interlude(rmm_stream_t stream)
{
    run_interlude_once();
    return sim_driver()->stream_synchronize(stream);
}

static int synchronize_then_interlude(rmm_stream_t stream)
{
    int error = sim_driver()->stream_synchronize(stream);

    run_interlude_once();
    return error;
}

static int record_after_interlude(rmm_driver_event_t event, rmm_stream_t stream)
{
    run_interlude_once();
    return sim_driver()->event_record(event, stream);
}

static void hook(rmm_resource_t *pool)
{
    hooked = *sim_driver();
    hooked_pool = pool;
    pool_use_driver(pool, &hooked);
}

static void close_a_batch(void)
{
    void *block = take(hooked_pool, BATCH_BYTES, hooked_stream);

    give(hooked_pool, block, BATCH_BYTES, hooked_stream);
}

TEST_CASE(keeps_a_batch_that_was_closed_during_a_synchronise)
{
    rmm_resource_t *pool = make_pool(2 * BATCH_BYTES, 2 * BATCH_BYTES);
    rmm_segment_slot_t *slot = pool->accounting.slot;
    void *block;

    hook(pool);
    hooked.mem_free = free_after_interlude;
    hooked_stream = make_stream(RMM_STREAM_NON_BLOCKING);
    block = take(pool, MIB, hooked_stream);
    give(pool, block, MIB, hooked_stream); /* closes the first batch */
    interlude = close_a_batch;
    assert_ok(rmm_resource_trim(pool, SIZE_MAX));
    assert_null(interlude);
    assert_int_equal(atomic_load(&slot->sync_count), 1);

    /* its event is done: no need to stop the device once more */
    assert_cuda(rmm_sim_device_synchronize());
    block = take(pool, 2 * BATCH_BYTES, NULL);
    assert_int_equal(atomic_load(&slot->sync_count), 1);
    give(pool, block, 2 * BATCH_BYTES, NULL);
    assert_cuda(sim_driver()->stream_destroy(hooked_stream));
    rmm_resource_release(pool);
}

static void ask_for_all(void)
{
    void *ptr;

    interlude_status = rmm_resource_alloc(hooked_pool, MIB, 0, NULL, &ptr);
    if (interlude_status == RMM_OK) {
        give(hooked_pool, ptr, MIB, NULL);
    }
}

/* The pool synchronises its own device, which says nothing of another one's stream. */
TEST_CASE(leaves_alone_what_another_device_may_still_use)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);
    void *block;

    hook(pool);
    hooked.stream_synchronize = synchronize_after_interlude;
    hooked_stream = make_stream_elsewhere();
    for (int i = 0; i < 2; i++) { /* a stream not known yet, and a known one */
        block = take(pool, MIB, hooked_stream);
        interlude_status = RMM_OK;
        interlude = ask_for_all;
        give(pool, block, MIB, hooked_stream);
        assert_null(interlude);
        assert_int_equal(interlude_status, RMM_ERR_OUT_OF_MEMORY);
    }
    block = take(pool, MIB, NULL);
    give(pool, block, MIB, NULL);
    assert_cuda(sim_driver()->stream_destroy(hooked_stream));
    rmm_resource_release(pool);
}

static void *freed_meanwhile;

static int fail_to_wait(rmm_stream_t stream)
{
    return RMM_DRIVER_INVALID_VALUE;
}

static void free_without_a_wait(void)
{
    hooked.stream_synchronize = fail_to_wait;
    give(hooked_pool, freed_meanwhile, MIB, hooked_stream);
    hooked.stream_synchronize = sim_driver()->stream_synchronize;
}

TEST_CASE(a_wait_for_another_device_proves_nothing_that_is_freed_meanwhile)
{
    rmm_resource_t *pool = make_pool(2 * MIB + 256, 2 * MIB + 256);
    engine_t *engine = pool_from_base(pool)->engine;
    void *first, *apart, *ptr;
    uint64_t syncs;

    hook(pool);
    hooked.stream_synchronize = synchronize_then_interlude;
    hooked_stream = make_stream_elsewhere();
    first = take(pool, MIB, hooked_stream);
    apart = take(pool, 256, hooked_stream);
    freed_meanwhile = take(pool, MIB, hooked_stream);
    interlude = free_without_a_wait;
    give(pool, first, MIB, hooked_stream);
    assert_ptr_equal(take(pool, MIB, NULL), first);
    syncs = engine->figures.sync_count;
    assert_int_equal(
        rmm_resource_alloc(pool, MIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(engine->figures.sync_count, syncs + 1); /* again is of no use */
    give(pool, apart, 256, hooked_stream);                   /* waits for all of it */
    give(pool, first, MIB, NULL);
    ptr = take(pool, 2 * MIB + 256, NULL);
    give(pool, ptr, 2 * MIB + 256, NULL);
    assert_cuda(sim_driver()->stream_destroy(hooked_stream));
    rmm_resource_release(pool);
}

/* What is freed beside the block during the wait does not take it out of what that proves. */
TEST_CASE(a_wait_for_another_device_proves_what_others_free_beside)
{
    rmm_resource_t *pool = make_pool(2 * MIB, 2 * MIB);
    void *first;

    hook(pool);
    hooked.stream_synchronize = synchronize_then_interlude;
    hooked_stream = make_stream_elsewhere();
    first = take(pool, MIB, hooked_stream);
    freed_meanwhile = take(pool, MIB, hooked_stream);
    interlude = free_without_a_wait;
    give(pool, first, MIB, hooked_stream);
    assert_ptr_equal(take(pool, MIB, NULL), first);
    give(pool, first, MIB, hooked_stream); /* waits for both */
    first = take(pool, 2 * MIB, NULL);
    give(pool, first, 2 * MIB, NULL);
    assert_cuda(sim_driver()->stream_destroy(hooked_stream));
    rmm_resource_release(pool);
}

/* To synchronise would be of no use to it. */
TEST_CASE(growth_waits_for_nothing_that_another_device_freed)
{
    rmm_resource_t *pool = make_pool(MIB, 0);
    void *block;

    hook(pool);
    hooked_stream = make_stream_elsewhere();
    freed_meanwhile = take(pool, MIB, hooked_stream);
    free_without_a_wait();
    block = take(pool, MIB, NULL);
    assert_int_equal(pool_from_base(pool)->engine->figures.sync_count, 0);
    assert_true(stats_of(pool).reserved_bytes > MIB);
    give(pool, block, MIB, NULL);
    assert_cuda(sim_driver()->stream_destroy(hooked_stream));
    rmm_resource_release(pool);
}

/* Whether a stream is one of the pool's device is known when its first event is recorded:
 * until then nothing proves its block. */
TEST_CASE(a_refusal_is_forgotten_when_a_first_event_covers_what_was_free)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);
    void *block;

    hook(pool);
    hooked.event_record = record_after_interlude;
    hooked.event_query = is_never_done; /* it has to be waited for */
    hooked_stream = make_stream(RMM_STREAM_NON_BLOCKING);
    give(pool, take(pool, MIB, NULL), MIB, NULL);
    block = take(pool, MIB, hooked_stream);
    interlude = ask_for_all;
    give(pool, block, MIB, hooked_stream);
    assert_null(interlude);
    ask_for_all();
    assert_int_equal(interlude_status, RMM_OK);
    assert_cuda(sim_driver()->stream_destroy(hooked_stream));
    rmm_resource_release(pool);
}

/* An error that says nothing of its device: the next event is recorded. */
TEST_CASE(an_event_that_failed_once_makes_no_stream_foreign)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);

    hook(pool);
    hooked_stream = make_stream(RMM_STREAM_NON_BLOCKING);
    assert_true(rmm_sim_fail("event_record:1"));
    give(pool, take(pool, MIB, hooked_stream), MIB, hooked_stream);
    assert_true(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    hooked.stream_synchronize = fail_to_wait;
    give(pool, take(pool, MIB, hooked_stream), MIB, hooked_stream);
    ask_for_all();
    assert_int_equal(interlude_status, RMM_OK);
    assert_cuda(sim_driver()->stream_destroy(hooked_stream));
    rmm_resource_release(pool);
}

TEST_CASE(records_no_event_on_a_stream_that_is_known_to_be_foreign)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);

    hook(pool);
    hooked.event_record = record_after_interlude;
    hooked_stream = make_stream_elsewhere();
    give(pool, take(pool, MIB, hooked_stream), MIB, hooked_stream);
    interlude = ask_for_all; /* would be run now */
    give(pool, take(pool, MIB, hooked_stream), MIB, hooked_stream);
    assert_non_null(interlude);
    interlude = NULL;
    assert_cuda(sim_driver()->stream_destroy(hooked_stream));
    rmm_resource_release(pool);
}

/* --- another device current --------------------------------------------------------- */

/* Two uses of one block, on the streams given; nothing but the pool orders them. */
typedef struct handover {
    rmm_stream_t giver, taker;
    int device_at_give, device_at_take; /* the calling thread's */
} handover_t;

static uint64_t hand_over(rmm_resource_t *pool, const handover_t *handover)
{
    uint64_t mixups = 0;
    void *block = take(pool, MIB, handover->giver);

    launch_fill(block, MIB, 1, handover->giver);
    launch_check(block, MIB, 1, &mixups, handover->giver);
    assert_cuda(rmm__sim_device_set(handover->device_at_give));
    give(pool, block, MIB, handover->giver);
    assert_cuda(rmm__sim_device_set(handover->device_at_take));
    assert_ptr_equal(take(pool, MIB, handover->taker), block);
    assert_cuda(rmm__sim_device_set(0));
    launch_fill(block, MIB, 2, handover->taker);
    launch_check(block, MIB, 2, &mixups, handover->taker);
    give(pool, block, MIB, handover->taker);
    assert_cuda(rmm_sim_device_synchronize());
    return mixups;
}

static uint64_t hand_over_under_all_seeds(handover_t handover)
{
    uint64_t mixups = 0;

    for (uint64_t seed = 1; seed <= DEVICE_SEEDS; seed++) {
        rmm_resource_t *pool = make_pool(MIB, MIB);

        rmm__sim_reseed(seed);
        mixups += hand_over(pool, &handover);
        rmm_resource_release(pool);
    }
    return mixups;
}

TEST_CASE(orders_the_default_stream_of_its_own_device)
{
    rmm_stream_t other = make_stream(RMM_STREAM_NON_BLOCKING);

    assert_int_equal(hand_over_under_all_seeds((handover_t){NULL, other, 1, 0}), 0);
    assert_int_equal(hand_over_under_all_seeds((handover_t){other, NULL, 0, 1}), 0);
    assert_cuda(sim_driver()->stream_destroy(other));
}

/* A pool on a pool: the lower one orders its memory behind the default stream only. */
TEST_CASE(waits_for_its_upstream_on_its_own_device)
{
    rmm_stream_t giver = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_t taker = make_stream(RMM_STREAM_NON_BLOCKING);
    uint64_t mixups = 0;

    for (uint64_t seed = 1; seed <= DEVICE_SEEDS; seed++) {
        rmm_resource_t *lower = make_pool(2 * MIB, 2 * MIB);
        rmm_resource_t *upper;
        void *block = take(lower, 2 * MIB, giver);

        assert_ok(rmm_pool_resource_create(lower, NULL, &upper));
        rmm__sim_reseed(seed);
        launch_fill(block, 2 * MIB, 1, giver);
        launch_check(block, 2 * MIB, 1, &mixups, giver);
        give(lower, block, 2 * MIB, giver);
        assert_cuda(rmm__sim_device_set(1));
        assert_ptr_equal(take(upper, 2 * MIB, taker), block);
        assert_cuda(rmm__sim_device_set(0));
        launch_fill(block, 2 * MIB, 2, taker);
        launch_check(block, 2 * MIB, 2, &mixups, taker);
        give(upper, block, 2 * MIB, taker);
        assert_cuda(rmm_sim_device_synchronize());
        rmm_resource_release(upper);
        rmm_resource_release(lower);
    }
    assert_int_equal(mixups, 0);
    assert_cuda(sim_driver()->stream_destroy(giver));
    assert_cuda(sim_driver()->stream_destroy(taker));
}

/* --- threads that want at once ------------------------------------------------------ */

enum { TAKERS = 4, ROUNDS = 60, HELD = 8 };

static void *take_and_give(void *argument)
{
    rmm_resource_t *pool = argument;
    uintptr_t failures = 0;

    for (int round = 0; round < ROUNDS; round++) {
        void *held[HELD];
        int count = 0;

        for (int i = 0; i < HELD; i++) {
            bool given =
                rmm_resource_alloc(
                    pool, 2 * MIB, 0, RMM_STREAM_PER_THREAD, &held[count]) == RMM_OK;

            count += given;
            failures += !given;
        }
        while (count > 0) {
            give(pool, held[--count], 2 * MIB, RMM_STREAM_PER_THREAD);
        }
        failures += rmm_resource_trim(pool, 0) != RMM_OK;
    }
    return (void *)failures; /* NOLINT(performance-no-int-to-ptr) */
}

TEST_CASE(never_fails_while_upstream_has_more)
{
    rmm_resource_t *pool = make_pool(0, 0);
    pthread_t threads[TAKERS];
    uintptr_t failures = 0;

    for (int i = 0; i < TAKERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, pool), 0);
    }
    for (int i = 0; i < TAKERS; i++) {
        void *result;

        assert_int_equal(pthread_join(threads[i], &result), 0);
        failures += (uintptr_t)result;
    }
    assert_int_equal(failures, 0);
    rmm_resource_release(pool);
}

/* --- sizes -------------------------------------------------------------------------- */

TEST_CASE(refuses_a_chunk_of_more_than_it_can_number)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *pool = NULL;
    void *ptr;

    options.initial_bytes = (uint64_t)1 << 40;
    assert_int_equal(
        rmm_pool_resource_create(cuda, &options, &pool), RMM_ERR_OUT_OF_MEMORY);
    assert_null(pool);
    assert_non_null(strstr(rmm_last_error_message(), "a pool can manage"));
    rmm_resource_release(cuda);
    pool = make_pool(0, 0);
    assert_int_equal(
        rmm_resource_alloc(pool, ENGINE_RUN_BYTES, RMM_ALIGN_MAX, NULL, &ptr),
        RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    rmm_resource_release(pool);
}
