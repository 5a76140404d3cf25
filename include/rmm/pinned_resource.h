/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/pinned_resource.h
 *
 * Page-locked host memory from cudaHostAlloc. Every device can access it over the bus, and
 * copies to and from it run at full speed. It counts as memory of the host. Allocation is
 * slow: build a pool on it.
 *
 * A free waits for the device that was current at the creation.
 *
 * Alignment: 256 at most; more is RMM_ERR_BAD_ALLOC.
 *
 * Lifetime, threads: as rmm/resource.h. All pinned resources of a device are equal.
 */
#ifndef RMM_PINNED_RESOURCE_H
#define RMM_PINNED_RESOURCE_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Create a resource of pinned memory on the current device.
 *
 * @param out  receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    out is NULL
 *         RMM_ERR_NO_DEVICE           no usable GPU; the message says what to do
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 *         RMM_ERR_CUDA                the driver failed
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_pinned_resource_create(rmm_resource_t **out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_PINNED_RESOURCE_H */
