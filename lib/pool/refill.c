/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refills (refill.h). Neither engine is ever in single-stream mode (streams.c): both are shared. A
 * superblock is a live block of the global engine, tagged TAG_SUPERBLOCK, and a run of the shard.
 * When a part of it is returned, the block is split.
 */
#include "pool/refill.h"

#include "pool/engine_figures.h"

#define PARTS_AT_ONCE 64
#define SHARDS_ASSUMED 8 /* about as many have much memory at once */

/* --- refilling ----------------------------------------------------------------------- */

/* Where in the shard the units go. */
typedef struct refill {
    rmm_block_t block;
    rmm_heap_t heap;
    uint64_t stamp;
    engine_stream_t *stream; /* NULL: it is clean */
} refill_t;

/* The clean heap first, so that most of a shard's memory is clean. */
static rmm_blocks_result_t take_refill_locked(
    engine_t *global, engine_t *shard, const engine_alloc_t *alloc, uint32_t units,
    refill_t *refill)
{
    const rmm_blocks_request_t request = {units, REFILL_GRANULE_UNITS};
    rmm_blocks_result_t result = rmm__blocks_take(
        global->blocks, global->clean, global->clean, &request, &refill->block);
    const engine_stream_t *own;
    bool is_new;

    *refill = (refill_t){
        .block = refill->block,
        .heap = shard->clean,
        .stamp = rmm__engine_clean_stamp_locked(shard)};
    if (result != RMM_BLOCKS_NO_FIT || rmm__engine_captures(alloc)) {
        return result;
    }
    own = rmm__engine_stream_find_locked(global, alloc->key.stream_id);
    if (own == NULL) {
        return result;
    }
    refill->stream =
        rmm__engine_stream_get_locked(shard, alloc->key.stream_id, &is_new);
    if (refill->stream == NULL || !rmm__blocks_reserve(shard->blocks)) {
        return RMM_BLOCKS_NO_STORAGE; /* a new heap may need more room than before */
    }
    refill->heap = refill->stream->heap;
    refill->stamp = shard->streams.stamp;
    result = rmm__blocks_take(
        global->blocks, own->heap, own->heap, &request, &refill->block);
    if (result == RMM_BLOCKS_OK && own->may_be_foreign && !refill->stream->is_native) {
        refill->stream->may_be_foreign = true;
        refill->stream->foreign_stamp = refill->stamp;
    }
    return result;
}

static rmm_blocks_result_t refill_locked(
    engine_t *global, engine_t *shard, const engine_alloc_t *alloc, uint32_t units,
    const engine_refill_ops_t *ops)
{
    rmm_blocks_result_t result, added;
    refill_t refill;
    uint64_t unit;

    if (!rmm__blocks_reserve(shard->blocks)) {
        return RMM_BLOCKS_NO_STORAGE;
    }
    result = take_refill_locked(global, shard, alloc, units, &refill);
    if (result == RMM_BLOCKS_OK) {
        rmm__blocks_look_at(global->blocks, refill.block)->tag = TAG_SUPERBLOCK;
        unit = rmm__blocks_look_at(global->blocks, refill.block)->unit;
        added = rmm__blocks_add(shard->blocks, refill.heap, unit, units, refill.stamp);
        RMM_ASSERT(added == RMM_BLOCKS_OK); /* room is reserved */
        (void)added;
        ops->moved(ops->context, unit, units, true);
        /* bounds what no event covers (open_frees.c); several shards share it */
        shard->figures.reserved_bytes = global->figures.reserved_bytes / SHARDS_ASSUMED;
        if (refill.stream != NULL && units > shard->stream_largest) {
            shard->stream_largest = units;
        }
        rmm__engine_show_locked(global);
        rmm__engine_show_locked(shard);
    }
    return result;
}

rmm_blocks_result_t rmm__engine_refill(
    engine_t *global, engine_t *shard, const engine_alloc_t *alloc, uint32_t units,
    const engine_refill_ops_t *ops)
{
    rmm_blocks_result_t result;

    rmm__mutex_lock(&shard->lock);
    rmm__mutex_lock(&global->lock);
    result = refill_locked(global, shard, alloc, units, ops);
    rmm__mutex_unlock(&global->lock);
    rmm__mutex_unlock(&shard->lock);
    return result;
}

/* --- giving back --------------------------------------------------------------------- */

/* Whole granules of clean blocks. */
typedef struct parts {
    uint32_t count;
    struct {
        uint64_t unit;
        uint32_t units;
    } part[PARTS_AT_ONCE];
} parts_t;

static bool collect(void *context, const rmm_index_entry_t *block)
{
    parts_t *parts = context;
    uint32_t pad = rmm__index_pad(block->unit, REFILL_GRANULE_UNITS);
    uint32_t units = block->units;
    uint32_t whole =
        units > pad ? (units - pad) / REFILL_GRANULE_UNITS * REFILL_GRANULE_UNITS : 0;

    if (whole != 0) {
        parts->part[parts->count].unit = block->unit + pad;
        parts->part[parts->count].units = whole;
        parts->count++;
    }
    return parts->count < PARTS_AT_ONCE;
}

/* The global engine's block that has this granule; it begins at a granule, not far below. */
static rmm_block_t find_superblock(const engine_t *global, uint64_t unit)
{
    rmm_block_t block = rmm__blocks_find(global->blocks, unit);

    while (block == RMM_BLOCK_NONE) {
        unit -= REFILL_GRANULE_UNITS;
        block = rmm__blocks_find(global->blocks, unit);
    }
    RMM_ASSERT(rmm__blocks_look_at(global->blocks, block)->tag == TAG_SUPERBLOCK);
    return block;
}

/* At most to the end of one superblock: a clean block of the shard may span several. */
static uint32_t
give_back_locked(engine_t *global, engine_t *shard, uint64_t unit, uint32_t units)
{
    rmm_block_t block = find_superblock(global, unit);
    const rmm_block_node_t *node = rmm__blocks_look_at(global->blocks, block);
    uint64_t end = node->unit + node->units;
    bool is_cut;

    units = unit + units > end ? (uint32_t)(end - unit) : units;
    if (!rmm__blocks_reserve(shard->blocks) ||
        !rmm__blocks_free_part(global->blocks, block, unit, units, global->clean, 0)) {
        return 0;
    }
    is_cut = rmm__blocks_cut(shard->blocks, shard->clean, unit, units);
    RMM_ASSERT(is_cut); /* room is reserved */
    (void)is_cut;
    return units;
}

static bool
give_back_some_locked(engine_t *global, engine_t *shard, const engine_refill_ops_t *ops)
{
    parts_t parts = {.count = 0};
    bool any = false;

    rmm__blocks_walk_free(
        shard->blocks, shard->clean, REFILL_GRANULE_UNITS, collect, &parts);
    for (uint32_t i = 0; i < parts.count; i++) {
        uint64_t unit = parts.part[i].unit;
        uint64_t end = unit + parts.part[i].units;
        uint32_t units = 1;

        while (unit < end && units != 0) {
            units = give_back_locked(global, shard, unit, (uint32_t)(end - unit));
            if (units != 0) {
                ops->moved(ops->context, unit, units, false);
            }
            unit += units;
            any |= units != 0;
        }
    }
    return any && parts.count == PARTS_AT_ONCE;
}

void rmm__engine_give_back(
    engine_t *global, engine_t *shard, const engine_refill_ops_t *ops)
{
    rmm__mutex_lock(&shard->lock);
    rmm__mutex_lock(&global->lock);
    RMM_ASSERT(shard->streams.single == NULL);
    while (give_back_some_locked(global, shard, ops)) {
    }
    rmm__engine_show_locked(global);
    rmm__engine_show_locked(shard);
    rmm__mutex_unlock(&global->lock);
    rmm__mutex_unlock(&shard->lock);
}
