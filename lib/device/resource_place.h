/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place for one resource that threads take references from while others replace it,
 * without a lock and without ever touching a resource that may be gone.
 *
 * How: the place owns RMM_PLACE_REFERENCES references of its resource at once, and its one
 * word says which resource it is and how many of them were taken. So a taker changes the
 * word only, by compare and exchange: when that succeeds the resource was still the one in
 * place, and one of the place's references is the taker's. Who replaces the resource takes
 * the old word away whole and gives back what is left. A taker that finds half of them gone
 * brings as many again, which the reference that it has just taken makes safe.
 *
 * A word whose resource was replaced and put back between the load and the exchange is no
 * danger: the reference is then one of the new lot.
 *
 * Cost: one compare and exchange, again for each taker that comes between.
 */
#ifndef RMM_DEVICE_RESOURCE_PLACE_H
#define RMM_DEVICE_RESOURCE_PLACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rmm/resource.h>

/* How many are owned, and at how many the next lot is brought: there are fewer threads
 * than the difference. */
#define RMM_PLACE_REFERENCES 0xffffu
#define RMM_PLACE_REFILL 0x8000u

/* Zero: empty. High 48 bits: the address without its four low bits, which are zero; low
 * 16 bits: references taken. */
typedef struct rmm_resource_place {
    _Atomic(uint64_t) word;
} rmm_resource_place_t;

/* Can its address be kept in a word? Tagged addresses cannot. */
bool rmm__place_can_hold(const rmm_resource_t *mr);

/* A reference of the caller's own, or NULL: the place is empty. */
rmm_resource_t *rmm__place_take(rmm_resource_place_t *place);

/* Put mr there (retained; NULL: empty the place), and answer with what was there, one
 * reference for the caller. */
rmm_resource_t *rmm__place_exchange(rmm_resource_place_t *place, rmm_resource_t *mr);

/* The same, but NULL and nothing changed if the place is empty. */
rmm_resource_t *rmm__place_replace(rmm_resource_place_t *place, rmm_resource_t *mr);

/* Put mr there if the place is empty. */
bool rmm__place_fill(rmm_resource_place_t *place, rmm_resource_t *mr);

#endif /* RMM_DEVICE_RESOURCE_PLACE_H */
