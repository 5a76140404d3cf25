/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log made ready to run: every free paired with its allocation, threads and streams
 * numbered, times relative. Built row by row; knows no GPU and no file.
 *
 * A block lives in a handle from its allocation to its free; handles are used again, the
 * youngest first, so that handle_count is the peak number of live blocks.
 */
#ifndef RMM_TOOLS_REPLAY_PLAN_H
#define RMM_TOOLS_REPLAY_PLAN_H

#include "core/pointer_map.h"
#include "replay/alloc_log.h"

typedef struct plan_op {
    uint64_t bytes;  /* of the allocation, also at its free */
    uint64_t due_ns; /* since the first operation */
    uint64_t address;
    uint32_t handle;
    uint32_t stream; /* index into plan.streams */
    uint32_t thread; /* index, in order of appearance */
    uint32_t line;   /* of the log */
    bool is_free;
} plan_op_t;

/* A stream of the log; the per-thread default stream is one for each thread. */
typedef struct plan_stream {
    uint64_t handle; /* as logged */
    bool is_default; /* legacy default stream: 0 or 1 */
} plan_stream_t;

typedef struct plan {
    plan_op_t *ops;
    size_t op_count;
    size_t op_capacity;
    plan_stream_t *streams;
    size_t stream_count;
    size_t thread_count;
    size_t handle_count;
    uint64_t peak_bytes; /* of live bytes, as requested */
    uint64_t left_bytes; /* what the log never frees */
    uint64_t left_count;
    uint64_t failure_count; /* "allocate failure" rows */
    uint64_t failure_bytes; /* the largest of them */

    /* While building. */
    rmm_pointer_map_t live;         /* address to handle; `bytes` is one more, in all */
    rmm_pointer_map_t thread_index; /* thread to index */
    rmm_pointer_map_t stream_index; /* handle to index */
    rmm_pointer_map_t default_index; /* thread to index of its default stream */
    uint64_t *handle_bytes;
    uint32_t *free_handles; /* a stack */
    size_t free_handle_count;
    size_t handle_capacity;
    uint32_t *null_handles; /* a stack: live blocks of no bytes at address 0 */
    size_t null_handle_count;
    uint64_t last_time_ns; /* since midnight */
    uint64_t elapsed_ns;   /* since the first row */
} plan_t;

typedef enum plan_result {
    PLAN_ADDED,
    PLAN_NOTED,   /* added, but something about the row is worth a line */
    PLAN_REFUSED, /* not added, for the reason given */
    PLAN_NO_MEMORY
} plan_result_t;

void plan_init(plan_t *plan);
void plan_fini(plan_t *plan);

/* problem is written for PLAN_NOTED and PLAN_REFUSED. */
plan_result_t
plan_add(plan_t *plan, const log_row_t *row, char problem[LOG_PROBLEM_MAX]);

#endif /* RMM_TOOLS_REPLAY_PLAN_H */
