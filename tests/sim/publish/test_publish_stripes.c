/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums that are counted on stripes, by several threads and in both ways of writing, as this
 * process and another one read them.
 */
#include "sim/publish/publish_case.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 40000 };

typedef struct runner {
    rmm_accounting_t *accounting;
    uint32_t stripe;
} runner_t;

/* Counted up on one stripe and down on others; never more than one block. */
static void *pass_over_the_stripes(void *argument)
{
    const runner_t *runner = argument;
    rmm_accounting_t *accounting = runner->accounting;
    uint32_t stripe = runner->stripe;

    for (int i = 0; i < ROUNDS; i++) {
        rmm__location_alloc_striped(accounting, stripe, 100, 156);
        rmm__accounting_alloc_striped(accounting, stripe, 100, 156);
        stripe = (stripe + 5) % RMM_SEGMENT_STRIPES;
        rmm__location_free_striped(accounting, stripe, 100, 156);
        rmm__accounting_free_striped(accounting, stripe, 100, 156);
    }
    return NULL;
}

static void run_over_the_stripes(child_t *self, void *argument)
{
    static rmm_accounting_t accounting;
    runner_t runners[THREADS];
    pthread_t threads[THREADS];
    rmm_accounting_sums_t sums;

    CHECK(open_accounting(&accounting, "striped", 1) == RMM_OK);
    rmm__accounting_free_is_rest(&accounting);
    RMM_ACCOUNTING_SET(&accounting, free_bytes, 1 << 20);
    child_say(self, 'r');
    for (uint32_t i = 0; i < THREADS; i++) {
        runners[i] = (runner_t){&accounting, i};
        CHECK(
            pthread_create(&threads[i], NULL, pass_over_the_stripes, &runners[i]) == 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    rmm__accounting_sums(&accounting, &sums);
    CHECK(sums.total_count == THREADS * ROUNDS && sums.freed_count == sums.total_count);
    CHECK(sums.total_bytes == 100 * sums.total_count && sums.padding_bytes == 0);
    rmm__accounting_alloc_striped(&accounting, 3, 1000, 24);
    CHECK(rmm__accounting_free_bytes(&accounting) == (1 << 20) - 1024);
    child_pause(self, 'j');
}

static uint64_t live_count_of(const rmm_segment_t *segment)
{
    rmm_record_t record;
    uint64_t total, freed;

    assert_true(rmm__segment_read_slot(segment, 0, &record, NULL));
    assert_true(
        rmm__segment_slot_stat(segment, &record, RMM_SLOT_STAT_total_count, &total));
    assert_true(
        rmm__segment_slot_stat(segment, &record, RMM_SLOT_STAT_freed_count, &freed));
    return rmm_live_count(total, freed);
}

CASE(sums_over_stripes_never_exceed_what_was_true)
{
    rmm_segment_t segment;
    child_t child;

    start_and_read(&child, run_over_the_stripes, NULL, 'r', &segment);
    for (int i = 0; i < 3000; i++) {
        assert_true(
            location_figure(&segment, 0, RMM_LOCATION_STAT_padding_bytes) <=
            THREADS * 156);
        assert_true(
            slot_figure(&segment, 0, RMM_SLOT_STAT_padding_bytes) <= THREADS * 156);
        assert_true(slot_figure(&segment, 0, RMM_SLOT_STAT_free_bytes) <= 1 << 20);
        assert_true(live_count_of(&segment) <= THREADS);
    }
    assert_int_equal(child_hear(&child), 'j');
    assert_location(&segment, padding_bytes, 0);
    assert_location(&segment, total_count, THREADS * ROUNDS);
    assert_location(&segment, freed_count, THREADS * ROUNDS);
    assert_location(&segment, current_bytes, 0);
    assert_true(location_figure(&segment, 0, RMM_LOCATION_STAT_peak_count) <= THREADS);
    assert_slot(&segment, 0, free_bytes, (1 << 20) - 1024);
    assert_slot(&segment, 0, padding_bytes, 24);
    assert_int_equal(live_count_of(&segment), 1);
    end_and_close(&child, &segment);
}

static void use_both_ways(child_t *self, void *argument)
{
    rmm_stats_t stats = RMM_STATS_INIT;
    rmm_accounting_t accounting;

    CHECK(open_accounting(&accounting, "both", 1) == RMM_OK);
    rmm__accounting_begin_exclusive(&accounting);
    for (int i = 0; i < 3; i++) {
        rmm__accounting_alloc_exclusive(&accounting, 100, 156);
    }
    RMM_ACCOUNTING_SET(&accounting, free_bytes, 5000);
    rmm__accounting_free_is_rest(
        &accounting); /* from now on, others than the lock's holder */
    rmm__accounting_end_exclusive(&accounting);
    CHECK(rmm__accounting_free_bytes(&accounting) == 5000);
    for (uint32_t i = 0; i < 2; i++) {
        rmm__accounting_free_striped(&accounting, i, 100, 156);
    }
    rmm__accounting_alloc_striped(&accounting, 15, 1000, 24);
    rmm__accounting_stats(&accounting, &stats);
    CHECK(stats.current_bytes == 1100 && stats.current_count == 2);
    CHECK(stats.peak_bytes == 1100 && stats.peak_count == 3);
    CHECK(stats.total_bytes == 1300 && stats.total_count == 4);
    CHECK(rmm__accounting_free_bytes(&accounting) == 5000 + 512 - 1024);
}

CASE(a_slot_goes_from_plain_stores_to_stripes)
{
    rmm_segment_t segment;

    child_run(use_both_ways, NULL);
    runtime_segment(&runtime, &segment);
    assert_slot(&segment, 0, current_bytes, 1100);
    assert_slot(&segment, 0, padding_bytes, 180);
    assert_slot(&segment, 0, free_bytes, 5000 + 512 - 1024);
    assert_int_equal(live_count_of(&segment), 2);
    rmm__segment_close(&segment);
}

typedef struct runner_here {
    pthread_barrier_t *all_live;
    uint32_t stripe;
} runner_here_t;

static void *note_stripe(void *argument)
{
    runner_here_t *runner = argument;

    pthread_barrier_wait(runner->all_live);
    runner->stripe = rmm__stripe_here();
    return NULL;
}

/* How many depends on where the stacks are. */
CASE(threads_find_stripes_of_their_own)
{
    pthread_barrier_t all_live;
    pthread_t threads[16];
    runner_here_t runners[16];
    bool used[RMM_SEGMENT_STRIPES] = {false};
    int count = 0;

    pthread_barrier_init(&all_live, NULL, 16);
    for (int i = 0; i < 16; i++) {
        runners[i].all_live = &all_live;
        assert_int_equal(
            pthread_create(&threads[i], NULL, note_stripe, &runners[i]), 0);
    }
    for (int i = 0; i < 16; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(runners[i].stripe < RMM_SEGMENT_STRIPES);
        count += !used[runners[i].stripe];
        used[runners[i].stripe] = true;
    }
    pthread_barrier_destroy(&all_live);
    print_message("16 threads on %d stripes\n", count);
    assert_true(count > 1);
}
