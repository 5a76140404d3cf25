/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the process that holds a segment, which determines its directory under /rmm/proc.
 *
 * A pid counts only together with its owner and its start time. The header contains the pid in
 * the process's own namespace, and any process can write any pid there. /proc/locks has the
 * process that took the lock, as this daemon sees pids, but that process may have ended since
 * and left the lock to a child. So /proc/<pid> must belong to the owner of the file, and must
 * have the start time of the header.
 *
 * Cost: two system calls if the header is right, otherwise a search of a copy of /proc/locks.
 * That file has a line for each lock on the machine, and its cost grows faster than the number
 * of locks: 13 s for 95,000, which any user may take. So a separate thread reads it on demand
 * and spends at most one HOLDERS_SHARE-th of the time on it.
 * A holder that is not in it after HOLDERS_PATIENCE_NS stays unknown.
 *
 * Threads: any; the model lock may be held. A leaf lock, under which nothing is read.
 */
#ifndef RMM_FUSEFS_HOLDERS_H
#define RMM_FUSEFS_HOLDERS_H

#include "model/model.h"

#define HOLDERS_PATH "/proc/locks"
#define HOLDERS_EVERY_NS 100000000ull /* between two readings */
#define HOLDERS_SHARE 20u             /* of the time: 5 % */
#define HOLDERS_PATIENCE_NS                                                            \
    1000000000ull /* that a segment waits for the next reading */

typedef enum holder_answer {
    HOLDER_FOUND,
    HOLDER_UNKNOWN, /* none, or a process that this daemon does not see */
    HOLDER_LATER,   /* it is to be read again: ask again */
    HOLDER_SHORT    /* no descriptor was left to look with: ask again */
} holder_answer_t;

typedef struct holders holders_t;

/* path: HOLDERS_PATH, but for tests; borrowed. NULL: no memory. */
holders_t *holders_open(const char *path);
/* Before the thread is started: read at once what has been requested, for at most
 * HOLDERS_PATIENCE_NS. False: nothing has. */
bool holders_read(holders_t *holders);
/* The thread, which a fork would end, and which blocks the signals that the caller blocks.
 * Before, a holder that the header does not tell is HOLDER_LATER. False: no thread. */
bool holders_start(holders_t *holders);
void holders_close(holders_t *holders);

/* The process that the segment's header names has this pid, as this daemon sees it. */
bool holders_is_process(const rmm_segment_t *segment, pid_t pid);

/* The process that holds a live segment; pid 0 unless it was found. since_ns (of
 * model_clock_ns()): it was locked before that. */
holder_answer_t holders_find(
    holders_t *holders, const rmm_segment_t *segment, uint64_t since_ns,
    pid_t *pid_out);

/* The same for a file whose header cannot be read: only its owner is checked. */
holder_answer_t holders_find_owner(
    holders_t *holders, const rmm_segment_t *segment, uint64_t since_ns,
    pid_t *pid_out);

#endif /* RMM_FUSEFS_HOLDERS_H */
