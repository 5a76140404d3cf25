/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which free block of a heap a request gets. Only for blocks.c, and inlined there: a part
 * of its hot path.
 *
 * Exact best fit would have to search; good fit alone (the first block of the first bin in
 * which everything fits) leaves more of a remainder. Between the two: a few blocks of the
 * own bin first, where some may fit, then a few of the next bin, and last whatever remains,
 * so that a request fails only if no block can hold it.
 */
#ifndef RMM_SUBALLOC_SUBALLOC_FIT_H
#define RMM_SUBALLOC_SUBALLOC_FIT_H

#include "suballoc/suballoc_impl.h"

#define INLINE RMM_SUBALLOC_INLINE
#define NOINLINE RMM_SUBALLOC_NOINLINE

/* Blocks looked at before one that fits less tightly is taken. */
#define SCAN_OWN 8
#define SCAN_NEXT 4

/* Units to skip at the front of a block so that the rest is aligned. */
static inline uint32_t pad_of(uint32_t unit, uint32_t align_units)
{
    return -unit & (align_units - 1);
}

static inline bool
fits(const rmm_block_node_t *node, uint32_t units, uint32_t align_units)
{
    return node->units >= units &&
           node->units - units >= pad_of(node->unit, align_units);
}

/* The smallest fitting one among the first `most` of a bin's list; 0 if none fits. */
static inline uint32_t best_of(
    const rmm_suballoc_t *sa, uint32_t index, uint32_t units, uint32_t align_units,
    uint32_t most)
{
    uint32_t best = 0, best_units = UINT32_MAX;
    for (; index != 0 && most > 0; most--) {
        const rmm_block_node_t *node = &sa->nodes[index];
        if (node->units <= best_units && fits(node, units, align_units)) {
            best = index;
            best_units = node->units;
            if (best_units == units) {
                break;
            }
        }
        index = node->link_next;
    }
    return best;
}

/* The head of the first bin at or above this one that is not empty, or 0. */
static inline uint32_t head_at_or_above(const rmm_heap_body_t *body, uint32_t bin)
{
    uint32_t bits = body->bins[bin / 32] >> bin % 32;
    if (bits != 0) {
        return body->heads[bin + (uint32_t)__builtin_ctz(bits)];
    }
    uint32_t levels = body->levels & (UINT32_MAX - 1) << bin / 32;
    if (levels == 0) {
        return 0;
    }
    uint32_t level = (uint32_t)__builtin_ctz(levels);
    return body->heads[level * 32 + (uint32_t)__builtin_ctz(body->bins[level])];
}

/* Make `largest` exact: the largest block is in the topmost bin. */
static NOINLINE void largest_search(const rmm_suballoc_t *sa, rmm_heap_body_t *body)
{
    body->largest = 0;
    if (body->levels == 0) {
        return;
    }
    uint32_t level = 31u - (uint32_t)__builtin_clz(body->levels);
    uint32_t bin = 32 * level + 31u - (uint32_t)__builtin_clz(body->bins[level]);
    for (uint32_t index = body->heads[bin]; index != 0;
         index = sa->nodes[index].link_next) {
        largest_enters(body, sa->nodes[index].units);
    }
}

/* The largest one in the bins. */
static inline uint32_t largest_settled(const rmm_suballoc_t *sa, rmm_heap_body_t *body)
{
    if (body->largest_count == 0) {
        largest_search(sa, body);
    }
    return body->largest;
}

/* Nothing lies in a bin above the request's own: it is the own one whole, or none. */
static NOINLINE uint32_t
find_last_fit(rmm_suballoc_t *sa, rmm_heap_body_t *body, uint32_t units)
{
    if (units > largest_settled(sa, body)) {
        return 0;
    }
    return best_of(sa, body->heads[bin_of(units)], units, 1, UINT32_MAX);
}

/*
 * The block to take `units` from, or 0: best of a few in the own bin; else of a few in the
 * next bin, where everything fits; else what is left.
 */
INLINE uint32_t find_fit(rmm_suballoc_t *sa, rmm_heap_body_t *body, uint32_t units)
{
    uint32_t own = bin_of(units);
    uint32_t index = body->heads[own];
    if (index != 0) {
        index = best_of(sa, index, units, 1, SCAN_OWN);
        if (index != 0) {
            return index;
        }
    }
    index = head_at_or_above(body, own + 1);
    if (RMM_SUBALLOC_UNLIKELY(index == 0)) {
        return find_last_fit(sa, body, units);
    }
    return sa->nodes[index].link_next == 0 ? index
                                           : best_of(sa, index, units, 1, SCAN_NEXT);
}

/* The same for more alignment than a unit's: the best among `most` of the first bin that
 * has one that fits. */
static uint32_t find_aligned_among(
    rmm_suballoc_t *sa, rmm_heap_body_t *body, uint32_t units, uint32_t align_units,
    uint32_t most)
{
    uint32_t head = head_at_or_above(body, bin_of(units));
    while (head != 0) {
        uint32_t index = best_of(sa, head, units, align_units, most);
        if (index != 0) {
            return index;
        }
        head = head_at_or_above(body, sa->nodes[head].bin + 1);
    }
    return 0;
}

static NOINLINE uint32_t find_aligned_fit(
    rmm_suballoc_t *sa, rmm_heap_body_t *body, uint32_t units, uint32_t align_units)
{
    if (units > largest_settled(sa, body)) {
        return 0;
    }
    uint32_t index = find_aligned_among(sa, body, units, align_units, SCAN_OWN);
    return index != 0 ? index
                      : find_aligned_among(sa, body, units, align_units, UINT32_MAX);
}

/* The tighter fit of two heaps; of equal ones the first heap's. */
static inline uint32_t find_either(
    rmm_suballoc_t *sa, rmm_heap_body_t *first, rmm_heap_body_t *second, uint32_t units,
    uint32_t align_units)
{
    bool aligned = align_units > 1;
    uint32_t a = aligned ? find_aligned_fit(sa, first, units, align_units)
                         : find_fit(sa, first, units);
    if (a != 0 && sa->nodes[a].units == units) {
        return a;
    }
    uint32_t b = aligned ? find_aligned_fit(sa, second, units, align_units)
                         : find_fit(sa, second, units);
    return b != 0 && (a == 0 || sa->nodes[b].units < sa->nodes[a].units) ? b : a;
}

#endif /* RMM_SUBALLOC_SUBALLOC_FIT_H */
