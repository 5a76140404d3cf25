/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/async_managed_resource.h
 *
 * Managed memory in stream order, from the device's default managed memory pool
 * (cudaMemGetDefaultMemPool). Unlike memory of the async resource, host and device may
 * both use it, and it migrates between them. Needs CUDA 13 and a device with concurrent managed
 * access.
 *
 * The whole process shares that pool. With CUDA's default release threshold of 0 every
 * synchronise returns all unused memory to the device, and the next allocation stalls. So
 * the first resource sets the threshold to its maximum, and the last one does not reset it.
 * A threshold that the program has set stays. The last release waits for the device and
 * returns the pool's unused memory to it.
 *
 * Alignment: 256 at most; more is RMM_ERR_BAD_ALLOC.
 *
 * Figures: counts as memory of the device; reserved_bytes as rmm/async_view_resource.h.
 *
 * Lifetime, threads: as rmm/resource.h. All async_managed resources of a device are equal.
 */
#ifndef RMM_ASYNC_MANAGED_RESOURCE_H
#define RMM_ASYNC_MANAGED_RESOURCE_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Create a resource over the current device's default managed memory pool.
 *
 * @param out  receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    out is NULL
 *         RMM_ERR_NO_DEVICE           no usable GPU; the message says what to do
 *         RMM_ERR_UNSUPPORTED         no memory pools, no concurrent managed access (the
 *                                     message names the attribute), or an older CUDA
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 *         RMM_ERR_CUDA                the driver failed
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_async_managed_resource_create(rmm_resource_t **out);

/**
 * The same, with flags. Resources with different flags are not equal.
 *
 * @param flags  RMM_ASYNC_WAIT_BEFORE_REFUSAL (rmm/async_resource.h), or 0
 * @param out    receives the resource, one reference; untouched on failure
 * @return as rmm_async_managed_resource_create(), or
 *         RMM_ERR_INVALID_ARGUMENT  an unknown flag
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_async_managed_resource_create_with_flags(uint32_t flags, rmm_resource_t **out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_ASYNC_MANAGED_RESOURCE_H */
