/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/fallback_adaptor.h
 *
 * Allocates from a second resource, the alternate, what upstream refuses with
 * RMM_ERR_OUT_OF_MEMORY: a pool of limited size, and managed memory for what does not fit.
 * A block is freed to the resource that it came from. Each request asks upstream first.
 *
 * The memory is accessible to what can access both, and is in the order of a stream if that of
 * one of them is. Upstream and alternate belong to the same device. In /rmm the adaptor's
 * directory is that of upstream's location and counts all that passes through it; the alternate
 * counts its own.
 *
 * Lifetime, threads: as rmm/resource.h; it retains its upstream and the alternate. Blocks that
 * are live at its last release stay allocated from these.
 */
#ifndef RMM_FALLBACK_ADAPTOR_H
#define RMM_FALLBACK_ADAPTOR_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rmm_fallback_options {
    size_t struct_size;        /**< set by RMM_FALLBACK_OPTIONS_INIT; do not touch */
    rmm_resource_t *alternate; /**< required; retained */
    const char *name;          /**< shown in /rmm; copied; default "fallback" */
} rmm_fallback_options_t;

#define RMM_FALLBACK_OPTIONS_INIT                                                      \
    {                                                                                  \
        sizeof(rmm_fallback_options_t), NULL, NULL                                     \
    }

/**
 * Create a fallback adaptor over @p upstream, which it retains. What the alternate refuses too
 * fails with the alternate's status; the message has the reasons of both.
 *
 * @param options  required
 * @param out      receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    upstream, options, the alternate or out is NULL; the
 *                                     alternate belongs to another device, or nothing can
 *                                     access the memory of both; or options were not made
 *                                     with _INIT
 *         RMM_ERR_UNSUPPORTED         options of a newer version ask for more
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_fallback_adaptor_create(
    rmm_resource_t *upstream, const rmm_fallback_options_t *options,
    rmm_resource_t **out);

/**
 * The second resource, borrowed.
 *
 * @param mr  a fallback adaptor
 * @return NULL if mr is none
 */
RMM_API rmm_resource_t *rmm_fallback_get_alternate(const rmm_resource_t *mr);

/**
 * The blocks of the alternate that are live now: 0 while everything fits upstream.
 *
 * @param mr  a fallback adaptor
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  mr is not a fallback adaptor, count_out is NULL
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_fallback_get_alternate_count(const rmm_resource_t *mr, uint64_t *count_out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_FALLBACK_ADAPTOR_H */
