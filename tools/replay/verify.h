/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a pattern into each block on its stream right after the allocation, and checks
 * it on the stream of its free just before that. All of it is queued and nothing waits
 * before verify_finish(): waiting would hide the very errors of order that it looks for.
 *
 * Two backends: kernels of a real GPU (verify_cuda.cu) and of the simulated one
 * (verify_sim.c). Errors found are counted in memory that the library does not know of,
 * so that its accounting hold the log's blocks only.
 *
 * Threads: one at a time.
 */
#ifndef RMM_TOOLS_REPLAY_VERIFY_H
#define RMM_TOOLS_REPLAY_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include <rmm/stream.h>

#include "replay/verify_pattern.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct verify_block {
    void *address;
    uint64_t bytes;
    uint64_t op; /* number of the allocation */
} verify_block_t;

/* Each function returns 0 or the cudaError_t of the call that failed. */
typedef struct verify_backend {
    int (*open)(void **state);
    int (*fill)(void *state, const verify_block_t *block, rmm_stream_t stream);
    int (*check)(void *state, const verify_block_t *block, rmm_stream_t stream);
    /* Work that is queued on `later` from now on runs after all that is queued on `earlier`. */
    int (*order)(void *state, rmm_stream_t earlier, rmm_stream_t later);
    /* Wait for all work, then copy the report out. */
    int (*finish)(void *state, verify_report_t *report);
    void (*close)(void *state);
    const char *(*error_text)(int error);
} verify_backend_t;

extern const verify_backend_t verify_sim_backend;
extern const verify_backend_t
    verify_cuda_backend; /* where RMM_REPLAY_CUDA is defined */

/* The backend for the GPU that this process uses; NULL: not built in. */
const verify_backend_t *verify_backend_select(void);

#ifdef __cplusplus
}
#endif

#endif /* RMM_TOOLS_REPLAY_VERIFY_H */
