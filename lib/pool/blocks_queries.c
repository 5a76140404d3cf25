/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries of an owner about its blocks and heaps.
 */
#include "pool/blocks_impl.h"

uint64_t rmm__blocks_free_units(const rmm_blocks_t *blocks, rmm_heap_t heap)
{
    assert(heap_is_valid(blocks, heap));
    return blocks->heaps[heap].free_units;
}

uint32_t rmm__blocks_largest_free(const rmm_blocks_t *blocks, rmm_heap_t heap)
{
    assert(heap_is_valid(blocks, heap));
    return rmm__blocks_look_largest(blocks, heap);
}

uint64_t rmm__blocks_oldest_stamp(rmm_blocks_t *blocks, rmm_heap_t heap)
{
    uint32_t oldest;

    assert(heap_is_valid(blocks, heap));
    rmm__blocks_settle(blocks, heap);
    oldest = blocks->heaps[heap].oldest;
    return oldest == 0 ? UINT64_MAX : blocks->ages[oldest].stamp;
}

uint64_t rmm__blocks_newest_stamp(rmm_blocks_t *blocks, rmm_heap_t heap)
{
    uint32_t newest;

    assert(heap_is_valid(blocks, heap));
    rmm__blocks_settle(blocks, heap);
    newest = blocks->heaps[heap].newest;
    return newest == 0 ? 0 : blocks->ages[newest].stamp;
}

uint64_t
rmm__blocks_units_after(const rmm_blocks_t *blocks, rmm_heap_t heap, uint64_t stamp)
{
    const rmm_heap_body_t *body = &blocks->heaps[heap];
    uint64_t units = 0;

    assert(heap_is_valid(blocks, heap));
    if (body->recent != 0 && blocks->ages[body->recent].stamp > stamp) {
        units += blocks->nodes[body->recent].units;
    }
    for (uint32_t index = body->newest; index != 0 && blocks->ages[index].stamp > stamp;
         index = blocks->ages[index].older) {
        units += blocks->nodes[index].units;
    }
    return units;
}

bool rmm__blocks_free_around(
    rmm_blocks_t *blocks, rmm_heap_t heap, uint64_t unit, uint64_t *unit_out,
    uint32_t *units_out)
{
    rmm_index_entry_t entry;

    assert(heap_is_valid(blocks, heap));
    rmm__blocks_settle(blocks, heap);
    if (!rmm__index_at(
            &blocks->index_nodes, &blocks->heaps[heap].index, unit, &entry) ||
        unit - entry.unit >= entry.units) {
        return false;
    }
    *unit_out = entry.unit;
    *units_out = entry.units;
    return true;
}

uint64_t rmm__blocks_total_free_units(const rmm_blocks_t *blocks)
{
    return blocks->total_free_units;
}

uint32_t rmm__blocks_live_count(const rmm_blocks_t *blocks)
{
    return blocks->live_count;
}

/* Describe a block with the neighbours that it will merge with; returns the node after it. */
static uint32_t
describe(const rmm_blocks_t *blocks, uint32_t index, rmm_block_info_t *info_out)
{
    const rmm_block_node_t *node = &blocks->nodes[index];

    *info_out = (rmm_block_info_t){
        .unit = node->unit, .units = node->units, .heap = node->heap};
    if (node_is_live(node)) {
        info_out->heap = RMM_HEAP_NONE;
        info_out->tag = node->tag;
        return node->next;
    }
    info_out->stamp = blocks->ages[index].stamp;
    for (index = node->next; merges_with(blocks, index, node->heap, info_out->stamp);
         index = blocks->nodes[index].next) {
        uint64_t stamp = blocks->ages[index].stamp;

        info_out->units += blocks->nodes[index].units;
        info_out->stamp = stamp > info_out->stamp ? stamp : info_out->stamp;
    }
    return index;
}

void rmm__blocks_walk(
    const rmm_blocks_t *blocks, bool (*fn)(void *context, const rmm_block_info_t *info),
    void *context)
{
    for (uint32_t first = 1; first < blocks->used_nodes; first++) {
        uint32_t index = first;

        if (blocks->nodes[first].heap == HEAP_UNUSED ||
            blocks->nodes[first].prev != 0) {
            continue; /* no block, or not the first one of its run */
        }
        while (index != 0) {
            rmm_block_info_t info;

            index = describe(blocks, index, &info);
            if (!fn(context, &info)) {
                return;
            }
        }
    }
}

void rmm__blocks_walk_free(
    rmm_blocks_t *blocks, rmm_heap_t heap, uint32_t units,
    bool (*fn)(void *context, const rmm_index_entry_t *block), void *context)
{
    assert(heap_is_valid(blocks, heap) && units > 0);
    rmm__blocks_settle(blocks, heap);
    rmm__index_walk(
        &blocks->index_nodes, &blocks->heaps[heap].index, units, fn, context);
}
