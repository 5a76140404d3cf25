/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock under which one thread does the work of many (flat combining: Hendler, Incze,
 * Shavit, Tzafrir, SPAA 2010). A thread that finds the lock taken posts its operation; the
 * thread that holds the lock runs posted operations before it unlocks. So contention costs
 * little: the data stays in one core's cache, and a posted operation costs two cache misses
 * instead of those of the lock and of all the data. The result is that of one lock:
 * operations run one after the other, each whole.
 *
 * An operation may run on any thread: it uses no thread-local state (the last error, the
 * current device), makes no call that waits, and does not use the combiner.
 *
 * A waiting thread spins for some microseconds. Then it sleeps until it gets the lock, and
 * runs its operation itself unless another thread has done so.
 */
#ifndef RMM_CORE_COMBINER_H
#define RMM_CORE_COMBINER_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/mutex.h"

enum { RMM_COMBINER_SLOTS = 32, RMM_CACHE_LINE = 64 };

/* The first member of an operation, which is on its caller's stack and holds all that run()
 * needs. It costs least within two cache lines. */
typedef struct rmm_combined {
    _Alignas(RMM_CACHE_LINE) void (*run)(struct rmm_combined *self);
} rmm_combined_t;

typedef struct rmm_combiner_slot {
    _Alignas(RMM_CACHE_LINE) _Atomic(rmm_combined_t *) posted; /* NULL: empty */
} rmm_combiner_slot_t;

typedef struct rmm_combiner {
    rmm_mutex_t lock;        /* may be taken directly */
    _Atomic(uint32_t) users; /* bit i: slots[i] was in use recently; so were others */
    rmm_combiner_slot_t slots[RMM_COMBINER_SLOTS];
} rmm_combiner_t;

void rmm__combiner_init(rmm_combiner_t *combiner);
void rmm__combiner_fini(rmm_combiner_t *combiner);

/* Slow paths: post an operation when the lock is taken; run those posted before unlocking. */
RMM_COLD void rmm__combiner_post(rmm_combiner_t *combiner, rmm_combined_t *operation);
RMM_COLD void rmm__combiner_serve_locked(rmm_combiner_t *combiner);

/* Run the operations posted meanwhile, then unlock, however the lock was taken. */
static inline void rmm__combiner_unlock(rmm_combiner_t *combiner)
{
    /* relaxed: a hint; a thread with a posted operation tries the lock itself */
    if (__builtin_expect(
            atomic_load_explicit(&combiner->users, memory_order_relaxed) != 0, false)) {
        rmm__combiner_serve_locked(combiner);
    }
    rmm__mutex_unlock(&combiner->lock);
}

/* Run the operation under the lock, on this thread or another. While other threads use the
 * slots, post it at once: one of them has the data in its cache. */
static inline void rmm__combine(rmm_combiner_t *combiner, rmm_combined_t *operation)
{
    if (__builtin_expect(
            atomic_load_explicit(&combiner->users, memory_order_relaxed) == 0, true) &&
        __builtin_expect(rmm__mutex_trylock(&combiner->lock), true)) {
        operation->run(operation);
        rmm__combiner_unlock(combiner);
    } else {
        rmm__combiner_post(combiner, operation);
    }
}

#endif /* RMM_CORE_COMBINER_H */
