/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/statistics_adaptor.h
 *
 * Counts the requests that pass through it, in scopes: the bytes that a part of a program
 * allocates, and the most that it needs at once. Without scopes, rmm_resource_get_stats()
 * has the figures of any resource, and no adaptor is needed.
 *
 * Two kinds of scopes, each a stack of its own:
 *  - the adaptor's (push, pop, get): requests on any thread, as in RAPIDS RMM. Two threads
 *    that push and pop here mix their scopes.
 *  - a thread's (thread_push, ...): requests of the calling thread through this adaptor. A
 *    free counts in the scope of the thread that calls it, whichever thread allocated. Only
 *    its own thread can pop a scope: what a thread did not pop before it ended stays, and
 *    costs memory and time, until the resource ends.
 *
 * Figures of a scope begin at zero. A block from before the scope may be freed in it, so
 * current_bytes and current_count are differences that can be negative: read them with
 * rmm_stats_difference(). peak_bytes and peak_count are at least zero. Of the other fields
 * of rmm_stats_t only the totals and struct_size are filled. A reset in /rmm does not
 * change the peaks of scopes.
 *
 * A request of 0 bytes counts as one allocation. Failures count nothing. Sizes are as
 * requested.
 *
 * Lifetime, threads: as rmm/resource.h; it retains its upstream. Blocks that are live
 * at its last release stay allocated from upstream.
 */
#ifndef RMM_STATISTICS_ADAPTOR_H
#define RMM_STATISTICS_ADAPTOR_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rmm_statistics_options {
    size_t struct_size; /**< set by RMM_STATISTICS_OPTIONS_INIT; do not touch */
    const char *name;   /**< shown in /rmm; copied; default "statistics" */
} rmm_statistics_options_t;

#define RMM_STATISTICS_OPTIONS_INIT                                                    \
    {                                                                                  \
        sizeof(rmm_statistics_options_t), NULL                                         \
    }

/** The signed number of current_bytes or current_count of a scope: allocated less freed. */
static inline int64_t rmm_stats_difference(uint64_t figure)
{
    return RMM_CAST(int64_t, figure);
}

/**
 * Create a statistics adaptor over @p upstream, which it retains.
 *
 * @param options  NULL: all defaults
 * @param out      receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    upstream or out is NULL, or options were not made
 *                                     with _INIT
 *         RMM_ERR_UNSUPPORTED         options of a newer version ask for more
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_statistics_adaptor_create(
    rmm_resource_t *upstream, const rmm_statistics_options_t *options,
    rmm_resource_t **out);

/**
 * Figures of the innermost scope; without any, since creation.
 *
 * @param mr   a statistics adaptor
 * @param out  initialised with RMM_STATS_INIT; at most struct_size bytes are written
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  mr is not a statistics adaptor, out is NULL
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_statistics_get(rmm_resource_t *mr, rmm_stats_t *out);

/**
 * Begin a scope.
 *
 * @param out  receives the figures of the scope that was innermost; may be NULL
 * @return as rmm_statistics_get(), and RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_statistics_push(rmm_resource_t *mr, rmm_stats_t *out);

/**
 * End the innermost scope and add its figures to the scope around it. The peak of that scope
 * rises if more was live inside.
 *
 * @param out  receives the figures of the scope that ends; may be NULL
 * @return as rmm_statistics_get(), and RMM_ERR_OUT_OF_RANGE if there is no scope
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_statistics_pop(rmm_resource_t *mr, rmm_stats_t *out);

/** As rmm_statistics_get() of the calling thread's innermost scope; RMM_ERR_OUT_OF_RANGE
 *  without one. */
RMM_API RMM_NODISCARD rmm_status_t
rmm_statistics_thread_get(rmm_resource_t *mr, rmm_stats_t *out);

/** As rmm_statistics_push() for the calling thread; zeros in @p out for its first. */
RMM_API RMM_NODISCARD rmm_status_t
rmm_statistics_thread_push(rmm_resource_t *mr, rmm_stats_t *out);

/** As rmm_statistics_pop() for the calling thread. */
RMM_API RMM_NODISCARD rmm_status_t
rmm_statistics_thread_pop(rmm_resource_t *mr, rmm_stats_t *out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_STATISTICS_ADAPTOR_H */
