/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which addresses without memory behind them are best given some, so that a request
 * fits. Rare: a pool asks before it takes more memory from the device.
 */
#include "suballoc/suballoc_impl.h"

/* Units of this node if it is free in the heap. */
static uint32_t units_in(const rmm_suballoc_t *sa, uint32_t index, rmm_heap_t heap)
{
    const rmm_block_node_t *node = &sa->nodes[index];
    return node->heap == heap ? node->units : 0;
}

/* What `beside` has not, in whole granules, at most `most`. */
static uint64_t
missing(uint64_t units, uint64_t beside, uint32_t granule, uint64_t most)
{
    uint64_t lacking = units > beside ? units - beside : 0;
    uint64_t rounded = (lacking + granule - 1) / granule * granule;
    return lacking <= most && rounded > most ? most : rounded;
}

/* The cheapest way to get the units with this block of the gaps; false: there is none. */
static bool gap_at(
    const rmm_suballoc_t *sa, uint32_t index, rmm_heap_t filled, uint32_t units,
    uint32_t granule, rmm_suballoc_gap_t *gap)
{
    const rmm_block_node_t *node = &sa->nodes[index];
    uint32_t before = units_in(sa, node->prev, filled);
    uint32_t after = units_in(sa, node->next, filled);
    uint64_t from_front = missing(units, before, granule, node->units);
    uint64_t from_back = missing(units, after, granule, node->units);
    if (from_back < from_front && from_back <= node->units) {
        *gap = (rmm_suballoc_gap_t){
            .unit = node->unit + node->units - (uint32_t)from_back,
            .units = (uint32_t)from_back,
            .room = (uint32_t)from_back,
            .before = from_back == node->units ? before : 0,
            .after = after};
        return true;
    }
    *gap =
        (rmm_suballoc_gap_t){.unit = node->unit, .room = node->units, .before = before};
    if (from_front > node->units) { /* with both sides, or not at all */
        gap->after = after;
        from_front = node->units;
    }
    gap->units = (uint32_t)from_front;
    return from_front + gap->before + gap->after >= units;
}

bool rmm__suballoc_find_gap(
    rmm_suballoc_t *sa, rmm_heap_t gaps, rmm_heap_t filled, uint32_t units,
    uint32_t granule, rmm_suballoc_gap_t *gap_out)
{
    assert(heap_is_valid(sa, gaps) && heap_is_valid(sa, filled) && gaps != filled);
    assert(units > 0 && granule > 0);
    rmm__suballoc_settle(sa, gaps);
    rmm__suballoc_settle(sa, filled);
    bool found = false;
    for (uint32_t index = sa->heaps[gaps].oldest; index != 0;
         index = sa->ages[index].newer) {
        rmm_suballoc_gap_t gap;
        if (gap_at(sa, index, filled, units, granule, &gap) &&
            (!found || gap.units < gap_out->units ||
             (gap.units == gap_out->units && gap.unit < gap_out->unit))) {
            *gap_out = gap;
            found = true;
        }
    }
    return found;
}
