/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/aligned_adaptor.h
 *
 * Provides alignments that its upstream does not support: the adaptor requests more bytes
 * from upstream and returns an aligned address inside of them.
 *
 * A request of `threshold_bytes` or more gets `alignment_bytes`. A smaller request, and
 * one with a larger alignment of its own, gets its own alignment. For alignments above
 * 256, which every resource supports, the adaptor requests the size rounded up to the
 * alignment, plus the alignment, less 256. It passes all other requests on unchanged.
 *
 * A free must name the size of the allocation. The adaptor remembers the alignment.
 *
 * Lifetime, threads: as rmm/resource.h; it retains its upstream. The last release frees
 * live aligned blocks to upstream; live blocks of other requests stay allocated there.
 */
#ifndef RMM_ALIGNED_ADAPTOR_H
#define RMM_ALIGNED_ADAPTOR_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rmm_aligned_options {
    size_t struct_size; /**< set by RMM_ALIGNED_OPTIONS_INIT; do not touch */
    uint64_t
        alignment_bytes; /**< a power of two up to 1 TiB; below 256 is 256, which is
                                   the default */
    uint64_t threshold_bytes; /**< aligns requests of this size and more; 0: all */
    const char *name;         /**< shown in /rmm; copied; default "aligned" */
} rmm_aligned_options_t;

#define RMM_ALIGNED_OPTIONS_INIT                                                       \
    {                                                                                  \
        sizeof(rmm_aligned_options_t), 0, 0, NULL                                      \
    }

/**
 * Create an aligned adaptor over @p upstream, which it retains.
 *
 * @param options  NULL: all defaults
 * @param out      receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    upstream or out is NULL, or options were not made
 *                                     with _INIT
 *         RMM_ERR_INVALID_ALIGNMENT   alignment_bytes is not a power of two or too large
 *         RMM_ERR_UNSUPPORTED         options of a newer version ask for more
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_aligned_adaptor_create(
    rmm_resource_t *upstream, const rmm_aligned_options_t *options,
    rmm_resource_t **out);

/**
 * The alignment in force.
 *
 * @param mr  an aligned adaptor
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  mr is not an aligned adaptor, bytes_out is NULL
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_aligned_get_alignment(const rmm_resource_t *mr, uint64_t *bytes_out);

/** The threshold, as rmm_aligned_get_alignment(). [get_alignment_threshold] */
RMM_API RMM_NODISCARD rmm_status_t
rmm_aligned_get_threshold(const rmm_resource_t *mr, uint64_t *bytes_out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_ALIGNED_ADAPTOR_H */
