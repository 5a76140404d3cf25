/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/binning_resource.h
 *
 * Passes each request to the smallest of its bins that is large enough; larger requests go to
 * upstream. A bin is a resource: a fixed_size resource over upstream, or one of the program.
 * Requests with an alignment above 256 go to upstream. All requests of 0 bytes go
 * to one resource, which is chosen at the first of them: the smallest bin at that time, or
 * upstream if there is no bin.
 *
 * Lifetime: as rmm/resource.h; it retains its bins, which live as long as it does.
 *
 * Threads: as rmm/resource.h. Any thread may add a bin at any time: a block is freed to the
 * bin that it came from, even if a better bin was added since.
 */
#ifndef RMM_BINNING_RESOURCE_H
#define RMM_BINNING_RESOURCE_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One bin for each power of two from 2^min_exponent to 2^max_exponent bytes. */
typedef struct rmm_binning_options {
    size_t struct_size;    /**< set by RMM_BINNING_OPTIONS_INIT; do not touch */
    uint32_t min_exponent; /**< 8 to max_exponent; 0: 8 */
    uint32_t max_exponent; /**< at most 31; 0, with min_exponent 0: no bins at first */
    const char *name;      /**< shown in /rmm; copied; default "binning" */
} rmm_binning_options_t;

#define RMM_BINNING_OPTIONS_INIT                                                       \
    {                                                                                  \
        sizeof(rmm_binning_options_t), 0, 0, NULL                                      \
    }

/**
 * Create a binning resource over @p upstream, which it retains.
 *
 * @param upstream  bins allocate their memory from it, and larger requests go to it
 * @param options   NULL: no bins at first
 * @param out       receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    upstream or out is NULL, the exponents are out of
 *                                     their range, or options were not made with _INIT
 *         RMM_ERR_UNSUPPORTED         options of a newer version ask for more, or a bin
 *                                     cannot be built on upstream (host memory)
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_binning_resource_create(
    rmm_resource_t *upstream, const rmm_binning_options_t *options,
    rmm_resource_t **out);

/**
 * Add a bin for requests of up to @p bytes, rounded up to 256. If there is already a bin of
 * that size, it stays and @p bin_or_NULL is not used.
 *
 * @param mr           a binning resource
 * @param bytes        from 1
 * @param bin_or_NULL  retained; of the same memory as upstream. NULL: blocks of that size
 *                     over upstream, in chunks of up to 128 MiB or 128 blocks
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    mr is not a binning resource, bytes is 0 or too large
 *                                     (4 GiB and more need bin_or_NULL), the bin is mr or
 *                                     built on it, also through bins, or its memory
 *                                     belongs to another device
 *         RMM_ERR_UNSUPPORTED         a bin cannot be built on upstream (host memory)
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_binning_resource_add_bin(
    rmm_resource_t *mr, size_t bytes, rmm_resource_t *bin_or_NULL);

#ifdef __cplusplus
}
#endif

#endif /* RMM_BINNING_RESOURCE_H */
