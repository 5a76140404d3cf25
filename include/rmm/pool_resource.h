/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/pool_resource.h
 *
 * A pool takes memory in large pieces and allocates blocks of it in stream order, mostly
 * without requesting memory from the driver. docs/pool.md explains how.
 *
 * Stream order: a block that was freed on a stream can be allocated on that stream at
 * once. Another stream gets it only after one of these: an event that was recorded after the
 * free has finished; the other stream waits for such an event on the device; the device was
 * synchronised. A stream may be destroyed at any time after a free. Graph captures:
 * docs/threading.md.
 *
 * Placement: of the first four free blocks, by address, that are large enough, a request
 * gets the smallest. The pool uses memory that was never allocated last. Adjacent free blocks
 * merge.
 *
 * A pool over an upstream grows by chunks: a quarter of the bytes that it holds, 2 MiB to
 * 8 GiB, or the size that the request needs if that is more. Blocks of two chunks never
 * merge. rmm_resource_trim() returns chunks that are wholly free to upstream.
 *
 * A virtual pool (RMM_POOL_VIRTUAL) has no upstream: it reserves one range of addresses
 * at creation and maps pieces of physical memory (2 to 256 MiB) into it as it grows.
 * All its free memory can merge. It grows by the missing bytes, but at least by a 32nd of what
 * it holds (a 16th, up to 32 MiB, while it is small). rmm_resource_trim() also returns free
 * pieces between blocks in use. If no free block fits, but a 24th of the pool is free, the pool
 * compacts before it grows or fails: it synchronises the device and maps the free pieces again,
 * side by side. A request that the wholly free pieces can hold never fails. Each compaction
 * since the last growth raises the size that a request must have to cause another one; for a
 * smaller request the pool grows. So compactions end when a program has reached a steady
 * state. Set initial_bytes to avoid them.
 * Every device of the process that can access the memory of the pool's device may use mapped
 * memory, unless RMM_POOL_NO_PEER_ACCESS is set. It cannot be passed to cudaIpcGetMemHandle(): with
 * RMM_POOL_EXPORTABLE rmm_pool_export() shares it with other processes. Network cards may access
 * it (GPUDirect RDMA) where the device supports that.
 * docs/several-gpus.md says what that costs, and what each resource's memory can do.
 *
 * Lifetime: as rmm/resource.h. The last release waits for the device, then returns all
 * memory, also that of live blocks.
 *
 * Threads: as rmm/resource.h. All threads share one lock and all free memory. No thread
 * keeps free memory for itself, so that never makes a request fail. No lock is held
 * during a call of upstream or of a callback below it, which may use this pool.
 * For the throughput of many threads see rmm/arena_resource.h.
 *
 * Blocking: an allocation that finds no free block may call upstream or the driver,
 * order its stream behind another one, or synchronise the device. A free may record an
 * event; on a stream of another device it waits for that stream. rmm_resource_trim()
 * synchronises the device. Each of these calls may allocate host memory.
 *
 * Units: bytes. Sizes are rounded up to 256; statistics count the requested bytes.
 * Alignment: 256, or more on request, up to RMM_ALIGN_MAX. The largest block is just under
 * 1 TiB.
 */
#ifndef RMM_POOL_RESOURCE_H
#define RMM_POOL_RESOURCE_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Map physical memory of the current device into one range of addresses; no upstream. */
#define RMM_POOL_VIRTUAL (RMM_CAST(uint64_t, 1) << 0)

/**
 * With RMM_POOL_VIRTUAL: every device that can access the memory of the pool's device may
 * use the pool's memory, which is the default. cudaDeviceEnablePeerAccess() does not make mapped
 * memory accessible, as it does for memory of cudaMalloc(). So where a tool refuses mapped memory
 * (docs/compute-sanitizer.md), a pool with this flag still maps it.
 */
#define RMM_POOL_PEER_ACCESS (RMM_CAST(uint64_t, 1) << 1)

/**
 * With RMM_POOL_VIRTUAL: only the pool's own device may use its memory. Mapping is cheaper then
 * in a process that sees several devices.
 */
#define RMM_POOL_NO_PEER_ACCESS (RMM_CAST(uint64_t, 1) << 2)

/**
 * With RMM_POOL_VIRTUAL: other processes may map blocks of the pool (rmm/pool_sharing.h). Every
 * piece of memory is made for it, which costs nothing until one is exported.
 */
#define RMM_POOL_EXPORTABLE (RMM_CAST(uint64_t, 1) << 3)

/** Zero in any field means its default. */
typedef struct rmm_pool_options {
    size_t struct_size;     /**< set by RMM_POOL_OPTIONS_INIT; do not touch */
    uint64_t initial_bytes; /**< allocated or mapped at creation; 0: nothing */
    uint64_t maximum_bytes; /**< the pool never holds more; 0: no maximum */
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
 *         RMM_ERR_INVALID_ARGUMENT    upstream is NULL without RMM_POOL_VIRTUAL, or given
 *                                     with it; out is NULL; initial_bytes, as rounded,
 *                                     exceeds maximum_bytes; a flag is unknown, needs another
 *                                     one or contradicts one; or options were not made with
 *                                     _INIT
 *         RMM_ERR_UNSUPPORTED         options of a newer version ask for more,
 *                                     upstream belongs to no device (host memory), or
 *                                     the device cannot map virtual memory, or not share it
 *         RMM_ERR_OUT_OF_MEMORY       upstream or the device has no initial_bytes left, or
 *                                     they are more than a pool can divide (just under
 *                                     1 TiB)
 *         RMM_ERR_BAD_ALLOC           upstream or the driver failed for another reason
 *         RMM_ERR_NO_DEVICE           virtual: no usable GPU
 *         RMM_ERR_CUDA                a call of the driver failed
 *         RMM_ERR_OUT_OF_HOST_MEMORY  no host memory for the pool
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_pool_resource_create(
    rmm_resource_t *upstream, const rmm_pool_options_t *options, rmm_resource_t **out);

/**
 * The maximum that the pool was created with, rounded up to 256; 0: none.
 * rmm_resource_get_stats() tells in reserved_bytes how much the pool holds now.
 *
 * @param mr  a pool
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  mr is not a pool, bytes_out is NULL
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_pool_get_maximum(const rmm_resource_t *mr, uint64_t *bytes_out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_POOL_RESOURCE_H */
