/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/stream.h
 *
 * CUDA streams without a CUDA header: rmm_stream_t is cudaStream_t itself, so a
 * stream made by the CUDA runtime can be passed as it is, and one made here can be
 * given to CUDA. On the simulated GPU (rmm/sim.h) handles name simulated streams.
 *
 * Lifetime: destroy a stream of rmm_stream_create() only with rmm_stream_destroy(). The
 * library identifies such a stream by its handle, which saves half of the driver calls of
 * its allocations. After cudaStreamDestroy() or cudaDeviceReset() another stream may get
 * the same handle; the library would mistake it for the old one and allocate memory again
 * too early. A stream may be destroyed after a free on it: no resource keeps a handle for
 * later use, but for a free that rmm/thread_safe_adaptor.h delays.
 *
 * Default streams: a device has a legacy default stream, and one for each thread. Their handles
 * are the same on every device. Which device is meant, the function that takes the handle says;
 * docs/concepts/stream-order.md lists it. Here it is the current device unless a parameter names
 * another.
 *
 * Threads: any function, any thread.
 *
 * Statuses: besides those that a function names, those that rmm/status.h lists for calls of
 * the driver.
 */
#ifndef RMM_STREAM_H
#define RMM_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include <rmm/export.h>
#include <rmm/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *rmm_stream_t;

#ifdef __cplusplus
#define RMM_STREAM_OF_NUMBER(number) reinterpret_cast<rmm_stream_t>(number)
#else
#define RMM_STREAM_OF_NUMBER(number) ((rmm_stream_t)(number))
#endif
/** The legacy default stream; NULL means the same. */
#define RMM_STREAM_LEGACY RMM_STREAM_OF_NUMBER(0x1)
/** The calling thread's own default stream. */
#define RMM_STREAM_PER_THREAD RMM_STREAM_OF_NUMBER(0x2)

/**
 * The default stream of the including file. Use this instead of NULL. In a file compiled
 * with CUDA_API_PER_THREAD_DEFAULT_STREAM, or with HIP_API_PER_THREAD_DEFAULT_STREAM, a kernel
 * launched on "stream 0" runs on the per-thread stream, but NULL always means the legacy
 * stream to this library. The library would order the memory behind a stream on which the
 * kernel does not run, and allocate it again while the kernel still writes to it.
 */
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) ||                                     \
    defined(HIP_API_PER_THREAD_DEFAULT_STREAM)
#define RMM_STREAM_DEFAULT RMM_STREAM_PER_THREAD
#else
#define RMM_STREAM_DEFAULT RMM_STREAM_LEGACY
#endif

/** rmm_stream_create: no implicit order with the legacy default stream. */
#define RMM_STREAM_NON_BLOCKING 0x1u
/**
 * rmm_stream_create: the program promises that the stream never captures: that it neither
 * begins a capture nor waits for an event that was recorded in one. Then an allocation or
 * free on it does not ask the driver whether the stream captures. That query is most of the
 * additional cost of such a stream over the legacy default stream. If a program breaks the
 * promise, its graph contains blocks that others use as well; a debug build of this library
 * aborts instead.
 */
#define RMM_STREAM_NEVER_CAPTURES 0x2u

/** True for NULL and RMM_STREAM_LEGACY. */
static inline bool rmm_stream_is_default(rmm_stream_t stream)
{
    return stream == RMM_STREAM_OF_NUMBER(0) || stream == RMM_STREAM_LEGACY;
}

/** True for RMM_STREAM_PER_THREAD. */
static inline bool rmm_stream_is_per_thread_default(rmm_stream_t stream)
{
    return stream == RMM_STREAM_PER_THREAD;
}

/**
 * Create a stream on the current device. Calls the driver. Allocations on it are
 * cheaper than on a stream that CUDA made.
 *
 * @param flags       0, or RMM_STREAM_NON_BLOCKING, RMM_STREAM_NEVER_CAPTURES or both
 * @param stream_out  receives the stream; destroy it with rmm_stream_destroy()
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  unknown flag, or stream_out is NULL
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_stream_create(uint32_t flags, rmm_stream_t *stream_out);

/**
 * Destroy a stream of rmm_stream_create(). Returns at once; queued work still finishes.
 * Default streams are ignored.
 *
 * @return RMM_OK, or RMM_ERR_CUDA if this is no stream
 */
RMM_API rmm_status_t rmm_stream_destroy(rmm_stream_t stream);

/**
 * Wait on the host until all work queued on the stream is done. Blocks.
 *
 * @return RMM_OK, or RMM_ERR_CUDA, also for an error of earlier work on the device
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_stream_synchronize(rmm_stream_t stream);

/**
 * Order one stream behind another: what is queued on @p later from now on runs after all that is
 * queued on @p earlier. The streams may be of two devices. An event does it, and the host does
 * not wait, except where an event cannot: for a stream of another device than named here, and
 * for a device whose stream rmm_stream_destroy() has ended.
 *
 * Makes no order, and returns RMM_OK, where one stream is being captured into a graph and the
 * other is not, and where a capture forbids work on the legacy default stream: an event between
 * them would end that capture as a failed one.
 *
 * @param earlier_device  of @p earlier, which it says only of a default stream; -1: no order
 * @param earlier         a stream that exists, or one of rmm_stream_create() that has ended
 * @param later_device    as earlier_device, of @p later
 * @param later           the stream that waits
 * @return RMM_OK, or RMM_ERR_CUDA: the streams are not ordered
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_stream_order(
    int earlier_device, rmm_stream_t earlier, int later_device, rmm_stream_t later);

/**
 * Order @p next behind @p former, as rmm_stream_order(), for an object that goes over from one
 * to the other and whose former stream may have ended. It is ordered if the library knows that
 * the stream exists: it is a default stream, or rmm_stream_create() made it. Nothing is done for
 * one that CUDA made: the caller orders it, as a call with a destroyed stream is fatal.
 *
 * @param device  whose default streams are meant; -1: nothing is done
 * @param former  the stream of the object until now
 * @param next    the stream of the object from now on; it exists
 * @return as rmm_stream_order()
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_stream_take_over(int device, rmm_stream_t former, rmm_stream_t next);

#ifdef __cplusplus
}
#endif

#endif /* RMM_STREAM_H */
