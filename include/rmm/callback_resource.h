/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/callback_resource.h
 *
 * Memory from two functions of the program, which are told size and stream only. It is a
 * case of rmm/custom_resource.h, whose functions are also told the alignment.
 *
 * The functions may use resources of this library; what they ask of this one, or of one
 * that is built on it, comes to the functions again. What they take there counts in the
 * figures of those resources, not as a user's on the device (its user is counted here
 * already), so it must be given back by the dealloc function too. A block for which the
 * alloc function took memory there counts as the device's reserved bytes there only, any
 * other one here.
 *
 * Alignment: what the alloc function gives. It has to give RMM_ALIGN_DEFAULT at least;
 * a block that is aligned to less than asked for goes back, and the allocation is
 * RMM_ERR_BAD_ALLOC.
 *
 * Lifetime: as rmm/resource.h. Blocks that are out at the last release are passed to the
 * dealloc function, with RMM_STREAM_LEGACY.
 *
 * Devices: while a function runs, the device is current that the resource was made on
 * (unless only the host can reach the memory), and this thread's graph capture mode is
 * relaxed, so that a cudaMalloc in it does not ruin another thread's capture.
 *
 * Threads: as rmm/resource.h. The functions are called on the thread that asks, by
 * several at once, and without a lock of this resource.
 */
#ifndef RMM_CALLBACK_RESOURCE_H
#define RMM_CALLBACK_RESOURCE_H

#include <rmm/custom_resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Give memory that may be used in stream order on @p stream.
 *
 * @param bytes    not 0, but see RMM_CUSTOM_UNCHECKED
 * @param payload  as in the options
 * @param ptr_out  receives the address; looked at on RMM_OK only; then NULL is
 *                 RMM_ERR_BAD_ALLOC, but see RMM_CUSTOM_UNCHECKED
 * @return RMM_OK, or what the allocation is to answer: RMM_ERR_OUT_OF_MEMORY where
 *         there is no memory, RMM_ERR_BAD_ALLOC for another reason
 */
typedef rmm_status_t (*rmm_callback_alloc_fn)(
    size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out);

/** Take it back; work queued on @p stream may still use it. */
typedef void (*rmm_callback_dealloc_fn)(
    void *ptr, size_t bytes, rmm_stream_t stream, void *payload);

typedef struct rmm_callback_options {
    size_t struct_size;          /**< set by RMM_CALLBACK_OPTIONS_INIT; do not touch */
    rmm_callback_alloc_fn alloc; /**< required */
    rmm_callback_dealloc_fn dealloc; /**< required */
    void *payload;                   /**< passed to both; borrowed, may be NULL */
    const char *name;                /**< shown in /rmm; copied; default "callback" */
    /** RMM_*_ACCESSIBLE: who can reach the memory; default RMM_DEVICE_ACCESSIBLE.
     * RMM_HOST_ACCESSIBLE alone needs no GPU. */
    uint32_t properties;
    uint32_t flags; /**< RMM_CUSTOM_UNCHECKED, or 0 */
} rmm_callback_options_t;

#define RMM_CALLBACK_OPTIONS_INIT                                                      \
    {                                                                                  \
        sizeof(rmm_callback_options_t), NULL, NULL, NULL, NULL, 0, 0                   \
    }

/**
 * Create a resource over the program's functions, on the current device, if a device can
 * reach its memory.
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
