/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work on guards (diag/guards.h) on a real GPU: guards.ptx, queued on the program's streams behind
 * its launches, from within CUPTI's callback, and at its allocations and frees.
 *
 * NVIDIA calls driver calls in callbacks unsupported ("may hang"). So there are few: whether the
 * stream captures, the current context, the launch. None waits. What may wait, or allocate, is made
 * at the first allocation of a device, outside callbacks, with this thread's capture mode relaxed:
 * the module is loaded, and the memory of states and results is pinned. Nothing is queued on a
 * stream that captures.
 *
 * All of it is in the primary context of the device, which the CUDA runtime uses. When that is
 * destroyed (cudaDeviceReset) guards end for the whole process. The pinned memory is the engine's,
 * so it stays readable; a forked child does not have it.
 *
 * Threads: any. A lock protects the first use of a device; no lock is held while work is queued.
 */
#ifndef RMM_TOOLS_INJECT_CUPTI_GUARDS_H
#define RMM_TOOLS_INJECT_CUPTI_GUARDS_H

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

#include "diag/guards.h"

/* Look up the driver's functions. False: it is too old, or not loaded. Not in a callback. */
bool cupti_guards_open(void);

/* As rmm_guard_queue_fn. The work is RMM_GUARD_FILL first, at an allocation. */
rmm_guard_answer_t cupti_guards_queue(
    int32_t device, rmm_stream_t stream, const rmm_guard_job_t *job, int *error_out);

/* The context is about to be destroyed: if work is queued in it, nothing more is, anywhere. */
void cupti_guards_context_ends(CUcontext context);

#endif /* RMM_TOOLS_INJECT_CUPTI_GUARDS_H */
