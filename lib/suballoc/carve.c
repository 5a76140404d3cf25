/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of blocks and of regions, for an owner that lends pieces of one manager's live
 * block to another manager and takes them back in other pieces (the arena's superblocks).
 * Rare, and O(1) but for the list of regions.
 */
#include "suballoc/suballoc_impl.h"

/* Everything behind the first `units` of a live block becomes a live block too. */
static uint32_t cut(rmm_suballoc_t *sa, uint32_t index, uint32_t units)
{
    uint32_t rest = node_take(sa);
    rmm_block_node_t *node = &sa->nodes[index];
    sa->nodes[rest] = (rmm_block_node_t){
        .unit = node->unit + units,
        .units = node->units - units,
        .heap = RMM_HEAP_NONE,
        .tag = node->tag,
        .birth = node->birth};
    node->units = units;
    ring_insert(sa, index, rest, node->next);
    table_insert(sa, rest);
    sa->live_blocks++;
    return rest;
}

static void uncut(rmm_suballoc_t *sa, uint32_t index, uint32_t rest)
{
    uint32_t after = sa->nodes[rest].next;
    sa->nodes[index].units += sa->nodes[rest].units;
    sa->nodes[index].next = after;
    sa->nodes[after].prev = index;
    table_remove(sa, rest);
    node_put(sa, rest);
    sa->live_blocks--;
}

bool rmm__suballoc_free_part(
    rmm_suballoc_t *sa, rmm_block_t block, uint32_t unit, uint32_t units,
    rmm_heap_t heap, uint64_t stamp)
{
    uint32_t front = unit - sa->nodes[block].unit;
    uint32_t back = sa->nodes[block].units - front - units;
    uint32_t middle = block;
    assert(unit >= sa->nodes[block].unit && units > 0);
    assert((uint64_t)front + units <= sa->nodes[block].units);
    if (front != 0) {
        if (!rmm__suballoc_reserve(sa)) {
            return false;
        }
        middle = cut(sa, block, front);
    }
    if (back != 0) {
        if (!rmm__suballoc_reserve(sa)) {
            if (front != 0) {
                uncut(sa, block, middle);
            }
            return false;
        }
        cut(sa, middle, units);
    }
    rmm__suballoc_free(sa, middle, heap, stamp);
    return true;
}

uint32_t rmm__suballoc_region_start(const rmm_suballoc_t *sa, uint32_t unit)
{
    uint32_t count = rmm__suballoc_regions_up_to(sa, unit);
    assert(
        count > 0 &&
        unit - sa->regions[count - 1].first_unit < sa->regions[count - 1].units);
    return sa->regions[count - 1].first_unit;
}

/* A fence closes a ring that begins with one block and ends with another. */
static void close_ring(
    rmm_suballoc_t *sa, const rmm_region_t *region, uint32_t first, uint32_t last)
{
    rmm_block_node_t *fence = &sa->nodes[region->fence];
    fence->unit = region->first_unit;
    fence->units = region->units;
    fence->next = first;
    fence->prev = last;
    sa->nodes[first].prev = region->fence;
    sa->nodes[last].next = region->fence;
}

void rmm__suballoc_carve(rmm_suballoc_t *sa, rmm_block_t block)
{
    const rmm_block_node_t gone = sa->nodes[block];
    uint32_t place = rmm__suballoc_regions_up_to(sa, gone.unit) - 1;
    rmm_region_t front = sa->regions[place];
    rmm_region_t back = {gone.unit + gone.units, 0, block}; /* its node: a fence */
    uint32_t first = sa->nodes[front.fence].next, last = sa->nodes[front.fence].prev;
    bool has_front = gone.prev != front.fence, has_back = gone.next != front.fence;
    assert(gone.heap == RMM_HEAP_NONE && "the block is live");
    assert(sa->region_count < sa->region_capacity && "room was reserved");

    table_remove(sa, block);
    sa->live_blocks--;
    back.units = front.first_unit + front.units - back.first_unit;
    front.units = gone.unit - front.first_unit;
    rmm__suballoc_drop_region(sa, place);
    if (has_back) {
        sa->nodes[block] = (rmm_block_node_t){.heap = RMM_HEAP_NONE};
        close_ring(sa, &back, gone.next, last);
        rmm__suballoc_insert_region(sa, place, &back);
    } else {
        node_put(sa, block);
    }
    if (has_front) {
        close_ring(sa, &front, first, gone.prev);
        rmm__suballoc_insert_region(sa, place, &front);
    } else {
        node_put(sa, front.fence);
    }
    check_heavily(sa);
}
