/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread for each thread of a log. They take turns: the log has one order, and the
 * replay keeps it.
 *
 * A log of one thread needs none: its work is done on the caller's.
 *
 * Threads: crew_call() from one at a time.
 */
#ifndef RMM_TOOLS_REPLAY_CREW_H
#define RMM_TOOLS_REPLAY_CREW_H

#include <stdbool.h>
#include <stddef.h>

typedef struct crew crew_t;
typedef void (*crew_work_fn)(void *context);

/* NULL with errno set: no memory, or no more threads. */
crew_t *crew_create(size_t count);

/* Do the work on thread number index, and wait until it is done. */
void crew_call(crew_t *crew, size_t index, crew_work_fn work, void *context);

/* Ends the threads; NULL is ignored. */
void crew_destroy(crew_t *crew);

#endif /* RMM_TOOLS_REPLAY_CREW_H */
