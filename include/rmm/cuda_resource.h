/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cuda_resource.h
 *
 * Device memory from cudaMalloc and cudaFree. Slow: a pair takes about 70 us on an H200, and
 * a free waits for the device. The usual upstream of pools.
 *
 * Alignment: 256 at most; more is RMM_ERR_BAD_ALLOC.
 *
 * If the program passes a block to cudaFree() itself, the block stays counted until the driver
 * returns its address again. Then the resource drops the old block and logs a warning.
 *
 * Lifetime, threads: as rmm/resource.h. All cuda resources of a device are equal.
 */
#ifndef RMM_CUDA_RESOURCE_H
#define RMM_CUDA_RESOURCE_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Create a cuda resource on the current device.
 *
 * @param out  receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    out is NULL
 *         RMM_ERR_NO_DEVICE           no usable GPU; the message says what to do
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 *         RMM_ERR_CUDA                the driver failed
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_cuda_resource_create(rmm_resource_t **out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_CUDA_RESOURCE_H */
