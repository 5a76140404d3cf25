/* SPDX-License-Identifier: Apache-2.0 */
/* See atomic_resource.h. */
#include "device/atomic_resource.h"

#include <stddef.h>

#include "base/resource_impl.h"
#include "core/assert.h"

enum { ADDRESS_SHIFT = 12, TAKEN_MASK = 0xffff };

static rmm_resource_t *resource_of(uint64_t word)
{
    return (void *)(uintptr_t)((word & ~(uint64_t)TAKEN_MASK) >> ADDRESS_SHIFT);
}

static uint32_t taken_of(uint64_t word)
{
    return (uint32_t)(word & TAKEN_MASK);
}

/* No reference taken yet. */
static uint64_t word_of(const rmm_resource_t *mr)
{
    RMM_ASSERT(rmm__atomic_resource_can_hold(mr));
    return (uint64_t)(uintptr_t)mr << ADDRESS_SHIFT;
}

bool rmm__atomic_resource_can_hold(const rmm_resource_t *mr)
{
    uint64_t word = (uint64_t)(uintptr_t)mr << ADDRESS_SHIFT;

    return resource_of(word) == mr && taken_of(word) == 0;
}

static void add_references(rmm_resource_t *mr, uint32_t count)
{
    atomic_fetch_add_explicit(&mr->references, count, memory_order_relaxed);
}

/* Never the last one: the caller has another. */
static void drop_references(rmm_resource_t *mr, uint32_t count)
{
    /* release: as in rmm_resource_release() */
    uint32_t before =
        atomic_fetch_sub_explicit(&mr->references, count, memory_order_release);

    RMM_ASSERT(before > count);
    (void)before;
}

/* The caller has a reference of mr. */
RMM_COLD static void refill(rmm_atomic_resource_t *cell, rmm_resource_t *mr)
{
    uint64_t word = atomic_load_explicit(&cell->word, memory_order_relaxed);

    while (resource_of(word) == mr && taken_of(word) >= RMM_ATOMIC_RESOURCE_REFILL) {
        uint32_t taken = taken_of(word);

        add_references(mr, taken);
        /* release: the thread that takes it next sees the resource whole, as from an exchange */
        if (atomic_compare_exchange_strong_explicit(
                &cell->word, &word, word_of(mr), memory_order_release,
                memory_order_relaxed)) {
            return;
        }
        drop_references(mr, taken);
    }
}

rmm_resource_t *rmm__atomic_resource_load(rmm_atomic_resource_t *cell)
{
    uint64_t word = atomic_load_explicit(&cell->word, memory_order_relaxed);
    rmm_resource_t *mr;

    do {
        mr = resource_of(word);
        if (mr == NULL) {
            return NULL;
        }
        RMM_ASSERT(taken_of(word) < RMM_ATOMIC_RESOURCE_REFERENCES - 1);
        /* acquire: pairs with the release of rmm__atomic_resource_exchange() */
    } while (!atomic_compare_exchange_weak_explicit(
        &cell->word, &word, word + 1, memory_order_acquire, memory_order_relaxed));
    if (taken_of(word + 1) >= RMM_ATOMIC_RESOURCE_REFILL) {
        refill(cell, mr);
    }
    return mr;
}

/* The old resource leaves the cell: one reference for the caller, the others are dropped. */
static rmm_resource_t *take_out(uint64_t word)
{
    rmm_resource_t *mr = resource_of(word);

    if (mr != NULL) {
        drop_references(mr, RMM_ATOMIC_RESOURCE_REFERENCES - taken_of(word) - 1);
    }
    return mr;
}

rmm_resource_t *
rmm__atomic_resource_exchange(rmm_atomic_resource_t *cell, rmm_resource_t *mr)
{
    if (mr != NULL) {
        add_references(mr, RMM_ATOMIC_RESOURCE_REFERENCES);
    }
    /* release: takers see the resource whole; acquire: so does the thread that gets the old one */
    return take_out(
        atomic_exchange_explicit(&cell->word, word_of(mr), memory_order_acq_rel));
}

rmm_resource_t *
rmm__atomic_resource_replace(rmm_atomic_resource_t *cell, rmm_resource_t *mr)
{
    uint64_t word = atomic_load_explicit(&cell->word, memory_order_relaxed);

    if (mr != NULL) {
        add_references(mr, RMM_ATOMIC_RESOURCE_REFERENCES);
    }
    while (word != 0) {
        /* as in rmm__atomic_resource_exchange() */
        if (atomic_compare_exchange_weak_explicit(
                &cell->word, &word, word_of(mr), memory_order_acq_rel,
                memory_order_relaxed)) {
            return take_out(word);
        }
    }
    if (mr != NULL) {
        drop_references(mr, RMM_ATOMIC_RESOURCE_REFERENCES);
    }
    return NULL;
}

bool rmm__atomic_resource_fill(rmm_atomic_resource_t *cell, rmm_resource_t *mr)
{
    uint64_t empty = 0;

    add_references(mr, RMM_ATOMIC_RESOURCE_REFERENCES);
    /* release: takers see the resource whole */
    if (atomic_compare_exchange_strong_explicit(
            &cell->word, &empty, word_of(mr), memory_order_release,
            memory_order_relaxed)) {
        return true;
    }
    drop_references(mr, RMM_ATOMIC_RESOURCE_REFERENCES);
    return false;
}
