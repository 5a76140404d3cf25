/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of the library: spins briefly, then sleeps (glibc's adaptive mutex), and can
 * say in a debug build that it is held.
 */
#ifndef RMM_CORE_MUTEX_H
#define RMM_CORE_MUTEX_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/assert.h"

typedef struct rmm_mutex {
    pthread_mutex_t native;
#ifndef NDEBUG
    _Atomic(pthread_t) owner; /* who holds it; 0: nobody */
#endif
} rmm_mutex_t;

#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
#define RMM_MUTEX_INITIALIZER                                                          \
    {                                                                                  \
        .native = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP                                \
    }
#else
#define RMM_MUTEX_INITIALIZER                                                          \
    {                                                                                  \
        .native = PTHREAD_MUTEX_INITIALIZER                                            \
    }
#endif

static inline void rmm__mutex_init(rmm_mutex_t *mutex)
{
    *mutex = (rmm_mutex_t)RMM_MUTEX_INITIALIZER;
}

static inline void rmm__mutex_fini(rmm_mutex_t *mutex)
{
    pthread_mutex_destroy(&mutex->native);
}

static inline void rmm__mutex_lock(rmm_mutex_t *mutex)
{
    pthread_mutex_lock(&mutex->native);
#ifndef NDEBUG
    atomic_store_explicit(&mutex->owner, pthread_self(), memory_order_relaxed);
#endif
}

static inline void rmm__mutex_unlock(rmm_mutex_t *mutex)
{
#ifndef NDEBUG
    atomic_store_explicit(&mutex->owner, 0, memory_order_relaxed);
#endif
    pthread_mutex_unlock(&mutex->native);
}

#ifndef NDEBUG
#define RMM_ASSERT_LOCKED(mutex)                                                       \
    RMM_ASSERT(                                                                        \
        atomic_load_explicit(&(mutex)->owner, memory_order_relaxed) == pthread_self())
#else
#define RMM_ASSERT_LOCKED(mutex) ((void)0)
#endif

#endif /* RMM_CORE_MUTEX_H */
