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
#ifndef RMM_FUSEFS_USER_QUEUE_H
#define RMM_FUSEFS_USER_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

/* The first member of what waits. */
typedef struct queue_item {
    TAILQ_ENTRY(queue_item) link;
    uid_t uid;
    const void *request; /* opaque: what user_queue_take() finds it by */
    /* Owns the item. is_end: the session ends, there is no time for it. */
    void (*answer)(struct queue_item *item, bool is_end);
} queue_item_t;

typedef struct queue_user {
    TAILQ_ENTRY(queue_user) link;
    uid_t uid;
    TAILQ_HEAD(, queue_item) items; /* never empty */
} queue_user_t;

typedef struct user_queue {
    pthread_mutex_t lock;
    pthread_cond_t more;
    pthread_t thread;
    TAILQ_HEAD(, queue_user) users; /* with requests that wait; the first is next */
    bool is_over;
} user_queue_t;

/* False: no thread. */
bool user_queue_start(user_queue_t *queue);
/* Items that still wait are answered with is_end. */
void user_queue_stop(user_queue_t *queue);

typedef enum queue_state {
    QUEUE_ADDED,
    QUEUE_GIVEN_UP, /* is_over(request) was true, called under the lock */
    QUEUE_NO_MEMORY
} queue_state_t;

/* The item stays the caller's unless it was added. is_over may be NULL. */
queue_state_t user_queue_add(
    user_queue_t *queue, queue_item_t *item, bool (*is_over)(const void *request));

/* Take out the item of a request; NULL: it does not wait (any more). */
queue_item_t *user_queue_take(user_queue_t *queue, const void *request);

#endif /* RMM_FUSEFS_USER_QUEUE_H */
