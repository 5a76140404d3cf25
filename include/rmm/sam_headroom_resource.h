/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/sam_headroom_resource.h
 *
 * System memory (rmm/system_resource.h) that leaves a headroom of the device's memory free.
 * The part of a block that fits into the device's free memory beyond the headroom gets the
 * device as its preferred location, the rest the host (cudaMemAdvise). The preference is for
 * whole pages of the host. A block of less than a page has none: it is placed where it is
 * first touched.
 *
 * Lifetime, threads, frees: as rmm/system_resource.h. Resources of one device with the same
 * headroom are equal and have the name of the first.
 */
#ifndef RMM_SAM_HEADROOM_RESOURCE_H
#define RMM_SAM_HEADROOM_RESOURCE_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Zero in any field means its default. */
typedef struct rmm_sam_headroom_options {
    size_t struct_size;      /**< set by RMM_SAM_HEADROOM_OPTIONS_INIT; do not touch */
    uint64_t headroom_bytes; /**< memory of the device to leave free; 0: none */
    const char *name;        /**< shown in /rmm; copied; default "sam_headroom" */
} rmm_sam_headroom_options_t;

#define RMM_SAM_HEADROOM_OPTIONS_INIT                                                  \
    {                                                                                  \
        sizeof(rmm_sam_headroom_options_t), 0, NULL                                    \
    }

/**
 * Create a resource of system memory for the current device.
 *
 * @param options  NULL: all defaults
 * @param out      receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    out is NULL, or options were not made with _INIT
 *         RMM_ERR_NO_DEVICE           no usable GPU; the message says what to do
 *         RMM_ERR_UNSUPPORTED         the device cannot use pageable memory
 *                                     (cudaDevAttrPageableMemoryAccess), or options of a
 *                                     newer version ask for more
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 *         RMM_ERR_CUDA                the driver failed
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_sam_headroom_resource_create(
    const rmm_sam_headroom_options_t *options, rmm_resource_t **out);

/**
 * The headroom: the memory of the device that the resource leaves free.
 *
 * @param mr  a sam_headroom resource
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  mr is not a sam_headroom resource, bytes_out is NULL
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_sam_headroom_get_headroom(const rmm_resource_t *mr, uint64_t *bytes_out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_SAM_HEADROOM_RESOURCE_H */
