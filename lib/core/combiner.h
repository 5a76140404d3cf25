/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock under which one thread does the work of many. A thread that finds it taken posts
 * its operation; the thread that has the lock runs what was posted before it gives it back.
 * So many threads at once cost little more than one: the data stays in one core's cache,
 * and a posted operation costs two cache misses instead of the lock's and all the data's.
 * The outcome is that of one lock: operations run one after the other, each whole.
 * (Flat combining: Hendler, Incze, Shavit, Tzafrir, SPAA 2010.)
 *
 * An operation runs on any thread: it uses nothing of its thread (the last error, current
 * device), makes no call that waits, and does not use the combiner.
 *
 * A thread waits by spinning for some microseconds, then sleeps for the lock and runs its
 * operation itself, unless another thread was faster.
 */
#ifndef RMM_CORE_COMBINER_H
#define RMM_CORE_COMBINER_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/mutex.h"

enum { RMM_COMBINER_SLOTS = 32, RMM_CACHE_LINE = 64 };

/* The first member of an operation on its caller's stack, with all that run() needs: within
 * two cache lines it costs least. */
typedef struct rmm_combined {
    _Alignas(RMM_CACHE_LINE) void (*run)(struct rmm_combined *self);
} rmm_combined_t;

typedef struct rmm_combiner_slot {
    _Alignas(RMM_CACHE_LINE) _Atomic(rmm_combined_t *) posted; /* NULL: empty */
} rmm_combiner_slot_t;

typedef struct rmm_combiner {
    rmm_mutex_t lock;        /* may be taken by itself */
    _Atomic(uint32_t) users; /* bit i: slots[i] was in use lately, and others too */
    rmm_combiner_slot_t slots[RMM_COMBINER_SLOTS];
} rmm_combiner_t;

void rmm__combiner_init(rmm_combiner_t *combiner);
void rmm__combiner_fini(rmm_combiner_t *combiner);

/* The slow halves: the lock is taken; operations were posted, and the lock is held. */
RMM_COLD void rmm__combiner_post(rmm_combiner_t *combiner, rmm_combined_t *operation);
RMM_COLD void rmm__combiner_serve_locked(rmm_combiner_t *combiner);

/* Give the lock back, however it was taken, and first run what was posted meanwhile. */
static inline void rmm__combiner_unlock(rmm_combiner_t *combiner)
{
    /* relaxed: a hint; a thread with a posted operation looks after it */
    if (__builtin_expect(
            atomic_load_explicit(&combiner->users, memory_order_relaxed) != 0, false)) {
        rmm__combiner_serve_locked(combiner);
    }
    rmm__mutex_unlock(&combiner->lock);
}

/* Run the operation under the lock, on this thread or another. Where others use the slots
 * it is posted at once: one of them has the data in its cache. */
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
