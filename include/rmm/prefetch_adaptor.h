/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/prefetch_adaptor.h
 *
 * Prefetches managed memory to the resource's device as soon as it is allocated, in the
 * order of its stream. Without the adaptor, memory migrates page by page at its first use.
 *
 * It does nothing if the device has no concurrent managed access, for memory that is not
 * managed, and on a stream that captures a graph, which cannot contain the prefetch. A prefetch
 * that fails for another reason makes the allocation fail, and nothing stays allocated.
 *
 * Lifetime, threads: as rmm/resource.h; it retains its upstream. Blocks that are live
 * at its last release stay allocated from upstream.
 */
#ifndef RMM_PREFETCH_ADAPTOR_H
#define RMM_PREFETCH_ADAPTOR_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rmm_prefetch_options {
    size_t struct_size; /**< set by RMM_PREFETCH_OPTIONS_INIT; do not touch */
    const char *name;   /**< shown in /rmm; copied; default "prefetch" */
} rmm_prefetch_options_t;

#define RMM_PREFETCH_OPTIONS_INIT                                                      \
    {                                                                                  \
        sizeof(rmm_prefetch_options_t), NULL                                           \
    }

/**
 * Create a prefetch adaptor over @p upstream, which it retains. An allocation returns
 * RMM_ERR_BAD_ALLOC if its prefetch fails.
 *
 * @param options  NULL: all defaults
 * @param out      receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    upstream or out is NULL, or options were not made
 *                                     with _INIT
 *         RMM_ERR_UNSUPPORTED         options of a newer version ask for more, or
 *                                     upstream belongs to no device (host memory)
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 *         RMM_ERR_CUDA                the driver failed
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_prefetch_adaptor_create(
    rmm_resource_t *upstream, const rmm_prefetch_options_t *options,
    rmm_resource_t **out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_PREFETCH_ADAPTOR_H */
