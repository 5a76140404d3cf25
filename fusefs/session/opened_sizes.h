/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sizes of texts that were opened a moment ago, by the thread that opened them.
 *
 * Nobody knows the size of a text before it is rendered, so stat(2) returns the largest one. Most
 * tools query the size again after the open, and some believe it: tar and rsync copy as much, wc
 * and tail seek to the end. So for OPENED_SIZE_NS after an open, the thread's queries return the
 * size of the text that it opened.
 *
 * Threads: any. A leaf lock. The table is small: a thread whose entry was replaced gets the size
 * of a text that is not open.
 */
#ifndef RMM_FUSEFS_OPENED_SIZES_H
#define RMM_FUSEFS_OPENED_SIZES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OPENED_SIZE_NS 1000000000ull
#define OPENED_SIZES_MAX 64u

/* A thread may become another user's, for whom the text is another one. */
typedef struct opened_by {
    uint64_t inode;
    uid_t uid;
    pid_t thread;
} opened_by_t;

typedef struct opened_size {
    opened_by_t by;    /* inode 0: unused */
    uint64_t since_ns; /* CLOCK_MONOTONIC */
    size_t bytes;
} opened_size_t;

typedef struct opened_sizes {
    pthread_mutex_t lock;
    opened_size_t items[OPENED_SIZES_MAX];
} opened_sizes_t;

void opened_sizes_init(opened_sizes_t *sizes);
void opened_sizes_fini(opened_sizes_t *sizes);

void opened_sizes_note(opened_sizes_t *sizes, const opened_by_t *by, size_t bytes);

/* False: this thread has not opened the file lately. */
bool opened_sizes_find(opened_sizes_t *sizes, const opened_by_t *by, size_t *bytes_out);

#endif /* RMM_FUSEFS_OPENED_SIZES_H */
