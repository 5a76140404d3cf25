/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a plan on a resource, in the log's order, each operation on its thread.
 *
 * Lifetime: replay_open() makes what a run needs (handles, streams), so that a run makes
 * allocator calls only. After a run the blocks that the log never frees are still there,
 * until replay_free_left(). The plan and the resource must outlive the replay.
 *
 * Threads: call it from one.
 */
#ifndef RMM_TOOLS_REPLAY_REPLAY_H
#define RMM_TOOLS_REPLAY_REPLAY_H

#include <rmm/resource.h>

#include "replay/crew.h"
#include "replay/csv.h"
#include "replay/plan.h"
#include "replay/verify.h"

/* Failed allocations described one by one; the others are counted. */
#define REPLAY_FAILURES_SHOWN 20
#define REPLAY_ERROR_MAX 256

typedef struct replay_failure {
    uint32_t line;
    uint64_t bytes;
    char message[REPLAY_ERROR_MAX];
} replay_failure_t;

typedef struct replay_handle {
    void *address;
    uint32_t op; /* that allocated it */
    bool used;   /* false: free, or its allocation failed */
} replay_handle_t;

typedef struct replay {
    const plan_t *plan;
    rmm_resource_t *resource;
    rmm_stream_t *streams; /* one for each of the plan */
    replay_handle_t *handles;
    crew_t *crew;                   /* one thread for each of the plan */
    double speed;                   /* 0: as fast as it goes; 1: as recorded */
    const verify_backend_t *verify; /* NULL: no patterns */
    void *verify_state;
    csv_t *csv; /* NULL: none; may be set before a run */
    uint64_t run_count;
    uint64_t elapsed_ns;      /* of all runs at full speed */
    uint64_t best_elapsed_ns; /* of the shortest one */
    uint64_t failure_count;
    replay_failure_t failures[REPLAY_FAILURES_SHOWN];
    char error[REPLAY_ERROR_MAX]; /* why the last call answered false */
} replay_t;

/* Takes no reference. False: error says why, nothing is held. */
bool replay_open(
    replay_t *replay, const plan_t *plan, rmm_resource_t *resource, double speed,
    const verify_backend_t *verify);

/* False: the run broke off (not for a failed allocation: that is counted). */
bool replay_run(replay_t *replay);

/* One run on the caller's thread that ends at the first failed allocation, with its status. */
rmm_status_t replay_try(replay_t *replay);

/* With verify: check the blocks that are left, wait, and fetch what was found. */
bool replay_verify_finish(replay_t *replay, verify_report_t *report);

/* Free the blocks that are left. */
void replay_free_left(replay_t *replay);

/* Frees what is left and destroys the streams. */
void replay_close(replay_t *replay);

/* The row of an allocation that a mismatch names. */
const plan_op_t *replay_op(const replay_t *replay, uint64_t op);

#endif /* RMM_TOOLS_REPLAY_REPLAY_H */
