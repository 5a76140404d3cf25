/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/fixed_size_resource.h
 *
 * Blocks of one size, cut from chunks of a fixed number of blocks, or of fewer where upstream has
 * no more. The first allocation takes the first chunk from upstream; the number of chunks has no
 * maximum.
 * rmm_resource_trim() returns chunks that are wholly free to upstream. Stream order,
 * threads and blocking calls are as in rmm/pool_resource.h.
 *
 * A request for less than a block takes a whole one; a request for more is
 * RMM_ERR_OUT_OF_MEMORY.
 *
 * Lifetime, threads: as rmm/resource.h. The last release waits for the device.
 *
 * Units: bytes. Statistics count the requested bytes; the remainder of a block is padding.
 * Alignment: 256, or more on request, up to RMM_ALIGN_MAX. If the block size is not a
 * multiple of the alignment, the memory in front of such a block is unused while the block
 * lives.
 */
#ifndef RMM_FIXED_SIZE_RESOURCE_H
#define RMM_FIXED_SIZE_RESOURCE_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Zero in any field means its default. */
typedef struct rmm_fixed_size_options {
    size_t struct_size;        /**< set by RMM_FIXED_SIZE_OPTIONS_INIT; do not touch */
    uint64_t block_bytes;      /**< rounded up to 256; below 4 GiB; 0: 1 MiB */
    uint64_t blocks_per_chunk; /**< 0: 128; a chunk is below 1 TiB */
    const char *name;          /**< shown in /rmm; copied; default "fixed_size" */
} rmm_fixed_size_options_t;

#define RMM_FIXED_SIZE_OPTIONS_INIT                                                    \
    {                                                                                  \
        sizeof(rmm_fixed_size_options_t), 0, 0, NULL                                   \
    }

/**
 * Create a resource of blocks of one size over @p upstream, which it retains.
 *
 * @param upstream  where chunks come from
 * @param options   NULL: all defaults
 * @param out       receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    upstream or out is NULL, a block or a chunk is too
 *                                     large, or options were not made with _INIT
 *         RMM_ERR_UNSUPPORTED         options of a newer version ask for more, or
 *                                     upstream belongs to no device (host memory)
 *         RMM_ERR_OUT_OF_HOST_MEMORY  no host memory for the resource
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_fixed_size_resource_create(
    rmm_resource_t *upstream, const rmm_fixed_size_options_t *options,
    rmm_resource_t **out);

/**
 * The size of the blocks, as rounded up at the creation.
 *
 * @param mr  a fixed_size resource
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  mr is not a fixed_size resource, bytes_out is NULL
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_fixed_size_get_block_bytes(const rmm_resource_t *mr, uint64_t *bytes_out);

/** The number of blocks in a chunk, as rmm_fixed_size_get_block_bytes(). */
RMM_API RMM_NODISCARD rmm_status_t
rmm_fixed_size_get_blocks_per_chunk(const rmm_resource_t *mr, uint64_t *count_out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_FIXED_SIZE_RESOURCE_H */
