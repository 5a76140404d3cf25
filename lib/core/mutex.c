/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How threads wait for the lock.
 *
 * A thread spins for `spin_ns`: it takes the lock whenever it finds it free, and looks less
 * and less often (Anderson, "The performance of spin lock alternatives for shared-memory
 * multiprocessors", 1990). Each look takes the lock's cache line from the thread that uses
 * it, and each handover moves the protected data to another core.
 *
 * Then it sleeps between two looks, for a quarter of the time that it has waited, but
 * NAP_NS_MIN to NAP_NS_MAX. No unlock wakes a thread: most threads that were woken found the
 * lock taken again. So no wake-up can be lost, an unlock needs neither a fence nor a look at
 * the lock, and no thread waits for a waiting thread that does not run.
 *
 * The lock has no state but whether it is held. So neither a fork nor a signal handler, which
 * may interrupt a thread that waits and need the same lock, meets a half-changed one.
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
#define NAP_NS_MIN 20000u
#define NAP_NS_MAX 250000u

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
    uint64_t nap_ns = waited_ns / 4;

    nap_ns = nap_ns < NAP_NS_MIN ? NAP_NS_MIN : nap_ns;
    nap_ns = nap_ns > NAP_NS_MAX ? NAP_NS_MAX : nap_ns;
    syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = (long)nap_ns}, NULL);
}

/* Only a load as long as another thread holds it: that takes no cache line away. */
static bool take_if_free(rmm_mutex_t *mutex)
{
    return atomic_load_explicit(&mutex->held, memory_order_relaxed) == 0 &&
           rmm__mutex_trylock(mutex);
}

void rmm__mutex_wait(rmm_mutex_t *mutex)
{
    int error = errno, pauses = FEWEST_PAUSES;
    uint64_t begin_ns = rmm__clock_ns(CLOCK_MONOTONIC), waited_ns = 0;

    while (!take_if_free(mutex)) {
        if (waited_ns < tuning.spin_ns && !has_one_cpu) {
            for (int i = 0; i < pauses; i++) {
                cpu_pause();
            }
            pauses = pauses < MOST_PAUSES ? 2 * pauses : pauses;
        } else {
            nap(waited_ns);
        }
        waited_ns = rmm__clock_ns(CLOCK_MONOTONIC) - begin_ns;
    }
    errno = error;
}
