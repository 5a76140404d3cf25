/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/async_managed_resource.h
 *
 * Managed memory in stream order, out of the device's default managed memory pool
 * (cudaMemGetDefaultMemPool): as the async resource, but host and device may both use
 * it, and it moves between them. Needs CUDA 13 and a device with concurrent managed
 * access.
 *
 * That pool is the whole process's. While its release threshold is CUDA's default, 0,
 * every synchronise gives all unused memory back and the next allocation stalls; so the
 * first resource sets it to keep everything, and leaves it so. A threshold that the
 * program has set is left alone. The last release gives back what the pool holds and
 * nobody uses; it waits for the device.
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

#ifdef __cplusplus
}
#endif

#endif /* RMM_ASYNC_MANAGED_RESOURCE_H */
