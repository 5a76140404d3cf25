/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How threads wait for the lock.
 *
 * A thread spins first, for `spin_ns`: it takes the lock whenever it finds it free, and
 * looks less and less often (Anderson, "The performance of spin lock alternatives for
 * shared-memory multiprocessors", 1990). Each look takes the lock's cache line from the
 * thread that uses it, and each handover moves the protected data to another core.
 *
 * Then it joins a queue (Mellor-Crummey and Scott, "Algorithms for scalable synchronization
 * on shared-memory multiprocessors", 1991). `last` is the last thread of the queue: the
 * address of a node on that thread's stack, 0 if the queue is empty. A thread that finds
 * another one there links itself behind it and sleeps on a futex in its own node.
 *
 * Only the first thread of the queue looks at the lock. It takes it
 *   - when it is idle: free, and not locked and unlocked within a quarter of a microsecond;
 *   - else after `reserve_ns`: it sets RESERVED, which keeps all other threads from taking
 *     the lock after the next unlock.
 * So a thread that uses the lock all the time goes on with warm caches until then. The first
 * thread then makes the next one the first and leaves the queue.
 *
 * No unlock wakes a thread. The first thread spins for `spin_ns`, then naps for a quarter
 * of the time that it has waited, at most 1 ms. So no wake-up can be lost, and an unlock
 * needs neither a fence nor a second look at the lock.
 *
 * Forks: in a child the nodes of the parent's threads may still be queued, although their
 * stacks can be used for other threads. Each address in `last` carries the number of forks
 * in its low bits. A thread that finds another number there knows that no thread waits. If
 * a thread of the parent has reserved the lock, the first thread of the child's queue takes
 * it and ends the reservation.
 *
 * Figures, and what else was tried: docs/decisions/0024-threads-queue-for-a-lock.md.
 */
#include "core/mutex.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

/* Between two looks at the lock; a pause takes 5 to 70 ns. */
#define FEWEST_PAUSES 4
#define MOST_PAUSES 4096
#define MOST_PAUSES_AS_FIRST 256
#define IDLE_PAUSES 4
#define LINK_LOOKS 100
#define NAP_NS_MIN 20000u
#define NAP_NS_MAX 1000000u

enum { BEHIND, FIRST };   /* turns */
enum { NODE_ALIGN = 64 }; /* room for the number of forks in an address */

typedef struct node {
    _Alignas(NODE_ALIGN) _Atomic(struct node *) next;
    _Atomic(uint32_t) turn; /* a futex */
} node_t;

_Static_assert(sizeof(_Atomic(uint32_t)) == 4, "a futex is 32 bits");

static const rmm_mutex_tuning_t usual = {.reserve_ns = 100000, .spin_ns = 200000};
static rmm_mutex_tuning_t tuning = {.reserve_ns = 100000, .spin_ns = 200000};
static atomic_int cpu_count;  /* CPUs that this process may run on; 0: not asked yet */
static uintptr_t fork_number; /* modulo NODE_ALIGN; changes while there is one thread */

void rmm__mutex_tune(const rmm_mutex_tuning_t *wanted)
{
    tuning = wanted != NULL ? *wanted : usual;
    atomic_store_explicit(&cpu_count, 0, memory_order_relaxed);
}

void rmm__mutex_forget_waiters(void)
{
    fork_number = (fork_number + 1) % NODE_ALIGN;
}

/* --- the system ------------------------------------------------------------------- */

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

static void pause_times(int count)
{
    for (int i = 0; i < count; i++) {
        cpu_pause();
    }
}

/* On one processor the holder does not run while another thread spins. */
static bool may_spin(uint64_t waited_ns)
{
    int count = atomic_load_explicit(&cpu_count, memory_order_relaxed);

    if (count == 0) {
        cpu_set_t set;

        /* an error: more processors than the set has bits */
        count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 2;
        atomic_store_explicit(&cpu_count, count, memory_order_relaxed);
    }
    return count > 1 && waited_ns < tuning.spin_ns;
}

/* By a plain system call: a thread that is cancelled must not leave while it is queued. */
static void nap(uint64_t waited_ns)
{
    uint64_t nap_ns = waited_ns / 4;

    nap_ns = nap_ns < NAP_NS_MIN ? NAP_NS_MIN : nap_ns;
    nap_ns = nap_ns > NAP_NS_MAX ? NAP_NS_MAX : nap_ns;
    syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = (long)nap_ns}, NULL);
}

/* --- spinning ----------------------------------------------------------------------- */

/* Pauses and doubles the number of pauses up to `most`. */
static void back_off(int *pauses, int most)
{
    pause_times(*pauses);
    *pauses = 2 * *pauses < most ? 2 * *pauses : most;
}

/* True: taken. */
static bool spin(rmm_mutex_t *mutex)
{
    uint64_t begin_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    int pauses = FEWEST_PAUSES;

    while (may_spin(rmm__clock_ns(CLOCK_MONOTONIC) - begin_ns)) {
        if (rmm__mutex_trylock(mutex)) {
            return true;
        }
        back_off(&pauses, MOST_PAUSES);
    }
    return rmm__mutex_trylock(mutex);
}

/* --- the first thread of the queue -------------------------------------------------- */

/* True: taken. It was free in `state`, and a reservation ends. */
static bool take(rmm_mutex_t *mutex, uint32_t state)
{
    /* acquire: pairs with the store in rmm__mutex_unlock() */
    return atomic_compare_exchange_strong_explicit(
        &mutex->state, &state, (state | RMM_MUTEX_HELD) & ~RMM_MUTEX_RESERVED,
        memory_order_acquire, memory_order_relaxed);
}

static bool is_idle(rmm_mutex_t *mutex, uint32_t state)
{
    pause_times(IDLE_PAUSES);
    return atomic_load_explicit(&mutex->state, memory_order_relaxed) == state;
}

/* True: taken. */
static bool look(rmm_mutex_t *mutex, bool is_due)
{
    uint32_t state = atomic_load_explicit(&mutex->state, memory_order_relaxed);

    if ((state & RMM_MUTEX_HELD) == 0 && (is_due || is_idle(mutex, state))) {
        return take(mutex, state);
    }
    if (is_due && (state & RMM_MUTEX_RESERVED) == 0) {
        atomic_fetch_or_explicit(
            &mutex->state, RMM_MUTEX_RESERVED, memory_order_relaxed);
    }
    return false;
}

static void take_as_first(rmm_mutex_t *mutex)
{
    uint64_t begin_ns = rmm__clock_ns(CLOCK_MONOTONIC), waited_ns = 0;
    int pauses = FEWEST_PAUSES;

    while (!look(mutex, waited_ns >= tuning.reserve_ns)) {
        if (waited_ns >=
            tuning.reserve_ns) { /* the next unlock frees it for this thread */
            pauses = FEWEST_PAUSES;
        }
        if (may_spin(waited_ns)) {
            back_off(&pauses, MOST_PAUSES_AS_FIRST);
        } else {
            nap(waited_ns);
        }
        waited_ns = rmm__clock_ns(CLOCK_MONOTONIC) - begin_ns;
    }
}

/* --- the queue ---------------------------------------------------------------------- */

/* The node before `self`, or NULL: no thread waits. */
static node_t *enter_queue(rmm_mutex_t *mutex, node_t *self)
{
    /* acq_rel: the thread before finds an initialised node, and so does this one */
    uintptr_t before = atomic_exchange_explicit(
        &mutex->last, (uintptr_t)self | fork_number, memory_order_acq_rel);

    if (before % NODE_ALIGN != fork_number) {
        return NULL;
    }
    return (node_t *)(before - fork_number);
}

static void sleep_behind(node_t *before, node_t *self)
{
    atomic_store_explicit(&before->next, self, memory_order_release);
    while (atomic_load_explicit(&self->turn, memory_order_acquire) == BEHIND) {
        syscall(SYS_futex, &self->turn, FUTEX_WAIT_PRIVATE, BEHIND, NULL, NULL, 0);
    }
}

/* The next node; NULL: there is none, and the queue is empty now. */
static node_t *leave_queue(rmm_mutex_t *mutex, node_t *self)
{
    uintptr_t last = (uintptr_t)self | fork_number;
    node_t *next = atomic_load_explicit(&self->next, memory_order_acquire);

    if (next == NULL &&
        atomic_compare_exchange_strong_explicit(
            &mutex->last, &last, 0, memory_order_acq_rel, memory_order_relaxed)) {
        return NULL;
    }
    /* another thread has entered the queue and is about to link itself */
    for (int looks = 0; next == NULL; looks++) {
        looks < LINK_LOOKS ? cpu_pause() : nap(0);
        next = atomic_load_explicit(&self->next, memory_order_acquire);
    }
    return next;
}

/* The node may be gone once its turn has changed; then the wake finds no thread. */
static void make_first(node_t *node)
{
    atomic_store_explicit(&node->turn, FIRST, memory_order_release);
    syscall(SYS_futex, &node->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void queue_for(rmm_mutex_t *mutex)
{
    node_t self = {.next = NULL, .turn = BEHIND};
    node_t *before = enter_queue(mutex, &self), *next;

    if (before != NULL) {
        sleep_behind(before, &self);
    }
    take_as_first(mutex);
    next = leave_queue(mutex, &self);
    if (next != NULL) {
        make_first(next);
    }
}

void rmm__mutex_wait(rmm_mutex_t *mutex)
{
    int error = errno;

    if (!spin(mutex)) {
        queue_for(mutex);
    }
    errno = error;
}
