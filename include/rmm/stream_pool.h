/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/stream_pool.h
 *
 * A fixed number of streams, used in turn, for independent work.
 *
 * Lifetime: the pool owns its streams. Do not destroy them, also not with
 * cudaStreamDestroy() (rmm/stream.h gives the reason), and do not use them after
 * rmm_stream_pool_destroy(). Streams are shared: two users may get the same one.
 *
 * Threads: any function but the destroy, any thread, same pool.
 */
#ifndef RMM_STREAM_POOL_H
#define RMM_STREAM_POOL_H

#include <stddef.h>
#include <stdint.h>

#include <rmm/export.h>
#include <rmm/status.h>
#include <rmm/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The usual number of streams in a pool, RMM's default. */
#define RMM_STREAM_POOL_DEFAULT_COUNT RMM_CAST(size_t, 16)

typedef struct rmm_stream_pool rmm_stream_pool_t;

/**
 * Create @p count streams on the current device. Allocates host memory, calls the driver.
 *
 * @param count     at least 1; RMM_STREAM_POOL_DEFAULT_COUNT is the usual choice
 * @param flags     as rmm_stream_create(), for every stream
 * @param pool_out  receives the pool; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    count is 0, unknown flag, or pool_out is NULL
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 *         RMM_ERR_NO_DEVICE           no usable GPU
 *         RMM_ERR_CUDA                the driver refused
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_stream_pool_create(size_t count, uint32_t flags, rmm_stream_pool_t **pool_out);

/** Destroy the pool and its streams; queued work still finishes. NULL is ignored. */
RMM_API void rmm_stream_pool_destroy(rmm_stream_pool_t *pool);

/** The next stream, in turn. One atomic addition. */
RMM_API rmm_stream_t rmm_stream_pool_get(rmm_stream_pool_t *pool);

/** The stream with the number @p index modulo the size: the same index, the same stream. */
RMM_API rmm_stream_t
rmm_stream_pool_get_at(const rmm_stream_pool_t *pool, size_t index);

/** The number of streams in the pool. */
RMM_API size_t rmm_stream_pool_size(const rmm_stream_pool_t *pool);

#ifdef __cplusplus
}
#endif

#endif /* RMM_STREAM_POOL_H */
