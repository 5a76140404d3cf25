/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/system_resource.h
 *
 * Memory of the host's heap, for devices that can access pageable memory (HMM, or ATS on
 * Grace). A page is placed where it is first touched, and may migrate. The memory counts as
 * memory of the device that was current at the creation.
 *
 * The heap does not know streams, so a free waits for its stream. Blocks.
 *
 * Lifetime, threads: as rmm/resource.h. All system resources of a device are equal.
 */
#ifndef RMM_SYSTEM_RESOURCE_H
#define RMM_SYSTEM_RESOURCE_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Create a resource of system memory for the current device.
 *
 * @param out  receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    out is NULL
 *         RMM_ERR_NO_DEVICE           no usable GPU; the message says what to do
 *         RMM_ERR_UNSUPPORTED         the device cannot use pageable memory
 *                                     (cudaDevAttrPageableMemoryAccess)
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 *         RMM_ERR_CUDA                the driver failed
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_system_resource_create(rmm_resource_t **out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_SYSTEM_RESOURCE_H */
