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
 * Devices: a resource belongs to the device that was current at its creation and
 * makes its driver calls there, whatever device is current later. NULL and
 * RMM_STREAM_LEGACY name the legacy default stream of that device; streams of other
 * devices are allowed.
 *
 * Forks: in a forked child a resource from before the fork allocates and frees nothing.
 * If the parent has used a GPU, the child cannot create resources that need one, because
 * CUDA does not survive fork(): RMM_ERR_UNSUPPORTED. It can create resources of host
 * memory.
 *
 * Units: bytes. A request of 0 bytes succeeds, yields NULL, and counts as one allocation.
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

/** The alignment that `align` 0 asks for, and the least that any resource gives. */
#define RMM_ALIGN_DEFAULT ((size_t)256)
/** The largest alignment that may be asked for. */
#define RMM_ALIGN_MAX ((size_t)2 * 1024 * 1024)

/** rmm_resource_properties() */
#define RMM_DEVICE_ACCESSIBLE 0x1u
#define RMM_HOST_ACCESSIBLE 0x2u

/** What went through one resource. Fields are appended only. */
typedef struct rmm_stats {
    size_t struct_size;          /**< set to sizeof(rmm_stats_t) before the call */
    uint64_t current_bytes;      /**< handed out and not yet freed, as requested */
    uint64_t current_count;      /**< allocations behind current_bytes */
    uint64_t peak_bytes;         /**< high-water mark of current_bytes */
    uint64_t peak_count;         /**< high-water mark of current_count */
    uint64_t total_bytes;        /**< sum of all allocations ever */
    uint64_t total_count;        /**< number of all allocations ever */
    uint64_t reserved_bytes;     /**< held from upstream or the driver */
    uint64_t oom_count;          /**< requests refused for lack of memory */
    uint64_t invalid_free_count; /**< frees refused: wrong pointer, size, or twice */
} rmm_stats_t;

#define RMM_STATS_INIT                                                                 \
    {                                                                                  \
        sizeof(rmm_stats_t), 0, 0, 0, 0, 0, 0, 0, 0, 0                                 \
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
 *         RMM_ERR_OUT_OF_MEMORY       no memory left here or upstream
 *         RMM_ERR_BAD_ALLOC           failed for another reason: an alignment that
 *                                     this resource cannot give, a CUDA error
 *         RMM_ERR_OUT_OF_HOST_MEMORY  no host memory for the accounting
 *         RMM_ERR_NO_DEVICE           no usable GPU
 *         RMM_ERR_UNSUPPORTED         the resource was created before fork(), which its
 *                                     memory does not survive
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_resource_alloc(
    rmm_resource_t *mr, size_t bytes, size_t align, rmm_stream_t stream,
    void **ptr_out);

/**
 * Give memory back in stream order: work queued on @p stream before this call may
 * still use it. Never fails; a free that cannot be right (unknown pointer, other
 * size, twice) changes nothing, is logged and counted as invalid_free_count.
 *
 * @param ptr     from rmm_resource_alloc() of this resource; NULL is ignored, but with
 *                bytes 0 it ends an allocation of no bytes in the accounting
 * @param bytes   as at the allocation
 * @param align   as at the allocation
 * @param stream  a live stream; may differ from that of the allocation when the
 *                caller has ordered it behind every use
 */
RMM_API void rmm_resource_dealloc(
    rmm_resource_t *mr, void *ptr, size_t bytes, size_t align, rmm_stream_t stream);

/**
 * As rmm_resource_alloc() on the legacy default stream, then waits for that stream:
 * the memory may be used on any stream at once. Blocks.
 *
 * @return as rmm_resource_alloc(), and RMM_ERR_CUDA if the wait fails
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_resource_alloc_sync(rmm_resource_t *mr, size_t bytes, size_t align, void **ptr_out);

/**
 * Give back memory that no queued work uses any more (the caller has waited). Waits
 * for the legacy default stream. Blocks.
 */
RMM_API void
rmm_resource_dealloc_sync(rmm_resource_t *mr, void *ptr, size_t bytes, size_t align);

/** Take one more reference; returns @p mr. */
RMM_API rmm_resource_t *rmm_resource_retain(rmm_resource_t *mr);

/** Give one reference back; the last one destroys. NULL is ignored. */
RMM_API void rmm_resource_release(rmm_resource_t *mr);

/** True if memory of one may be freed through the other. */
RMM_API bool rmm_resource_is_equal(const rmm_resource_t *a, const rmm_resource_t *b);

/** The kind of resource, "pool"; static. */
RMM_API const char *rmm_resource_type(const rmm_resource_t *mr);

/** The name given at creation, else the type; lives as long as the resource. */
RMM_API const char *rmm_resource_name(const rmm_resource_t *mr);

/** What it takes its memory from: borrowed; NULL for a base resource. */
RMM_API rmm_resource_t *rmm_resource_upstream(const rmm_resource_t *mr);

/** The device that it belongs to; -1: none, as no device can reach its memory. */
RMM_API int rmm_resource_device(const rmm_resource_t *mr);

/**
 * Attach a pointer of the program's own, which the library never looks at. It replaces the
 * one before; NULL at first. The program keeps what it points to and frees it; a custom
 * resource (rmm/custom_resource.h) is told when it is gone. All who create a resource of
 * which there is one for each device (cuda, managed, pinned, ...) get the same, and so the
 * same pointer.
 */
RMM_API void rmm_resource_set_user_data(rmm_resource_t *mr, void *data);

/** The pointer last set, NULL if none was. */
RMM_API void *rmm_resource_get_user_data(const rmm_resource_t *mr);

/** RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE */
RMM_API uint32_t rmm_resource_properties(const rmm_resource_t *mr);

/**
 * Read the figures of this resource. Never blocks; each figure is exact, two of them
 * may be from moments a few nanoseconds apart. A resource over one of CUDA's memory
 * pools asks the driver for reserved_bytes.
 *
 * @param out  struct_size set by RMM_STATS_INIT; no more than that is written
 * @return RMM_OK, or RMM_ERR_INVALID_ARGUMENT
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_resource_get_stats(const rmm_resource_t *mr, rmm_stats_t *out);

/**
 * Give unused memory back upstream until no more than @p keep_bytes are held, as far
 * as whole chunks are free. May wait for the device.
 *
 * @return RMM_OK (also when nothing could be given back), or
 *         RMM_ERR_UNSUPPORTED  this kind of resource holds nothing back
 *         RMM_ERR_CUDA         waiting for the device failed
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_resource_trim(rmm_resource_t *mr, size_t keep_bytes);

#ifdef __cplusplus
}
#endif

#endif /* RMM_RESOURCE_H */
