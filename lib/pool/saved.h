/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of a sleeping engine's live blocks, in memory of the host: runs of device memory,
 * by address, and buffers that hold them one behind another.
 *
 * Used by one thread at a time: the one that lets the engine sleep or wakes it.
 */
#ifndef RMM_POOL_SAVED_H
#define RMM_POOL_SAVED_H

#include "pool/range.h"

typedef struct saved_run {
    uint64_t unit, units;
} saved_run_t;

typedef struct saved_buffer {
    char *ptr;
    uint64_t bytes;
} saved_buffer_t;

typedef struct saved {
    const engine_host_t *host; /* NULL: none yet */
    void *host_context;
    saved_run_t *runs;
    uint64_t run_count, run_capacity;
    saved_buffer_t *buffers;
    uint64_t buffer_count, buffer_capacity;
} saved_t;

/* How far the copies have come. */
typedef struct saved_cursor {
    uint64_t run, run_bytes;       /* the next run, and what was copied of it */
    uint64_t buffer, buffer_bytes; /* likewise */
} saved_cursor_t;

/* Which memory has to be kept: live blocks, without those that the plan discards. RMM_OK;
 * RMM_ERR_INVALID_ARGUMENT: one of these is not live; RMM_ERR_OUT_OF_HOST_MEMORY. */
rmm_status_t
rmm__saved_find(saved_t *saved, engine_t *engine, const engine_sleep_plan_t *plan);

/* The plan's host from now on. Buffers that were kept of another one go back to it. */
void rmm__saved_open(saved_t *saved, const engine_sleep_plan_t *plan);

/* Obtain buffers for all runs, but for what was kept of an earlier sleep. Copies begin while later
 * buffers are obtained; returns when they have ended. In a driver scope. */
rmm_status_t rmm__saved_copy_out(saved_t *saved, engine_t *engine, rmm_stream_t stream);

/* Begin to copy back what lies below this unit. Returns a driver's error. */
int rmm__saved_copy_in(
    const saved_t *saved, engine_t *engine, saved_cursor_t *cursor, uint64_t before,
    rmm_stream_t stream);

/* Forget the runs, and unless the buffers are kept, give them back and close the host. */
void rmm__saved_drop(saved_t *saved, bool keeps_buffers);

#endif /* RMM_POOL_SAVED_H */
