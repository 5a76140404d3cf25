/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's id of the calling thread, read once and then cached: rows of logs and lists
 * contain it. A forked child keeps the cached id, so rows that it writes name its parent's thread.
 */
#ifndef RMM_CORE_THREAD_ID_H
#define RMM_CORE_THREAD_ID_H

#include <stdint.h>
#include <unistd.h>

static inline uint32_t rmm__thread_id(void)
{
    static _Thread_local uint32_t id;

    if (id == 0) {
        id = (uint32_t)gettid();
    }
    return id;
}

#endif /* RMM_CORE_THREAD_ID_H */
