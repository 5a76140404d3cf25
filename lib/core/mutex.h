/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of the library. One compare-and-swap locks it, and a plain store unlocks it,
 * whether threads wait or not. In a debug build it can assert that the calling thread holds
 * it.
 *
 * Not fair: a thread that finds the lock free takes it, even if others wait. So a thread
 * that locks again and again keeps the protected data in its core's cache, which is most of
 * the throughput under contention. A thread that waits spins, then sleeps between two looks.
 *
 * An unlock does not touch the lock after it has released it. Locking recursively is a
 * deadlock, and an unlock by another thread an error; debug builds assert.
 *
 * How threads wait: mutex.c.
 */
#ifndef RMM_CORE_MUTEX_H
#define RMM_CORE_MUTEX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/assert.h"

typedef struct rmm_mutex {
    _Atomic(uint32_t) held;     /* 0 or 1 */
    _Atomic(uint32_t) sleepers; /* threads between two looks at a lock that is held */
#ifndef NDEBUG
    _Atomic(pthread_t) owner; /* the thread that holds it; 0: none */
#endif
} rmm_mutex_t;

#define RMM_MUTEX_INITIALIZER                                                          \
    {                                                                                  \
        .held = 0, .sleepers = 0                                                       \
    }

static inline void rmm__mutex_init(rmm_mutex_t *mutex)
{
    atomic_init(&mutex->held, 0);
    atomic_init(&mutex->sleepers, 0);
#ifndef NDEBUG
    atomic_init(&mutex->owner, 0);
#endif
}

static inline void rmm__mutex_fini(rmm_mutex_t *mutex)
{
    RMM_ASSERT(atomic_load_explicit(&mutex->held, memory_order_relaxed) == 0);
    (void)mutex;
}

/* The slow path of a lock: wait, then take it. */
RMM_COLD void rmm__mutex_wait(rmm_mutex_t *mutex);

/* True: the caller holds it now. False: another thread does. */
static inline bool rmm__mutex_trylock(rmm_mutex_t *mutex)
{
    uint32_t held = 0;

    /* acquire: pairs with the store in rmm__mutex_unlock() */
    if (!atomic_compare_exchange_strong_explicit(
            &mutex->held, &held, 1, memory_order_acquire, memory_order_relaxed)) {
        return false;
    }
#ifndef NDEBUG
    atomic_store_explicit(&mutex->owner, pthread_self(), memory_order_relaxed);
#endif
    return true;
}

static inline void rmm__mutex_lock(rmm_mutex_t *mutex)
{
#ifndef NDEBUG
    RMM_ASSERT(
        atomic_load_explicit(&mutex->owner, memory_order_relaxed) != pthread_self());
#endif
    if (__builtin_expect(!rmm__mutex_trylock(mutex), false)) {
        rmm__mutex_wait(mutex);
    }
}

static inline void rmm__mutex_unlock(rmm_mutex_t *mutex)
{
#ifndef NDEBUG
    RMM_ASSERT(
        atomic_load_explicit(&mutex->owner, memory_order_relaxed) == pthread_self());
    atomic_store_explicit(&mutex->owner, 0, memory_order_relaxed);
#endif
    /* release: pairs with rmm__mutex_trylock() */
    atomic_store_explicit(&mutex->held, 0, memory_order_release);
}

#ifndef NDEBUG
#define RMM_ASSERT_LOCKED(mutex)                                                       \
    RMM_ASSERT(                                                                        \
        atomic_load_explicit(&(mutex)->owner, memory_order_relaxed) == pthread_self())
#else
#define RMM_ASSERT_LOCKED(mutex) ((void)0)
#endif

/* Tests change this, while no thread uses a lock, to take rare paths often. */
typedef struct rmm_mutex_tuning {
    uint64_t spin_ns; /* about how long to spin; 0: sleep at once */
} rmm_mutex_tuning_t;

/* NULL: the defaults. Also counts the processors again. */
void rmm__mutex_tune(const rmm_mutex_tuning_t *wanted);

#endif /* RMM_CORE_MUTEX_H */
