/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/device_buffer.h
 *
 * Untyped memory of a resource, held by a value in the caller's storage, that is freed in
 * stream order at its end.
 *
 *     rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
 *     if (rmm_device_buffer_init(&buffer, bytes, stream, NULL) == RMM_OK) { ... }
 *     rmm_device_buffer_fini(&buffer);
 *
 * Lifetime: RMM_DEVICE_BUFFER_INIT or a function with `init` in its name begins a buffer,
 * rmm_device_buffer_fini() ends it and leaves what RMM_DEVICE_BUFFER_INIT makes. A buffer
 * keeps a reference on its resource. Never copy the struct: move or copy the buffer.
 *
 * Failure: the call has changed nothing, no buffer and no memory; a buffer that init
 * could not begin is as it was.
 *
 * Stream order: every call that allocates, copies or frees does so in the order of one
 * stream and waits for nothing. That stream is the one given to the call; an end (fini,
 * or being moved or copied onto) frees on the buffer's own stream, which is the one last
 * given to init, resize, reserve, shrink_to_fit or set_stream, and which is still alive
 * then. A call with another stream than before does not order it behind the old one: where
 * resize(), reserve() and shrink_to_fit() reallocate, they copy the old contents and free
 * the old memory on the stream given, so the caller orders that stream behind all work on
 * the contents first (an event, or a synchronise). RMM_STREAM_PER_THREAD is in each call
 * that of the calling thread, also in the one that ends the buffer.
 *
 * Host memory as a source: read when the stream gets there, so it stays valid and
 * unchanged until then. From pageable memory CUDA may read it before the call returns;
 * nothing may rely on that.
 *
 * Devices: a buffer belongs to the device of its resource; plain host memory has none, so
 * there to the device current when the buffer got its resource. All its calls run on it,
 * whatever device is current, and the default streams are those of that device. Plain host
 * memory cannot be freed in stream order: what frees it waits for the stream. Without a
 * GPU a buffer of plain host memory works all the same, and copies at once.
 *
 * Threads: several threads may read one buffer; a change needs it alone.
 *
 * Units: bytes. A buffer of no bytes has no memory, and its data is NULL.
 *
 * What every status here means: RMM_ERR_INVALID_ARGUMENT as named below, or a NULL
 * buffer; RMM_ERR_OUT_OF_MEMORY, RMM_ERR_BAD_ALLOC, RMM_ERR_OUT_OF_HOST_MEMORY,
 * RMM_ERR_UNSUPPORTED as rmm_resource_alloc() of the resource; RMM_ERR_NO_DEVICE no
 * usable GPU; RMM_ERR_CUDA the driver refused the copy or the device.
 */
#ifndef RMM_DEVICE_BUFFER_H
#define RMM_DEVICE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

#include <rmm/export.h>
#include <rmm/resource.h>
#include <rmm/status.h>
#include <rmm/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** All fields are private: use the functions. */
typedef struct rmm_device_buffer {
    void *data;
    size_t size_bytes;
    size_t capacity_bytes;
    size_t alignment;    /* 0: RMM_ALIGN_DEFAULT */
    rmm_stream_t stream; /* where the end frees */
    rmm_resource_t *mr;  /* retained; NULL: none yet */
    int device;          /* -1: no GPU; of no meaning while mr is NULL */
} rmm_device_buffer_t;

/**
 * An empty buffer without a resource. It may be ended, moved or copied onto, begun with
 * init, and resized or reserved: then it takes the current device's resource.
 */
#define RMM_DEVICE_BUFFER_INIT                                                         \
    {                                                                                  \
        NULL, 0, 0, 0, NULL, NULL, 0                                                   \
    }

/**
 * Begin a buffer of uninitialised memory.
 *
 * @param buffer  storage of the caller; what it holds is overwritten, not freed
 * @param stream  stream of first use
 * @param mr      resource, retained; NULL is the current device's resource
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_init(
    rmm_device_buffer_t *buffer, size_t bytes, rmm_stream_t stream, rmm_resource_t *mr);

/**
 * The same with an alignment, kept through every reallocation and copy.
 *
 * @param align  power of two, else RMM_ERR_INVALID_ARGUMENT (also for 0). More than the
 *               resource can give is RMM_ERR_BAD_ALLOC, but not while there are no bytes
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_init_aligned(
    rmm_device_buffer_t *buffer, size_t bytes, size_t align, rmm_stream_t stream,
    rmm_resource_t *mr);

/**
 * Begin a buffer with a copy of host or device memory.
 *
 * @param src  NULL only with bytes 0, else RMM_ERR_INVALID_ARGUMENT
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_init_copy_from(
    rmm_device_buffer_t *buffer, const void *src, size_t bytes, rmm_stream_t stream,
    rmm_resource_t *mr);

/** rmm_device_buffer_init_copy_from() with an alignment. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_init_copy_from_aligned(
    rmm_device_buffer_t *buffer, const void *src, size_t bytes, size_t align,
    rmm_stream_t stream, rmm_resource_t *mr);

/** End a buffer: frees on its own stream, releases the resource. NULL is ignored. */
RMM_API void rmm_device_buffer_fini(rmm_device_buffer_t *buffer);

/**
 * Make @p dst a copy of the size (not the capacity) and alignment of @p src. What dst
 * held is freed on its own stream.
 *
 * @param dst  a buffer that has begun, RMM_DEVICE_BUFFER_INIT at least
 * @param mr   dst's resource from here on; NULL is the current device's: that of src is
 *             not inherited
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_copy(
    rmm_device_buffer_t *dst, const rmm_device_buffer_t *src, rmm_stream_t stream,
    rmm_resource_t *mr);

/**
 * Move memory, resource, stream, device and alignment; no CUDA call but the free. What
 * dst held is freed on its own stream. src becomes an empty buffer without a resource,
 * of alignment 1. Onto itself: nothing happens.
 *
 * @param dst  a buffer that has begun, RMM_DEVICE_BUFFER_INIT at least
 */
RMM_API void rmm_device_buffer_move(rmm_device_buffer_t *dst, rmm_device_buffer_t *src);

/**
 * Set the size. Up to the capacity the memory stays; beyond it new memory of exactly that
 * size takes the contents over. Added bytes are uninitialised.
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_resize(
    rmm_device_buffer_t *buffer, size_t bytes, rmm_stream_t stream);

/** Make the capacity at least that; the size stays. Never gives memory back. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_reserve(
    rmm_device_buffer_t *buffer, size_t capacity_bytes, rmm_stream_t stream);

/** Reallocate so that the capacity is the size, unless it is. */
RMM_API RMM_NODISCARD rmm_status_t
rmm_device_buffer_shrink_to_fit(rmm_device_buffer_t *buffer, rmm_stream_t stream);

/**
 * Read @p bytes of the buffer, from @p offset on, into host memory, in the order of
 * @p stream, and wait for that stream: `host` holds them when the call returns.
 * rmm_memcpy_async() (rmm/memory.h) does not wait.
 *
 * @param host  NULL only with bytes 0
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  the buffer or host is NULL
 *         RMM_ERR_OUT_OF_RANGE      not all of it is within the size (the capacity does not
 *                                   count); nothing is copied
 *         RMM_ERR_CUDA              the copy or the wait failed: what `host` holds is
 *                                   indeterminate
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_copy_to_host(
    const rmm_device_buffer_t *buffer, size_t offset, void *host, size_t bytes,
    rmm_stream_t stream);

/**
 * Write @p bytes of host memory into the buffer, from @p offset on, as
 * rmm_device_buffer_copy_to_host() in all else: `host` may change when the call returns.
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_copy_from_host(
    rmm_device_buffer_t *buffer, size_t offset, const void *host, size_t bytes,
    rmm_stream_t stream);

/** From here on free on another stream, which the caller orders behind every use. */
RMM_API void
rmm_device_buffer_set_stream(rmm_device_buffer_t *buffer, rmm_stream_t stream);

/** rmm_prefetch() of the size, on the buffer's device. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_prefetch(
    const rmm_device_buffer_t *buffer, int device, rmm_stream_t stream);

/** NULL while the capacity is 0. */
RMM_API void *rmm_device_buffer_data(const rmm_device_buffer_t *buffer);
RMM_API size_t rmm_device_buffer_size(const rmm_device_buffer_t *buffer);
RMM_API size_t rmm_device_buffer_capacity(const rmm_device_buffer_t *buffer);
/** True if the size is 0. */
RMM_API bool rmm_device_buffer_is_empty(const rmm_device_buffer_t *buffer);
RMM_API size_t rmm_device_buffer_alignment(const rmm_device_buffer_t *buffer);
RMM_API rmm_stream_t rmm_device_buffer_stream(const rmm_device_buffer_t *buffer);
/** Borrowed; NULL for a buffer that has none yet. */
RMM_API rmm_resource_t *rmm_device_buffer_resource(const rmm_device_buffer_t *buffer);
/** -1 for a buffer without a resource, or of host memory without a GPU. */
RMM_API int rmm_device_buffer_device(const rmm_device_buffer_t *buffer);

#ifdef __cplusplus
}
#endif

#endif /* RMM_DEVICE_BUFFER_H */
