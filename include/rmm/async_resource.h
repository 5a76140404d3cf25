/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/async_resource.h
 *
 * Memory from CUDA's stream-ordered allocator (cudaMallocAsync): of the device, or pinned
 * memory of the host (location). The resource has a CUDA memory pool of its own on the
 * current device. Allocating and freeing never wait (but see
 * RMM_ASYNC_WAIT_BEFORE_REFUSAL). Memory that one stream freed serves another
 * stream as soon as the driver finds that the order of their work allows it. So a request may be
 * refused although enough was freed, and be served after a synchronise.
 *
 * Alignment: 256 at most; more is RMM_ERR_BAD_ALLOC.
 *
 * Figures: reserved_bytes are the bytes that the CUDA pool holds from the device. The
 * driver grows and shrinks the pool by itself. The resource queries it about once in 64
 * allocations of a thread, so the file in /rmm may lag by some 64 allocations of each thread;
 * rmm_resource_get_stats() always queries it.
 *
 * Trim: waits for the device, then returns the free memory to it. CUDA keeps memory until a
 * synchronisation has shown that its last use is over. To return all free memory,
 * synchronise the streams of the frees before the trim.
 *
 * Memory of the host (RMM_ASYNC_ON_HOST, ...; the type of the resource is "async_pinned"): host and
 * devices use it where it lies, over the bus, and copies to and from it run at full speed, as with
 * the pinned resource, but without that one's cost for each block. All devices of the process may
 * use it, with RMM_ASYNC_NO_PEER_ACCESS only the pool's. The host may read what work writes there
 * when that work is over, and use a fresh block after the stream of its allocation was
 * synchronised. It counts as memory of the host. CUDA allocates none in a graph capture, which
 * gets RMM_ERR_UNSUPPORTED; a pool on top of the resource can. RMM_ASYNC_ON_HOST needs CUDA 13 in
 * the driver and in the toolkit that built the library, a NUMA node CUDA 12.6 in the driver. HIP
 * has none.
 *
 * Graph captures: CUDA cannot free a block in a capture that did not allocate it. A block that
 * was allocated before the capture stays allocated until the last release, which comes after
 * the last launch of the graph.
 *
 * Lifetime, threads: as rmm/resource.h. Two async resources are never equal. The CUDA
 * pool is destroyed with the last resource over it (a view of it is one), which waits for
 * the device.
 */
#ifndef RMM_ASYNC_RESOURCE_H
#define RMM_ASYNC_RESOURCE_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/** rmm_async_options_t::handle_types: how the pool's memory can be shared with other
 * processes; values of cudaMemAllocationHandleType, combined with |. */
#define RMM_ASYNC_HANDLE_POSIX_FD 0x1u
#define RMM_ASYNC_HANDLE_WIN32 0x2u
#define RMM_ASYNC_HANDLE_WIN32_KMT 0x4u
#define RMM_ASYNC_HANDLE_FABRIC 0x8u

/** rmm_async_options_t::flags: a release threshold of 0, CUDA's own default: every
 * synchronise returns all unused memory to the device. Slow. */
#define RMM_ASYNC_RELEASE_UNUSED 0x1u
/** Likewise: before the resource refuses a request, it waits once for the device and for the
 * request's stream, returns the pool's unused memory to the device, and tries again. It ruins no
 * capture. Memory that was freed on other streams may still need the program to synchronise
 * these, as with a trim. */
#define RMM_ASYNC_WAIT_BEFORE_REFUSAL 0x2u
/** Likewise: only the pool's own device may use its memory. By default every
 * device of the process that can access the memory of the pool's device may, which
 * cudaDeviceEnablePeerAccess() does not give to memory of a CUDA pool (docs/several-gpus.md). */
#define RMM_ASYNC_NO_PEER_ACCESS 0x4u

/** rmm_async_options_t::location: where the memory is. On the pool's device; the default. */
#define RMM_ASYNC_ON_DEVICE 0u
/** On the host, on any NUMA node. */
#define RMM_ASYNC_ON_HOST 1u
/** On the host, on the NUMA node that numa_node names. */
#define RMM_ASYNC_ON_NODE 2u
/** On the host, on the NUMA node that is nearest to the device. */
#define RMM_ASYNC_ON_NEAREST_NODE 3u

/** Zero in any field means its default. */
typedef struct rmm_async_options {
    size_t struct_size;          /**< set by RMM_ASYNC_OPTIONS_INIT; do not touch */
    uint64_t initial_pool_bytes; /**< reserved by the pool at creation; 0: nothing */
    uint64_t release_threshold_bytes; /**< a synchronise returns unused memory above it;
                                           0: the pool keeps all of it
                                           (but see RMM_ASYNC_RELEASE_UNUSED) */
    uint32_t handle_types;            /**< RMM_ASYNC_HANDLE_*; 0: not shareable */
    uint32_t flags;    /**< RMM_ASYNC_RELEASE_UNUSED, ..., combined with | */
    const char *name;  /**< shown in /rmm; copied; default "async", or "async_pinned" */
    uint32_t location; /**< RMM_ASYNC_ON_DEVICE, ... */
    uint32_t numa_node; /**< with RMM_ASYNC_ON_NODE: as Linux numbers them, from 0 */
} rmm_async_options_t;

#define RMM_ASYNC_OPTIONS_INIT                                                         \
    {                                                                                  \
        sizeof(rmm_async_options_t), 0, 0, 0, 0, NULL, RMM_ASYNC_ON_DEVICE, 0          \
    }

/**
 * Create a memory pool on the current device, and a resource over it.
 *
 * @param options  NULL: all defaults
 * @param out      receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    out is NULL, options were not made with _INIT, an
 *                                     unknown flag, location or handle type, a threshold
 *                                     together with RMM_ASYNC_RELEASE_UNUSED, handle types
 *                                     with RMM_ASYNC_ON_HOST, or there is no such NUMA node
 *         RMM_ERR_NO_DEVICE           no usable GPU; the message says what to do
 *         RMM_ERR_UNSUPPORTED         the device has no memory pools, or not with these
 *                                     handle types or at this location (the message
 *                                     names the attribute);
 *                                     or options of a newer version ask for more
 *         RMM_ERR_OUT_OF_MEMORY       the device, or the host, has no initial_pool_bytes left
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 *         RMM_ERR_CUDA                the driver failed
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_async_resource_create(const rmm_async_options_t *options, rmm_resource_t **out);

/**
 * Query the driver for the release threshold; UINT64_MAX: the pool never returns unused
 * memory by itself.
 *
 * @param mr  an async, async_pinned, async_view or async_managed resource
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  mr is none of them, bytes_out is NULL
 *         RMM_ERR_CUDA              the driver failed
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_async_get_release_threshold(const rmm_resource_t *mr, uint64_t *bytes_out);

/**
 * The cudaMemPool_t of an async, async_pinned, async_view or async_managed resource,
 * borrowed; NULL for any other resource.
 */
RMM_API void *rmm_async_resource_pool_handle(const rmm_resource_t *mr);

#ifdef __cplusplus
}
#endif

#endif /* RMM_ASYNC_RESOURCE_H */
