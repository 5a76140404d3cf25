/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/pool_resource.h
 *
 * A pool takes large chunks from its upstream and hands out blocks of them in stream
 * order. A block freed on a stream is reused on that stream at once; on another one
 * only behind an event recorded while the freeing call proved that its stream was
 * alive, or behind a synchronise of the device. Blocks are split and merged in
 * constant time (two-level segregated fit, Masmano et al., ECRTS 2004, with its nodes
 * in host memory).
 *
 * A virtual pool (RMM_POOL_VIRTUAL) has no upstream: it reserves one range of addresses at
 * creation and maps physical memory into it as it grows. All its free memory is beside each
 * other, so growth never makes islands, it grows by what is missing only, and
 * rmm_resource_trim() gives back free memory between blocks in use as well. Where no free
 * block fits but a twelfth of what it holds is free, it synchronises the device and maps
 * free pieces (2 to 256 MiB) anew side by side, before it grows or fails: a request that
 * the wholly free pieces could hold does not fail. The more often it did so since it grew
 * last, the larger a request must be for that; others make it grow, so that a program in a
 * steady state is not stopped again. initial_bytes avoids such stops while a program finds
 * its size. What is mapped can be used on its own device; see RMM_POOL_PEER_ACCESS. It
 * cannot be passed to cudaIpcGetMemHandle().
 *
 * Alignment: 256 bytes, or more when asked for, to RMM_ALIGN_MAX.
 *
 * Sizes are rounded up to 256 bytes. The books count what was asked for.
 *
 * Lifetime, threads: as rmm/resource.h.
 */
#ifndef RMM_POOL_RESOURCE_H
#define RMM_POOL_RESOURCE_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Map physical memory of the current device into one range of addresses; no upstream. */
#define RMM_POOL_VIRTUAL ((uint64_t)1 << 0)

/**
 * With RMM_POOL_VIRTUAL: every device that can access this one's memory may use the pool's,
 * as it may use cudaMalloc's after cudaDeviceEnablePeerAccess(). That call alone does not
 * do it for mapped memory.
 */
#define RMM_POOL_PEER_ACCESS ((uint64_t)1 << 1)

/** Zero in any field means its default. */
typedef struct rmm_pool_options {
    size_t struct_size;     /**< set by RMM_POOL_OPTIONS_INIT; do not touch */
    uint64_t initial_bytes; /**< taken from upstream at creation; 0: nothing */
    uint64_t maximum_bytes; /**< most ever held from upstream; 0: no maximum */
    const char *name;       /**< shown in /rmm; copied; default "pool" */
    uint64_t flags;         /**< RMM_POOL_*, or-ed */
} rmm_pool_options_t;

#define RMM_POOL_OPTIONS_INIT                                                          \
    {                                                                                  \
        sizeof(rmm_pool_options_t), 0, 0, NULL, 0                                      \
    }

/**
 * Create a pool over @p upstream, which it retains, or a virtual one on the current device.
 *
 * Both sizes are rounded up to a multiple of 256; of a virtual pool to one of the
 * device's granularity, 2 MiB on known devices.
 *
 * @param upstream  where chunks come from; NULL with RMM_POOL_VIRTUAL, and only then
 * @param options   NULL: all defaults
 * @param out       receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    upstream does not go with the flags, out is NULL,
 *                                     initial > maximum, a flag is unknown or needs
 *                                     another, or options were not made with _INIT
 *         RMM_ERR_UNSUPPORTED         options of a newer version ask for more,
 *                                     upstream belongs to no device (host memory), or
 *                                     the device cannot map virtual memory
 *         RMM_ERR_OUT_OF_MEMORY       upstream or the device cannot give initial_bytes
 *         RMM_ERR_BAD_ALLOC           upstream failed otherwise
 *         RMM_ERR_NO_DEVICE, RMM_ERR_CUDA
 *                                     virtual: no GPU, or the driver failed
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_pool_resource_create(
    rmm_resource_t *upstream, const rmm_pool_options_t *options, rmm_resource_t **out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_POOL_RESOURCE_H */
