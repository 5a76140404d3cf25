/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's lock: one thread at a time, and no thread waits for ever, in each way of
 * waiting. A forgotten thread is a test that does not end, and CTest's time limit.
 */
#include "harness/harness.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/thread_id.h"
#include "harness/in_child.h"

enum { CREW = 8, WORDS = 12 };

static int back_to_usual(void **state)
{
    rmm__mutex_tune(NULL);
    return 0;
}

static void tune(uint64_t spin_ns)
{
    rmm__mutex_tune(&(rmm_mutex_tuning_t){spin_ns});
}

/* --- one at a time ------------------------------------------------------------------ */

typedef struct shared {
    rmm_mutex_t lock;
    uint64_t words[WORDS]; /* all the same, when nobody is inside */
    uint64_t torn;
    int steps;              /* of each thread, at most */
    uint64_t until_ns;      /* CLOCK_MONOTONIC: fewer then; 0: never */
    _Atomic(uint64_t) done; /* of all threads */
    int dawdle;     /* every so many steps let others run while inside; 0: never */
    bool by_trying; /* half of the calls are attempts */
} shared_t;

static void step(shared_t *shared, int i)
{
    if (shared->by_trying && i % 2 == 0) {
        while (!rmm__mutex_trylock(&shared->lock)) {
            sched_yield();
        }
    } else {
        rmm__mutex_lock(&shared->lock);
    }
    RMM_ASSERT_LOCKED(&shared->lock);
    for (int k = 0; k < WORDS; k++) {
        shared->torn += shared->words[k] != shared->words[WORDS - 1 - k];
    }
    for (int k = 0; k < WORDS; k++) {
        if (k == WORDS / 2 && shared->dawdle != 0 && i % shared->dawdle == 0) {
            sched_yield();
        }
        shared->words[k]++;
    }
    rmm__mutex_unlock(&shared->lock);
}

static bool is_late(uint64_t until_ns)
{
    return until_ns != 0 && rmm__clock_ns(CLOCK_MONOTONIC) > until_ns;
}

static void *run_steps(void *argument)
{
    shared_t *shared = argument;
    int i = 0;

    for (; i < shared->steps && (i % 16 != 15 || !is_late(shared->until_ns)); i++) {
        step(shared, i);
    }
    shared->done += (uint64_t)i;
    return NULL;
}

static void run_crew(shared_t *shared, int crew)
{
    pthread_t threads[CREW];
    uint64_t before = shared->words[0];

    shared->done = 0;
    for (int i = 0; i < crew; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_steps, shared), 0);
    }
    for (int i = 0; i < crew; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(shared->torn, 0);
    for (int k = 0; k < WORDS; k++) {
        assert_int_equal(shared->words[k], before + shared->done);
    }
    assert_int_equal(atomic_load(&shared->lock.sleepers), 0);
    assert_true(rmm__mutex_trylock(&shared->lock));
    rmm__mutex_unlock(&shared->lock);
}

/* Where each step waits for a turn of the processor, the steps would take minutes. */
static uint64_t patience_ns(void)
{
    return rmm__clock_ns(CLOCK_MONOTONIC) + 15000000000u;
}

/* Long, then many short ones: a waiting thread that is forgotten ends the test. */
static void run_all(int steps)
{
    shared_t shared = {.steps = steps, .dawdle = 50, .until_ns = patience_ns()};

    rmm__mutex_init(&shared.lock);
    run_crew(&shared, CREW);
    shared.by_trying = true;
    run_crew(&shared, CREW);
    shared.steps = 40;
    shared.by_trying = false;
    for (int i = 0; i < 40; i++) {
        shared.dawdle = i % 5;
        run_crew(&shared, 2 + i % 3);
    }
    rmm__mutex_fini(&shared.lock);
}

TEST_CASE_WITH(lets_one_in_at_a_time, NULL, back_to_usual)
{
    run_all(20000);
}

TEST_CASE_WITH(lets_one_in_at_a_time_when_all_sleep, NULL, back_to_usual)
{
    tune(0);
    run_all(1000);
    tune(2000);
    run_all(4000);
}

enum { MULTITUDE = 1000, TURNS = 300, HOLD_NS = 1000 };

static uint64_t turns_taken; /* with the lock */

static void *take_turns(void *argument)
{
    rmm_mutex_t *mutex = argument;

    for (int i = 0; i < TURNS; i++) {
        uint64_t until_ns;

        rmm__mutex_lock(mutex);
        until_ns = rmm__clock_ns(CLOCK_MONOTONIC) + HOLD_NS;
        while (rmm__clock_ns(CLOCK_MONOTONIC) < until_ns) {
        }
        turns_taken++;
        rmm__mutex_unlock(mutex);
    }
    return NULL;
}

/* If all that wait look at the lock too often, the one that holds it gets no processor, and this
 * takes minutes. */
TEST_CASE(lets_a_thousand_threads_go_on)
{
    static pthread_t threads[MULTITUDE];
    rmm_mutex_t mutex = RMM_MUTEX_INITIALIZER;

    for (int i = 0; i < MULTITUDE; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, &mutex), 0);
    }
    for (int i = 0; i < MULTITUDE; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(turns_taken, MULTITUDE * TURNS);
}

TEST_CASE_WITH(works_on_one_processor, NULL, back_to_usual)
{
    cpu_set_t all, one;

    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &one);
            break;
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    rmm__mutex_tune(NULL);
    run_all(2000);
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

/* --- one by one --------------------------------------------------------------------- */

typedef struct visitor {
    rmm_mutex_t *lock;
    int *visits; /* protected by the lock; of all visitors */
    int error;   /* errno after the visit */
    _Atomic(uint32_t) thread_id;
    pthread_t thread;
} visitor_t;

static void *visit(void *argument)
{
    visitor_t *visitor = argument;

    errno = EXDEV;
    atomic_store_explicit(&visitor->thread_id, rmm__thread_id(), memory_order_relaxed);
    rmm__mutex_lock(visitor->lock);
    ++*visitor->visits;
    rmm__mutex_unlock(visitor->lock);
    visitor->error = errno;
    return NULL;
}

/* While the lock is held: so they wait. */
static void
start_visitors(visitor_t *visitors, int count, rmm_mutex_t *lock, int *visits)
{
    for (int i = 0; i < count; i++) {
        visitors[i] = (visitor_t){.lock = lock, .visits = visits};
        assert_int_equal(
            pthread_create(&visitors[i].thread, NULL, visit, &visitors[i]), 0);
    }
}

static void join_visitors(visitor_t *visitors, int count)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_join(visitors[i].thread, NULL), 0);
        assert_int_equal(visitors[i].error, EXDEV);
    }
}

/* As the kernel sees it: 'S' is asleep. */
static char state_of(uint32_t thread_id)
{
    char path[64], line[256] = "";
    const char *end;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%u/stat", thread_id);
    file = fopen(path, "r");
    if (file == NULL) {
        return '?';
    }
    end = fgets(line, sizeof(line), file) != NULL ? strrchr(line, ')') : NULL;
    fclose(file);
    return end != NULL ? end[2] : '?';
}

static void await_sleep(visitor_t *visitor)
{
    while (state_of(atomic_load_explicit(&visitor->thread_id, memory_order_relaxed)) !=
           'S') {
        usleep(1000);
    }
}

static void *try_it(void *argument)
{
    rmm_mutex_t *lock = argument;
    bool taken = rmm__mutex_trylock(lock);

    if (taken) {
        rmm__mutex_unlock(lock);
    }
    return taken ? lock : NULL;
}

static bool other_thread_can_take(rmm_mutex_t *lock)
{
    pthread_t thread;
    void *result;

    assert_int_equal(pthread_create(&thread, NULL, try_it, lock), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    return result != NULL;
}

TEST_CASE(a_trylock_takes_only_a_free_lock)
{
    rmm_mutex_t lock = RMM_MUTEX_INITIALIZER;

    assert_true(rmm__mutex_trylock(&lock));
    assert_false(rmm__mutex_trylock(&lock));
    assert_false(other_thread_can_take(&lock));
    rmm__mutex_unlock(&lock);
    assert_true(other_thread_can_take(&lock));
    rmm__mutex_lock(&lock);
    assert_false(other_thread_can_take(&lock));
    rmm__mutex_unlock(&lock);
    rmm__mutex_fini(&lock);
}

TEST_CASE(sleeps_while_the_holder_is_away)
{
    visitor_t visitors[CREW];
    rmm_mutex_t lock;
    int visits = 0;

    rmm__mutex_init(&lock);
    rmm__mutex_lock(&lock);
    start_visitors(visitors, CREW, &lock, &visits);
    for (int i = 0; i < CREW; i++) {
        await_sleep(&visitors[i]);
    }
    assert_int_equal(visits, 0);
    assert_int_equal(atomic_load(&lock.sleepers), CREW);
    rmm__mutex_unlock(&lock);
    join_visitors(visitors, CREW);
    assert_int_equal(visits, CREW);
    assert_int_equal(atomic_load(&lock.sleepers), 0);
    rmm__mutex_fini(&lock);
}

/* --- interrupted -------------------------------------------------------------------- */

static rmm_mutex_t of_the_handler;
static _Atomic(int) handled;

static void lock_in_handler(int signal)
{
    (void)signal;
    rmm__mutex_lock(&of_the_handler);
    handled++;
    rmm__mutex_unlock(&of_the_handler);
}

/* A handler that calls exit() runs destructors, which may free. */
TEST_CASE(a_signal_handler_may_lock_while_its_thread_waits)
{
    const struct sigaction action = {.sa_handler = lock_in_handler};
    visitor_t visitor;
    int visits = 0;

    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    rmm__mutex_init(&of_the_handler);
    rmm__mutex_lock(&of_the_handler);
    start_visitors(&visitor, 1, &of_the_handler, &visits);
    await_sleep(&visitor);
    assert_int_equal(pthread_kill(visitor.thread, SIGUSR1), 0);
    usleep(2000);
    assert_int_equal(handled, 0);
    rmm__mutex_unlock(&of_the_handler);
    join_visitors(&visitor, 1);
    assert_int_equal(handled, 1);
    assert_int_equal(visits, 1);
}

TEST_CASE(is_free_in_a_forked_child_although_threads_of_the_parent_wait)
{
    rmm_mutex_t lock = RMM_MUTEX_INITIALIZER;
    visitor_t visitors[3];
    int visits = 0;
    pid_t child;

    rmm__mutex_lock(&lock);
    start_visitors(visitors, 3, &lock, &visits);
    for (int i = 0; i < 3; i++) {
        await_sleep(&visitors[i]);
    }
    child = fork_child();
    if (child == 0) {
        rmm__mutex_unlock(&lock);
        _exit(rmm__mutex_trylock(&lock) ? 0 : 1);
    }
    rmm__mutex_unlock(&lock);
    join_visitors(visitors, 3);
    assert_int_equal(exit_status_of(child), 0);
    assert_int_equal(visits, 3);
}
