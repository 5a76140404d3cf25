/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/device_buffer.h
 *
 * A buffer of untyped device memory. The struct is in the caller's storage; its end frees
 * the memory in stream order.
 *
 *     rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
 *     if (rmm_device_buffer_init(&buffer, bytes, stream, NULL) == RMM_OK) { ... }
 *     rmm_device_buffer_fini(&buffer);
 *
 * Lifetime: RMM_DEVICE_BUFFER_INIT or a function with `init` in its name initialises a
 * buffer. rmm_device_buffer_fini() ends it and leaves it as RMM_DEVICE_BUFFER_INIT does. A
 * buffer holds a reference to its resource. Never copy the struct: move or copy the buffer.
 *
 * Failure: a call that fails changes no buffer and no memory. Only the destination of a
 * failed copy to or from the host is indeterminate.
 *
 * Stream order: every call that allocates, copies or frees does so in the order of one
 * stream and does not wait. Usually that is the stream given to the call. The end of a
 * buffer (fini, or another buffer moved or copied onto it) frees on the buffer's own stream:
 * the one last given to init, resize, reserve, shrink_to_fit or set_stream. That stream must
 * still exist then. resize(), reserve() and shrink_to_fit() may reallocate: they copy the
 * contents and free the old memory on the given stream. RMM_STREAM_PER_THREAD means the stream
 * of the thread that makes the call, also in the call that ends the buffer.
 *
 * Order between streams: docs/concepts/stream-order.md. A copy of a buffer runs behind what is
 * queued on the source's own stream, whatever device that is of, and what is queued there next,
 * the source's end for example, runs behind the copy. A call that gives a buffer another stream
 * orders that one behind the former stream (rmm_stream_take_over()), unless CUDA made the former
 * one: then the caller orders them. The caller also orders work on streams that are not the
 * buffer's own, the streams given to copy_to_host() and copy_from_host() among them, and all
 * that is captured into a graph.
 *
 * Host memory as a source: the stream reads it when it runs the copy, so it must stay valid
 * and unchanged until then. CUDA may read pageable memory before the call returns; do not
 * rely on that.
 *
 * Devices: a buffer belongs to the device of its resource. Plain host memory has no device;
 * its buffer belongs to the device that was current when the buffer got its resource. All
 * calls run on the buffer's device, whatever device is current, and default streams are
 * those of that device. Plain host memory cannot be freed in stream order: a call that frees
 * it waits for the stream. Without a GPU, a buffer of plain host memory copies at once.
 *
 * Threads: several threads may read one buffer. A thread that changes it needs exclusive
 * access.
 *
 * Units: bytes. A buffer of no bytes has no memory, and its data is NULL.
 *
 * Statuses of all functions: RMM_ERR_INVALID_ARGUMENT as named below, or a NULL buffer;
 * those of rmm_resource_alloc() of the resource; if the resource is the current device's,
 * those of rmm_get_current_device_resource(); RMM_ERR_CUDA: the driver refused the copy or
 * the device.
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
    rmm_stream_t stream; /* the end frees on it */
    rmm_resource_t *mr;  /* retained; NULL: none yet */
    int device;          /* -1: no GPU; meaningless while mr is NULL */
} rmm_device_buffer_t;

/**
 * An empty buffer without a resource. It may be ended, initialised, resized, reserved, and
 * be the destination of a move or a copy. A resize or reserve gives it the current device's
 * resource.
 */
#define RMM_DEVICE_BUFFER_INIT RMM_DEVICE_BUFFER_INIT_ALIGNED(0)

/** The same with an alignment: 0, or as rmm_device_buffer_init_aligned(). */
#define RMM_DEVICE_BUFFER_INIT_ALIGNED(align)                                          \
    {                                                                                  \
        NULL, 0, 0, (align), NULL, NULL, 0                                             \
    }

/**
 * Initialise a buffer of uninitialised memory.
 *
 * @param buffer  storage of the caller; what it holds is overwritten, not freed
 * @param stream  stream of first use
 * @param mr      resource, retained; NULL is the current device's resource
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_init(
    rmm_device_buffer_t *buffer, size_t bytes, rmm_stream_t stream, rmm_resource_t *mr);

/**
 * As rmm_device_buffer_init(), with an alignment, which every reallocation and copy keeps.
 *
 * @param align  power of two, else RMM_ERR_INVALID_ALIGNMENT (also for 0). An allocation of
 *               1 byte or more is RMM_ERR_INVALID_ALIGNMENT above RMM_ALIGN_MAX, and
 *               RMM_ERR_BAD_ALLOC if the resource does not support the alignment
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_init_aligned(
    rmm_device_buffer_t *buffer, size_t bytes, size_t align, rmm_stream_t stream,
    rmm_resource_t *mr);

/**
 * Initialise a buffer with a copy of host or device memory. The caller has ordered @p stream
 * behind what writes @p src.
 *
 * @param src  NULL only with bytes 0, else RMM_ERR_INVALID_ARGUMENT
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_init_copy_from(
    rmm_device_buffer_t *buffer, const void *src, size_t bytes, rmm_stream_t stream,
    rmm_resource_t *mr);

/** As rmm_device_buffer_init_copy_from(), with an alignment. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_init_copy_from_aligned(
    rmm_device_buffer_t *buffer, const void *src, size_t bytes, size_t align,
    rmm_stream_t stream, rmm_resource_t *mr);

/** End a buffer: free its memory on its own stream, release the resource. NULL is ignored. */
RMM_API void rmm_device_buffer_fini(rmm_device_buffer_t *buffer);

/**
 * Make @p dst a copy of @p src, with its size (not its capacity) and alignment. The old
 * memory of dst is freed on dst's own stream. If @p stream is not src's own stream, that one
 * must exist: the copy is ordered behind it, and before what is queued on it next.
 *
 * @param dst  an initialised buffer, at least with RMM_DEVICE_BUFFER_INIT
 * @param mr   the new resource of dst; NULL is the current device's. dst does not inherit
 *             that of src
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_copy(
    rmm_device_buffer_t *dst, const rmm_device_buffer_t *src, rmm_stream_t stream,
    rmm_resource_t *mr);

/**
 * Move memory, resource, stream, device and alignment. The old memory of dst is freed on
 * dst's own stream; there is no other CUDA call. src becomes an empty buffer without a
 * resource, of alignment 1. A move onto itself does nothing.
 *
 * @param dst  an initialised buffer, at least with RMM_DEVICE_BUFFER_INIT
 */
RMM_API void rmm_device_buffer_move(rmm_device_buffer_t *dst, rmm_device_buffer_t *src);

/**
 * Set the size. A size up to the capacity keeps the memory. A larger one allocates memory of
 * exactly that size and copies the contents. Added bytes are uninitialised.
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_resize(
    rmm_device_buffer_t *buffer, size_t bytes, rmm_stream_t stream);

/** Raise the capacity to at least @p capacity_bytes; the size stays. Never shrinks. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_reserve(
    rmm_device_buffer_t *buffer, size_t capacity_bytes, rmm_stream_t stream);

/** Reallocate if the capacity exceeds the size, to make them equal. */
RMM_API RMM_NODISCARD rmm_status_t
rmm_device_buffer_shrink_to_fit(rmm_device_buffer_t *buffer, rmm_stream_t stream);

/**
 * Copy @p bytes from @p offset on to host memory, in the order of @p stream, and wait for
 * that stream. rmm_memcpy_async() (rmm/memory.h) copies without waiting.
 *
 * @param host  NULL only with bytes 0
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  the buffer or host is NULL
 *         RMM_ERR_OUT_OF_RANGE      the range exceeds the size (the capacity does not
 *                                   count); nothing is copied
 *         RMM_ERR_CUDA              the copy or the wait failed: the contents of `host`
 *                                   are indeterminate
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_copy_to_host(
    const rmm_device_buffer_t *buffer, size_t offset, void *host, size_t bytes,
    rmm_stream_t stream);

/**
 * Copy @p bytes of host memory into the buffer, from @p offset on, and wait for @p stream.
 * Otherwise as rmm_device_buffer_copy_to_host().
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_copy_from_host(
    rmm_device_buffer_t *buffer, size_t offset, const void *host, size_t bytes,
    rmm_stream_t stream);

/**
 * Change the stream on which the buffer frees, and order it behind the one before, as resize()
 * does. The caller orders it after uses on other streams.
 */
RMM_API void
rmm_device_buffer_set_stream(rmm_device_buffer_t *buffer, rmm_stream_t stream);

/** Prefetch the whole size, as rmm_prefetch(), called on the buffer's device. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_buffer_prefetch(
    const rmm_device_buffer_t *buffer, int device, rmm_stream_t stream);

/** The address of the memory; NULL while the capacity is 0. */
RMM_API void *rmm_device_buffer_data(const rmm_device_buffer_t *buffer);
/** The size in bytes. */
RMM_API size_t rmm_device_buffer_size(const rmm_device_buffer_t *buffer);
/** The bytes that the memory has room for. */
RMM_API size_t rmm_device_buffer_capacity(const rmm_device_buffer_t *buffer);
/** True if the size is 0. */
RMM_API bool rmm_device_buffer_is_empty(const rmm_device_buffer_t *buffer);
/** The alignment, which every reallocation keeps. */
RMM_API size_t rmm_device_buffer_alignment(const rmm_device_buffer_t *buffer);
/** The stream on which the buffer frees. */
RMM_API rmm_stream_t rmm_device_buffer_stream(const rmm_device_buffer_t *buffer);
/** The resource of the buffer, borrowed; NULL if it has none yet. */
RMM_API rmm_resource_t *rmm_device_buffer_resource(const rmm_device_buffer_t *buffer);
/** The device of the buffer; -1 if it has no resource, or is of host memory without a GPU. */
RMM_API int rmm_device_buffer_device(const rmm_device_buffer_t *buffer);

#ifdef __cplusplus
}
#endif

#endif /* RMM_DEVICE_BUFFER_H */
