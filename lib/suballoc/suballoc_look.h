/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at a block, inlined: what the functions of the same names in suballoc.h do, for
 * the few files of an owner that run on every allocation. Nothing here changes anything
 * but the tag.
 */
#ifndef RMM_SUBALLOC_SUBALLOC_LOOK_H
#define RMM_SUBALLOC_SUBALLOC_LOOK_H

#include "suballoc/suballoc_impl.h"

/* rmm__suballoc_find() */
static inline rmm_block_t rmm__suballoc_look_up(const rmm_suballoc_t *sa, uint32_t unit)
{
    uint32_t index = sa->table[slot_of(sa, unit)];
    while (index != 0 && sa->nodes[index].unit != unit) {
        index = sa->nodes[index].link_next;
    }
    return index != 0 && sa->nodes[index].heap == RMM_HEAP_NONE ? index
                                                                : RMM_BLOCK_NONE;
}

/* The block's unit, units and tag; the owner may write the tag of a live block. */
static inline rmm_block_node_t *
rmm__suballoc_look_at(const rmm_suballoc_t *sa, rmm_block_t block)
{
    return &sa->nodes[block];
}

/* Units of the block that was freed last into the heap, when it has merged. */
static inline uint32_t
rmm__suballoc_look_merged(const rmm_suballoc_t *sa, rmm_block_t block, rmm_heap_t heap)
{
    const rmm_block_node_t *node = &sa->nodes[block];
    const rmm_block_node_t *prev = &sa->nodes[node->prev];
    const rmm_block_node_t *next = &sa->nodes[node->next];
    return node->units + (prev->heap == heap ? prev->units : 0) +
           (next->heap == heap ? next->units : 0);
}

/* Of these, the units that had no such stamp before: what an older neighbour loses. */
static inline uint32_t rmm__suballoc_look_restamped(
    const rmm_suballoc_t *sa, rmm_block_t block, rmm_heap_t heap, uint64_t stamp)
{
    const rmm_block_node_t *node = &sa->nodes[block];
    const rmm_block_node_t *prev = &sa->nodes[node->prev];
    const rmm_block_node_t *next = &sa->nodes[node->next];
    bool takes_prev = prev->heap == heap && sa->ages[node->prev].stamp < stamp;
    bool takes_next = next->heap == heap && sa->ages[node->next].stamp < stamp;
    return node->units + (takes_prev ? prev->units : 0) +
           (takes_next ? next->units : 0);
}

/* rmm__suballoc_total_free_units() */
static inline uint64_t rmm__suballoc_look_total_free(const rmm_suballoc_t *sa)
{
    return sa->total_free_units;
}

#endif /* RMM_SUBALLOC_SUBALLOC_LOOK_H */
