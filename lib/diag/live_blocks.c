/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariant: the map is the truth. Rows are only written, so whatever another process writes there
 * changes figures but breaks nothing.
 *
 * Cost of a look: for each word two comparisons unless it points near a block.
 */
#include "diag/live_blocks.h"

#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "diag/event_range.h"
#include "diag/row.h"

bool rmm__live_blocks_init(rmm_live_blocks_t *blocks, uint32_t row_count)
{
    if (!rmm__live_map_init(&blocks->map, row_count)) {
        return false;
    }
    blocks->notes = calloc(row_count, sizeof(*blocks->notes));
    blocks->used = calloc(row_count, sizeof(*blocks->used));
    blocks->used_at = calloc(row_count, sizeof(*blocks->used_at));
    blocks->seen = calloc(row_count, sizeof(*blocks->seen));
    if (blocks->notes == NULL || blocks->used == NULL || blocks->used_at == NULL ||
        blocks->seen == NULL) {
        rmm__live_blocks_fini(blocks);
        return false;
    }
    return true;
}

void rmm__live_blocks_fini(rmm_live_blocks_t *blocks)
{
    free(blocks->seen);
    free(blocks->used_at);
    free(blocks->used);
    free(blocks->notes);
    rmm__live_map_fini(&blocks->map);
}

uint64_t rmm__live_blocks_now(rmm_live_blocks_t *blocks)
{
    uint64_t now_ns = rmm__clock_ns(CLOCK_MONOTONIC);

    blocks->last_ns = now_ns > blocks->last_ns ? now_ns : blocks->last_ns + 1;
    return blocks->last_ns;
}

/* --- blocks ------------------------------------------------------------------------ */

static void
write_row(rmm_live_blocks_t *blocks, uint32_t index, const rmm_diag_block_v1_t *block)
{
    rmm_diag_row_t *row = &blocks->rows[index];

    RMM_ROW_BEGIN(row);
    RMM_ROW_SET(row, address, block->address);
    RMM_ROW_SET(row, bytes, block->bytes);
    RMM_ROW_SET(row, stream_id, block->stream_id);
    RMM_ROW_SET(row, resource_id, block->resource_id);
    RMM_ROW_SET(row, device, block->device);
    RMM_ROW_SET(row, first_user, RMM_DIAG_NO_USER);
    RMM_ROW_SET(row, last_user, RMM_DIAG_NO_USER);
    RMM_ROW_SET(row, launches, 0);
    RMM_ROW_SET(row, copies, 0);
    RMM_ROW_SET(row, fills, 0);
    RMM_ROW_SET(row, prefetches, 0);
    RMM_ROW_SET(row, allocated_ns, rmm__live_blocks_now(blocks));
    RMM_ROW_SET(row, first_use_ns, 0);
    RMM_ROW_SET(row, last_use_ns, 0);
    RMM_ROW_SET(row, allocated_at, RMM_ROW_GET(blocks->header, launches));
    RMM_ROW_SET(row, first_use_at, 0);
    RMM_ROW_SET(row, last_use_at, 0);
    RMM_ROW_SET(row, site, 0);
    RMM_ROW_SET(row, live, 1);
    RMM_ROW_END(row);
}

uint32_t
rmm__live_blocks_add(rmm_live_blocks_t *blocks, const rmm_diag_block_v1_t *block)
{
    uint32_t index = rmm__live_map_insert(
        &blocks->map, block->address, block->address + block->bytes);

    if (index == RMM_LIVE_NONE) {
        RMM_ROW_ADD(&blocks->header->blocks_dropped, 1);
        return index;
    }
    write_row(blocks, index, block);
    blocks->notes[index] = (rmm_block_note_t){.end = block->end, .flags = block->flags};
    /* release: the rows below are written; pairs with the reader's first look */
    atomic_store_explicit(
        &blocks->header->rows.used, blocks->map.fresh, memory_order_release);
    return index;
}

void rmm__live_blocks_remove(rmm_live_blocks_t *blocks, uint32_t index)
{
    rmm_diag_row_t *row = &blocks->rows[index];

    RMM_ROW_BEGIN(row);
    RMM_ROW_SET(row, live, 0);
    RMM_ROW_END(row);
    rmm__live_map_erase(&blocks->map, index);
}

uint32_t
rmm__live_blocks_overlap(rmm_live_blocks_t *blocks, const rmm_diag_block_v1_t *block)
{
    return rmm__live_map_overlap(
        &blocks->map, block->address, block->address + block->bytes);
}

uint32_t
rmm__live_blocks_find(rmm_live_blocks_t *blocks, const rmm_diag_block_v1_t *block)
{
    uint32_t index = rmm__live_map_find(&blocks->map, block->address);
    const rmm_live_node_t *node = NULL;

    if (index == RMM_LIVE_NONE) {
        return index;
    }
    node = &blocks->map.nodes[index];
    return node->start == block->address && node->end - node->start == block->bytes
               ? index
               : RMM_LIVE_NONE;
}

rmm_diag_block_v1_t rmm__live_blocks_at(const rmm_live_blocks_t *blocks, uint32_t index)
{
    const rmm_diag_row_t *row = &blocks->rows[index];
    const rmm_live_node_t *node = &blocks->map.nodes[index];

    return (rmm_diag_block_v1_t){
        .address = node->start,
        .bytes = node->end - node->start,
        .stream_id = RMM_ROW_GET(row, stream_id),
        .resource_id = RMM_ROW_GET(row, resource_id),
        .device = RMM_ROW_GET(row, device)};
}

/* --- events ------------------------------------------------------------------------ */

static inline void note_unowned(rmm_live_blocks_t *blocks, uint64_t word)
{
    if (word >= blocks->freed_map->low && word < blocks->freed_map->high &&
        blocks->unowned_count < RMM_BLOCKS_UNOWNED) {
        blocks->unowned[blocks->unowned_count++] = word;
    }
}

static inline void note_use(rmm_live_blocks_t *blocks, uint32_t index, uint64_t word)
{
    if (blocks->seen[index] != blocks->looks) {
        blocks->seen[index] = blocks->looks;
        blocks->used_at[blocks->used_count] = word;
        blocks->used[blocks->used_count++] = index;
    }
}

void rmm__live_blocks_look(rmm_live_blocks_t *blocks, const rmm_diag_event_v1_t *event)
{
    size_t judged = blocks->freed_map != NULL ? rmm__event_judged_words(event) : 0;
    size_t count = event->word_count;

    if (event->kind != RMM_DIAG_LAUNCH) {
        count = event->bytes > 0 ? rmm__event_range_count(event) : 0;
    }
    blocks->looks++;
    blocks->used_count = 0;
    blocks->unowned_count = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t index = rmm__live_map_find(&blocks->map, event->words[i]);

        if (index != RMM_LIVE_NONE) {
            note_use(blocks, index, event->words[i]);
        } else if (i < judged) {
            note_unowned(blocks, event->words[i]);
        }
    }
}

bool rmm__live_blocks_check(const rmm_live_blocks_t *blocks)
{
    uint32_t live = 0;
    bool good = rmm__live_map_check(&blocks->map);

    for (uint32_t i = 0; i < blocks->map.fresh; i++) {
        const rmm_diag_row_t *row = &blocks->rows[i];
        const rmm_live_node_t *node = &blocks->map.nodes[i];

        good = good && RMM_ROW_GET(row, sequence) % 2 == 0;
        if (RMM_ROW_GET(row, live) != 0) {
            live++;
            good = good && RMM_ROW_GET(row, address) == node->start &&
                   RMM_ROW_GET(row, bytes) == node->end - node->start;
        }
    }
    return good && live == blocks->map.count;
}
