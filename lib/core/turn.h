/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn lets one thread at a time through code that calls out of the library: to an
 * upstream, to the driver, to a callback of the program. It is no lock. A lock that no
 * thread holds across such a call protects the data, which stays consistent even if two
 * threads are in that code.
 *
 * So a wait for a turn never becomes a deadlock:
 *  - a thread that has any turn, and so may be inside a call out, waits for no other one;
 *  - another thread waits for each owner at most RMM_TURN_WAIT_NS, since the owner may, in a
 *    callback, wait for something that this thread is to do.
 * A thread that times out proceeds without the turn: its work may then be done twice. It waits
 * for no other turn until it leaves, as if it had this one: else a request would wait again in
 * each callback that it leads to, and those in theirs.
 *
 * A turn goes to a waiting thread before a new one. Otherwise a thread that enters again at
 * once could take it many times before the waiting thread has woken up.
 */
#ifndef RMM_CORE_TURN_H
#define RMM_CORE_TURN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/uncancelled.h"

#define RMM_TURN_WAIT_NS 200000000L

typedef struct rmm_turn {
    pthread_mutex_t mutex; /* held for a few instructions only */
    pthread_cond_t given_back;
    unsigned waiting; /* threads */
    uint64_t given;   /* times it was given back: each restarts the time to wait */
    _Atomic(bool) is_taken; /* a thread has it, or it is handed on */
    bool is_handed_on;      /* to any waiting thread */
} rmm_turn_t;

void rmm__turn_init(rmm_turn_t *turn);
void rmm__turn_fini(rmm_turn_t *turn);

/*
 * Before leave() the thread cannot be cancelled. leave() is called by the end of a scope, also
 * where an exception of the program's own function ends it:
 *
 *     RMM_AT_END(rmm__turn_leave) rmm_turn_stay_t stay = rmm__turn_enter(turn);
 */
typedef struct rmm_turn_stay {
    rmm_turn_t *turn; /* NULL: try() failed; there is nothing to leave */
    bool has_turn;    /* false: the caller proceeds without */
    int cancel_state;
} rmm_turn_stay_t;

rmm_turn_stay_t rmm__turn_enter(rmm_turn_t *turn);
/* The same without a wait. `turn` NULL: another thread has it or waits for it, and the caller does
 * not proceed. */
rmm_turn_stay_t rmm__turn_try(rmm_turn_t *turn);
/* Without a lock, so only a hint: another thread may take the turn at once. */
static inline bool rmm__turn_is_free(const rmm_turn_t *turn)
{
    return !atomic_load_explicit(&turn->is_taken, memory_order_relaxed);
}
void rmm__turn_leave(const rmm_turn_stay_t *stay);

#endif /* RMM_CORE_TURN_H */
