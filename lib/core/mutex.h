/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of the library: one atomic operation locks, and a plain store unlocks as long as
 * no thread sleeps on it. A thread that finds it taken spins for some microseconds, then
 * sleeps. In a debug build it can assert that the calling thread holds it.
 *
 * Not fair: any thread that finds it free takes it. That keeps the protected data in one
 * core's cache, and is most of the throughput under contention.
 *
 * An unlock reads the lock once more after it has released it. So it must not be a lock
 * under which its last user learns that it may free the lock: a thread that unlocks must
 * still hold a reference. Locking recursively is a deadlock; debug builds assert.
 *
 * How it works, and why no wake-up is lost: mutex.c.
 */
#ifndef RMM_CORE_MUTEX_H
#define RMM_CORE_MUTEX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/assert.h"

/* The bit of `mode` with which an unlock is done after its store. */
#define RMM_MUTEX_QUICK 1u

typedef struct rmm_mutex {
    _Atomic(uint32_t) held;
    _Atomic(uint32_t) mode;     /* see mutex.c; all zero at first */
    _Atomic(uint32_t) sleepers; /* at least the number of sleeping threads */
    _Atomic(uint32_t) wakes;    /* the futex: counts wake-ups */
    _Atomic(uint32_t) calm;     /* about how many unlocks found no sleeper */
#ifndef NDEBUG
    _Atomic(pthread_t) owner; /* the thread that holds it; 0: none */
#endif
} rmm_mutex_t;

#define RMM_MUTEX_INITIALIZER                                                          \
    {                                                                                  \
        .held = 0                                                                      \
    }

/* The first call in a process that has threads already may take milliseconds. */
void rmm__mutex_init(rmm_mutex_t *mutex);

static inline void rmm__mutex_fini(rmm_mutex_t *mutex)
{
    RMM_ASSERT(atomic_load_explicit(&mutex->held, memory_order_relaxed) == 0);
    (void)mutex;
}

/* Slow paths: wait for the lock and take it; look for sleepers after a release. */
RMM_COLD void rmm__mutex_wait(rmm_mutex_t *mutex);
RMM_COLD void rmm__mutex_look(rmm_mutex_t *mutex);

/* True: it was free, and the caller holds it now. */
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

/* Take the lock. True: another thread held it, so that this one had to wait. */
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

/* The first half of an unlock. mutex.c has another second half. */
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
    /* The fence keeps the compiler from moving the load before the store. The processor
     * may still reorder them: a thread about to sleep handles that by membarrier(). */
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

/* What tests change, while no thread uses a lock, to take rare paths often. */
typedef struct rmm_mutex_tuning {
    uint32_t spin_ns;      /* about how long to spin; 0: sleep at once */
    uint32_t calm_unlocks; /* after so many that found no sleeper, unlocks are quick */
    int (*membarrier)(int command); /* 0, or -1 and errno; NULL: the system call */
} rmm_mutex_tuning_t;

/* NULL: the defaults. Also resets what is known about membarrier() and the processors. */
void rmm__mutex_tune(const rmm_mutex_tuning_t *wanted);

#endif /* RMM_CORE_MUTEX_H */
