/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of blocks, and blocks that change heaps or leave the manager: what an engine does
 * when events finish, when it grows and when it gives memory back. The hot part is blocks.c.
 */
#include "pool/blocks_impl.h"

/* --- parts of a live block ----------------------------------------------------------- */

/* Split a block after its first `units`. The back is a node in no heap. */
static uint32_t split(rmm_blocks_t *blocks, uint32_t index, uint32_t units)
{
    uint32_t back = node_take(blocks);
    rmm_block_node_t *node = &blocks->nodes[index];

    blocks->nodes[back] = (rmm_block_node_t){
        .unit = node->unit + units,
        .units = node->units - units,
        .heap = HEAP_UNUSED,
        .tag = node->tag};
    node->units = units;
    list_insert(blocks, index, back, node->next);
    return back;
}

static uint32_t split_live(rmm_blocks_t *blocks, uint32_t index, uint32_t units)
{
    uint32_t back = split(blocks, index, units);

    blocks->nodes[back].heap = blocks->nodes[index].heap;
    table_insert(blocks, back);
    blocks->live_count++;
    return back;
}

bool rmm__blocks_free_part(
    rmm_blocks_t *blocks, rmm_block_t block, uint64_t unit, uint32_t units,
    rmm_heap_t heap, uint64_t stamp)
{
    uint32_t front = (uint32_t)(unit - blocks->nodes[block].unit);
    uint32_t back = blocks->nodes[block].units - front - units;

    assert(unit >= blocks->nodes[block].unit && units > 0);
    assert((uint64_t)front + units <= blocks->nodes[block].units);
    if ((front != 0 || back != 0) && !rmm__blocks_reserve(blocks)) {
        return false;
    }
    if (front != 0) {
        block = split_live(blocks, block, front);
    }
    if (back != 0) {
        split_live(blocks, block, units);
    }
    rmm__blocks_free(blocks, block, heap, stamp);
    return true;
}

/* --- between heaps ------------------------------------------------------------------- */

/* Move a whole settled free block to another heap. */
static void shift(rmm_blocks_t *blocks, uint32_t index, rmm_heap_t to, uint64_t stamp)
{
    rmm_heap_body_t *body = &blocks->heaps[blocks->nodes[index].heap];
    uint32_t units = blocks->nodes[index].units;

    heap_leave(blocks, body, index);
    body->free_units -= units;
    blocks->heaps[to].free_units += units;
    blocks->nodes[index].heap = HEAP_UNUSED;
    rmm__blocks_enter(blocks, index, to, stamp);
}

uint64_t rmm__blocks_transfer(
    rmm_blocks_t *blocks, rmm_heap_t from, rmm_heap_t to, uint64_t up_to,
    uint64_t new_stamp)
{
    rmm_heap_body_t *body = &blocks->heaps[from];
    uint64_t before;

    assert(heap_is_valid(blocks, from) && heap_is_valid(blocks, to) && from != to);
    rmm__blocks_settle(blocks, from);
    rmm__blocks_settle(blocks, to);
    before = body->free_units;
    while (body->oldest != 0 && blocks->ages[body->oldest].stamp <= up_to) {
        shift(blocks, body->oldest, to, new_stamp);
    }
    check_heavily(blocks);
    return before - body->free_units;
}

/* The heap's settled free block that contains all these units, or 0. */
static uint32_t
block_around(const rmm_blocks_t *blocks, rmm_heap_t heap, uint64_t unit, uint32_t units)
{
    rmm_index_entry_t entry;
    bool found =
        rmm__index_at(&blocks->index_nodes, &blocks->heaps[heap].index, unit, &entry);

    return found && unit + units <= entry.unit + entry.units ? entry.block : 0;
}

uint32_t rmm__blocks_cut_back(rmm_blocks_t *blocks, uint32_t index, uint32_t units)
{
    uint32_t back = split(blocks, index, units);
    const rmm_block_node_t *node = &blocks->nodes[index];
    rmm_heap_body_t *body = &blocks->heaps[node->heap];

    heap_changed(blocks, body, index, node->unit);
    heap_enter(blocks, node->heap, back);
    blocks->ages[back].stamp = blocks->ages[index].stamp;
    age_insert(blocks, body, back, index);
    return back;
}

/* Split a free block so that these units are a block of their own. Two nodes are reserved. */
static uint32_t
isolate(rmm_blocks_t *blocks, uint32_t index, uint64_t unit, uint32_t units)
{
    if (blocks->nodes[index].unit != unit) {
        index = rmm__blocks_cut_back(
            blocks, index, (uint32_t)(unit - blocks->nodes[index].unit));
    }
    if (blocks->nodes[index].units != units) {
        rmm__blocks_cut_back(blocks, index, units);
    }
    return index;
}

rmm_blocks_result_t rmm__blocks_move(
    rmm_blocks_t *blocks, rmm_heap_t from, rmm_heap_t to, uint64_t unit, uint32_t units,
    uint64_t stamp)
{
    uint32_t index;

    assert(heap_is_valid(blocks, from) && heap_is_valid(blocks, to) && from != to);
    assert(units > 0);
    if (!rmm__blocks_reserve(blocks)) { /* two nodes, for what is left on either side */
        return RMM_BLOCKS_NO_STORAGE;
    }
    rmm__blocks_settle(blocks, from);
    rmm__blocks_settle(blocks, to);
    index = block_around(blocks, from, unit, units);
    if (index == 0) {
        return RMM_BLOCKS_NO_FIT;
    }
    shift(blocks, isolate(blocks, index, unit, units), to, stamp);
    check_heavily(blocks);
    return RMM_BLOCKS_OK;
}

/* Remove the front or the back of a free block from the manager. */
static void
forget_end(rmm_blocks_t *blocks, uint32_t index, uint64_t from, uint32_t units)
{
    rmm_block_node_t *node = &blocks->nodes[index];
    uint64_t unit = node->unit;

    if (from == unit) {
        blocks->nodes[node->prev].next = 0;
        node->prev = 0;
        node->unit += units;
    } else {
        blocks->nodes[node->next].prev = 0;
        node->next = 0;
    }
    node->units -= units;
    heap_changed(blocks, &blocks->heaps[node->heap], index, unit);
}

static void forget(rmm_blocks_t *blocks, uint32_t index)
{
    rmm_block_node_t *node = &blocks->nodes[index];

    blocks->nodes[node->prev].next = 0;
    blocks->nodes[node->next].prev = 0;
    heap_leave(blocks, &blocks->heaps[node->heap], index);
    node_put(blocks, index);
}

bool rmm__blocks_cut(
    rmm_blocks_t *blocks, rmm_heap_t heap, uint64_t unit, uint32_t units)
{
    uint32_t index, before;

    assert(heap_is_valid(blocks, heap) && units > 0);
    rmm__blocks_settle(blocks, heap);
    index = block_around(blocks, heap, unit, units);
    if (index == 0) {
        return false;
    }
    before = (uint32_t)(unit - blocks->nodes[index].unit);
    if (before != 0 && before + units < blocks->nodes[index].units) {
        if (!rmm__blocks_reserve(blocks)) {
            return false;
        }
        index = rmm__blocks_cut_back(blocks, index, before);
    }
    if (blocks->nodes[index].units == units) {
        forget(blocks, index);
    } else {
        forget_end(blocks, index, unit, units);
    }
    blocks->heaps[heap].free_units -= units;
    blocks->total_free_units -= units;
    check_heavily(blocks);
    return true;
}

/* --- adjacent room ------------------------------------------------------------------- */

/* Units of this node if it is free in the heap. */
static uint32_t units_in(const rmm_blocks_t *blocks, uint32_t index, rmm_heap_t heap)
{
    const rmm_block_node_t *node = &blocks->nodes[index];

    return node->heap == heap ? node->units : 0;
}

/* How many units are missing where `beside` are free already, in whole granules. */
static uint64_t missing_of(uint64_t units, uint64_t beside, uint32_t granule)
{
    uint64_t lacking = units > beside ? units - beside : 0;

    return (lacking + granule - 1) / granule * granule;
}

/* The cheapest way to get the units by filling this block of `gaps`. False: it is too small. */
static bool gap_at(
    const rmm_blocks_t *blocks, uint32_t index, rmm_heap_t filled,
    const rmm_blocks_request_t *request, uint32_t granule, rmm_blocks_gap_t *gap)
{
    const rmm_block_node_t *node = &blocks->nodes[index];
    const uint64_t end = node->unit + node->units;
    uint32_t before = units_in(blocks, node->prev, filled);
    uint32_t after = units_in(blocks, node->next, filled);
    uint64_t units = (uint64_t)request->units +
                     rmm__index_pad(node->unit - before, request->align_units);
    uint64_t from_front = missing_of(units, before, granule);
    uint64_t from_back = missing_of(request->units, after, granule);

    if (from_back < from_front && from_back <= node->units &&
        rmm__index_pad(end - from_back, request->align_units) == 0) {
        *gap = (rmm_blocks_gap_t){
            .unit = end - from_back,
            .units = (uint32_t)from_back,
            .room = (uint32_t)from_back,
            .before = from_back == node->units ? before : 0,
            .after = after};
        return true;
    }
    if (from_front > node->units) {
        from_front =
            node->units; /* only the whole gap and both sides together may have the room */
    }
    *gap = (rmm_blocks_gap_t){
        .unit = node->unit,
        .units = (uint32_t)from_front,
        .room = node->units,
        .before = before,
        .after = from_front == node->units ? after : 0};
    return from_front + gap->before + gap->after >= units;
}

bool rmm__blocks_find_gap(
    rmm_blocks_t *blocks, rmm_heap_t gaps, rmm_heap_t filled,
    const rmm_blocks_request_t *request, uint32_t granule, rmm_blocks_gap_t *gap_out)
{
    bool found = false;

    assert(heap_is_valid(blocks, gaps) && heap_is_valid(blocks, filled));
    assert(gaps != filled && request->units > 0 && granule > 0);
    rmm__blocks_settle(blocks, gaps);
    rmm__blocks_settle(blocks, filled);
    for (uint32_t index = blocks->heaps[gaps].oldest; index != 0;
         index = blocks->ages[index].newer) {
        rmm_blocks_gap_t gap;

        if (gap_at(blocks, index, filled, request, granule, &gap) &&
            (!found || gap.units < gap_out->units ||
             (gap.units == gap_out->units && gap.unit < gap_out->unit))) {
            *gap_out = gap;
            found = true;
        }
    }
    return found;
}
