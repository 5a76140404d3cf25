/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of messages; see limit.h. The clock is the coarse one, which takes some
 * nanoseconds: a refused allocation must stay cheap.
 */
#include "log/limit.h"

#include <time.h>

#define COUNT_BITS 16u
#define COUNT_MAX ((UINT64_C(1) << COUNT_BITS) - 1)

static uint64_t this_second(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return 1 + (uint64_t)now.tv_sec; /* never that of a window that is all zero */
}

/* One more in this second, unless there were `most`. */
static bool take(rmm_log_limit_t *limit, uint64_t most)
{
    uint64_t second = this_second();
    uint64_t window = atomic_load_explicit(&limit->window, memory_order_relaxed);
    uint64_t count;

    do {
        count = window >> COUNT_BITS == second ? window & COUNT_MAX : 0;
        if (count >= most) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &limit->window, &window, second << COUNT_BITS | (count + 1),
        memory_order_relaxed, memory_order_relaxed));
    return true;
}

bool rmm__log_limit_allows(
    rmm_log_limit_t *limit, uint32_t most_per_second, uint64_t *left_out_out)
{
    if (!take(limit, most_per_second)) {
        atomic_fetch_add_explicit(&limit->left_out, 1, memory_order_relaxed);
        return false;
    }
    *left_out_out = atomic_exchange_explicit(&limit->left_out, 0, memory_order_relaxed);
    return true;
}
