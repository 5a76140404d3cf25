/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which threads work with memory of a wait adaptor: those that may yet free some. When none of
 * them is left, because all wait, no memory will be freed.
 *
 * A thread counts
 *  - while it has allocated more blocks from the adaptor than it has freed, and during a request;
 *  - from its first free of a block of another thread until it ends: it may free more of them.
 * Blocks that a thread leaves behind when it ends count as one more thread, until so many were
 * freed by threads that had none of their own.
 *
 * So no block needs to be looked up. Where threads hand blocks over, the count is too high
 * rather than too low: then waiting threads wait for their time-out, but none is refused early.
 *
 * Cost: a compare and an add for each request and free of a thread; one atomic operation when
 * its blocks become none, or are no longer none.
 *
 * Locking: `threads` protects the list of all records, and which adaptor each belongs to. Only its
 * thread reads and writes the rest of a record; a waiting one is read under its queue's mutex.
 */
#ifndef RMM_ADAPTORS_WAIT_THREADS_H
#define RMM_ADAPTORS_WAIT_THREADS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The waiting threads of one adaptor. */
typedef struct rmm_wait_roster {
    uint32_t id;               /* of the adaptor: never used again in this process */
    _Atomic(uint64_t) working; /* threads that count and do not wait */
    int64_t left_blocks;       /* of ended threads; protected by `threads` */
    void (*none_works)(struct rmm_wait_roster *roster); /* `working` has become 0 */
} rmm_wait_roster_t;

/* The state of one thread in one adaptor; owned by the thread. */
typedef struct rmm_wait_thread {
    struct rmm_wait_thread *next_own;        /* of the same thread */
    struct rmm_wait_thread *next, *previous; /* all of the process */
    rmm_wait_roster_t *roster;               /* NULL: the adaptor has ended */
    uint32_t id;                             /* of the adaptor */
    uint32_t requests;                       /* under way: more than one in callbacks */
    int64_t blocks;                          /* allocated less freed */
    uint64_t
        refused_at; /* the queue's `frees` when it was refused last; under the mutex */
    bool frees_others;
    bool is_counted;
    bool
        was_refused; /* its last request was refused for the others: the next one overtakes none */
} rmm_wait_thread_t;

void rmm__wait_roster_init(
    rmm_wait_roster_t *roster, uint32_t id, void (*none_works)(rmm_wait_roster_t *));
/* No thread is in a call of the adaptor. */
void rmm__wait_roster_fini(rmm_wait_roster_t *roster);

/* The calling thread's record. NULL: no host memory, or nothing can be learnt of its end. */
rmm_wait_thread_t *rmm__wait_thread_find(rmm_wait_roster_t *roster);

/* One that works begins to wait, or ends. */
static inline void rmm__wait_roster_leave(rmm_wait_roster_t *roster)
{
    /* acq_rel: pairs with the same here and in rmm__wait_queue_enter(): who makes it 0 sees
     * all that wait */
    if (atomic_fetch_sub_explicit(&roster->working, 1, memory_order_acq_rel) == 1) {
        roster->none_works(roster);
    }
}

static inline void rmm__wait_roster_join(rmm_wait_roster_t *roster)
{
    /* acq_rel: as above; before a request reaches upstream, where others fail because of it */
    (void)atomic_fetch_add_explicit(&roster->working, 1, memory_order_acq_rel);
}

/* Before a request of the thread goes to upstream, and when it has ended. */
static inline void rmm__wait_thread_enter(rmm_wait_thread_t *thread)
{
    thread->requests++;
    if (!thread->is_counted) {
        thread->is_counted = true;
        rmm__wait_roster_join(thread->roster);
    }
}

static inline void rmm__wait_thread_leave(rmm_wait_thread_t *thread)
{
    thread->requests--;
    if (thread->requests == 0 && thread->blocks <= 0 && !thread->frees_others) {
        thread->is_counted = false;
        rmm__wait_roster_leave(thread->roster);
    }
}

/* After a free of the thread. */
void rmm__wait_thread_freed_others(rmm_wait_thread_t *thread);
static inline void rmm__wait_thread_freed(rmm_wait_thread_t *thread)
{
    thread->blocks--;
    if (thread->blocks > 0 || thread->frees_others) {
        return;
    }
    if (thread->blocks < 0) {
        rmm__wait_thread_freed_others(thread);
    } else if (thread->requests == 0 && thread->is_counted) {
        thread->is_counted = false;
        rmm__wait_roster_leave(thread->roster);
    }
}

#endif /* RMM_ADAPTORS_WAIT_THREADS_H */
