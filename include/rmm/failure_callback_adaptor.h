/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/failure_callback_adaptor.h
 *
 * Calls a function of the program when an allocation fails. The callback may free memory
 * and let the adaptor try again.
 *
 * The callback runs on the thread that allocates, without a lock of this library, and on
 * several threads at once. It may use any resource, this one included; an allocation that
 * fails in it calls it again. The adaptor tries again as long as the callback returns true:
 * if it never returns false, the allocation may never end. It ends by return (rmm/resource.h,
 * functions of the program).
 *
 * Lifetime, threads: as rmm/resource.h; it retains its upstream. Blocks that are live
 * at its last release stay allocated from upstream.
 */
#ifndef RMM_FAILURE_CALLBACK_ADAPTOR_H
#define RMM_FAILURE_CALLBACK_ADAPTOR_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @param bytes  size of the failed request
 * @param arg    as in the options
 * @return true to try again, false to let the allocation fail
 */
typedef bool (*rmm_failure_callback_fn)(size_t bytes, void *arg);

/** rmm_failure_callback_options_t.flags: call back for RMM_ERR_BAD_ALLOC too. */
#define RMM_FAILURE_CALLBACK_ANY 0x1u

typedef struct rmm_failure_callback_options {
    size_t struct_size; /**< set by RMM_FAILURE_CALLBACK_OPTIONS_INIT; do not touch */
    rmm_failure_callback_fn callback; /**< required */
    void *arg;                        /**< passed to it; borrowed, may be NULL */
    uint32_t flags;                   /**< 0: only for RMM_ERR_OUT_OF_MEMORY */
    const char *name; /**< shown in /rmm; copied; default "failure_callback" */
    /** Called with `arg` when the adaptor has ended; NULL: nothing to free. Not called if the
     * creation fails, or in a forked child. */
    void (*destroy)(void *arg);
} rmm_failure_callback_options_t;

#define RMM_FAILURE_CALLBACK_OPTIONS_INIT                                              \
    {                                                                                  \
        sizeof(rmm_failure_callback_options_t), NULL, NULL, 0, NULL, NULL              \
    }

/**
 * Create a failure callback adaptor over @p upstream, which it retains.
 *
 * @param options  required
 * @param out      receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    upstream, options, the callback or out is NULL, a
 *                                     flag is unknown, or options were not made with _INIT
 *         RMM_ERR_UNSUPPORTED         options of a newer version ask for more
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_failure_callback_adaptor_create(
    rmm_resource_t *upstream, const rmm_failure_callback_options_t *options,
    rmm_resource_t **out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_FAILURE_CALLBACK_ADAPTOR_H */
