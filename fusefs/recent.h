/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that were rendered a moment ago, by the thread that requested them.
 *
 * The kernel queries the attributes of a text before it opens it, and most tools query them again
 * after the open. Rendered anew for each of these requests, the text would differ, and would
 * mislead a tool that compares the size with what it reads: grep takes a file that is
 * shorter than its size for a binary file. So if a thread opens a text within RECENT_TAKEN_NS
 * after it queried the size, it gets the text that was measured; and for RECENT_TOLD_NS after
 * an open, the thread's queries return the size of the opened text.
 *
 * Threads: any. A leaf lock.
 */
#ifndef RMM_FUSEFS_RECENT_H
#define RMM_FUSEFS_RECENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "text.h"

#define RECENT_TAKEN_NS                                                                \
    5000000ull /* 5 ms: between stat and open of one call of open(2) */
#define RECENT_TOLD_NS 1000000000ull

typedef struct recent recent_t;

/* NULL: no memory; every function takes it, and then remembers nothing. */
recent_t *recent_open(void);
void recent_close(recent_t *recent);

/* The size of the text that this thread opened or whose size it got; false: nothing lately. */
bool recent_bytes(recent_t *recent, uint64_t inode, pid_t thread, size_t *bytes_out);

/* This thread got the size of `text`, which is moved away and may be opened. */
void recent_keep(recent_t *recent, uint64_t inode, pid_t thread, text_t *text);

/* This thread opened a text of this size. */
void recent_note(recent_t *recent, uint64_t inode, pid_t thread, size_t bytes);

/* Move the text whose size this thread got into `text`, which is empty. False: none. */
bool recent_take(recent_t *recent, uint64_t inode, pid_t thread, text_t *text);

/* Free texts that no process opened in time. */
void recent_expire(recent_t *recent);

#endif /* RMM_FUSEFS_RECENT_H */
