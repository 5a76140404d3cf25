/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of requests that take long, served round-robin by user on a thread of its own. So the
 * few threads of the session are never all busy with the long texts of one user while another
 * user waits for a figure.
 *
 * A request that waits can be taken out again, because its reader got a signal. The thread
 * that takes a request out, under the lock, answers it. How many requests of a user wait is the
 * caller's to bound.
 *
 * Knows no FUSE. Threads: any; start and stop are those of one. The lock is not held while a
 * request is answered.
 */
#ifndef RMM_FUSEFS_TURNS_H
#define RMM_FUSEFS_TURNS_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

/* The first member of what waits. */
typedef struct turn {
    TAILQ_ENTRY(turn) link;
    uid_t uid;
    const void *request; /* opaque: what turns_take() finds it by */
    /* Owns the turn. is_end: the session ends, there is no time for it. */
    void (*answer)(struct turn *turn, bool is_end);
} turn_t;

typedef struct turn_user {
    TAILQ_ENTRY(turn_user) link;
    uid_t uid;
    TAILQ_HEAD(, turn) turns; /* never empty */
} turn_user_t;

typedef struct turns {
    pthread_mutex_t lock;
    pthread_cond_t more;
    pthread_t thread;
    TAILQ_HEAD(, turn_user) users; /* with requests that wait; the first is next */
    bool is_over;
} turns_t;

/* False: no thread. */
bool turns_start(turns_t *turns);
/* What still waits is answered with is_end. */
void turns_stop(turns_t *turns);

typedef enum turn_state {
    TURN_ADDED,
    TURN_GIVEN_UP, /* is_over(request) was true, called under the lock */
    TURN_NO_MEMORY
} turn_state_t;

/* The turn stays the caller's unless it was added. is_over may be NULL. */
turn_state_t
turns_add(turns_t *turns, turn_t *turn, bool (*is_over)(const void *request));

/* Take out the turn of a request; NULL: it does not wait (any more). */
turn_t *turns_take(turns_t *turns, const void *request);

#endif /* RMM_FUSEFS_TURNS_H */
