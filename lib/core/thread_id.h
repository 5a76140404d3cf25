/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread as the kernel numbers it, asked for once: rows of logs and lists
 * name it. A forked child has its parent's number here: what it would write into is
 * nobody's.
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
