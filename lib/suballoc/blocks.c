/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks: alloc, free, transfer. The hot part; everything here is a handful of loads and
 * stores on a node, its two neighbours and one heap.
 *
 * A block that is split keeps its node for the remainder, and a free block that grows by a
 * merge keeps its node too. So an alloc from a big free block and the free after it change
 * that block's unit and units and nothing else of it: no bin, no list.
 *
 * Live blocks are found by unit in a table of slots, each the head of a chain through
 * link_next. A lookup touches the slot and the block itself, which is needed anyway; an
 * insertion probes nothing; half as many blocks as slots make chains of 1.25 on average.
 */
#include "suballoc/suballoc_impl.h"

/* Nodes looked at before something less tight is taken. */
#define SCAN_OWN 8
#define SCAN_NEXT 4

static inline void live_insert(rmm_suballoc_t *sa, uint32_t index)
{
    rmm_block_node_t *node = &sa->nodes[index];
    uint32_t slot = slot_of(sa, node->unit);
    node->heap = RMM_HEAP_NONE;
    node->tag = 0;
    node->link_next = sa->table[slot];
    sa->table[slot] = index;
    sa->live_blocks++;
}

static inline void live_remove(rmm_suballoc_t *sa, uint32_t index)
{
    uint32_t *link = &sa->table[slot_of(sa, sa->nodes[index].unit)];
    while (*link != index) {
        assert(*link != 0 && "the block is live");
        link = &sa->nodes[*link].link_next;
    }
    *link = sa->nodes[index].link_next;
    sa->live_blocks--;
}

rmm_block_t rmm__suballoc_find(const rmm_suballoc_t *sa, uint32_t unit)
{
    uint32_t index = sa->table[slot_of(sa, unit)];
    while (index != 0 && sa->nodes[index].unit != unit) {
        index = sa->nodes[index].link_next;
    }
    return index;
}

uint32_t rmm__suballoc_block_unit(const rmm_suballoc_t *sa, rmm_block_t block)
{
    return sa->nodes[block].unit;
}

uint32_t rmm__suballoc_block_units(const rmm_suballoc_t *sa, rmm_block_t block)
{
    return sa->nodes[block].units;
}

uint32_t rmm__suballoc_block_tag(const rmm_suballoc_t *sa, rmm_block_t block)
{
    return sa->nodes[block].tag;
}

void rmm__suballoc_block_set_tag(rmm_suballoc_t *sa, rmm_block_t block, uint32_t tag)
{
    sa->nodes[block].tag = tag;
}

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

/* The first bin at or above `bin` that is not empty; RMM_BIN_COUNT: none. */
static inline uint32_t bin_at_or_above(const rmm_heap_body_t *heap, uint32_t bin)
{
    if (bin >= RMM_BIN_COUNT) {
        return RMM_BIN_COUNT;
    }
    uint32_t level = bin / 32;
    uint32_t bits = heap->bins[level] & (UINT32_MAX << bin % 32);
    if (bits == 0) {
        uint32_t levels = heap->levels & ~(UINT32_MAX >> (31 - level));
        if (levels == 0) {
            return RMM_BIN_COUNT;
        }
        level = (uint32_t)__builtin_ctz(levels);
        bits = heap->bins[level];
    }
    return level * 32 + (uint32_t)__builtin_ctz(bits);
}

/* Make `largest` exact: the largest block is in the topmost bin. */
static void largest_search(const rmm_suballoc_t *sa, rmm_heap_body_t *heap)
{
    uint32_t largest = 0, count = 0, index = 0;
    if (heap->levels != 0) {
        uint32_t level = 31u - (uint32_t)__builtin_clz(heap->levels);
        index =
            heap->heads[32 * level + 31u - (uint32_t)__builtin_clz(heap->bins[level])];
    }
    for (; index != 0; index = sa->nodes[index].link_next) {
        uint32_t units = sa->nodes[index].units;
        count = units > largest ? 1 : count + (units == largest);
        largest = units > largest ? units : largest;
    }
    heap->largest = largest;
    heap->largest_count = count;
}

uint32_t rmm__suballoc_largest_free(const rmm_suballoc_t *sa, rmm_heap_t heap)
{
    assert(heap_is_valid(sa, heap));
    if (sa->heaps[heap].largest_count == 0) {
        largest_search(sa, &sa->heaps[heap]);
    }
    return sa->heaps[heap].largest;
}

/*
 * The block to take `units` from, or 0: best of a few in the own bin; else of a few in the
 * next bin, where everything fits; else the best of the own bin, which is the topmost then.
 */
static inline uint32_t find_fit(rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t units)
{
    rmm_heap_body_t *body = &sa->heaps[heap];
    uint32_t own = bin_of(units);
    uint32_t index = best_of(sa, body->heads[own], units, 1, SCAN_OWN);
    if (index != 0) {
        return index;
    }
    uint32_t bin = bin_at_or_above(body, own + 1);
    if (bin < RMM_BIN_COUNT) {
        return best_of(sa, body->heads[bin], units, 1, SCAN_NEXT);
    }
    if (units > rmm__suballoc_largest_free(sa, heap)) {
        return 0;
    }
    return best_of(sa, body->heads[own], units, 1, UINT32_MAX);
}

/*
 * The same for more alignment than a unit's. First a few blocks of each bin, up to the size
 * from which everything fits; then every block that could.
 */
static uint32_t find_aligned_fit(
    rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t units, uint32_t align_units)
{
    const rmm_heap_body_t *body = &sa->heaps[heap];
    if (units > rmm__suballoc_largest_free(sa, heap)) {
        return 0;
    }
    for (uint32_t most = SCAN_OWN;; most = UINT32_MAX) {
        uint32_t bin = bin_at_or_above(body, bin_of(units));
        while (bin < RMM_BIN_COUNT) {
            uint32_t index = best_of(sa, body->heads[bin], units, align_units, most);
            if (index != 0 || most == UINT32_MAX) {
                return index;
            }
            bin = bin_at_or_above(body, bin + 1);
        }
        if (most == UINT32_MAX) {
            return 0;
        }
    }
}

/* Take the first `units` of a free block; returns the live block's node. */
static inline uint32_t take_front(rmm_suballoc_t *sa, uint32_t index, uint32_t units)
{
    uint32_t rest = sa->nodes[index].units - units;
    if (rest == 0) {
        heap_leave(sa, index);
        return index;
    }
    uint32_t taken = node_take(sa);
    rmm_block_node_t *node = &sa->nodes[index];
    sa->nodes[taken].unit = node->unit;
    sa->nodes[taken].units = units;
    ring_insert(sa, node->prev, taken, index);
    node->unit += units;
    heap_resize(sa, index, rest);
    return taken;
}

/*
 * Cut `pad` units off the front of a free block; returns the part behind them, free as
 * well and of the same age.
 */
static uint32_t cut_pad(rmm_suballoc_t *sa, uint32_t index, uint32_t pad)
{
    uint32_t back = node_take(sa);
    rmm_block_node_t *node = &sa->nodes[index];
    sa->nodes[back].unit = node->unit + pad;
    sa->nodes[back].units = node->units - pad;
    ring_insert(sa, index, back, node->next);
    heap_resize(sa, index, pad);
    heap_enter(sa, node->heap, back);
    sa->ages[back].stamp = sa->ages[index].stamp;
    age_insert(sa, &sa->heaps[node->heap], back, index);
    return back;
}

rmm_suballoc_result_t rmm__suballoc_alloc(
    rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t units, uint32_t align_units,
    rmm_block_t *block_out)
{
    assert(heap_is_valid(sa, heap));
    assert(units > 0 && align_units > 0 && align_units <= RMM_SUBALLOC_PHASES);
    assert((align_units & (align_units - 1)) == 0 && "a power of two");
    if (RMM_SUBALLOC_UNLIKELY(
            sa->spare_nodes < 2 || sa->live_blocks >= sa->table_limit) &&
        !rmm__suballoc_reserve(sa)) {
        return RMM_SUBALLOC_NO_STORAGE;
    }
    uint32_t index = align_units == 1 ? find_fit(sa, heap, units)
                                      : find_aligned_fit(sa, heap, units, align_units);
    if (index == 0) {
        return RMM_SUBALLOC_NO_FIT;
    }
    uint32_t pad = pad_of(sa->nodes[index].unit, align_units);
    if (RMM_SUBALLOC_UNLIKELY(pad != 0)) {
        index = cut_pad(sa, index, pad);
    }
    index = take_front(sa, index, units);
    live_insert(sa, index);
    sa->heaps[heap].free_units -= units;
    sa->total_free_units -= units;
    check_heavily(sa);
    *block_out = index;
    return RMM_SUBALLOC_OK;
}

/* Merge a node that is in no heap into its free neighbour `keep`, which keeps its age. */
static inline void absorb(rmm_suballoc_t *sa, uint32_t keep, uint32_t index)
{
    rmm_block_node_t *node = &sa->nodes[index], *kept = &sa->nodes[keep];
    if (node->prev == keep) {
        kept->next = node->next;
        sa->nodes[node->next].prev = keep;
    } else {
        kept->prev = node->prev;
        sa->nodes[node->prev].next = keep;
        kept->unit = node->unit;
    }
    heap_resize(sa, keep, kept->units + node->units);
    node_put(sa, index);
}

/* A node that is in no heap becomes free, or part of a free neighbour. */
static inline void
join(rmm_suballoc_t *sa, uint32_t index, rmm_heap_t heap, uint64_t stamp)
{
    rmm_heap_body_t *body = &sa->heaps[heap];
    uint32_t prev = sa->nodes[index].prev, next = sa->nodes[index].next;
    bool with_prev = sa->nodes[prev].heap == heap;
    bool with_next = sa->nodes[next].heap == heap;
    assert(body->newest == 0 || sa->ages[body->newest].stamp <= stamp);
    body->free_units += sa->nodes[index].units;
    if (!with_prev && !with_next) {
        heap_enter(sa, heap, index);
        sa->ages[index].stamp = stamp;
        age_insert(sa, body, index, body->newest);
        return;
    }
    uint32_t keep = with_prev ? prev : next;
    if (with_prev && with_next) {
        keep = sa->nodes[prev].units >= sa->nodes[next].units ? prev : next;
        uint32_t other = keep == prev ? next : prev;
        heap_leave(sa, other);
        absorb(sa, keep, index);
        absorb(sa, keep, other);
    } else {
        absorb(sa, keep, index);
    }
    if (body->newest != keep) {
        age_remove(sa, body, keep);
        age_insert(sa, body, keep, body->newest);
    }
    sa->ages[keep].stamp = stamp;
}

void rmm__suballoc_free(
    rmm_suballoc_t *sa, rmm_block_t block, rmm_heap_t heap, uint64_t stamp)
{
    assert(heap_is_valid(sa, heap));
    live_remove(sa, block);
    sa->total_free_units += sa->nodes[block].units;
    join(sa, block, heap, stamp);
    check_heavily(sa);
}

uint64_t rmm__suballoc_transfer(
    rmm_suballoc_t *sa, rmm_heap_t from, rmm_heap_t to, uint64_t up_to,
    uint64_t new_stamp)
{
    assert(heap_is_valid(sa, from) && heap_is_valid(sa, to) && from != to);
    rmm_heap_body_t *body = &sa->heaps[from];
    uint64_t moved = 0;
    while (body->oldest != 0 && sa->ages[body->oldest].stamp <= up_to) {
        uint32_t index = body->oldest;
        uint32_t units = sa->nodes[index].units;
        heap_leave(sa, index);
        join(sa, index, to, new_stamp);
        moved += units;
    }
    body->free_units -= moved;
    check_heavily(sa);
    return moved;
}
