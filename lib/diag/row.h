/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the writer changes an entry of the side file that has a sequence number: between an odd
 * and an even one only. Every store in between is a release, so a reader that sees one of them
 * sees the odd number too (a fence would do as well, but thread sanitizers do not know fences).
 *
 * The entry is anything with an atomic member `sequence`. The engine's lock is held.
 */
#ifndef RMM_DIAG_ROW_H
#define RMM_DIAG_ROW_H

#include <stdatomic.h>

/* release: pairs with the acquire loads of a reader; see above */
#define RMM_ROW_SET(row, field, value)                                                 \
    atomic_store_explicit(&(row)->field, (value), memory_order_release)
#define RMM_ROW_GET(row, field)                                                        \
    atomic_load_explicit(&(row)->field, memory_order_relaxed)
#define RMM_ROW_BEGIN(row) RMM_ROW_SET(row, sequence, RMM_ROW_GET(row, sequence) | 1u)
#define RMM_ROW_END(row) RMM_ROW_SET(row, sequence, RMM_ROW_GET(row, sequence) + 1)

/* Only the lock's holder writes: a plain add of an atomic, no locked instruction. */
#define RMM_ROW_ADD(counter, value)                                                    \
    atomic_store_explicit(                                                             \
        (counter), atomic_load_explicit((counter), memory_order_relaxed) + (value),    \
        memory_order_relaxed)

#endif /* RMM_DIAG_ROW_H */
