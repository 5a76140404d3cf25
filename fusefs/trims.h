/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trims that wait until the program has obeyed: writes to a file `trim`. A program obeys at its
 * next allocation, so one that does not allocate never does: after TRIM_WAIT_NS the request is
 * withdrawn and the write fails with ETIMEDOUT. What the program has begun by then it completes.
 *
 * The same is done for writes to `diag/mode` (diag_mode.h), but for the end: a mode that is not in
 * force by then stays wanted, and the write succeeds.
 *
 * A waiting write holds no thread, and each user may have a few (budget.h). A segment has room
 * for one request, so a second trim of the same process fails with EBUSY.
 *
 * Knows no FUSE: a request is an opaque pointer of the owner. Threads: any; where a model is
 * passed the caller holds its lock alone. The lock here is taken inside of that.
 */
#ifndef RMM_FUSEFS_TRIMS_H
#define RMM_FUSEFS_TRIMS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "model.h"
#include "tree.h"

#define TRIM_WAIT_NS 100000000u
#define TRIM_TARGETS_MAX 8u /* segments of one process */

typedef struct trim_target {
    uint64_t serial; /* of the segment */
    uint32_t number; /* of the request in its control page */
    bool is_over;
    bool is_mode; /* of the diagnosis: no request in the control page */
} trim_target_t;

typedef struct trim {
    struct trim *next;
    void *request;
    size_t size;      /* of the write */
    budget_t *budget; /* that it is charged to */
    uid_t uid;
    int error; /* what the write is answered: 0 or a negative errno */
    uint64_t deadline_ns;
    uint32_t target_count;
    trim_target_t targets[TRIM_TARGETS_MAX];
} trim_t;

typedef struct trims {
    pthread_mutex_t lock;
    trim_t *first;
} trims_t;

void trims_init(trims_t *trims);
void trims_fini(trims_t *trims);

/* NULL, with *error_out: -EDQUOT or -ENOMEM. */
trim_t *trim_new(budget_t *budget, uid_t uid, int *error_out);
void trim_free(trim_t *trim);

/*
 * Ask the program to give back at most so many bytes (UINT64_MAX: all) of a resource, or of all
 * resources of a process on a device. 0, or a negative errno, and no request is made: -ENOENT
 * gone, -ESRCH the process has exited, -EBUSY, -EOPNOTSUPP it cannot receive requests.
 */
int trim_begin(model_t *model, node_t node, uint64_t give_bytes, trim_t *trim);

/* The same for modes (diag/modes.h) that the diagnosis of a process shall have; the errors of
 * diag_mode_ask(). */
int trim_begin_mode(model_t *model, node_t node, uint32_t modes, trim_t *trim);

/* Park one that has begun. */
void trims_add(trims_t *trims, trim_t *trim);

/* Take out those that are over, with their error, and end their requests. */
trim_t *trims_take_over(trims_t *trims, model_t *model);
/* Take out all, with this error: the session ends. */
trim_t *trims_take_all(trims_t *trims, int error);

bool trims_any(trims_t *trims);

#endif /* RMM_FUSEFS_TRIMS_H */
