/* SPDX-License-Identifier: Apache-2.0 */
/* The clock that everything here is measured with. */
#ifndef RMM_TOOLS_BENCH_CLOCK_H
#define RMM_TOOLS_BENCH_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

#endif /* RMM_TOOLS_BENCH_CLOCK_H */
