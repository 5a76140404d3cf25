/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/resource.h
 *
 * A resource allocates memory in stream order. A block may be used on the given stream
 * at once. On any other stream the caller must order its use behind the allocation (by
 * an event or a synchronise). A block may be freed while work that uses it is still
 * queued on the stream named in the free.
 *
 * Lifetime: reference-counted. rmm_*_create() gives one reference; a resource retains
 * its upstream, so the upstream may be released right after. A last release with live
 * blocks frees the memory that the resource holds and logs one error.
 *
 * Threads: any function here, any thread, same resource.
 *
 * Cancellation: no function of the library is a cancellation point, so that a thread which is
 * cancelled leaves no lock behind. pthread_cancel() takes effect behind the call.
 *
 * Functions of the program, which the library calls (of rmm/custom_resource.h and
 * rmm/callback_resource.h, a failure callback, a log function, a sink of rows), end by return:
 * they do not call pthread_exit() or longjmp(), and an exception of C++ does not leave them.
 * rmm.hpp sees to that, and hands the exception to the caller. If one does leave such a function,
 * no lock stays held, but the block of that call, and what counts it, may be lost. The thread
 * cannot be cancelled while such a function runs.
 *
 * Devices: a resource belongs to the device that was current at its creation and
 * makes its driver calls there, whatever device is current later. NULL and
 * RMM_STREAM_LEGACY name the legacy default stream of that device, and RMM_STREAM_PER_THREAD
 * the calling thread's stream of the current device. Streams of other devices are allowed: a
 * free waits for their work as for that of the resource's own.
 *
 * Forks: in a forked child a resource from before the fork allocates and frees nothing.
 * If the parent has used a GPU, the child cannot create resources that need one, because
 * CUDA does not survive fork(): RMM_ERR_UNSUPPORTED. It can create resources of host
 * memory.
 *
 * Units: bytes. A request of 0 bytes succeeds, yields NULL, and counts as one allocation.
 *
 * NULL for the resource: functions that return a status refuse it with
 * RMM_ERR_INVALID_ARGUMENT; retain, release, is_equal and the two that free memory ignore
 * it. The others (type, name, upstream, ...) need a resource.
 */
#ifndef RMM_RESOURCE_H
#define RMM_RESOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/export.h>
#include <rmm/status.h>
#include <rmm/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rmm_resource rmm_resource_t;

/** The alignment that `align` 0 means. Every resource aligns its blocks to at least this. */
#define RMM_ALIGN_DEFAULT RMM_CAST(size_t, 256)
/** The largest alignment that a request may have. */
#define RMM_ALIGN_MAX RMM_CAST(size_t, 2 * 1024 * 1024)

/** Bits of rmm_resource_properties(): who can access the memory. */
#define RMM_DEVICE_ACCESSIBLE 0x1u
#define RMM_HOST_ACCESSIBLE 0x2u

/** The statistics of one resource. New fields are only ever appended. */
typedef struct rmm_stats {
    size_t struct_size;      /**< set to sizeof(rmm_stats_t) before the call */
    uint64_t current_bytes;  /**< live bytes, as requested */
    uint64_t current_count;  /**< live allocations */
    uint64_t peak_bytes;     /**< high-water mark of current_bytes */
    uint64_t peak_count;     /**< high-water mark of current_count */
    uint64_t total_bytes;    /**< bytes of all allocations since the creation */
    uint64_t total_count;    /**< number of all allocations since the creation */
    uint64_t reserved_bytes; /**< held from upstream or the driver */
    uint64_t oom_count;      /**< requests refused for lack of memory */
    uint64_t
        invalid_free_count; /**< refused frees: wrong pointer, wrong size, double */
    uint64_t free_bytes;    /**< held and in no live block: a pool's, an arena's */
    uint64_t
        largest_free_bytes; /**< largest block of these that needs no growth or merge */
    uint64_t maximum_bytes; /**< most that reserved_bytes may become; 0: no maximum */
    uint64_t asleep_bytes;  /**< what a sleeping pool will take to wake */
} rmm_stats_t;

#define RMM_STATS_INIT                                                                 \
    {                                                                                  \
        sizeof(rmm_stats_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                     \
    }

/**
 * Allocate memory, usable in stream order on @p stream.
 *
 * @param mr       resource
 * @param bytes    size in bytes; 0 succeeds and yields NULL
 * @param align    power of two, at most RMM_ALIGN_MAX; 0 means RMM_ALIGN_DEFAULT
 * @param stream   stream of first use; NULL is the legacy default stream
 * @param ptr_out  receives the address on success; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ALIGNMENT   align is not a power of two or too large
 *         RMM_ERR_INVALID_ARGUMENT    mr or ptr_out is NULL
 *         RMM_ERR_OUT_OF_MEMORY       this resource or its upstream has no memory left,
 *                                     or a limit_bytes of /rmm is reached
 *         RMM_ERR_BAD_ALLOC           another failure: this resource does not support
 *                                     the alignment, or a CUDA call failed
 *         RMM_ERR_OUT_OF_HOST_MEMORY  no host memory for the accounting
 *         RMM_ERR_NO_DEVICE           no usable GPU
 *         RMM_ERR_UNSUPPORTED         the resource was created before fork(), in the
 *                                     parent; or the stream captures, and CUDA allocates
 *                                     no such memory in a graph (async_pinned)
 *         or the status that the program's function returned, for a custom or callback
 *         resource
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_resource_alloc(
    rmm_resource_t *mr, size_t bytes, size_t align, rmm_stream_t stream,
    void **ptr_out);

/**
 * Free memory in stream order: work queued on @p stream before this call may still use
 * it. Never fails. An invalid free (unknown pointer, wrong size, double free) changes
 * nothing; it is logged, and counted in invalid_free_count.
 *
 * @param ptr     from rmm_resource_alloc() of this resource; NULL is ignored, but NULL
 *                with bytes 0 counts as the free of a 0-byte allocation
 * @param bytes   as at the allocation
 * @param align   as at the allocation
 * @param stream  a live stream; may differ from that of the allocation if the caller has
 *                ordered it after every use of the memory
 */
RMM_API void rmm_resource_dealloc(
    rmm_resource_t *mr, void *ptr, size_t bytes, size_t align, rmm_stream_t stream);

/**
 * Allocate on the legacy default stream and wait for that stream: the memory may be used
 * on any stream at once. Blocks.
 *
 * @return as rmm_resource_alloc(), and RMM_ERR_CUDA if the wait fails
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_resource_alloc_sync(rmm_resource_t *mr, size_t bytes, size_t align, void **ptr_out);

/**
 * Free memory that no queued work uses: the caller has waited for that work. Waits for
 * the legacy default stream. Blocks.
 */
RMM_API void
rmm_resource_dealloc_sync(rmm_resource_t *mr, void *ptr, size_t bytes, size_t align);

/**
 * Add a reference.
 *
 * @return @p mr
 */
RMM_API rmm_resource_t *rmm_resource_retain(rmm_resource_t *mr);

/** Drop a reference; the last one destroys the resource. NULL is ignored. */
RMM_API void rmm_resource_release(rmm_resource_t *mr);

/** True if each of the two may free memory that the other one allocated. */
RMM_API bool rmm_resource_is_equal(const rmm_resource_t *a, const rmm_resource_t *b);

/**
 * The type of the resource, for example "pool"; static. In a forked child it is "forked" for
 * a resource from before the fork.
 */
RMM_API const char *rmm_resource_type(const rmm_resource_t *mr);

/** The name given at creation; without one, the type. Lives as long as the resource. */
RMM_API const char *rmm_resource_name(const rmm_resource_t *mr);

/** The resource that this one allocates from, borrowed; NULL for a base resource. */
RMM_API rmm_resource_t *rmm_resource_upstream(const rmm_resource_t *mr);

/** The device of the resource; -1 if no device can access its memory. */
RMM_API int rmm_resource_device(const rmm_resource_t *mr);

/**
 * Attach a pointer of the program's own. It replaces the previous one; at first it is NULL.
 * The library neither dereferences it nor frees what it points to. A custom resource
 * (rmm/custom_resource.h) can free it in its destroy function. Resources that exist once
 * for each device (cuda, managed, pinned, ...) are shared by all their creators, and so is
 * this pointer.
 */
RMM_API void rmm_resource_set_user_data(rmm_resource_t *mr, void *data);

/** The pointer that was set last; NULL if none was set. */
RMM_API void *rmm_resource_get_user_data(const rmm_resource_t *mr);

/** The sides that can access the memory: RMM_DEVICE_ACCESSIBLE, RMM_HOST_ACCESSIBLE or both. */
RMM_API uint32_t rmm_resource_properties(const rmm_resource_t *mr);

/**
 * Read the statistics of this resource. Never blocks. Each figure is exact, but two figures
 * may be from moments a few nanoseconds apart. A resource over a CUDA memory pool queries the
 * driver for reserved_bytes.
 *
 * The figures are those of the same names in /rmm (docs/statistics.md). What a pool can hand out
 * yet is free_bytes and, where it has a maximum, maximum_bytes - reserved_bytes; without one, what
 * its upstream has left. An adaptor's free_bytes are 0: rmm_resource_upstream() leads to the pool.
 *
 * @param out  initialised with RMM_STATS_INIT; at most struct_size bytes are written
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  mr or out is NULL, or struct_size is not set
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_resource_get_stats(const rmm_resource_t *mr, rmm_stats_t *out);

/**
 * Return unused memory to upstream until at most @p keep_bytes are held. Only chunks that
 * are wholly free can be returned. May wait for the device.
 *
 * @return RMM_OK (also if nothing could be returned), or
 *         RMM_ERR_INVALID_ARGUMENT  mr is NULL
 *         RMM_ERR_UNSUPPORTED       this type of resource keeps no unused memory (cuda,
 *                                   host, ...) or returns none before its end (arena); or
 *                                   it was created before fork(), in the parent
 *         RMM_ERR_CUDA              waiting for the device failed
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_resource_trim(rmm_resource_t *mr, size_t keep_bytes);

#ifdef __cplusplus
}
#endif

#endif /* RMM_RESOURCE_H */
