/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/callback_resource.h
 *
 * Memory from two functions of the program, which get the size and the stream. It is a
 * simpler form of rmm/custom_resource.h, whose functions get the alignment too.
 *
 * The functions may use resources of this library. If they allocate from this resource, or
 * from one built on it, they are called again. Memory that the alloc function allocates from
 * a resource of this library counts in the statistics of that resource, but not as users'
 * memory of the device, because the block counts there already. So the dealloc function must
 * free it. Such a block counts in the device's reserved bytes at that resource only; any
 * other block counts there at this one.
 *
 * Alignment: the alloc function must align to RMM_ALIGN_DEFAULT at least. If a block is
 * aligned to less than requested, the resource frees it and the allocation fails with
 * RMM_ERR_BAD_ALLOC.
 *
 * Lifetime: as rmm/resource.h. The last release passes all live blocks to the dealloc
 * function, with RMM_STREAM_LEGACY.
 *
 * Streams: a pool or an arena over this resource passes a stream of its own, which it destroys
 * at its end.
 *
 * Devices: while a function runs, the resource's device is current, unless only the host
 * can access the memory. The graph capture mode of the thread is relaxed, so a cudaMalloc in
 * the function does not invalidate another thread's capture. RMM_STREAM_PER_THREAD is as in
 * rmm/custom_resource.h.
 *
 * Threads: as rmm/resource.h. The functions run on the thread that calls the resource, on
 * several threads at once, without a lock of this resource. They end by return
 * (rmm/resource.h, functions of the program).
 */
#ifndef RMM_CALLBACK_RESOURCE_H
#define RMM_CALLBACK_RESOURCE_H

#include <rmm/custom_resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Allocate memory, usable in stream order on @p stream.
 *
 * @param bytes    not 0, but see RMM_CUSTOM_UNCHECKED
 * @param payload  as in the options
 * @param ptr_out  receives the address; read on RMM_OK only. NULL makes the allocation
 *                 fail with RMM_ERR_BAD_ALLOC, but see RMM_CUSTOM_UNCHECKED
 * @return RMM_OK, or the status that the allocation returns: RMM_ERR_OUT_OF_MEMORY if there
 *         is no memory, RMM_ERR_BAD_ALLOC for another failure
 */
typedef rmm_status_t (*rmm_callback_alloc_fn)(
    size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out);

/** Free a block. Work queued on @p stream, of whatever device, may still use it. */
typedef void (*rmm_callback_dealloc_fn)(
    void *ptr, size_t bytes, rmm_stream_t stream, void *payload);

typedef struct rmm_callback_options {
    size_t struct_size;          /**< set by RMM_CALLBACK_OPTIONS_INIT; do not touch */
    rmm_callback_alloc_fn alloc; /**< required */
    rmm_callback_dealloc_fn dealloc; /**< required */
    void *payload;                   /**< passed to both; borrowed, may be NULL */
    const char *name;                /**< shown in /rmm; copied; default "callback" */
    /** RMM_*_ACCESSIBLE: which side can access the memory; default RMM_DEVICE_ACCESSIBLE.
     * RMM_HOST_ACCESSIBLE alone needs no GPU. */
    uint32_t properties;
    uint32_t flags; /**< RMM_CUSTOM_UNCHECKED, or 0 */
} rmm_callback_options_t;

#define RMM_CALLBACK_OPTIONS_INIT                                                      \
    {                                                                                  \
        sizeof(rmm_callback_options_t), NULL, NULL, NULL, NULL, 0, 0                   \
    }

/**
 * Create a resource over the program's functions: on the current device, if a device can
 * access its memory.
 *
 * @param options  required
 * @param out      receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    options, a function or out is NULL, a property
 *                                     or flag is unknown, or options were not made with _INIT
 *         RMM_ERR_UNSUPPORTED         options of a newer version ask for more
 *         RMM_ERR_NO_DEVICE           no usable GPU; the message says what to do
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 *         RMM_ERR_CUDA                the driver failed
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_callback_resource_create(
    const rmm_callback_options_t *options, rmm_resource_t **out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_CALLBACK_RESOURCE_H */
