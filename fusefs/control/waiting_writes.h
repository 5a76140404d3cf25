/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes that wait until the program has obeyed: those to `trim` and to `diag/mode`.
 *
 * A program obeys a trim at its next allocation, so one that does not allocate never does: after
 * WRITE_WAIT_NS the request is withdrawn and the write fails with ETIMEDOUT. The program completes
 * a trim that it has begun by then. A mode (diag_mode.h) that is not in force by then stays
 * requested, and the write succeeds.
 *
 * A waiting write holds no thread, and each user may have a few (budget.h). A segment has room
 * for one request, so a second trim of the same process fails with EBUSY.
 *
 * Knows no FUSE: a request is an opaque pointer of the owner. Threads: any; where a model is
 * passed the caller holds its lock alone. The lock here is taken inside of that.
 */
#ifndef RMM_FUSEFS_WAITING_WRITES_H
#define RMM_FUSEFS_WAITING_WRITES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "model/model.h"
#include "model/tree.h"

#define WRITE_WAIT_NS 100000000u
#define WRITE_TARGETS_MAX 8u /* segments of one process */

typedef struct write_target {
    uint64_t serial; /* of the segment */
    uint32_t number; /* of the request in its control page */
    bool is_over;
    bool is_mode; /* of the diagnosis: no request in the control page */
} write_target_t;

typedef struct waiting_write {
    struct waiting_write *next;
    void *request;
    size_t size;      /* of the write */
    budget_t *budget; /* that it is charged to */
    uid_t uid;
    int error; /* what the write is answered: 0 or a negative errno */
    uint64_t deadline_ns;
    uint32_t target_count;
    write_target_t targets[WRITE_TARGETS_MAX];
} waiting_write_t;

typedef struct waiting_writes {
    pthread_mutex_t lock;
    waiting_write_t *first;
} waiting_writes_t;

void waiting_writes_init(waiting_writes_t *writes);
void waiting_writes_fini(waiting_writes_t *writes);

/* NULL, with *error_out: -EDQUOT or -ENOMEM. */
waiting_write_t *waiting_write_new(budget_t *budget, uid_t uid, int *error_out);
void waiting_write_free(waiting_write_t *wait);

/*
 * Ask the program to give back at most so many bytes (UINT64_MAX: all) of a resource, or of all
 * resources of a process on a device. 0, or a negative errno, and no request is made: -ENOENT
 * gone, -ESRCH the process has exited, -EBUSY, -EOPNOTSUPP it cannot receive requests.
 */
int waiting_write_begin_trim(
    model_t *model, node_t node, uint64_t give_bytes, waiting_write_t *wait);

/* The same for modes (diag/modes.h) that the diagnosis of a process shall have; the errors of
 * diag_mode_ask(). */
int waiting_write_begin_mode(
    model_t *model, node_t node, uint32_t modes, waiting_write_t *wait);

/* Park one that has begun. */
void waiting_writes_add(waiting_writes_t *writes, waiting_write_t *wait);

/* Take out those that are over, with their error, and end their requests. */
waiting_write_t *waiting_writes_take_over(waiting_writes_t *writes, model_t *model);
/* Take out all, with this error: the session ends. */
waiting_write_t *waiting_writes_take_all(waiting_writes_t *writes, int error);

bool waiting_writes_any(waiting_writes_t *writes);

#endif /* RMM_FUSEFS_WAITING_WRITES_H */
