/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/thread_safe_adaptor.h
 *
 * Makes one call to its upstream at a time. Every resource of this library is thread-safe;
 * this adaptor is for a callback resource over functions of the program that are not.
 *
 * Those functions run with the adaptor's lock held. If one of them, or a log or failure
 * callback below the adaptor, calls the adaptor again, upstream cannot serve that call: an
 * allocation is RMM_ERR_BAD_ALLOC, a trim RMM_ERR_UNSUPPORTED, and a free is made after the
 * running call, until which its stream must exist. They must not wait for another thread that
 * calls the adaptor. Only calls through the adaptor wait for each other.
 *
 * Lifetime, threads: as rmm/resource.h; it retains its upstream. Blocks that are live
 * at its last release stay allocated from upstream.
 */
#ifndef RMM_THREAD_SAFE_ADAPTOR_H
#define RMM_THREAD_SAFE_ADAPTOR_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rmm_thread_safe_options {
    size_t struct_size; /**< set by RMM_THREAD_SAFE_OPTIONS_INIT; do not touch */
    const char *name;   /**< shown in /rmm; copied; default "thread_safe" */
} rmm_thread_safe_options_t;

#define RMM_THREAD_SAFE_OPTIONS_INIT                                                   \
    {                                                                                  \
        sizeof(rmm_thread_safe_options_t), NULL                                        \
    }

/**
 * Create a thread-safe adaptor over @p upstream, which it retains.
 *
 * @param options  NULL: all defaults
 * @param out      receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    upstream or out is NULL, or options were not made
 *                                     with _INIT
 *         RMM_ERR_UNSUPPORTED         options of a newer version ask for more
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_thread_safe_adaptor_create(
    rmm_resource_t *upstream, const rmm_thread_safe_options_t *options,
    rmm_resource_t **out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_THREAD_SAFE_ADAPTOR_H */
