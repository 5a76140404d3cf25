/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor.record_stream(): the streams that use a block besides its own. The free of a block is
 * ordered after the work that these streams have at that time, as in PyTorch's own allocator.
 *
 * Locking: none; the caller serialises all but rmm__torch_streams_order().
 */
#ifndef RMM_DEVICE_TORCH_STREAMS_H
#define RMM_DEVICE_TORCH_STREAMS_H

#include <stdbool.h>

#include <rmm/stream.h>

#include "core/pointer_map.h"

/* A list of streams, each once. */
typedef struct rmm_torch_use {
    struct rmm_torch_use *next;
    rmm_stream_t stream;
} rmm_torch_use_t;

typedef struct rmm_torch_streams {
    rmm_pointer_map_t blocks; /* block -> rmm_torch_use_t */
} rmm_torch_streams_t;

/* False: no host memory; nothing has changed. */
bool rmm__torch_streams_add(
    rmm_torch_streams_t *streams, void *ptr, rmm_stream_t stream);

/* The list becomes the caller's; NULL: the block has none. */
rmm_torch_use_t *rmm__torch_streams_take(rmm_torch_streams_t *streams, void *ptr);

/* Make `stream` wait for what each stream of the list has to do now, and free the list. The
 * host waits where no event can order the two. */
void rmm__torch_streams_order(rmm_torch_use_t *uses, int device, rmm_stream_t stream);

#endif /* RMM_DEVICE_TORCH_STREAMS_H */
