/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects at once that a process of the model has ended, or that a directory of segments has
 * changed: one system call for all of them, however many there are.
 *
 * A process is watched by a pidfd. Without one (the process is in a pid namespace
 * that this daemon does not see, or no descriptor is left) its lock is checked from time to
 * time instead (members.h).
 *
 * Threads: exits_have_news() any; the others with the model lock held alone.
 */
#ifndef RMM_FUSEFS_EXITS_H
#define RMM_FUSEFS_EXITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct exits exits_t;

/* inotify_fd: -1 for none. NULL: the kernel or memory does not allow it. */
exits_t *exits_open(int inotify_fd);
void exits_close(exits_t *exits);

/* To poll. */
int exits_fd(const exits_t *exits);

bool exits_have_news(const exits_t *exits);

/* The descriptor for exits_forget(), or -1. The pid must be checked afterwards: it may have
 * been given to another process just before. */
int exits_watch(exits_t *exits, pid_t pid, uint64_t serial);
void exits_forget(exits_t *exits, int pidfd);

/* The serial of one that has ended; false: none (that is new). It is reported again
 * until it is forgotten. */
#define EXITS_AT_ONCE 64
int exits_take(exits_t *exits, uint64_t serials[EXITS_AT_ONCE]);

#endif /* RMM_FUSEFS_EXITS_H */
