/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Take and free: the hot part of the block manager.
 *
 * A block that is split keeps its node for the remainder, and a free block that grows by a
 * merge keeps its node too. So a take from a large free block and the following free change
 * only that block's unit and units.
 *
 * The most frequent pair, a free and then a take of the same size in the same heap, does
 * not even do that: the block stays as it is, in the table and unmerged (rule 4).
 *
 * Live blocks are found by unit in a table of buckets, each the head of a chain. A lookup
 * touches the bucket and the block itself, which is needed anyway; an insertion needs no
 * search. With half as many blocks as buckets, a chain has 1.25 blocks on average.
 */
#include "pool/blocks_impl.h"

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

/* --- which free block ---------------------------------------------------------------- */

/* How loose the fit is. A block that ends beyond the frontier is the loosest, at any size. */
static uint64_t looseness(const rmm_blocks_t *blocks, const rmm_index_entry_t *entry)
{
    return entry->unit + entry->units > blocks->frontier ? UINT64_MAX : entry->units;
}

/* The first few fits of a heap, by address; returns how many. */
static inline uint32_t first_fits(
    const rmm_blocks_t *blocks, rmm_heap_t heap, const rmm_blocks_request_t *request,
    rmm_index_entry_t *fits)
{
    return rmm__index_first_fits(
        &blocks->index_nodes, &blocks->heaps[heap].index, request->units,
        request->align_units, fits, RMM_BLOCKS_FEW);
}

/* Choose the free block to take from: the tightest of the first few fits, by address, of both
 * heaps together; the lowest of equally tight ones. One of no units: nothing fits. */
static rmm_index_entry_t find_fit(
    const rmm_blocks_t *blocks, rmm_heap_t own, rmm_heap_t shared,
    const rmm_blocks_request_t *request)
{
    rmm_index_entry_t a[RMM_BLOCKS_FEW], b[RMM_BLOCKS_FEW], best = {0};
    uint32_t a_count = first_fits(blocks, own, request, a);
    uint32_t b_count = own != shared ? first_fits(blocks, shared, request, b) : 0;
    uint32_t a_at = 0, b_at = 0;
    uint64_t least = 0;

    while (a_at + b_at < RMM_BLOCKS_FEW && (a_at < a_count || b_at < b_count)) {
        bool is_a = b_at == b_count || (a_at < a_count && a[a_at].unit < b[b_at].unit);
        const rmm_index_entry_t *next = is_a ? &a[a_at++] : &b[b_at++];
        uint64_t loose = looseness(blocks, next);

        if (best.units == 0 || loose < least) {
            best = *next;
            least = loose;
        }
    }
    return best;
}

/* --- take ---------------------------------------------------------------------------- */

/* The block is in use now. */
static inline void make_live(rmm_blocks_t *blocks, rmm_block_node_t *node)
{
    uint64_t end = node->unit + node->units;

    node->heap = RMM_HEAP_NONE;
    node->tag = 0;
    blocks->live_count++;
    blocks->total_free_units -= node->units;
    blocks->frontier = end > blocks->frontier ? end : blocks->frontier;
}

/*
 * Cut `units` off the front of a free block into a node of their own, which is in no heap;
 * the block keeps its node and its age.
 */
static uint32_t cut_front(rmm_blocks_t *blocks, uint32_t index, uint32_t units)
{
    uint32_t front = node_take(blocks);
    rmm_block_node_t *node = &blocks->nodes[index];
    uint64_t unit = node->unit;

    blocks->nodes[front].unit = unit;
    blocks->nodes[front].units = units;
    blocks->nodes[front].heap = HEAP_UNUSED;
    list_insert(blocks, node->prev, front, index);
    node->unit += units;
    node->units -= units;
    heap_changed(blocks, &blocks->heaps[node->heap], index, unit);
    return front;
}

/* Take the front of a free block that a search has found. */
static rmm_block_t take_from(rmm_blocks_t *blocks, uint32_t index, uint32_t units)
{
    rmm_heap_body_t *body = &blocks->heaps[blocks->nodes[index].heap];

    if (blocks->nodes[index].units == units) {
        heap_leave(blocks, body, index);
    } else {
        index = cut_front(blocks, index, units);
    }
    body->free_units -= units;
    make_live(blocks, &blocks->nodes[index]);
    table_insert(blocks, index);
    check_heavily(blocks);
    return index;
}

/* Take the recent block if it fits exactly: it only changes from free to live. Otherwise
 * 0. */
INLINE uint32_t
take_recent(rmm_blocks_t *blocks, rmm_heap_t heap, const rmm_blocks_request_t *request)
{
    rmm_heap_body_t *body = &blocks->heaps[heap];
    uint32_t index = body->recent;
    rmm_block_node_t *node = &blocks->nodes[index];

    if (index == 0 || node->units != request->units ||
        rmm__index_pad(node->unit, request->align_units) != 0) {
        return 0;
    }
    body->recent = 0;
    body->free_units -= node->units;
    make_live(blocks, node);
    check_heavily(blocks);
    return index;
}

/* Not inline, so that the path through take_recent() saves no registers. */
static NOINLINE rmm_blocks_result_t take_by_search(
    rmm_blocks_t *blocks, rmm_heap_t own, rmm_heap_t shared,
    const rmm_blocks_request_t *request, rmm_block_t *block_out)
{
    rmm_index_entry_t fit;
    uint32_t index, pad;

    if (!rmm__blocks_reserve(blocks)) {
        return RMM_BLOCKS_NO_STORAGE;
    }
    rmm__blocks_settle(blocks, own);
    rmm__blocks_settle(blocks, shared);
    fit = find_fit(blocks, own, shared, request);
    if (fit.units == 0) {
        return RMM_BLOCKS_NO_FIT;
    }
    pad = rmm__index_pad(fit.unit, request->align_units);
    index = pad != 0 ? rmm__blocks_cut_back(blocks, fit.block, pad) : fit.block;
    *block_out = take_from(blocks, index, request->units);
    return RMM_BLOCKS_OK;
}

rmm_blocks_result_t rmm__blocks_take(
    rmm_blocks_t *blocks, rmm_heap_t own, rmm_heap_t shared,
    const rmm_blocks_request_t *request, rmm_block_t *block_out)
{
    uint32_t index;

    assert(heap_is_valid(blocks, own) && heap_is_valid(blocks, shared));
    assert(request->units > 0 && request->align_units > 0);
    assert((request->align_units & (request->align_units - 1)) == 0);
    index = take_recent(blocks, own, request);
    if (index != 0) {
        *block_out = index;
        return RMM_BLOCKS_OK;
    }
    return take_by_search(blocks, own, shared, request, block_out);
}

rmm_blocks_result_t rmm__blocks_take_recent(
    rmm_blocks_t *blocks, rmm_heap_t own, const rmm_blocks_request_t *request,
    rmm_block_t *block_out)
{
    uint32_t index = take_recent(blocks, own, request);

    if (index == 0) {
        return RMM_BLOCKS_NOT_RECENT;
    }
    *block_out = index;
    return RMM_BLOCKS_OK;
}

rmm_block_t rmm__blocks_find(const rmm_blocks_t *blocks, uint64_t unit)
{
    return rmm__blocks_look_up(blocks, unit);
}

/* --- free ---------------------------------------------------------------------------- */

void rmm__blocks_enter(
    rmm_blocks_t *blocks, uint32_t index, rmm_heap_t heap, uint64_t stamp)
{
    rmm_heap_body_t *body = &blocks->heaps[heap];
    const rmm_block_node_t *node = &blocks->nodes[index];
    bool with_prev = merges_with(blocks, node->prev, heap, stamp);
    bool with_next = merges_with(blocks, node->next, heap, stamp);

    assert(body->newest == 0 || blocks->ages[body->newest].stamp <= stamp);
    if (with_prev && with_next) {
        heap_leave(blocks, body, node->next);
        glue(blocks, index, node->next);
    }
    if (with_prev || with_next) {
        uint32_t keep = with_prev ? node->prev : node->next;

        absorb(blocks, body, keep, index);
        index = keep;
        if (body->newest == index) {
            blocks->ages[index].stamp = stamp;
            return;
        }
        age_remove(blocks, body, index);
    } else {
        heap_enter(blocks, heap, index);
    }
    blocks->ages[index].stamp = stamp;
    age_insert(blocks, body, index, body->newest);
}

NOINLINE void rmm__blocks_settle_recent(rmm_blocks_t *blocks, rmm_heap_t heap)
{
    rmm_heap_body_t *body = &blocks->heaps[heap];
    uint32_t index = body->recent;

    body->recent = 0;
    table_remove(blocks, index);
    blocks->nodes[index].heap = HEAP_UNUSED;
    rmm__blocks_enter(blocks, index, heap, blocks->ages[index].stamp);
}

INLINE void
make_recent(rmm_blocks_t *blocks, rmm_block_t block, rmm_heap_t heap, uint64_t stamp)
{
    rmm_heap_body_t *body = &blocks->heaps[heap];
    rmm_block_node_t *node = &blocks->nodes[block];

    assert(body->newest == 0 || blocks->ages[body->newest].stamp <= stamp);
    __builtin_prefetch(&blocks->nodes[node->prev]); /* for settle() */
    __builtin_prefetch(&blocks->nodes[node->next]);
    node->heap = heap;
    blocks->ages[block].stamp = stamp;
    body->recent = block;
    body->free_units += node->units;
    blocks->total_free_units += node->units;
    blocks->live_count--;
    check_heavily(blocks);
}

static NOINLINE void settle_and_free(
    rmm_blocks_t *blocks, rmm_block_t block, rmm_heap_t heap, uint64_t stamp)
{
    rmm__blocks_settle_recent(blocks, heap);
    make_recent(blocks, block, heap, stamp);
}

void rmm__blocks_free(
    rmm_blocks_t *blocks, rmm_block_t block, rmm_heap_t heap, uint64_t stamp)
{
    assert(heap_is_valid(blocks, heap));
    assert(
        rmm__blocks_find(blocks, blocks->nodes[block].unit) == block &&
        "the block is live");
    if (blocks->heaps[heap].recent != 0) {
        settle_and_free(blocks, block, heap, stamp);
    } else {
        make_recent(blocks, block, heap, stamp);
    }
}
