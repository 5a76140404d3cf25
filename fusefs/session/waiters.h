/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that wait for a stream: reads at its end, polls. A waiting request holds no
 * thread, so any number may wait. The background thread checks them while there are
 * some.
 *
 * The thread that removes a request from this list, under the lock, answers it. Knows
 * no FUSE: a request is an opaque pointer of the owner. Threads: any.
 */
#ifndef RMM_FUSEFS_WAITERS_H
#define RMM_FUSEFS_WAITERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "render/stream.h"

typedef struct waiter {
    struct waiter *next;
    void *request;
    stream_t *stream; /* NULL: it waits for another file */
    void *file;       /* that a poll without a stream is of; opaque */
    size_t size;      /* of a read */
    bool is_poll;     /* request is a poll handle */
} waiter_t;

typedef struct waiters {
    pthread_mutex_t lock;
    waiter_t *first;
    int news_fd; /* eventfd: readable when a waiter was added; -1: none */
} waiters_t;

/* False: no descriptor. */
bool waiters_init(waiters_t *waiters);
void waiters_fini(waiters_t *waiters);

/* Make news_fd readable, also for what waits elsewhere. */
void waiters_wake(const waiters_t *waiters);

/*
 * Park it. False, and the caller keeps it: `is_over` said so under the lock (it may be
 * NULL), or there is no memory.
 */
bool waiters_add(
    waiters_t *waiters, const waiter_t *waiter, bool (*is_over)(void *request));

/* The same for a poll. One that waits for the same stream or file gives way: a program that
 * polls again and again while nothing comes must not fill the memory. *replaced_out: its
 * request, which is the caller's now, or NULL. False: no memory, nothing changed. */
bool waiters_add_poll(waiters_t *waiters, const waiter_t *waiter, void **replaced_out);

/* Take the one of that request out. False: it is not, or no more, here. */
bool waiters_take(waiters_t *waiters, const void *request);

/* Take out all of a stream or file (both NULL: of any), or those of which `wanted` is true; the
 * caller frees the list's elements. */
waiter_t *
waiters_take_all(waiters_t *waiters, const stream_t *stream, const void *file);
waiter_t *waiters_take_ready(
    waiters_t *waiters, bool (*wanted)(const waiter_t *waiter, void *arg), void *arg);

bool waiters_any(waiters_t *waiters);
/* One whose stream is urgent (stream.h). */
bool waiters_any_urgent(waiters_t *waiters);

#endif /* RMM_FUSEFS_WAITERS_H */
