/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a clock as one number. */
#ifndef RMM_CORE_CLOCK_H
#define RMM_CORE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t rmm__clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif /* RMM_CORE_CLOCK_H */
