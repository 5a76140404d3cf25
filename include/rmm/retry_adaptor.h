/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/retry_adaptor.h
 *
 * Tries again before a request fails for lack of memory. What upstream refuses with
 * RMM_ERR_OUT_OF_MEMORY is tried once more after a synchronise with the device, because memory
 * that was freed in stream order may have become usable (rmm/async_resource.h). With `timeout_ms`
 * it is then tried every 1 to 50 ms until that time is over, for memory that another process or
 * another part of the program frees.
 *
 * Where all threads allocate through one resource, rmm/wait_adaptor.h waits for their frees
 * instead, in order and without polling.
 *
 * On a stream that captures a graph a request is tried once. The synchronise leaves the captures of
 * other threads alone. A thread that tries again holds no lock of this library, and cannot be
 * cancelled meanwhile.
 *
 * Lifetime, threads: as rmm/resource.h; it retains its upstream. Blocks that are live
 * at its last release stay allocated from upstream.
 */
#ifndef RMM_RETRY_ADAPTOR_H
#define RMM_RETRY_ADAPTOR_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rmm_retry_options {
    size_t struct_size;  /**< set by RMM_RETRY_OPTIONS_INIT; do not touch */
    uint32_t timeout_ms; /**< for how long to try; 0: once more */
    const char *name;    /**< shown in /rmm; copied; default "retry" */
} rmm_retry_options_t;

#define RMM_RETRY_OPTIONS_INIT                                                         \
    {                                                                                  \
        sizeof(rmm_retry_options_t), 0, NULL                                           \
    }

/**
 * Create a retry adaptor over @p upstream, which it retains.
 *
 * @param options  NULL: all defaults
 * @param out      receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    upstream or out is NULL, or options were not made
 *                                     with _INIT
 *         RMM_ERR_UNSUPPORTED         options of a newer version ask for more
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_retry_adaptor_create(
    rmm_resource_t *upstream, const rmm_retry_options_t *options, rmm_resource_t **out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_RETRY_ADAPTOR_H */
