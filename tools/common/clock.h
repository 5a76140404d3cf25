/* SPDX-License-Identifier: Apache-2.0 */
/* The clock that the programs measure with. */
#ifndef RMM_TOOLS_COMMON_CLOCK_H
#define RMM_TOOLS_COMMON_CLOCK_H

#include "core/clock.h"

static inline uint64_t clock_ns(void)
{
    return rmm__clock_ns(CLOCK_MONOTONIC);
}

#endif /* RMM_TOOLS_COMMON_CLOCK_H */
