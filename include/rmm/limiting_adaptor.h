/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/limiting_adaptor.h
 *
 * Limits the bytes that are live at once.
 *
 * Each request counts rounded up to `alignment_bytes`, as most upstreams round it. The live
 * bytes never exceed the limit, with any number of threads, and a refused request never makes
 * a concurrent one fail that fits. A free counts when upstream has taken the block back.
 *
 * Blocks that were allocated from upstream directly may be freed here. They lower
 * the counted bytes, but never below 0.
 *
 * Lifetime, threads: as rmm/resource.h; it retains its upstream. Blocks that are live
 * at its last release stay allocated from upstream.
 */
#ifndef RMM_LIMITING_ADAPTOR_H
#define RMM_LIMITING_ADAPTOR_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rmm_limiting_options {
    size_t struct_size;   /**< set by RMM_LIMITING_OPTIONS_INIT; do not touch */
    uint64_t limit_bytes; /**< most live bytes; 0: only requests of 0 bytes succeed */
    uint64_t alignment_bytes; /**< a power of two up to RMM_ALIGN_MAX; default 256 */
    const char *name;         /**< shown in /rmm; copied; default "limiting" */
} rmm_limiting_options_t;

#define RMM_LIMITING_OPTIONS_INIT                                                      \
    {                                                                                  \
        sizeof(rmm_limiting_options_t), 0, 0, NULL                                     \
    }

/**
 * Create a limiting adaptor over @p upstream, which it retains. A request above the limit
 * is RMM_ERR_OUT_OF_MEMORY and counts in oom_count.
 *
 * @param options  required
 * @param out      receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    upstream, options or out is NULL, or options were not
 *                                     made with _INIT
 *         RMM_ERR_INVALID_ALIGNMENT   alignment_bytes is not a power of two or too large
 *         RMM_ERR_UNSUPPORTED         options of a newer version ask for more
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_limiting_adaptor_create(
    rmm_resource_t *upstream, const rmm_limiting_options_t *options,
    rmm_resource_t **out);

/**
 * The bytes that count against the limit now. [get_allocated_bytes]
 *
 * @param mr  a limiting adaptor
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  mr is not a limiting adaptor, bytes_out is NULL
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_limiting_get_allocated(const rmm_resource_t *mr, uint64_t *bytes_out);

/** The alignment to which sizes are rounded up, as rmm_limiting_get_allocated(). */
RMM_API RMM_NODISCARD rmm_status_t
rmm_limiting_get_alignment(const rmm_resource_t *mr, uint64_t *bytes_out);

/** The limit, as rmm_limiting_get_allocated(). [get_allocation_limit] */
RMM_API RMM_NODISCARD rmm_status_t
rmm_limiting_get_limit(const rmm_resource_t *mr, uint64_t *bytes_out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_LIMITING_ADAPTOR_H */
