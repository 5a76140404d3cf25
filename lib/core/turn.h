/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn serialises what threads do in order, one at a time, but that calls out of the
 * library meanwhile: to an upstream, to the driver, to a callback of the program. It is no
 * lock: data stays protected by a lock that nobody holds across such a call, and is right
 * whether one thread is here or two.
 *
 * So a wait for it never becomes a deadlock:
 *  - a thread that has any turn, and so is inside a call out, does not wait for another;
 *  - the others wait for one thread at most RMM_TURN_WAIT_NS, since the thread that has the
 *    turn may wait, in a callback, for something that they are to do.
 * A thread that does not get the turn goes on without: what it does may then be done twice.
 *
 * A turn goes to a thread that waits, before one that comes: else a thread that comes back
 * at once would have it again and again, before the one that waits has woken up.
 */
#ifndef RMM_CORE_TURN_H
#define RMM_CORE_TURN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define RMM_TURN_WAIT_NS 200000000L

typedef struct rmm_turn {
    pthread_mutex_t mutex; /* held for a few instructions only */
    pthread_cond_t given_back;
    unsigned waiting;  /* threads */
    uint64_t given;    /* how often it was given back: each time the wait begins anew */
    bool is_taken;     /* or handed on */
    bool is_handed_on; /* to any of those that wait */
} rmm_turn_t;

void rmm__turn_init(rmm_turn_t *turn);
void rmm__turn_fini(rmm_turn_t *turn);

/* True: this thread has it, and gives it back. False: it goes on without. */
bool rmm__turn_take(rmm_turn_t *turn);
void rmm__turn_give_back(rmm_turn_t *turn);

#endif /* RMM_CORE_TURN_H */
