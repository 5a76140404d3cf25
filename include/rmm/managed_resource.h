/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/managed_resource.h
 *
 * Memory from cudaMallocManaged, which moves between host and device as it is used. It
 * counts as memory of the device. On many systems the host must not touch it while a
 * kernel runs (concurrentManagedAccess).
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
 * Create a resource of managed memory on the current device. The first one of a device
 * takes and frees a byte, because a virtual GPU may claim this memory and have none:
 * that waits for the device.
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
