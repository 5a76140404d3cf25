/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds one resource. Threads take references of it while others replace it, without a lock, and
 * no thread ever accesses a resource that may have been destroyed.
 *
 * How: the holder owns RMM_ATOMIC_RESOURCE_REFERENCES references of its resource in advance. Its
 * single word contains the resource and the number of references that were taken. A thread takes
 * a reference by changing only the word, with a compare and exchange: if that succeeds, the
 * resource was still the current one, and one of the holder's references now belongs to the
 * thread. A thread that replaces the resource exchanges the whole word and releases the
 * references that were not taken. A thread that finds half of the references taken adds as many
 * again; the reference that it has just taken makes that safe.
 *
 * If a resource is replaced and put back between the load and the exchange, the exchange may
 * succeed: the reference is then one of those that came with the second store.
 *
 * Cost: one compare and exchange, and one more for each concurrent change of the word.
 */
#ifndef RMM_DEVICE_ATOMIC_RESOURCE_H
#define RMM_DEVICE_ATOMIC_RESOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rmm/resource.h>

/* How many are owned, and at how many the next lot is brought: there are fewer threads
 * than the difference. */
#define RMM_ATOMIC_RESOURCE_REFERENCES 0xffffu
#define RMM_ATOMIC_RESOURCE_REFILL 0x8000u

/* Zero: empty. High 48 bits: the address without its four low bits, which are zero; low
 * 16 bits: references taken. */
typedef struct rmm_atomic_resource {
    _Atomic(uint64_t) word;
} rmm_atomic_resource_t;

/* Can its address be kept in a word? Tagged addresses cannot. */
bool rmm__atomic_resource_can_hold(const rmm_resource_t *mr);

/* A reference of the caller's own, or NULL: the place is empty. */
rmm_resource_t *rmm__atomic_resource_load(rmm_atomic_resource_t *cell);

/* Put mr there (retained; NULL: empty the place), and answer with what was there, one
 * reference for the caller. */
rmm_resource_t *
rmm__atomic_resource_exchange(rmm_atomic_resource_t *cell, rmm_resource_t *mr);

/* The same, but NULL and nothing changed if the place is empty. */
rmm_resource_t *
rmm__atomic_resource_replace(rmm_atomic_resource_t *cell, rmm_resource_t *mr);

/* Put mr there if the place is empty. */
bool rmm__atomic_resource_fill(rmm_atomic_resource_t *cell, rmm_resource_t *mr);

#endif /* RMM_DEVICE_ATOMIC_RESOURCE_H */
