/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks: alloc, free, transfer. The hot part; everything here is a handful of loads and
 * stores on a node, its two neighbours and one heap.
 *
 * A block that is split keeps its node for the remainder, and a free block that grows by a
 * merge keeps its node too. So an alloc from a big free block and the free after it change
 * that block's unit and units and nothing else of it: no bin, no list.
 *
 * The most frequent pair of all, a free and then an alloc of the same size in the same heap,
 * does not even do that: the block stays as it is, in the table and unmerged (rule 4).
 *
 * Live blocks are found by unit in a table of slots, each the head of a chain through
 * link_next. A lookup touches the slot and the block itself, which is needed anyway; an
 * insertion probes nothing; half as many blocks as slots make chains of 1.25 on average.
 *
 * Large blocks are placed by lifetime. What is left of a free block should lie beside the
 * neighbour that will be freed first, for then the two become one. A block is taken from
 * the front or from the back accordingly: a neighbour that is older than any block that
 * was freed lately is here to stay, like a region's end; of the others the oldest goes
 * first. On a trace of GPT-2 training this lowers the smallest sufficient capacity from
 * 1.064 to 1.025 times the peak, which no way of choosing among free blocks does.
 */
#include "suballoc/suballoc_fit.h"
#include "suballoc/suballoc_look.h"

/* 256 KiB. Smaller blocks are taken from the front, without a look at the neighbours. */
#define LARGE_UNITS 1024u

/*
 * The horizon follows longer lives at once and forgets them over some thousands of large
 * frees; a block is old at a multiple of it. On the traces any multiple from 2 to 4 and any
 * memory from 2^10 to 2^14 frees does the same.
 */
#define HORIZON_ONE_LOG2 12
#define OLD_HORIZONS 3u

/* A block is the owner's now. */
static inline void make_live(rmm_suballoc_t *sa, rmm_block_node_t *node)
{
    node->heap = RMM_HEAP_NONE;
    node->tag = 0;
    node->birth = sa->clock;
    sa->clock += node->units >= LARGE_UNITS;
    sa->live_blocks++;
}

rmm_block_t rmm__suballoc_find(const rmm_suballoc_t *sa, uint32_t unit)
{
    return rmm__suballoc_look_up(sa, unit);
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

uint32_t rmm__suballoc_largest_free(const rmm_suballoc_t *sa, rmm_heap_t heap)
{
    assert(heap_is_valid(sa, heap));
    rmm_heap_body_t *body = &sa->heaps[heap];
    uint32_t largest = largest_settled(sa, body);
    if (body->unsettled != 0) { /* its size when it has merged */
        uint32_t units = rmm__suballoc_look_merged(sa, body->unsettled, heap);
        largest = units > largest ? units : largest;
    }
    return largest;
}

uint32_t rmm__suballoc_free_blocks(const rmm_suballoc_t *sa, rmm_heap_t heap)
{
    assert(heap_is_valid(sa, heap));
    const rmm_heap_body_t *body = &sa->heaps[heap];
    if (body->unsettled == 0) {
        return body->free_blocks;
    }
    const rmm_block_node_t *node = &sa->nodes[body->unsettled];
    return body->free_blocks + 1 - (sa->nodes[node->prev].heap == heap) -
           (sa->nodes[node->next].heap == heap);
}

uint64_t rmm__suballoc_oldest_stamp(rmm_suballoc_t *sa, rmm_heap_t heap)
{
    assert(heap_is_valid(sa, heap));
    rmm__suballoc_settle(sa, heap);
    uint32_t oldest = sa->heaps[heap].oldest;
    return oldest == 0 ? UINT64_MAX : sa->ages[oldest].stamp;
}

void rmm__suballoc_rebin(
    rmm_suballoc_t *sa, rmm_heap_body_t *body, rmm_block_node_t *node)
{
    bin_remove(sa, body, node);
    bin_insert(sa, body, node, bin_of(node->units));
}

/* ---- which part of it ------------------------------------------------------------- */

/* A large block is freed: how long do blocks live? */
static NOINLINE void learn_lifetime(rmm_suballoc_t *sa, const rmm_block_node_t *node)
{
    uint64_t life = (uint64_t)(sa->clock - node->birth) << HORIZON_ONE_LOG2;
    if (life >= sa->horizon) {
        sa->horizon = life;
    } else {
        sa->horizon -= (sa->horizon - life) >> HORIZON_ONE_LOG2;
    }
}

/* How soon a neighbour will be free, by its age; 0: it is here to stay. */
static uint64_t
how_soon(const rmm_suballoc_t *sa, const rmm_block_node_t *neighbour, bool is_fence)
{
    if (is_fence) {
        return 0;
    }
    if (neighbour->heap != RMM_HEAP_NONE) {
        return UINT64_MAX; /* free already, in another heap */
    }
    uint64_t age = sa->clock - neighbour->birth;
    return age << HORIZON_ONE_LOG2 > OLD_HORIZONS * sa->horizon ? 0 : age + 1;
}

/* Should what is left of this free block be its front? */
static NOINLINE bool is_better_at_back(const rmm_suballoc_t *sa, uint32_t index)
{
    const rmm_block_node_t *node = &sa->nodes[index];
    const rmm_block_node_t *prev = &sa->nodes[node->prev];
    const rmm_block_node_t *next = &sa->nodes[node->next];
    return how_soon(sa, prev, prev->unit >= node->unit) >
           how_soon(sa, next, next->unit <= node->unit);
}

/* Take `units` of a free block that has more; returns the node of what is taken. */
static inline uint32_t split(
    rmm_suballoc_t *sa, rmm_heap_body_t *body, uint32_t index, uint32_t units,
    bool front_only)
{
    uint32_t taken = node_take(sa);
    rmm_block_node_t *node = &sa->nodes[index];
    uint32_t rest = node->units - units;
    sa->nodes[taken].units = units;
    if (units >= LARGE_UNITS && !front_only && is_better_at_back(sa, index)) {
        sa->nodes[taken].unit = node->unit + rest;
        ring_insert(sa, index, taken, node->next);
    } else {
        sa->nodes[taken].unit = node->unit;
        ring_insert(sa, node->prev, taken, index);
        node->unit += units;
    }
    heap_resize(sa, body, node, rest);
    return taken;
}

INLINE rmm_block_t take(
    rmm_suballoc_t *sa, rmm_heap_body_t *body, uint32_t index, uint32_t units,
    bool front_only)
{
    if (sa->nodes[index].units == units) {
        heap_leave(sa, body, index);
    } else {
        index = split(sa, body, index, units, front_only);
    }
    body->free_units -= units;
    sa->total_free_units -= units;
    make_live(sa, &sa->nodes[index]);
    table_insert(sa, index);
    check_heavily(sa);
    return index;
}

/*
 * Cut `pad` units off the front of a free block; returns the part behind them, free as
 * well and of the same age. The front keeps the node.
 */
static uint32_t cut_pad(rmm_suballoc_t *sa, uint32_t index, uint32_t pad)
{
    uint32_t back = node_take(sa);
    rmm_block_node_t *node = &sa->nodes[index];
    rmm_heap_body_t *body = &sa->heaps[node->heap];
    sa->nodes[back].unit = node->unit + pad;
    sa->nodes[back].units = node->units - pad;
    ring_insert(sa, index, back, node->next);
    heap_resize(sa, body, node, pad);
    heap_enter(sa, node->heap, back);
    sa->ages[back].stamp = sa->ages[index].stamp;
    age_insert(sa, body, back, index);
    return back;
}

/*
 * The unsettled block, if it is just what is wanted: nothing changes but whose it is.
 * Otherwise 0.
 */
INLINE uint32_t take_unsettled(
    rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t units, uint32_t align_units)
{
    rmm_heap_body_t *body = &sa->heaps[heap];
    uint32_t index = body->unsettled;
    rmm_block_node_t *node = &sa->nodes[index];
    if (index == 0 || node->units != units || pad_of(node->unit, align_units) != 0) {
        return 0;
    }
    body->unsettled = 0;
    body->free_units -= units;
    sa->total_free_units -= units;
    make_live(sa, node);
    check_heavily(sa);
    return index;
}

/* What is taken stays aligned: from the front, whatever the neighbours are. */
static NOINLINE uint32_t
take_aligned(rmm_suballoc_t *sa, uint32_t index, uint32_t units, uint32_t align_units)
{
    uint32_t pad = pad_of(sa->nodes[index].unit, align_units);
    if (pad != 0) {
        index = cut_pad(sa, index, pad);
    }
    return take(sa, &sa->heaps[sa->nodes[index].heap], index, units, true);
}

/* Storage for any alloc: two nodes and a live block. */
INLINE bool has_storage(rmm_suballoc_t *sa, uint32_t align_units)
{
    if (RMM_SUBALLOC_UNLIKELY(
            sa->unused_nodes == 0 || sa->live_blocks >= sa->table_limit ||
            align_units > 1)) {
        return rmm__suballoc_reserve(sa);
    }
    return true;
}

/* Not inline: the path through take_unsettled() then saves no registers. */
static NOINLINE rmm_suballoc_result_t alloc_by_search(
    rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t units, uint32_t align_units,
    rmm_block_t *block_out)
{
    if (!has_storage(sa, align_units)) {
        return RMM_SUBALLOC_NO_STORAGE;
    }
    rmm__suballoc_settle(sa, heap);
    rmm_heap_body_t *body = &sa->heaps[heap];
    bool aligned = RMM_SUBALLOC_UNLIKELY(align_units > 1);
    uint32_t index = aligned ? find_aligned_fit(sa, body, units, align_units)
                             : find_fit(sa, body, units);
    if (RMM_SUBALLOC_UNLIKELY(index == 0)) {
        return RMM_SUBALLOC_NO_FIT;
    }
    *block_out = aligned ? take_aligned(sa, index, units, align_units)
                         : take(sa, body, index, units, false);
    return RMM_SUBALLOC_OK;
}

rmm_suballoc_result_t rmm__suballoc_alloc(
    rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t units, uint32_t align_units,
    rmm_block_t *block_out)
{
    assert(request_is_valid(sa, heap, units, align_units));
    uint32_t index = take_unsettled(sa, heap, units, align_units);
    if (index != 0) {
        *block_out = index;
        return RMM_SUBALLOC_OK;
    }
    return alloc_by_search(sa, heap, units, align_units, block_out);
}

static NOINLINE rmm_suballoc_result_t alloc_by_search_of_two(
    rmm_suballoc_t *sa, rmm_heap_t first, rmm_heap_t second, uint32_t units,
    uint32_t align_units, rmm_block_t *block_out)
{
    if (!has_storage(sa, align_units)) {
        return RMM_SUBALLOC_NO_STORAGE;
    }
    rmm__suballoc_settle(sa, first);
    rmm__suballoc_settle(sa, second);
    uint32_t index =
        find_either(sa, &sa->heaps[first], &sa->heaps[second], units, align_units);
    if (RMM_SUBALLOC_UNLIKELY(index == 0)) {
        return RMM_SUBALLOC_NO_FIT;
    }
    *block_out = RMM_SUBALLOC_UNLIKELY(align_units > 1)
                     ? take_aligned(sa, index, units, align_units)
                     : take(sa, &sa->heaps[sa->nodes[index].heap], index, units, false);
    return RMM_SUBALLOC_OK;
}

rmm_suballoc_result_t rmm__suballoc_alloc_either(
    rmm_suballoc_t *sa, rmm_heap_t first, rmm_heap_t second, uint32_t units,
    uint32_t align_units, rmm_block_t *block_out)
{
    assert(request_is_valid(sa, first, units, align_units));
    assert(heap_is_valid(sa, second) && first != second);
    uint32_t index = take_unsettled(sa, first, units, align_units);
    if (index != 0) {
        *block_out = index;
        return RMM_SUBALLOC_OK;
    }
    return alloc_by_search_of_two(sa, first, second, units, align_units, block_out);
}

/* ---- giving back ------------------------------------------------------------------ */

/* A node that is in no heap, between two free neighbours in the heap: all become one. */
static NOINLINE uint32_t
merge_both(rmm_suballoc_t *sa, rmm_heap_body_t *body, uint32_t index)
{
    uint32_t prev = sa->nodes[index].prev, next = sa->nodes[index].next;
    rmm_block_node_t *low = &sa->nodes[prev], *high = &sa->nodes[next];
    uint32_t units = low->units + sa->nodes[index].units + high->units;
    uint32_t keep =
        low->units >= high->units ? prev : next; /* rather stays in its bin */
    uint32_t before = low->prev, unit = low->unit, after = high->next;
    uint32_t drop = keep == prev ? next : prev;
    heap_leave(sa, body, drop);
    ring_insert(sa, before, keep, after);
    sa->nodes[keep].unit = unit;
    heap_resize(sa, body, &sa->nodes[keep], units);
    node_put(sa, drop);
    node_put(sa, index);
    return keep;
}

/* The same with one free neighbour, which keeps its node. */
INLINE uint32_t
merge_one(rmm_suballoc_t *sa, rmm_heap_body_t *body, uint32_t index, bool with_prev)
{
    rmm_block_node_t *node = &sa->nodes[index];
    uint32_t keep = with_prev ? node->prev : node->next;
    rmm_block_node_t *kept = &sa->nodes[keep];
    if (with_prev) {
        kept->next = node->next;
        sa->nodes[node->next].prev = keep;
    } else {
        kept->prev = node->prev;
        sa->nodes[node->prev].next = keep;
        kept->unit = node->unit;
    }
    heap_resize(sa, body, kept, kept->units + node->units);
    node_put(sa, index);
    return keep;
}

/* A node that is in no heap becomes free, or part of a free neighbour. */
INLINE void join(rmm_suballoc_t *sa, uint32_t index, rmm_heap_t heap, uint64_t stamp)
{
    rmm_heap_body_t *body = &sa->heaps[heap];
    const rmm_block_node_t *node = &sa->nodes[index];
    bool with_prev = sa->nodes[node->prev].heap == heap;
    bool with_next = sa->nodes[node->next].heap == heap;
    assert(body->newest == 0 || sa->ages[body->newest].stamp <= stamp);
    if (with_prev || with_next) {
        index = with_prev && with_next ? merge_both(sa, body, index)
                                       : merge_one(sa, body, index, with_prev);
        if (body->newest == index) {
            sa->ages[index].stamp = stamp;
            return;
        }
        age_remove(sa, body, index);
    } else {
        heap_enter(sa, heap, index);
    }
    sa->ages[index].stamp = stamp;
    age_insert(sa, body, index, body->newest);
}

NOINLINE void rmm__suballoc_settle(rmm_suballoc_t *sa, rmm_heap_t heap)
{
    rmm_heap_body_t *body = &sa->heaps[heap];
    uint32_t index = body->unsettled;
    if (index != 0) {
        body->unsettled = 0;
        table_remove(sa, index);
        join(sa, index, heap, sa->ages[index].stamp);
    }
}

/* A live block becomes its heap's unsettled one. */
INLINE void
leave_unsettled(rmm_suballoc_t *sa, rmm_block_t block, rmm_heap_t heap, uint64_t stamp)
{
    rmm_heap_body_t *body = &sa->heaps[heap];
    rmm_block_node_t *node = &sa->nodes[block];
    assert(body->newest == 0 || sa->ages[body->newest].stamp <= stamp);
    __builtin_prefetch(&sa->nodes[node->prev]); /* for settle() */
    __builtin_prefetch(&sa->nodes[node->next]);
    node->heap = heap;
    sa->ages[block].stamp = stamp;
    body->unsettled = block;
    body->free_units += node->units;
    sa->total_free_units += node->units;
    sa->live_blocks--;
    check_heavily(sa);
}

static NOINLINE void
free_with_more(rmm_suballoc_t *sa, rmm_block_t block, rmm_heap_t heap, uint64_t stamp)
{
    rmm__suballoc_settle(sa, heap);
    if (sa->nodes[block].units >= LARGE_UNITS) {
        learn_lifetime(sa, &sa->nodes[block]);
    }
    leave_unsettled(sa, block, heap, stamp);
}

void rmm__suballoc_free(
    rmm_suballoc_t *sa, rmm_block_t block, rmm_heap_t heap, uint64_t stamp)
{
    assert(heap_is_valid(sa, heap));
    assert(
        rmm__suballoc_find(sa, sa->nodes[block].unit) == block && "the block is live");
    if (sa->heaps[heap].unsettled != 0 || sa->nodes[block].units >= LARGE_UNITS) {
        free_with_more(sa, block, heap, stamp);
    } else {
        leave_unsettled(sa, block, heap, stamp);
    }
}

uint64_t rmm__suballoc_transfer(
    rmm_suballoc_t *sa, rmm_heap_t from, rmm_heap_t to, uint64_t up_to,
    uint64_t new_stamp)
{
    assert(heap_is_valid(sa, from) && heap_is_valid(sa, to) && from != to);
    rmm__suballoc_settle(sa, from);
    rmm__suballoc_settle(sa, to);
    rmm_heap_body_t *body = &sa->heaps[from];
    uint64_t moved = 0;
    while (body->oldest != 0 && sa->ages[body->oldest].stamp <= up_to) {
        uint32_t index = body->oldest;
        moved += sa->nodes[index].units;
        heap_leave(sa, body, index);
        join(sa, index, to, new_stamp);
    }
    body->free_units -= moved;
    sa->heaps[to].free_units += moved;
    check_heavily(sa);
    return moved;
}

static inline bool
node_holds(const rmm_block_node_t *node, uint32_t unit, uint32_t units)
{
    return node->unit <= unit && units <= node->units &&
           unit - node->unit <= node->units - units;
}

/* The heap's settled free block that these units are all in, or 0. */
static uint32_t block_around(
    const rmm_suballoc_t *sa, const rmm_heap_body_t *body, uint32_t unit,
    uint32_t units)
{
    uint32_t head = head_at_or_above(body, bin_of(units));
    while (head != 0) {
        uint32_t bin = sa->nodes[head].bin;
        for (uint32_t index = head; index != 0; index = sa->nodes[index].link_next) {
            if (node_holds(&sa->nodes[index], unit, units)) {
                return index;
            }
        }
        head = head_at_or_above(body, bin + 1);
    }
    return 0;
}

void rmm__suballoc_walk_free(
    rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t units,
    void (*fn)(void *context, uint32_t unit, uint32_t units), void *context)
{
    assert(heap_is_valid(sa, heap) && units > 0);
    rmm__suballoc_settle(sa, heap);
    const rmm_heap_body_t *body = &sa->heaps[heap];
    uint32_t head = head_at_or_above(body, bin_of(units));
    while (head != 0) {
        uint32_t bin = sa->nodes[head].bin;
        for (uint32_t index = head; index != 0; index = sa->nodes[index].link_next) {
            const rmm_block_node_t *node = &sa->nodes[index];
            if (node->units >= units) {
                fn(context, node->unit, node->units);
            }
        }
        head = head_at_or_above(body, bin + 1);
    }
}

rmm_suballoc_result_t rmm__suballoc_move(
    rmm_suballoc_t *sa, rmm_heap_t from, rmm_heap_t to, uint32_t unit, uint32_t units,
    uint64_t stamp)
{
    assert(heap_is_valid(sa, from) && heap_is_valid(sa, to) && from != to && units > 0);
    if (!rmm__suballoc_reserve(sa)) { /* two nodes: what is left before and behind */
        return RMM_SUBALLOC_NO_STORAGE;
    }
    rmm__suballoc_settle(sa, from);
    rmm__suballoc_settle(sa, to);
    uint32_t index = block_around(sa, &sa->heaps[from], unit, units);
    if (index == 0) {
        return RMM_SUBALLOC_NO_FIT;
    }
    if (sa->nodes[index].unit != unit) {
        index = cut_pad(sa, index, unit - sa->nodes[index].unit);
    }
    if (sa->nodes[index].units != units) {
        cut_pad(sa, index, units);
    }
    heap_leave(sa, &sa->heaps[from], index);
    sa->heaps[from].free_units -= units;
    sa->heaps[to].free_units += units;
    join(sa, index, to, stamp);
    check_heavily(sa);
    return RMM_SUBALLOC_OK;
}
