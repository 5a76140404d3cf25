/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells whether the calling thread is inside a function of the program that the library has called
 * (of a custom resource): allocations and frees of that function do not count as the user's.
 *
 * Threads: any; each has a count of its own.
 */
#ifndef RMM_BASE_CALLBACK_H
#define RMM_BASE_CALLBACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Around the call of such a function. */
void rmm__callback_enter(void);
void rmm__callback_leave(void);

extern atomic_bool rmm__callback_any; /* one was ever called */
bool rmm__callback_is_entered_here(void);

/* True if this thread is in such a function. Spares most programs the slow access to memory of the
 * thread. */
static inline bool rmm__callback_is_entered(void)
{
    /* relaxed: what matters is this thread's own store, which it sees */
    return atomic_load_explicit(&rmm__callback_any, memory_order_relaxed) &&
           rmm__callback_is_entered_here();
}

/* The number of blocks that this thread has allocated inside callbacks. If a callback
 * allocated one, the resource that it came from counts the memory as held from the driver. */
uint64_t rmm__callback_taken(void);
/* It has allocated one. */
void rmm__callback_count(void);

#endif /* RMM_BASE_CALLBACK_H */
