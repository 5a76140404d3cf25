/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The combiner: each operation runs once, under the lock, before its caller goes on, and
 * the caller sees what it wrote; with more threads than slots, with threads that take the
 * lock by itself, and behind one that keeps it for long.
 */
#include "harness/harness.h"

#include "core/combiner.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

enum { THREADS_MOST = 48, OPERATIONS = 20000 };

typedef struct shared {
    rmm_combiner_t combiner;
    uint64_t count; /* no atomic: the lock protects it */
    bool is_inside;
    uint64_t overlaps;
    int threads, operations;
    bool takes_lock; /* every fourth operation by hand */
    bool rests;      /* one in a thousand keeps the lock for a millisecond */
    atomic_int runs_missing;
} shared_t;

typedef struct operation {
    rmm_combined_t combined;
    shared_t *shared;
    uint64_t argument, runs, result;
} operation_t;

static void change_locked(shared_t *shared)
{
    shared->overlaps += shared->is_inside;
    shared->is_inside = true;
    shared->count++;
    shared->is_inside = false;
}

static void run_operation(rmm_combined_t *combined)
{
    operation_t *operation = (operation_t *)(void *)combined;

    change_locked(operation->shared);
    operation->runs++;
    operation->result = 2 * operation->argument + 1;
}

static void rest(void)
{
    const struct timespec millisecond = {0, 1000000};

    (void)nanosleep(&millisecond, NULL);
}

static void change_by_hand(shared_t *shared, bool is_long)
{
    rmm__mutex_lock(&shared->combiner.lock);
    change_locked(shared);
    if (is_long) {
        rest();
    }
    rmm__combiner_unlock(&shared->combiner);
}

static void *work(void *argument)
{
    shared_t *shared = argument;

    for (int i = 0; i < shared->operations; i++) {
        operation_t operation = {
            .combined.run = run_operation, .shared = shared, .argument = (uint64_t)i};

        if (shared->takes_lock && i % 4 == 0) {
            change_by_hand(shared, shared->rests && i % 1000 == 0);
            continue;
        }
        rmm__combine(&shared->combiner, &operation.combined);
        if (operation.runs != 1 || operation.result != 2 * (uint64_t)i + 1) {
            atomic_fetch_add(&shared->runs_missing, 1);
        }
    }
    return NULL;
}

static void run_threads(shared_t *shared)
{
    pthread_t threads[THREADS_MOST];

    rmm__combiner_init(&shared->combiner);
    for (int i = 0; i < shared->threads; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, shared), 0);
    }
    for (int i = 0; i < shared->threads; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&shared->runs_missing), 0);
    assert_int_equal(shared->overlaps, 0);
    assert_int_equal(shared->count, (uint64_t)shared->threads * shared->operations);
    assert_int_equal(atomic_load(&shared->combiner.lock.held), 0);
    for (int i = 0; i < RMM_COMBINER_SLOTS; i++) {
        assert_int_equal(atomic_load(&shared->combiner.slots[i].posted), 0);
    }
    rmm__combiner_fini(&shared->combiner);
}

static void one_thread_runs_its_operation_itself(void **state)
{
    shared_t shared = {.threads = 1, .operations = 3};

    (void)state;
    run_threads(&shared);
}

static void each_operation_runs_once_and_its_result_is_seen(void **state)
{
    shared_t shared = {.threads = 4, .operations = OPERATIONS};

    (void)state;
    run_threads(&shared);
}

static void more_threads_than_slots_share_them(void **state)
{
    shared_t shared = {.threads = THREADS_MOST, .operations = OPERATIONS / 10};

    (void)state;
    run_threads(&shared);
}

static void the_lock_may_be_taken_by_hand_meanwhile(void **state)
{
    shared_t shared = {.threads = 4, .operations = OPERATIONS, .takes_lock = true};

    (void)state;
    run_threads(&shared);
}

static void threads_withdraw_and_sleep_behind_a_long_holder(void **state)
{
    shared_t shared = {
        .threads = 8, .operations = OPERATIONS / 4, .takes_lock = true, .rests = true};

    (void)state;
    run_threads(&shared);
}

/* --- one step after the other -------------------------------------------------------- */

static void *combine_one(void *argument)
{
    operation_t *operation = argument;

    rmm__combine(&operation->shared->combiner, &operation->combined);
    return NULL;
}

static bool is_posted(const shared_t *shared)
{
    for (int i = 0; i < RMM_COMBINER_SLOTS; i++) {
        if (atomic_load(&shared->combiner.slots[i].posted) != 0) {
            return true;
        }
    }
    return false;
}

/* Whether it is served at the unlock or has withdrawn by then: it runs once. */
static void a_posted_operation_is_served_or_withdrawn(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        shared_t shared = {.threads = 1};
        operation_t operation = {
            .combined.run = run_operation, .shared = &shared, .argument = 7};
        pthread_t thread;

        rmm__combiner_init(&shared.combiner);
        rmm__mutex_lock(&shared.combiner.lock);
        assert_int_equal(pthread_create(&thread, NULL, combine_one, &operation), 0);
        while (i % 2 == 0 && !is_posted(&shared) &&
               atomic_load(&shared.combiner.lock.sleepers) == 0) {
        }
        if (i % 2 != 0) {
            rest();
        }
        assert_int_equal(shared.count, 0);
        rmm__combiner_unlock(&shared.combiner);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(operation.runs, 1);
        assert_int_equal(operation.result, 15);
        assert_int_equal(shared.count, 1);
        rmm__combiner_fini(&shared.combiner);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_runs_its_operation_itself),
        cmocka_unit_test(each_operation_runs_once_and_its_result_is_seen),
        cmocka_unit_test(more_threads_than_slots_share_them),
        cmocka_unit_test(the_lock_may_be_taken_by_hand_meanwhile),
        cmocka_unit_test(threads_withdraw_and_sleep_behind_a_long_holder),
        cmocka_unit_test(a_posted_operation_is_served_or_withdrawn),
    };

    return cmocka_run_group_tests_name("combiner", tests, NULL, NULL);
}
