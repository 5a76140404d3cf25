/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/observed_pool.h
 *
 * A pool of somebody else, such as the caching allocator of a framework, in /rmm: its owner reads
 * the figures of that allocator from time to time and sets them here. They are shown like those of
 * a resource, of the type "observed". This is no allocator, and no rmm_resource_t.
 *
 * Sums: the process and the GPU count the pool's bytes as memory that users hold, and what it
 * holds from the driver as reserved, unless the driver's own allocations of the process are counted
 * (rmm-run, mode "driver"): then they contain this memory already, and only the pool itself shows
 * the figures. A pool that has its memory from a resource of this library is counted there, so it
 * is not to be observed.
 *
 * Lifetime: made by rmm_observed_pool_create(), ended by rmm_observed_pool_destroy(). In a forked
 * child the parent's pools refuse figures.
 *
 * Threads: any function, any thread, but no use of a pool while it is destroyed.
 *
 * Units: bytes and numbers of allocations. What a framework does not count is 0.
 */
#ifndef RMM_OBSERVED_POOL_H
#define RMM_OBSERVED_POOL_H

#include <stddef.h>
#include <stdint.h>

#include <rmm/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque. */
typedef struct rmm_observed_pool rmm_observed_pool_t;

/** Zero in any field means its default. */
typedef struct rmm_observed_pool_options {
    size_t struct_size; /**< set by RMM_OBSERVED_POOL_OPTIONS_INIT; do not touch */
    const char *name;   /**< shown in /rmm; copied; default "observed" */
    int32_t device;     /**< CUDA ordinal of the memory, or RMM_DEVICE_HOST */
} rmm_observed_pool_options_t;

#define RMM_OBSERVED_POOL_OPTIONS_INIT                                                 \
    {                                                                                  \
        sizeof(rmm_observed_pool_options_t), NULL, 0                                   \
    }

/**
 * The figures of the pool now. Those of a counter (total_*, oom_count, growth_count) are since its
 * beginning; if one is lower than at the last call, the framework has begun it anew. A total that
 * the framework does not count rises by what current_* rises between two calls.
 */
typedef struct rmm_observed_pool_figures {
    size_t struct_size;     /**< set by RMM_OBSERVED_POOL_FIGURES_INIT; do not touch */
    uint64_t current_bytes; /**< handed out and not yet freed */
    uint64_t current_count; /**< live allocations */
    uint64_t peak_bytes;    /**< highest current_bytes, as the framework counts it */
    uint64_t peak_count;    /**< highest current_count, likewise */
    uint64_t total_bytes;   /**< of all allocations */
    uint64_t total_count;   /**< allocations */
    uint64_t
        reserved_bytes;    /**< held from the driver; at least current_bytes is shown */
    uint64_t oom_count;    /**< requests refused for lack of memory */
    uint64_t growth_count; /**< times that it took memory from the driver */
} rmm_observed_pool_figures_t;

#define RMM_OBSERVED_POOL_FIGURES_INIT                                                 \
    {                                                                                  \
        sizeof(rmm_observed_pool_figures_t), 0, 0, 0, 0, 0, 0, 0, 0, 0                 \
    }

/**
 * Create an observed pool with all figures 0. Makes no CUDA context.
 *
 * @param options   NULL: all defaults
 * @param pool_out  receives the pool; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    pool_out is NULL, the device is below RMM_DEVICE_HOST, or
 *                                     options were not made with _INIT
 *         RMM_ERR_NO_DEVICE           no usable GPU; the message says what to do
 *         RMM_ERR_UNSUPPORTED         more devices than /rmm shows, or options of a newer version
 *                                     ask for more
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 *         RMM_ERR_CUDA                the driver failed, or does not know the device
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_observed_pool_create(
    const rmm_observed_pool_options_t *options, rmm_observed_pool_t **pool_out);

/**
 * Set the figures. Calls no driver function; blocks only while another thread sets them.
 *
 * The marks of /rmm are raised to peak_bytes and peak_count if these differ from those of the last
 * call, else to current_bytes and current_count: so a mark that was reset in /rmm stays so.
 *
 * @param pool     the pool
 * @param figures  of the pool now; not kept
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  pool or figures are NULL, or figures were not made with _INIT
 *         RMM_ERR_UNSUPPORTED       the pool is from before a fork(), or figures of a newer
 *                                   version say more
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_observed_pool_set(
    rmm_observed_pool_t *pool, const rmm_observed_pool_figures_t *figures);

/**
 * The pool is no longer observed: it leaves /rmm, and its bytes the sums.
 *
 * @param pool  the pool; NULL: nothing
 */
RMM_API void rmm_observed_pool_destroy(rmm_observed_pool_t *pool);

#ifdef __cplusplus
}
#endif

#endif /* RMM_OBSERVED_POOL_H */
