/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/wait_adaptor.h
 *
 * Lets a request wait until another thread frees memory, for programs whose threads together need
 * more than there is. A request that upstream refuses with RMM_ERR_OUT_OF_MEMORY waits, and tries
 * again after each free through this adaptor. It fails with that status when
 *
 *  - `timeout_ms` is over, after a last attempt; or
 *  - all threads that hold memory from this adaptor wait in it, so none of them frees any. Then
 *    one of them is refused at once, the one that came last, and the others wait on. Its thread
 *    gives memory back, and may repeat the request later. If it gives nothing back, the next one is
 *    refused. The messages of the two differ.
 *
 * A thread holds memory while it has allocated more blocks here than it has freed. One that
 * frees blocks of other threads counts, until it ends, as one that may free more; so do blocks
 * that a thread leaves behind at its end. Threads need no registration. While such a thread
 * neither waits nor frees, no thread is told early, and requests wait for their time-out.
 *
 * Requests try again in the order in which they came; small ones may overtake a larger one that
 * does not fit, but not all the time. Memory that was freed past the adaptor is found within 100
 * ms. Nothing is waited for in a stream that captures a graph, or in a function of the program
 * that the request itself has led to: there it is refused at once.
 *
 * Memory is reused in stream order, as upstream does it. When all wait, one of them synchronises
 * with the device before one is refused. Over rmm/async_resource.h, which needs a synchronise
 * before it reuses memory for larger requests, put a retry adaptor between the two:
 * "wait+retry+async".
 *
 * The adaptor sees frees that pass through it, so it is best the outermost adaptor but for those
 * that only count. A thread waits without a lock of this library, and cannot be cancelled
 * meanwhile (rmm/resource.h). But over it there must be no thread_safe adaptor, which would let
 * nobody free. Over another wait adaptor, with nothing but adaptors in between, it passes
 * requests on and leaves the waiting to that one.
 *
 * Lifetime, threads: as rmm/resource.h; it retains its upstream. Blocks that are live
 * at its last release stay allocated from upstream.
 */
#ifndef RMM_WAIT_ADAPTOR_H
#define RMM_WAIT_ADAPTOR_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rmm_wait_options {
    size_t struct_size;  /**< set by RMM_WAIT_OPTIONS_INIT; do not touch */
    uint32_t timeout_ms; /**< for how long a request may wait; default 10000 */
    const char *name;    /**< shown in /rmm; copied; default "wait" */
} rmm_wait_options_t;

#define RMM_WAIT_OPTIONS_INIT                                                          \
    {                                                                                  \
        sizeof(rmm_wait_options_t), 0, NULL                                            \
    }

/**
 * Create a wait adaptor over @p upstream, which it retains.
 *
 * @param options  NULL: all defaults
 * @param out      receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    upstream or out is NULL, or options were not made
 *                                     with _INIT
 *         RMM_ERR_UNSUPPORTED         options of a newer version ask for more
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_wait_adaptor_create(
    rmm_resource_t *upstream, const rmm_wait_options_t *options, rmm_resource_t **out);

/**
 * The requests that wait at this moment.
 *
 * @param mr  a wait adaptor
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  mr is not a wait adaptor, count_out is NULL
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_wait_get_waiting(const rmm_resource_t *mr, uint64_t *count_out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_WAIT_ADAPTOR_H */
