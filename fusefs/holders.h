/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process is behind a segment: the directory under /rmm/proc that shows it.
 *
 * A pid is believed only together with its owner and its start time. The header tells a
 * pid as the process sees it, and any process can write one there. /proc/locks tells which process
 * took the lock, as this daemon sees pids, but that process may have ended since and left the
 * lock to a child. So /proc/<pid> must belong to the owner of the file, and must have
 * started when the header says.
 *
 * Cost: two system calls where the header is right. Else a look at what /proc/locks said.
 * It has a line for each lock on the machine, and the kernel takes the longer for each of
 * them the more there are: 13 s for 95,000, which any user may take. So a thread of its own
 * reads it, when it is wanted, and takes at most one HOLDERS_SHARE-th of the time for it.
 * A holder that is not in it after HOLDERS_PATIENCE_NS stays unknown.
 *
 * Threads: any; the model lock may be held. A leaf lock, under which nothing is read.
 */
#ifndef RMM_FUSEFS_HOLDERS_H
#define RMM_FUSEFS_HOLDERS_H

#include "model.h"

#define HOLDERS_PATH "/proc/locks"
#define HOLDERS_EVERY_NS 100000000ull /* between two readings */
#define HOLDERS_SHARE 20u             /* of the time: 5 % */
#define HOLDERS_PATIENCE_NS                                                            \
    1000000000ull /* that a segment waits for the next reading */

typedef enum holder_answer {
    HOLDER_FOUND,
    HOLDER_UNKNOWN, /* none, or a process that this daemon does not see */
    HOLDER_LATER    /* it is to be read again: ask again */
} holder_answer_t;

typedef struct holders holders_t;

/* path: HOLDERS_PATH, but for tests; borrowed. NULL: no memory. */
holders_t *holders_open(const char *path);
/* Before the thread is started: read at once what has been asked for, for at most
 * HOLDERS_PATIENCE_NS. False: nothing has. */
bool holders_read(holders_t *holders);
/* The thread, which a fork would end, and which blocks the signals that the caller blocks.
 * Before, a holder that the header does not tell is HOLDER_LATER. False: no thread. */
bool holders_start(holders_t *holders);
void holders_close(holders_t *holders);

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
