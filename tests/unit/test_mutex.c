/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's lock: one at a time, nobody sleeps for ever, in each of the ways in which
 * it can run. A forgotten sleeper is a test that does not end, and CTest's time limit.
 */
#include "harness/harness.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/membarrier.h>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/thread_id.h"
#include "harness/in_child.h"

enum { CREW = 8, WORDS = 12 };

static int membarrier_missing(int command)
{
    errno = ENOSYS;
    return -1;
}

/* There until a sandbox forbids it: what was quick then cannot be made careful. */
static int membarrier_lost(int command)
{
    if (command == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) {
        return 0;
    }
    errno = EPERM;
    return -1;
}

static int membarrier_pretended(int command)
{
    return 0;
}

/* As on kernels where a forked child's registration is gone. */
static atomic_bool is_registered;

static int membarrier_of_a_child(int command)
{
    if (command == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) {
        is_registered = true;
    } else if (!is_registered) {
        errno = EPERM;
        return -1;
    }
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

static int back_to_usual(void **state)
{
    rmm__mutex_tune(NULL);
    return 0;
}

static void tune(uint32_t spin_ns, uint32_t calm_unlocks, int (*membarrier)(int))
{
    rmm__mutex_tune(&(rmm_mutex_tuning_t){spin_ns, calm_unlocks, membarrier});
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
    assert_true(rmm__mutex_trylock(&shared->lock));
    rmm__mutex_unlock(&shared->lock);
}

/* Where each step waits for a turn of the processor, the steps would take minutes. */
static uint64_t patience_ns(void)
{
    return rmm__clock_ns(CLOCK_MONOTONIC) + 15000000000u;
}

/* Long, then many short ones: a sleeper that the last unlock forgot ends the test. */
static void run_all(int steps)
{
    static shared_t begun_careful = {.lock = RMM_MUTEX_INITIALIZER};
    uint64_t until_ns = patience_ns();
    shared_t shared = {.steps = steps, .dawdle = 50, .until_ns = until_ns};

    rmm__mutex_init(&shared.lock);
    run_crew(&shared, CREW);
    shared.by_trying = true;
    run_crew(&shared, CREW);
    begun_careful.steps = steps;
    begun_careful.until_ns = until_ns;
    run_crew(&begun_careful, CREW);
    begun_careful.steps = shared.steps = 40;
    shared.by_trying = false;
    for (int i = 0; i < 40; i++) {
        shared.dawdle = i % 5;
        run_crew(&shared, 2 + i % 3);
        run_crew(&begun_careful, 2 + i % 3);
    }
    rmm__mutex_fini(&shared.lock);
}

static void lets_one_in_at_a_time(void **state)
{
    run_all(20000);
}

static void wakes_all_who_sleep_at_once(void **state)
{
    tune(0, 3, NULL);
    run_all(4000);
    tune(0, 1000, NULL);
    run_all(4000);
    tune(200, 1, NULL);
    run_all(4000);
}

static void needs_no_membarrier(void **state)
{
    tune(0, 3, membarrier_missing);
    run_all(4000);
}

static void survives_the_loss_of_membarrier(void **state)
{
    shared_t shared = {.steps = 500, .dawdle = 3};

    tune(0, 3, membarrier_lost);
    rmm__mutex_init(&shared.lock);
    assert_int_equal(shared.lock.mode & RMM_MUTEX_QUICK, RMM_MUTEX_QUICK);
    run_crew(&shared, CREW);
    rmm__mutex_fini(&shared.lock);
}

static void registers_again_for_membarrier(void **state)
{
    shared_t shared = {.steps = 500, .dawdle = 3};
    rmm_mutex_t later;

    tune(0, 3, membarrier_of_a_child);
    rmm__mutex_init(&shared.lock);
    assert_int_equal(shared.lock.mode & RMM_MUTEX_QUICK, RMM_MUTEX_QUICK);
    is_registered = false;
    run_crew(&shared, CREW);
    assert_true(is_registered);
    rmm__mutex_init(&later);
    assert_int_equal(later.mode & RMM_MUTEX_QUICK, RMM_MUTEX_QUICK);
    rmm__mutex_fini(&later);
    rmm__mutex_fini(&shared.lock);
}

static void works_on_one_processor(void **state)
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

/*
 * The race that membarrier() decides: one thread unlocks while another one goes to sleep,
 * and nobody comes by later. The holder's last stores are to lines that the other core
 * has, so that the one that frees the lock is late. With membarrier_pretended() this ends
 * within some 100,000 rounds: a round in which the sleeper is forgotten.
 */
enum { HUNT_ROUNDS = 30000, HUNT_OVER = -1, HUNT_LINES = 40 };

typedef struct hunt {
    rmm_mutex_t lock;
    _Atomic(int) begun, done; /* rounds */
    struct {
        _Alignas(64) uint64_t value;
    } lines[HUNT_LINES];
} hunt_t;

/* False: there is no such round. */
static bool await(_Atomic(int) *rounds, int round)
{
    int now = atomic_load_explicit(rounds, memory_order_acquire);

    for (int i = 0; now != round && now != HUNT_OVER; i++) {
        if (i > 2000) {
            sched_yield();
        }
        now = atomic_load_explicit(rounds, memory_order_acquire);
    }
    return now == round;
}

static void dawdle(int turns)
{
    for (int i = 0; i < turns; i++) {
        __asm__ volatile("" ::: "memory");
    }
}

static void dirty_and_unlock(hunt_t *hunt)
{
    for (int i = 0; i < HUNT_LINES; i++) {
        hunt->lines[i].value++;
    }
    rmm__mutex_unlock(&hunt->lock);
}

static void *go_to_sleep(void *argument)
{
    hunt_t *hunt = argument;

    for (int round = 1; await(&hunt->begun, round); round++) {
        dawdle(round * 7 % 300);
        rmm__mutex_lock(&hunt->lock);
        dirty_and_unlock(hunt);
        atomic_store_explicit(&hunt->done, round, memory_order_release);
    }
    return NULL;
}

static void forgets_no_sleeper_when_an_unlock_is_quick(void **state)
{
    static hunt_t hunt;
    uint64_t until_ns = patience_ns();
    int rounds = 0;
    pthread_t thread;

    tune(0, 1, NULL);
    rmm__mutex_init(&hunt.lock);
    assert_int_equal(pthread_create(&thread, NULL, go_to_sleep, &hunt), 0);
    for (int round = 1; round <= HUNT_ROUNDS; round++) {
        if (round % 64 == 0 && is_late(until_ns)) {
            break;
        }
        rounds = round;
        rmm__mutex_lock(&hunt.lock);
        atomic_store_explicit(&hunt.begun, round, memory_order_release);
        dawdle(round * 13 % 700);
        dirty_and_unlock(&hunt);
        (void)await(&hunt.done, round);
        for (int i = 0; i < 2; i++) { /* until it is quick again */
            rmm__mutex_lock(&hunt.lock);
            rmm__mutex_unlock(&hunt.lock);
        }
    }
    atomic_store_explicit(&hunt.begun, HUNT_OVER, memory_order_release);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(hunt.lines[0].value, 2 * rounds);
    rmm__mutex_fini(&hunt.lock);
}

/* --- one by one --------------------------------------------------------------------- */

typedef struct visitor {
    rmm_mutex_t *lock;
    _Atomic(uint32_t) thread_id;
    int error; /* errno behind the lock */
    bool told;
} visitor_t;

static void *visit(void *argument)
{
    visitor_t *visitor = argument;

    errno = EXDEV;
    atomic_store_explicit(&visitor->thread_id, rmm__thread_id(), memory_order_relaxed);
    visitor->told = rmm__mutex_lock_told(visitor->lock);
    rmm__mutex_unlock(visitor->lock);
    visitor->error = errno;
    return NULL;
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

static void is_taken_by_who_tries_only_when_free(void **state)
{
    rmm_mutex_t lock = RMM_MUTEX_INITIALIZER;

    assert_true(rmm__mutex_trylock(&lock));
    assert_false(rmm__mutex_trylock(&lock));
    assert_false(other_thread_can_take(&lock));
    rmm__mutex_unlock(&lock);
    assert_true(other_thread_can_take(&lock));
    assert_false(rmm__mutex_lock_told(&lock));
    assert_false(other_thread_can_take(&lock));
    rmm__mutex_unlock(&lock);
    rmm__mutex_fini(&lock);
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

static void sleeps_while_the_holder_is_away(void **state)
{
    rmm_mutex_t lock;
    visitor_t visitor = {.lock = &lock};
    pthread_t thread;

    rmm__mutex_init(&lock);
    rmm__mutex_lock(&lock);
    assert_int_equal(pthread_create(&thread, NULL, visit, &visitor), 0);
    while (atomic_load_explicit(&lock.sleepers, memory_order_relaxed) == 0 ||
           state_of(atomic_load_explicit(&visitor.thread_id, memory_order_relaxed)) !=
               'S') {
        usleep(1000);
    }
    assert_int_equal(lock.mode & RMM_MUTEX_QUICK, 0);
    rmm__mutex_unlock(&lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(visitor.told);
    assert_int_equal(visitor.error, EXDEV);
    assert_int_equal(lock.sleepers, 0);
    rmm__mutex_fini(&lock);
}

static void becomes_quick_when_nobody_sleeps(void **state)
{
    rmm_mutex_t lock = RMM_MUTEX_INITIALIZER;

    tune(0, 3, membarrier_pretended);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(lock.mode & RMM_MUTEX_QUICK, 0);
        rmm__mutex_lock(&lock);
        rmm__mutex_unlock(&lock);
    }
    assert_int_equal(lock.mode & RMM_MUTEX_QUICK, RMM_MUTEX_QUICK);
    rmm__mutex_init(&lock);
    assert_int_equal(lock.mode & RMM_MUTEX_QUICK, RMM_MUTEX_QUICK);
}

static void stays_careful_without_membarrier(void **state)
{
    rmm_mutex_t lock;

    tune(0, 3, membarrier_missing);
    rmm__mutex_init(&lock);
    for (int i = 0; i < 10; i++) {
        rmm__mutex_lock(&lock);
        rmm__mutex_unlock(&lock);
    }
    assert_int_equal(lock.mode, 0);
    assert_int_equal(lock.sleepers, 0);
}

/* A parent's registration may not be the child's, whose locks are quick all the same. */
static void works_in_a_forked_child(void **state)
{
    shared_t shared = {.steps = 2000, .dawdle = 10};
    pid_t child;

    tune(0, 3, NULL);
    rmm__mutex_init(&shared.lock);
    rmm__mutex_lock(&shared.lock);
    child = fork_child();
    if (child == 0) {
        pthread_t threads[2];

        alarm(300);
        for (int i = 0; i < 2; i++) {
            if (pthread_create(&threads[i], NULL, run_steps, &shared) != 0) {
                _exit(2);
            }
        }
        rmm__mutex_unlock(&shared.lock);
        for (int i = 0; i < 2; i++) {
            pthread_join(threads[i], NULL);
        }
        _exit(shared.torn == 0 && shared.words[0] == 4000 ? 0 : 1);
    }
    rmm__mutex_unlock(&shared.lock);
    assert_int_equal(exit_status_of(child), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_taken_by_who_tries_only_when_free),
        cmocka_unit_test(works_in_a_forked_child),
        cmocka_unit_test_teardown(lets_one_in_at_a_time, back_to_usual),
        cmocka_unit_test_teardown(wakes_all_who_sleep_at_once, back_to_usual),
        cmocka_unit_test_teardown(
            forgets_no_sleeper_when_an_unlock_is_quick, back_to_usual),
        cmocka_unit_test_teardown(needs_no_membarrier, back_to_usual),
        cmocka_unit_test_teardown(registers_again_for_membarrier, back_to_usual),
        cmocka_unit_test_teardown(survives_the_loss_of_membarrier, back_to_usual),
        cmocka_unit_test_teardown(works_on_one_processor, back_to_usual),
        cmocka_unit_test_teardown(sleeps_while_the_holder_is_away, back_to_usual),
        cmocka_unit_test_teardown(becomes_quick_when_nobody_sleeps, back_to_usual),
        cmocka_unit_test_teardown(stays_careful_without_membarrier, back_to_usual),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
