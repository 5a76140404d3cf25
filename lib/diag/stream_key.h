/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A key of a stream: one handle names the default streams of all threads, and two handles name the
 * legacy default stream. Never 0. The number of a thread is not used again after its end; each file
 * that includes this counts threads on its own, so a key has a meaning within one file only.
 *
 * Threads: any; the key of a per-thread default stream is that of the calling thread.
 */
#ifndef RMM_DIAG_STREAM_KEY_H
#define RMM_DIAG_STREAM_KEY_H

#include <stdatomic.h>
#include <stdint.h>

#include <rmm/stream.h>

#define RMM_STREAM_KEY_LEGACY 1u
/* With a thread's number; handles are addresses of user space. */
#define RMM_STREAM_KEY_PER_THREAD ((uint64_t)1 << 63)

static inline uint64_t rmm__number_of_thread(void)
{
    static _Atomic(uint64_t) last;
    static _Thread_local uint64_t number; /* 0: not counted yet */

    if (number == 0) {
        /* relaxed: the numbers only have to differ */
        number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    }
    return number;
}

static inline uint64_t rmm__stream_key(rmm_stream_t stream)
{
    if (rmm_stream_is_default(stream)) {
        return RMM_STREAM_KEY_LEGACY;
    }
    return rmm_stream_is_per_thread_default(stream)
               ? RMM_STREAM_KEY_PER_THREAD | rmm__number_of_thread()
               : (uint64_t)(uintptr_t)stream;
}

#endif /* RMM_DIAG_STREAM_KEY_H */
