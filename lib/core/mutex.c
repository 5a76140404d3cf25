/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How threads wait for the lock.
 *
 * A waiting thread first spins for `spin_ns` and polls the lock less and less often (Anderson,
 * "The performance of spin lock alternatives for shared-memory multiprocessors", 1990): each
 * poll takes the lock's cache line from the thread that uses it. The waiting thread takes the
 * lock only if it stays free for IDLE_PAUSES. If the thread that unlocked it locks it again
 * sooner, that thread goes on, because each handover moves the protected data to another core.
 *
 * Then the waiting thread sleeps repeatedly, each time for as long as it has waited so far, but
 * for NAP_NS_MIN to NAP_NS_MAX. After 16 ms of waiting it sleeps for a 32nd of that time:
 * otherwise the polls of 1,000 threads would use all the time of two processors, and the thread
 * that holds the lock would get none. After each sleep it polls for LOOK_NS. It too leaves the
 * lock to a thread that locks it again and again, until it has waited for TURN_NS for each
 * thread that sleeps, PATIENCE_NS_MAX at most; then it takes the lock as soon as it is free. So
 * the protected data moves to another core about once in TURN_NS, however many threads wait, and
 * no thread can keep the lock for ever. No unlock wakes a thread: most threads that were woken
 * found the lock taken again. So no wake-up can be lost, an unlock needs neither a fence nor a
 * read of the lock, and no thread waits for a waiting thread that does not run.
 *
 * Whether the lock is held is one word, and the number of sleeping threads only makes them wait
 * longer. So neither a forked child, in which those threads do not exist, nor a signal handler
 * that interrupts a waiting thread and needs the same lock finds it half changed.
 *
 * Figures, and what else was tried: docs/decisions/0024-no-unlock-wakes-a-thread.md.
 */
#include "core/mutex.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

/* Between two looks at the lock; a pause takes 5 to 70 ns. */
#define FEWEST_PAUSES 4
#define MOST_PAUSES 4096
#define IDLE_PAUSES 8
#define LOOK_NS 2000u /* several times as long as the lock is usually held */
#define TURN_NS 500000u
#define PATIENCE_NS_MAX 10000000u
#define NAP_NS_MIN 20000u
#define NAP_NS_MAX 500000u
#define LONG_NAP_NS_MAX 10000000u

static const rmm_mutex_tuning_t usual = {.spin_ns = 200000};
static rmm_mutex_tuning_t tuning = {.spin_ns = 200000};
static bool has_one_cpu; /* the holder does not run while another thread spins */

/* When the library is loaded: later the calling thread may be bound to one of many. */
__attribute__((constructor)) static void count_cpus(void)
{
    cpu_set_t set;

    /* an error: more processors than the set has bits */
    has_one_cpu = sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) == 1;
}

void rmm__mutex_tune(const rmm_mutex_tuning_t *wanted)
{
    tuning = wanted != NULL ? *wanted : usual;
    count_cpus();
}

static inline void cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#else
    __asm__ volatile("" ::: "memory");
#endif
}

/* A plain system call, so that no thread can be cancelled here. */
static void nap(uint64_t waited_ns)
{
    uint64_t nap_ns = waited_ns > NAP_NS_MIN ? waited_ns : NAP_NS_MIN;

    nap_ns = nap_ns < NAP_NS_MAX ? nap_ns : NAP_NS_MAX;
    nap_ns = nap_ns > waited_ns / 32 ? nap_ns : waited_ns / 32;
    nap_ns = nap_ns < LONG_NAP_NS_MAX ? nap_ns : LONG_NAP_NS_MAX;
    syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = (long)nap_ns}, NULL);
}

static bool is_free(const rmm_mutex_t *mutex)
{
    return atomic_load_explicit(&mutex->held, memory_order_relaxed) == 0;
}

/* Only loads as long as another thread holds it: they take no cache line away. */
static bool take_if_idle(rmm_mutex_t *mutex)
{
    for (int i = 0; i < IDLE_PAUSES; i++) {
        if (!is_free(mutex)) {
            return false;
        }
        cpu_pause();
    }
    return rmm__mutex_trylock(mutex);
}

static bool has_had_patience(rmm_mutex_t *mutex, uint64_t waited_ns)
{
    uint64_t sleepers = atomic_load_explicit(&mutex->sleepers, memory_order_relaxed);
    uint64_t patience_ns = sleepers * TURN_NS;

    return waited_ns >= (patience_ns < PATIENCE_NS_MAX ? patience_ns : PATIENCE_NS_MAX);
}

/* Looks at least once. */
static bool take_after_sleep(rmm_mutex_t *mutex, uint64_t waited_ns)
{
    uint64_t begin_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    bool at_once = has_had_patience(mutex, waited_ns);

    do {
        if (at_once ? is_free(mutex) && rmm__mutex_trylock(mutex)
                    : take_if_idle(mutex)) {
            return true;
        }
        cpu_pause();
    } while (!has_one_cpu && rmm__clock_ns(CLOCK_MONOTONIC) - begin_ns < LOOK_NS);
    return false;
}

static void pause_for(int pauses)
{
    for (int i = 0; i < pauses; i++) {
        cpu_pause();
    }
}

/* False: the time to spin is over. */
static bool take_by_spinning(rmm_mutex_t *mutex, uint64_t begin_ns)
{
    int pauses = FEWEST_PAUSES;

    while (!has_one_cpu && rmm__clock_ns(CLOCK_MONOTONIC) - begin_ns < tuning.spin_ns) {
        if (take_if_idle(mutex)) {
            return true;
        }
        pause_for(pauses);
        pauses = pauses < MOST_PAUSES ? 2 * pauses : pauses;
    }
    return false;
}

static void take_by_sleeping(rmm_mutex_t *mutex, uint64_t begin_ns)
{
    uint64_t waited_ns = rmm__clock_ns(CLOCK_MONOTONIC) - begin_ns;

    atomic_fetch_add_explicit(&mutex->sleepers, 1, memory_order_relaxed);
    while (!take_after_sleep(mutex, waited_ns)) {
        nap(waited_ns);
        waited_ns = rmm__clock_ns(CLOCK_MONOTONIC) - begin_ns;
    }
    atomic_fetch_sub_explicit(&mutex->sleepers, 1, memory_order_relaxed);
}

void rmm__mutex_wait(rmm_mutex_t *mutex)
{
    uint64_t begin_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    int error = errno;

    if (!take_by_spinning(mutex, begin_ns)) {
        take_by_sleeping(mutex, begin_ns);
    }
    errno = error;
}
