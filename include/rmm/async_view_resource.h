/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/async_view_resource.h
 *
 * Memory from an existing CUDA memory pool: the device's default one
 * (cudaDeviceGetDefaultMemPool), one of another library, or that of an async resource.
 * The resource does not change the pool's settings.
 *
 * Alignment: 256 at most; more is RMM_ERR_BAD_ALLOC.
 *
 * Figures: reserved_bytes are all bytes that the pool holds from the device, for all its
 * users; the device counts them once, however many resources use the same pool.
 *
 * Lifetime, threads: as rmm/resource.h. The pool is borrowed: it must outlive the resource,
 * except the pool of an async resource, which the view keeps alive. All views of one
 * pool are equal; a view and the async resource that owns the pool are not.
 */
#ifndef RMM_ASYNC_VIEW_RESOURCE_H
#define RMM_ASYNC_VIEW_RESOURCE_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Create a resource over a pool of the current device.
 *
 * @param cuda_mem_pool  a cudaMemPool_t of the current device
 * @param out            receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    out or the pool is NULL, or the driver does not
 *                                     know the pool
 *         RMM_ERR_NO_DEVICE           no usable GPU; the message says what to do
 *         RMM_ERR_UNSUPPORTED         the device has no memory pools
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 *         RMM_ERR_CUDA                the driver failed
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_async_view_resource_create(void *cuda_mem_pool, rmm_resource_t **out);

/**
 * The same, with flags. Views of one pool with different flags are not equal.
 *
 * @param cuda_mem_pool  a cudaMemPool_t of the current device
 * @param flags          RMM_ASYNC_WAIT_BEFORE_REFUSAL (rmm/async_resource.h), or 0
 * @param out            receives the resource, one reference; untouched on failure
 * @return as rmm_async_view_resource_create(), or
 *         RMM_ERR_INVALID_ARGUMENT  an unknown flag
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_async_view_resource_create_with_flags(
    void *cuda_mem_pool, uint32_t flags, rmm_resource_t **out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_ASYNC_VIEW_RESOURCE_H */
