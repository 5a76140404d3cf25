/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/host_resource.h
 *
 * Aligned memory of the host's heap. Needs no GPU and no driver. Frees are not ordered by
 * streams: wait for the work that uses a block before freeing it. A GPU can access it only
 * if the system lets it access pageable memory.
 *
 * A pool cannot be built on it, because it belongs to no device. Use pinned memory for that.
 *
 * Alignment: up to RMM_ALIGN_MAX.
 *
 * In a forked child: a host resource that the child creates works. One that the parent
 * created refuses to allocate, as every resource from before the fork does. The two are
 * never the same.
 *
 * Lifetime, threads: as rmm/resource.h. All host resources are equal.
 */
#ifndef RMM_HOST_RESOURCE_H
#define RMM_HOST_RESOURCE_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Create a resource of host memory.
 *
 * @param out  receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    out is NULL
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_host_resource_create(rmm_resource_t **out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_HOST_RESOURCE_H */
