/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/managed_resource.h
 *
 * Memory from cudaMallocManaged, which migrates between host and device on use. It counts
 * as memory of the device. On a device without concurrentManagedAccess the host must not
 * access it while a kernel runs.
 *
 * Alignment: 256 at most; more is RMM_ERR_BAD_ALLOC.
 *
 * Lifetime, threads: as rmm/resource.h. All managed resources of a device are equal.
 */
#ifndef RMM_MANAGED_RESOURCE_H
#define RMM_MANAGED_RESOURCE_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Create a resource of managed memory on the current device. For the first one on a device
 * the library allocates and frees a byte, because a virtual GPU may report managed memory
 * but have none. This waits for the device.
 *
 * @param out  receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    out is NULL
 *         RMM_ERR_NO_DEVICE           no usable GPU; the message says what to do
 *         RMM_ERR_UNSUPPORTED         the device has no managed memory, or is a vGPU
 *                                     without unified memory; the message says which
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 *         RMM_ERR_CUDA                the driver failed
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_managed_resource_create(rmm_resource_t **out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_MANAGED_RESOURCE_H */
