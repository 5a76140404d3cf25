/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids of streams by their handles, so that every finding names a stream as the blocks do. A
 * stream whose id is not known is named by its handle.
 *
 * Not locked: the engine's lock protects it. A place is lost to a stream of the same hash.
 */
#ifndef RMM_DIAG_STREAM_NAMES_H
#define RMM_DIAG_STREAM_NAMES_H

#include <stdint.h>

#include <rmm/stream.h>

#define RMM_STREAM_NAMES 512u /* a power of two */

typedef struct rmm_stream_names {
    struct {
        uint64_t key, id; /* key 0: none */
    } at[RMM_STREAM_NAMES];
} rmm_stream_names_t;

/* id UINT64_MAX: it is not known any more. */
void rmm__stream_names_put(rmm_stream_names_t *names, rmm_stream_t stream, uint64_t id);

/* As the calling thread names the stream; UINT64_MAX: its own default stream, and not known. */
uint64_t rmm__stream_names_find(const rmm_stream_names_t *names, rmm_stream_t stream);

#endif /* RMM_DIAG_STREAM_NAMES_H */
