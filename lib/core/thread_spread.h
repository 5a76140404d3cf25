/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A number of the calling thread, without a look-up: for choosing one of a few places where
 * any is right, and two threads at one wait for each other. Threads that live at the same
 * time have different numbers; a later thread may have an earlier one's.
 *
 * Stacks lie at regular distances, whole pages, which the golden ratio spreads (Knuth 6.4):
 * 16 threads find 14 of 16 places, where luck would give them 10. Use the upper bits.
 */
#ifndef RMM_CORE_THREAD_SPREAD_H
#define RMM_CORE_THREAD_SPREAD_H

#include <stdint.h>

static inline uint64_t rmm__thread_spread(void)
{
    uint64_t page = (uint64_t)(uintptr_t)__builtin_thread_pointer() >> 12;

    return page * 0x9e3779b97f4a7c15ull;
}

#endif /* RMM_CORE_THREAD_SPREAD_H */
