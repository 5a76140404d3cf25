/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/memory.h
 *
 * Copies and fills in the order of a stream. They work on a GPU and on the simulated GPU.
 *
 * Addresses: memory of any device and of the host, whether or not a resource allocated it.
 * The direction of a copy follows from the addresses (cudaMemcpyDefault). The ranges of a
 * copy must not overlap, and nothing checks that a range is inside one allocation;
 * rmm_device_buffer_copy_to_host() and rmm_device_buffer_copy_from_host() check theirs.
 *
 * Stream order: as for a kernel on that stream, and no other: order it behind what other
 * streams do to either range (rmm_stream_order()). Default streams are those of the current
 * device. After rmm_memcpy_async() and rmm_memset_async()
 * call rmm_stream_synchronize() before the host reads the data. Until then host memory must
 * stay valid, and a source unchanged. rmm_memcpy() waits itself.
 *
 * Pageable host memory (malloc(), the stack; rmm/pinned_resource.h allocates pinned
 * memory): the driver may stage a copy and block the calling thread until it is done. Do
 * not rely on that: wait for the stream.
 *
 * Without a usable GPU the functions work on host memory only, and at once.
 *
 * Threads: any. Only rmm_memcpy() waits for a stream. Nothing here allocates memory.
 */
#ifndef RMM_MEMORY_H
#define RMM_MEMORY_H

#include <stddef.h>

#include <rmm/export.h>
#include <rmm/status.h>
#include <rmm/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Copy @p bytes from @p src to @p dst.
 *
 * @param bytes  0 is RMM_OK whatever the addresses are
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  dst or src is NULL with bytes not 0
 *         RMM_ERR_CUDA              the driver refused: an address or a stream that is not
 *                                   valid, or an earlier failure of the device
 *         RMM_ERR_UNSUPPORTED       this process is a forked child whose parent had used
 *                                   the driver
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_memcpy_async(void *dst, const void *src, size_t bytes, rmm_stream_t stream);

/**
 * Copy @p bytes from @p src to @p dst and wait until @p stream has run the copy. Host memory
 * is the caller's again when this returns, whatever the status is, so that it may be on the
 * stack: where the wait for the stream fails, the whole device is waited for.
 *
 * @param bytes  0 is RMM_OK whatever the addresses are, and waits for nothing
 * @return as rmm_memcpy_async(); after RMM_ERR_CUDA the contents of @p dst are indeterminate.
 *         It is also the answer on a stream that is being captured into a graph, which ends
 *         that capture as a failed one
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_memcpy(void *dst, const void *src, size_t bytes, rmm_stream_t stream);

/**
 * Set each of @p bytes bytes at @p ptr, memory that a device can reach, to @p value.
 *
 * @param value  of a byte; only its low 8 bits count
 * @return as rmm_memcpy_async()
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_memset_async(void *ptr, int value, size_t bytes, rmm_stream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* RMM_MEMORY_H */
