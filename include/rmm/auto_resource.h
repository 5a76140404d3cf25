/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/auto_resource.h
 *
 * The pool for a program that has no special need: a virtual pool (RMM_POOL_VIRTUAL of
 * rmm/pool_resource.h) if the device can map memory for all devices that the process sees, else a
 * pool over a cuda resource. It is a resource of type "pool", whose functions apply to it.
 * docs/pool.md says which programs need another resource.
 *
 * What was chosen: the name, where the options give none, is "pool_virtual" or "pool", the words
 * of the spec that creates the same pool, and a pool over a cuda resource has an upstream. Where
 * memory is not mapped, a message of level info says why: the device lacks the ability, the driver
 * refuses addresses (RLIMIT_AS, `ulimit -v`) or a first piece, a device that the process sees is no
 * peer (CUDA copies only memory of cudaMalloc() between the two), or a tool such as
 * compute-sanitizer refuses mapped memory.
 *
 * Lifetime, threads, blocking, units: as rmm/pool_resource.h.
 */
#ifndef RMM_AUTO_RESOURCE_H
#define RMM_AUTO_RESOURCE_H

#include <rmm/pool_resource.h>
#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Create the pool on the current device.
 *
 * With initial_bytes 0 a virtual pool maps one piece, 2 MiB on known devices, to prove that the
 * driver does it; on a device without that much free memory it maps nothing.
 *
 * RMM_POOL_VIRTUAL need not be set. With RMM_POOL_NO_PEER_ACCESS other devices do not matter; who
 * may use memory of the cuda resource is decided by cudaDeviceEnablePeerAccess(). A flag that asks
 * for what only mapped memory has, such as RMM_POOL_PEER_ACCESS, rules out the pool over a cuda
 * resource.
 *
 * @param options  NULL: all defaults
 * @param out      receives the resource, one reference; untouched on failure
 * @return RMM_OK, or a status of rmm_pool_resource_create(); RMM_ERR_UNSUPPORTED for a device
 *         that cannot map memory only if a flag asks for mapped memory
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_auto_resource_create(const rmm_pool_options_t *options, rmm_resource_t **out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_AUTO_RESOURCE_H */
