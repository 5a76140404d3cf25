/* SPDX-License-Identifier: Apache-2.0 */
/* The clock that the programs measure with. */
#ifndef RMM_TOOLS_COMMON_CLOCK_H
#define RMM_TOOLS_COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

#endif /* RMM_TOOLS_COMMON_CLOCK_H */
