/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of the library: one atomic operation to take it, a plain store to give it
 * back, as long as nobody sleeps on it. Who finds it taken spins for some microseconds,
 * then sleeps. In a debug build it can say that it is held.
 *
 * Not fair: whoever comes by when it is free has it. That keeps the protected data in one
 * core's cache, and is most of the throughput when many want it.
 *
 * An unlock looks at the lock once more after it has given it away. So it must not be a
 * lock under which its last user learns that he may free it: see to it that whoever
 * unlocks still holds a reference. A recursive lock is a deadlock; debug builds assert.
 *
 * How it works, and why no sleeper is forgotten: mutex.c.
 */
#ifndef RMM_CORE_MUTEX_H
#define RMM_CORE_MUTEX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/assert.h"

/* The bit of `mode` with which an unlock is done once it has stored. */
#define RMM_MUTEX_QUICK 1u

typedef struct rmm_mutex {
    _Atomic(uint32_t) held;
    _Atomic(uint32_t) mode;     /* see mutex.c; all zero at first */
    _Atomic(uint32_t) sleepers; /* at least as many as sleep */
    _Atomic(uint32_t) wakes;    /* the futex: counts who was let go on */
    _Atomic(uint32_t) calm;     /* about how many unlocks found no sleeper */
#ifndef NDEBUG
    _Atomic(pthread_t) owner; /* who holds it; 0: nobody */
#endif
} rmm_mutex_t;

#define RMM_MUTEX_INITIALIZER                                                          \
    {                                                                                  \
        .held = 0                                                                      \
    }

/* May take milliseconds, once in a process that has threads already. */
void rmm__mutex_init(rmm_mutex_t *mutex);

static inline void rmm__mutex_fini(rmm_mutex_t *mutex)
{
    RMM_ASSERT(atomic_load_explicit(&mutex->held, memory_order_relaxed) == 0);
    (void)mutex;
}

/* The slow halves: wait for the lock and take it; look for sleepers after a release. */
RMM_COLD void rmm__mutex_wait(rmm_mutex_t *mutex);
RMM_COLD void rmm__mutex_look(rmm_mutex_t *mutex);

/* True if it was free, and is the caller's now. */
static inline bool rmm__mutex_trylock(rmm_mutex_t *mutex)
{
    uint32_t nobody = 0;

    /* acquire: pairs with the store in rmm__mutex_unlock() */
    if (!atomic_compare_exchange_strong_explicit(
            &mutex->held, &nobody, 1, memory_order_acquire, memory_order_relaxed)) {
        return false;
    }
#ifndef NDEBUG
    atomic_store_explicit(&mutex->owner, pthread_self(), memory_order_relaxed);
#endif
    return true;
}

/* Takes the lock. True: another thread held it, so that this one had to wait. */
static inline bool rmm__mutex_lock_told(rmm_mutex_t *mutex)
{
#ifndef NDEBUG
    RMM_ASSERT(
        atomic_load_explicit(&mutex->owner, memory_order_relaxed) != pthread_self());
#endif
    if (__builtin_expect(rmm__mutex_trylock(mutex), true)) {
        return false;
    }
    rmm__mutex_wait(mutex);
    return true;
}

static inline void rmm__mutex_lock(rmm_mutex_t *mutex)
{
    (void)rmm__mutex_lock_told(mutex);
}

/* The first half of an unlock; mutex.c does another second one. */
static inline void rmm__mutex_release(rmm_mutex_t *mutex)
{
#ifndef NDEBUG
    atomic_store_explicit(&mutex->owner, 0, memory_order_relaxed);
#endif
    /* release: pairs with rmm__mutex_trylock() */
    atomic_store_explicit(&mutex->held, 0, memory_order_release);
}

static inline void rmm__mutex_unlock(rmm_mutex_t *mutex)
{
    rmm__mutex_release(mutex);
    /* In the program the load stays behind the store. The processor may do it first: the
     * membarrier() of who wants to sleep sees to that. */
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(
            (atomic_load_explicit(&mutex->mode, memory_order_relaxed) &
             RMM_MUTEX_QUICK) == 0,
            false)) {
        rmm__mutex_look(mutex);
    }
}

#ifndef NDEBUG
#define RMM_ASSERT_LOCKED(mutex)                                                       \
    RMM_ASSERT(                                                                        \
        atomic_load_explicit(&(mutex)->owner, memory_order_relaxed) == pthread_self())
#else
#define RMM_ASSERT_LOCKED(mutex) ((void)0)
#endif

/* What tests change, while nobody uses a lock, to take the rare ways often. */
typedef struct rmm_mutex_tuning {
    uint32_t spin_ns;      /* how long to spin, about; 0: sleep at once */
    uint32_t calm_unlocks; /* after so many that found no sleeper, unlocks are quick */
    int (*membarrier)(int command); /* 0, or -1 and errno; NULL: the system call */
} rmm_mutex_tuning_t;

/* NULL: as it was at first. Also forgets what is known about membarrier() and processors. */
void rmm__mutex_tune(const rmm_mutex_tuning_t *wanted);

#endif /* RMM_CORE_MUTEX_H */
