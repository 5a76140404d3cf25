/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/custom_resource.h
 *
 * A resource over functions of the program: its own memory, usable wherever a resource is:
 * directly, below pools, arenas and adaptors, and as a default. The resource remembers its
 * blocks, so its statistics are exact and an invalid free never reaches the functions.
 *
 * The functions may use the library, also this resource and those built on it: then they are
 * called again. They must not create or destroy the resource that they run for. No lock is
 * held while one runs. Memory that an alloc function allocates from a resource of this
 * library counts in the statistics of that resource, but not as users' memory of the device,
 * because the block counts there already. So the dealloc functions must free it. Such a
 * block counts in the device's reserved bytes at that resource only; any other block counts
 * there at this one.
 *
 * Alignment: the alloc functions must align to the requested alignment, which is
 * RMM_ALIGN_DEFAULT at least. If a block is aligned to less, the resource frees it and the
 * allocation fails with RMM_ERR_BAD_ALLOC. RMM_OK with NULL fails likewise.
 * RMM_CUSTOM_UNCHECKED changes both. The address of a block that is not freed yet fails
 * likewise, and that block stays as it is. What overlaps it otherwise is noticed by a pool
 * only: it passes such a chunk back, and the request fails with RMM_ERR_BAD_ALLOC.
 *
 * Lifetime: as rmm/resource.h. The last release passes all live blocks to the dealloc
 * function, with RMM_STREAM_LEGACY, then calls destroy(). In a forked child it calls no
 * function.
 *
 * Streams: a pool or an arena over this resource passes a stream of its own, which it destroys
 * at its end.
 *
 * Devices: while a function other than is_equal() runs, the resource's device is current,
 * unless only the host can access the memory. The graph capture mode of the thread is
 * relaxed, so a cudaMalloc in the function does not invalidate another thread's capture.
 * RMM_STREAM_PER_THREAD is that device's; if the caller has another one current, the library
 * orders its stream of that name with the caller's.
 *
 * Threads: as rmm/resource.h. The functions run on the thread that calls the resource, on
 * several threads at once. They end by return (rmm/resource.h, functions of the program).
 */
#ifndef RMM_CUSTOM_RESOURCE_H
#define RMM_CUSTOM_RESOURCE_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Allocate memory, usable in stream order on @p stream.
 *
 * @param bytes    not 0, but see RMM_CUSTOM_UNCHECKED
 * @param align    a power of two from RMM_ALIGN_DEFAULT to RMM_ALIGN_MAX
 * @param ptr_out  receives the address; read on RMM_OK only
 * @return RMM_OK, or the status that the allocation returns: RMM_ERR_OUT_OF_MEMORY if there
 *         is no memory, RMM_ERR_BAD_ALLOC for another failure
 */
typedef rmm_status_t (*rmm_custom_alloc_fn)(
    size_t bytes, size_t align, rmm_stream_t stream, void *payload, void **ptr_out);

/**
 * Free a block. Work queued on @p stream, of whatever device, may still use it. Size and
 * alignment are those of the allocation.
 */
typedef void (*rmm_custom_dealloc_fn)(
    void *ptr, size_t bytes, size_t align, rmm_stream_t stream, void *payload);

/** As rmm_custom_alloc_fn, but the memory may be used on any stream at once. */
typedef rmm_status_t (*rmm_custom_alloc_sync_fn)(
    size_t bytes, size_t align, void *payload, void **ptr_out);

/** As rmm_custom_dealloc_fn, but no queued work uses the memory any more. */
typedef void (*rmm_custom_dealloc_sync_fn)(
    void *ptr, size_t bytes, size_t align, void *payload);

/** May each free the other's memory? Both resources have the same is_equal(). */
typedef bool (*rmm_custom_is_equal_fn)(const void *payload, const void *other_payload);

/** Free the payload: the resource has ended. Runs once, after every block was freed. */
typedef void (*rmm_custom_destroy_fn)(void *payload);

/**
 * rmm_custom_resource_ops_t.flags: pass the results of the functions on unchecked, as RMM
 * does: RMM_OK with NULL, and addresses aligned to less than requested. Requests of no bytes
 * call the functions too and must yield NULL. For mocks in tests. The flag applies to
 * requests of users, also through an adaptor. The library still checks its own allocations
 * (the chunk of a pool, the larger block of the aligned adaptor) and those that one of the
 * functions makes. tracking and binning refuse NULL with RMM_ERR_BAD_ALLOC.
 */
#define RMM_CUSTOM_UNCHECKED 0x1u

/** The functions and properties of a resource. Copied. New fields are only ever appended. */
typedef struct rmm_custom_resource_ops {
    size_t struct_size;            /**< set by RMM_CUSTOM_RESOURCE_OPS_INIT */
    rmm_custom_alloc_fn alloc;     /**< required */
    rmm_custom_dealloc_fn dealloc; /**< required */
    /** Both or neither. They serve rmm_resource_alloc_sync() and
     * rmm_resource_dealloc_sync(), also through an adaptor. A block may be allocated by
     * one kind and freed by the other. NULL: alloc() on the legacy default stream and a
     * wait for it. A pool allocates its chunks in this way too. */
    rmm_custom_alloc_sync_fn alloc_sync;
    rmm_custom_dealloc_sync_fn dealloc_sync;
    rmm_custom_is_equal_fn is_equal; /**< NULL: a resource equals only itself */
    rmm_custom_destroy_fn destroy;   /**< NULL: the payload needs no cleanup */
    const char *name;                /**< shown in /rmm; copied; default "custom" */
    /** RMM_*_ACCESSIBLE: which side can access the memory; 0: RMM_DEVICE_ACCESSIBLE.
     * RMM_HOST_ACCESSIBLE alone needs no GPU. */
    uint32_t properties;
    uint32_t flags; /**< RMM_CUSTOM_UNCHECKED, or 0 */
} rmm_custom_resource_ops_t;

#define RMM_CUSTOM_RESOURCE_OPS_INIT                                                   \
    {                                                                                  \
        sizeof(rmm_custom_resource_ops_t), NULL, NULL, NULL, NULL, NULL, NULL, NULL,   \
            0, 0                                                                       \
    }

/**
 * Create a resource over the program's functions: on the current device, if a device can
 * access its memory.
 *
 * @param ops      required; copied
 * @param payload  passed to every function; may be NULL. On success the resource owns it and
 *                 destroy() frees it; on failure the caller still does
 * @param out      receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    ops, alloc, dealloc or out is NULL, one of the
 *                                     synchronous functions is missing, a property or flag
 *                                     is unknown, or ops were not made with _INIT
 *         RMM_ERR_UNSUPPORTED         ops of a newer version ask for more
 *         RMM_ERR_NO_DEVICE           no usable GPU; the message says what to do
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 *         RMM_ERR_CUDA                the driver failed
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_custom_resource_create(
    const rmm_custom_resource_ops_t *ops, void *payload, rmm_resource_t **out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_CUSTOM_RESOURCE_H */
