/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps free blocks on both sides of a stamp apart while a pool synchronises the device.
 * Otherwise a block that is freed meanwhile would merge with older ones, and all would get
 * its stamp, which the synchronise does not cover.
 */
#include "pool/blocks_impl.h"

void rmm__blocks_merge_boundary_set(rmm_blocks_t *blocks, uint64_t stamp)
{
    assert(blocks->merge_boundary == 0 && stamp != 0);
    blocks->merge_boundary = stamp;
}

/* From the newest on, so that no block absorbs a newer one. */
static void merge_late(rmm_blocks_t *blocks, rmm_heap_t heap, uint64_t boundary)
{
    rmm_heap_body_t *body = &blocks->heaps[heap];
    uint32_t index = body->newest;

    while (index != 0 && blocks->ages[index].stamp > boundary) {
        const rmm_block_node_t *node = &blocks->nodes[index];
        uint32_t older = node->prev;

        if (blocks->nodes[older].heap != heap) {
            older = node->next;
        }
        if (blocks->nodes[older].heap == heap) {
            heap_leave(blocks, body, older);
            absorb(blocks, body, index, older);
        } else {
            index = blocks->ages[index].older;
        }
    }
}

void rmm__blocks_merge_boundary_clear(rmm_blocks_t *blocks, bool any_came)
{
    rmm_heap_t heap_count = any_came ? blocks->heap_count : 0;
    uint64_t boundary = blocks->merge_boundary;

    assert(boundary != 0);
    for (rmm_heap_t heap = 0; heap < heap_count; heap++) {
        rmm__blocks_settle(
            blocks, heap); /* the boundary still holds: each side merges by itself */
    }
    blocks->merge_boundary = 0;
    for (rmm_heap_t heap = 0; heap < heap_count; heap++) {
        merge_late(blocks, heap, boundary);
    }
    check_heavily(blocks);
}
