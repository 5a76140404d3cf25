/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache of the ids of streams that rmm_stream_create() made, by handle. It saves two driver
 * calls for each pair of an allocation and a free.
 *
 * Why it is correct: CUDA gives the handle of a destroyed stream to a new one, with another id. So
 * rmm_stream_destroy(), the only function that may destroy such a stream (rmm/stream.h), removes
 * the entry first. The stream whose handle a caller looks up exists during the call, so no thread
 * removes or changes its entry meanwhile. Other entries of the set may change.
 *
 * Bounded: 1024 streams, four to a set, a set to a cache line. A stream whose set is full has no
 * entry, and the driver is queried for its id.
 *
 * Locking: none for a lookup; changes take a lock of the table's own.
 *
 * Beside it a map knows every stream that rmm_stream_create() made, and which of them have ended:
 * a call with a destroyed stream is fatal, so who has an old handle asks first
 * (stream_order.h). It has the lock of the table, and is not on the allocation path.
 *
 * rmm__stream_id_of_thread() is separate from the table: ids of per-thread default streams that
 * capture.
 */
#ifndef RMM_DRIVER_STREAM_IDS_H
#define RMM_DRIVER_STREAM_IDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rmm/stream.h>

#include "core/hash.h"

enum { RMM_STREAM_ID_SETS = 256, RMM_STREAM_ID_WAYS = 4 };

typedef struct rmm_stream_id {
    _Atomic(rmm_stream_t) stream; /* NULL: free */
    _Atomic(uint64_t) id;
} rmm_stream_id_t;

extern rmm_stream_id_t rmm__stream_ids[RMM_STREAM_ID_SETS][RMM_STREAM_ID_WAYS];

static inline rmm_stream_id_t *rmm__stream_id_set(rmm_stream_t stream)
{
    /* handles are addresses, aligned to 16 bytes */
    uint64_t hash = rmm__hash((uintptr_t)stream >> 4);

    return rmm__stream_ids[hash >> 56];
}

/* In what rmm__stream_id_find() returns, beside the id: RMM_STREAM_NEVER_CAPTURES. */
#define RMM_STREAM_ID_NEVER_CAPTURES ((uint64_t)1 << 62)
/* In an id that the library made up, because the driver has none (hip_streams.c). */
#define RMM_STREAM_ID_MADE_UP ((uint64_t)1 << 61)

/* The id, or 0: not known here. Not for the built-in streams. */
static inline uint64_t rmm__stream_id_find(rmm_stream_t stream)
{
    rmm_stream_id_t *set = rmm__stream_id_set(stream);

    for (int i = 0; i < RMM_STREAM_ID_WAYS; i++) {
        /* acquire: pairs with rmm__stream_id_keep() */
        if (atomic_load_explicit(&set[i].stream, memory_order_acquire) == stream) {
            return atomic_load_explicit(&set[i].id, memory_order_relaxed);
        }
    }
    return 0;
}

/* Sets the entry of this handle, replacing an earlier one. The id is not 0, and may have the bits
 * above. False: no room. */
bool rmm__stream_id_keep(rmm_stream_t stream, uint64_t id);

/* To be called before the stream is destroyed. */
void rmm__stream_id_forget(rmm_stream_t stream);

typedef enum rmm_stream_origin {
    RMM_STREAM_UNKNOWN, /* CUDA made it; it may have ended */
    RMM_STREAM_LIVE,    /* a default stream, or one of rmm_stream_create() */
    RMM_STREAM_ENDED /* rmm_stream_destroy() was called, and no stream made here has its handle */
} rmm_stream_origin_t;

/* After a stream was made, and before it is destroyed. Without host memory it is unknown. */
void rmm__stream_made(rmm_stream_t stream);
void rmm__stream_ended(rmm_stream_t stream);
rmm_stream_origin_t rmm__stream_origin(rmm_stream_t stream);

/*
 * The id of the calling thread's default stream on this device while it captures, when CUDA
 * does not tell one. Unlike the handle, which is the same number for every thread, it is
 * unique in the process for ever: threads are counted, and none gets the number of one that
 * has ended. The highest bit is set, as in no handle (an address of user space) and in no id
 * of CUDA's (which count up from 1).
 */
uint64_t rmm__stream_id_of_thread(int device);

#endif /* RMM_DRIVER_STREAM_IDS_H */
