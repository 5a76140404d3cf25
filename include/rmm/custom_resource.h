/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/custom_resource.h
 *
 * A resource over functions of the program: the way to bring memory of your own. It works
 * wherever a resource does: directly, below pools, arenas and adaptors, as a default. Its
 * blocks are remembered, so its figures are exact and a wrong free never reaches the
 * program's functions.
 *
 * What the functions may do: use the library, this resource and those built on it included
 * (what they ask of them comes to the functions again), but not create or destroy by their
 * own call the resource they run for. Nothing is held while one runs. What they take from
 * resources of this library counts in the figures of those, not as a user's on the device
 * (its user is counted here already), so the dealloc functions must give it back too. A
 * block for which the alloc function took memory there counts as the device's reserved
 * bytes there only, any other one here.
 *
 * Alignment: the alloc functions must align to what they are asked for, RMM_ALIGN_DEFAULT
 * at least. A block that is aligned to less goes back, and the allocation is
 * RMM_ERR_BAD_ALLOC; so is RMM_OK with NULL. RMM_CUSTOM_UNCHECKED changes both.
 *
 * Lifetime: as rmm/resource.h. At the last release the blocks that are out are passed to
 * the dealloc function, with RMM_STREAM_LEGACY; then destroy() ends the payload. A forked
 * child that releases it calls no function.
 *
 * Devices: while a function runs (but is_equal()), the device is current that the resource
 * was made on, unless only the host can reach the memory, and this thread's graph capture
 * mode is relaxed, so that a cudaMalloc in it does not ruin another thread's capture.
 *
 * Threads: as rmm/resource.h. The functions are called on the thread that asks, by
 * several at once.
 */
#ifndef RMM_CUSTOM_RESOURCE_H
#define RMM_CUSTOM_RESOURCE_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Give memory that may be used in stream order on @p stream.
 *
 * @param bytes    not 0, but see RMM_CUSTOM_UNCHECKED
 * @param align    a power of two from RMM_ALIGN_DEFAULT to RMM_ALIGN_MAX
 * @param ptr_out  receives the address; looked at on RMM_OK only
 * @return RMM_OK, or what the allocation is to answer: RMM_ERR_OUT_OF_MEMORY where
 *         there is no memory, RMM_ERR_BAD_ALLOC for another reason
 */
typedef rmm_status_t (*rmm_custom_alloc_fn)(
    size_t bytes, size_t align, rmm_stream_t stream, void *payload, void **ptr_out);

/** Take it back; work queued on @p stream may still use it. Size and alignment are those of
 * the allocation. */
typedef void (*rmm_custom_dealloc_fn)(
    void *ptr, size_t bytes, size_t align, rmm_stream_t stream, void *payload);

/** As rmm_custom_alloc_fn, but the memory may be used on any stream at once. */
typedef rmm_status_t (*rmm_custom_alloc_sync_fn)(
    size_t bytes, size_t align, void *payload, void **ptr_out);

/** As rmm_custom_dealloc_fn, but no queued work uses the memory any more. */
typedef void (*rmm_custom_dealloc_sync_fn)(
    void *ptr, size_t bytes, size_t align, void *payload);

/** May memory of the one be freed through the other? Both have the same is_equal(). */
typedef bool (*rmm_custom_is_equal_fn)(const void *payload, const void *other_payload);

/** The resource is gone: free the payload. Runs once, after every block was taken back. */
typedef void (*rmm_custom_destroy_fn)(void *payload);

/**
 * rmm_custom_resource_ops_t.flags: hand on what the functions answer as RMM does, unchecked:
 * RMM_OK with NULL, and addresses aligned to less than asked for. Requests of no bytes come
 * to the functions too and must yield NULL. For mocks in tests. This is about what a user
 * asks for, also through an adaptor; what the library takes for itself (the chunk of a pool,
 * the larger block of the aligned adaptor) and what is asked for in one of the functions is
 * checked all the same. tracking and binning refuse NULL with RMM_ERR_BAD_ALLOC.
 */
#define RMM_CUSTOM_UNCHECKED 0x1u

/** The functions of a resource, and what is said about it. Copied; appended only. */
typedef struct rmm_custom_resource_ops {
    size_t struct_size;            /**< set by RMM_CUSTOM_RESOURCE_OPS_INIT */
    rmm_custom_alloc_fn alloc;     /**< required */
    rmm_custom_dealloc_fn dealloc; /**< required */
    /** Both or neither. They serve rmm_resource_alloc_sync() and
     * rmm_resource_dealloc_sync(), also where an adaptor passes them on. A block may be
     * allocated by one kind and freed by the other. NULL: alloc() on the legacy default
     * stream and a wait for it, which is what a pool's chunk gets as well. */
    rmm_custom_alloc_sync_fn alloc_sync;
    rmm_custom_dealloc_sync_fn dealloc_sync;
    rmm_custom_is_equal_fn is_equal; /**< NULL: a resource equals only itself */
    rmm_custom_destroy_fn destroy;   /**< NULL: the payload needs nothing */
    const char *name;                /**< shown in /rmm; copied; default "custom" */
    /** RMM_*_ACCESSIBLE: who can reach the memory; 0: RMM_DEVICE_ACCESSIBLE.
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
 * Create a resource over the program's functions, on the current device, if a device can
 * reach its memory.
 *
 * @param ops      required; copied
 * @param payload  passed to every function; may be NULL. The caller's until this succeeds,
 *                 then destroy() ends it
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
