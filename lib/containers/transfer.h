/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The containers' calls of the driver: copies, fills and waits. The device of the
 * container is current, so that a default stream is that of this device.
 */
#ifndef RMM_CONTAINERS_TRANSFER_H
#define RMM_CONTAINERS_TRANSFER_H

#include <stddef.h>

#include <rmm/status.h>
#include <rmm/stream.h>

/*
 * RMM_OK, or RMM_ERR_CUDA with the last error set. 0 bytes is OK. Without a GPU there is
 * plain host memory only and nothing is ever queued: then at once, and nothing to wait for.
 */
rmm_status_t
rmm__copy_async(void *dst, const void *src, size_t bytes, rmm_stream_t stream);
rmm_status_t rmm__fill_async(void *dst, int value, size_t bytes, rmm_stream_t stream);

/*
 * Wait until the stream is done with host memory of the caller. Even if it returns an
 * error, no queued work uses that memory any more.
 */
rmm_status_t rmm__wait_for_copies(rmm_stream_t stream);

/* A copy and the wait for it. 0 bytes is OK, and waits for nothing. */
rmm_status_t rmm__copy(void *dst, const void *src, size_t bytes, rmm_stream_t stream);

#endif /* RMM_CONTAINERS_TRANSFER_H */
