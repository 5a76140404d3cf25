/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that were rendered a moment ago, by the thread that asked for them.
 *
 * The kernel asks for the attributes of a text before it opens it, and most tools ask again
 * after the open. A text is rendered anew for each, it differs from the one before, and a
 * tool that compares the size with what it reads is misled: grep takes a file that is
 * shorter than its size for a binary one. So the text whose size a thread was told is
 * the text that the same thread opens within RECENT_TAKEN_NS, and the size of the text that a
 * thread opened is what it is told for RECENT_TOLD_NS.
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

/* The size of what this thread opened or was told of; false: nothing lately. */
bool recent_bytes(recent_t *recent, uint64_t inode, pid_t thread, size_t *bytes_out);

/* This thread was told the size of `text`, which is moved away and may be opened. */
void recent_keep(recent_t *recent, uint64_t inode, pid_t thread, text_t *text);

/* This thread opened a text of this size. */
void recent_note(recent_t *recent, uint64_t inode, pid_t thread, size_t bytes);

/* Move the text that this thread was told of into `text`, which is empty. False: none. */
bool recent_take(recent_t *recent, uint64_t inode, pid_t thread, text_t *text);

/* Free texts that no process opened in time. */
void recent_expire(recent_t *recent);

#endif /* RMM_FUSEFS_RECENT_H */
