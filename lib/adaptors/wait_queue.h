/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests that wait for memory, in the order in which they came, and whose turn it is to try
 * again. Knows no upstream: the thread of a request makes its attempts itself.
 *
 * After a free one request tries, then, whether it succeeds or not, the next one: first the one
 * whose last attempt is longest ago, of several the one that came first. So a large request that
 * does not fit yet does not hold up small ones that do. (Largest first would starve the small
 * ones, which free soonest.) But small ones could take all that is freed. So when the first one
 * has waited for `patience`, it is not overtaken for as long: new requests queue, and no other
 * one tries, while anybody works. Then it may be overtaken again, and so on in turns, because
 * those who work may be threads that free nothing.
 *
 * When all threads wait and each request has tried since the last free, then
 *  1. one thread waits for the device, since memory that was freed in stream order may become
 *     usable by that alone, and all try again. (Only in place of a refusal: work on the device may
 *     itself wait for what a waiting thread is yet to queue, such as its part of a collective.)
 *  2. one request is refused, and its thread continues: the last that came of those whose thread
 *     holds memory and was not refused since the last free; else the last of those whose thread
 *     holds memory; else the last. So a thread that gives nothing back is not asked
 *     again before all others, and the request that came first is the last to be refused. The next
 *     request of a thread that was refused queues at once: it does not take what the thread has
 *     just given back.
 *
 * No wake-up is lost: a request adds itself to `count` before the attempt after which it sleeps,
 * and a free looks at `count` when upstream has the block back. Both are read-modify-write
 * operations of one variable, so either the free sees the request, or the attempt the memory.
 *
 * Locking: `mutex` protects all but the atomics. A thread sleeps on its own condition variable.
 * Every `patience` it looks whether one of the turns above is over, and if nothing was freed
 * meanwhile, tries once more, because memory may have been freed past the adaptor.
 */
#ifndef RMM_ADAPTORS_WAIT_QUEUE_H
#define RMM_ADAPTORS_WAIT_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "adaptors/wait_threads.h"
#include "core/assert.h"
#include "core/clock.h"

typedef enum rmm_wait_step {
    RMM_WAIT_SLEEP,  /* never returned */
    RMM_WAIT_TRY,    /* ask upstream again */
    RMM_WAIT_FINISH, /* wait for the device */
    RMM_WAIT_LATE,   /* its time is over: a last attempt */
    RMM_WAIT_REFUSED /* refused, since all wait */
} rmm_wait_step_t;

/* On the stack of the waiting thread. */
typedef struct rmm_waiter {
    struct rmm_wait_queue *queue;
    rmm_wait_thread_t *thread;
    struct rmm_waiter *next, *previous;
    pthread_cond_t woken;
    rmm_wait_step_t step;
    uint64_t begin_ns;
    uint64_t tried; /* the queue's `freed` at its last attempt; 0: none yet */
    uint64_t seen;  /* the same when it last looked */
    bool is_queued;
    bool is_at_work; /* at the step */
} rmm_waiter_t;

typedef struct rmm_wait_queue {
    rmm_wait_roster_t roster;
    uint64_t timeout_ns, patience_ns; /* constant, as is the next */
    bool has_device;
    pthread_mutex_t mutex; /* protects: */
    rmm_waiter_t *first, *last;
    rmm_waiter_t *active; /* has been woken and is queued */
    uint64_t freed;       /* times that memory may have become usable, from 1 */
    uint64_t frees;       /* of these, by a free; from 1 */
    uint64_t finished;    /* the value of `freed` when the device was last waited for */
    _Atomic(uint64_t) count;     /* of requests that wait */
    _Atomic(uint64_t) closes_ns; /* when the first has had patience; UINT64_MAX: none */
} rmm_wait_queue_t;

/* id: the adaptor's instance_id. */
void rmm__wait_queue_init(
    rmm_wait_queue_t *queue, uint32_t id, uint64_t timeout_ns, bool has_device);
void rmm__wait_queue_fini(rmm_wait_queue_t *queue);

/* A new request does not go to upstream, but waits its turn. */
static inline bool rmm__wait_queue_is_closed(const rmm_wait_queue_t *queue)
{
    uint64_t closes_ns = atomic_load_explicit(&queue->closes_ns, memory_order_relaxed);
    uint64_t now_ns;

    if (__builtin_expect(closes_ns == UINT64_MAX, true)) {
        return false;
    }
    now_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    return now_ns >= closes_ns && (now_ns - closes_ns) / queue->patience_ns % 2 == 0;
}

/* The thread's request begins to wait; it counts as working till then, and whenever next()
 * returns. Followed by rmm__wait_queue_leave(). */
void rmm__wait_queue_enter(
    rmm_wait_queue_t *queue, rmm_wait_thread_t *thread, rmm_waiter_t *waiter);

/* Sleep until there is something to do, which the caller does before it calls again. */
rmm_wait_step_t rmm__wait_queue_next(rmm_waiter_t *waiter);

void rmm__wait_queue_leave(rmm_waiter_t *waiter);

/* Wake the waiting threads: upstream has got memory back. */
RMM_COLD void rmm__wait_queue_wake(rmm_wait_queue_t *queue);
static inline void rmm__wait_queue_freed(rmm_wait_queue_t *queue)
{
    /* acq_rel: pairs with rmm__wait_queue_enter(), see above */
    if (__builtin_expect(
            atomic_fetch_add_explicit(&queue->count, 0, memory_order_acq_rel) != 0,
            false)) {
        rmm__wait_queue_wake(queue);
    }
}

#endif /* RMM_ADAPTORS_WAIT_QUEUE_H */
