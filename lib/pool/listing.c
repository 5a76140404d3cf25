/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of an engine; see listing.h. A free block knows its heap, and the tag of the heap
 * says whose it is. Of a live block the engine knows no stream.
 */
#include "pool/listing.h"

#include "pool/engine_impl.h"

typedef struct listing {
    const engine_t *engine;
    engine_listed_fn visit;
    void *context;
} listing_t;

/* --- chunks -------------------------------------------------------------------------- */

static void show_chunk(const listing_t *listing, uint64_t unit, uint64_t units)
{
    const engine_listed_t chunk = {
        .state = ENGINE_BLOCK_CHUNK,
        .address = unit * RMM_BLOCKS_UNIT,
        .bytes = units * RMM_BLOCKS_UNIT,
        .stream = ENGINE_NO_STREAM};

    listing->visit(listing->context, &chunk);
}

/* Pieces of a range that are mapped side by side are one. Those that sleep keep their places. */
static void show_pieces_locked(const listing_t *listing)
{
    const engine_range_t *range = &listing->engine->range;
    uint32_t i = 0;

    while (i < range->piece_count) {
        uint64_t unit = range->pieces[i].unit;
        uint64_t end = unit;

        for (; i < range->piece_count && range->pieces[i].unit == end; i++) {
            end += range->pieces[i].units;
        }
        show_chunk(listing, unit, end - unit);
    }
}

static bool show_entry(void *listing, const rmm_index_entry_t *chunk)
{
    show_chunk(listing, chunk->unit, chunk->units);
    return true;
}

static void show_chunks_locked(listing_t *listing)
{
    const engine_chunks_t *chunks = &listing->engine->chunks;

    rmm__index_walk(&chunks->nodes, &chunks->tree, 1, show_entry, listing);
    show_pieces_locked(listing);
}

/* --- blocks -------------------------------------------------------------------------- */

/* In single-stream mode, frees that are not known to be done are in the clean heap. False: the
 * block is on the move, or stands for addresses without memory. */
static bool describe_free(
    const engine_t *engine, const rmm_block_info_t *info, engine_listed_t *out)
{
    const engine_streams_t *streams = &engine->streams;
    uint64_t tag = engine->blocks->heaps[info->heap].tag;
    bool is_clean = info->heap == engine->clean &&
                    (streams->single == NULL || info->stamp <= streams->proven_stamp);

    if (is_clean) {
        out->state = ENGINE_BLOCK_FREE;
    } else if (tag == HEAP_OF_GRAPH) {
        out->state = ENGINE_BLOCK_GRAPH;
    } else if (tag != 0 || info->heap == streams->unproven) {
        out->state = ENGINE_BLOCK_CACHED;
        out->stream = tag != 0 ? tag - 1 : ENGINE_NO_STREAM;
    } else {
        out->state = ENGINE_BLOCK_LOST;
        return engine->range.address != NULL && info->heap == engine->range.lost;
    }
    return true;
}

static bool show_block(void *context, const rmm_block_info_t *info)
{
    const listing_t *listing = context;
    engine_listed_t listed = {
        .state = ENGINE_BLOCK_USED,
        .address = info->unit * RMM_BLOCKS_UNIT,
        .bytes = info->units * RMM_BLOCKS_UNIT,
        .stream = ENGINE_NO_STREAM};
    bool is_shown = info->heap != RMM_HEAP_NONE || info->tag != TAG_SUPERBLOCK;

    if (info->heap != RMM_HEAP_NONE) {
        is_shown = describe_free(listing->engine, info, &listed);
    } else if (info->tag == TAG_GIVEN_UP) {
        listed.state = ENGINE_BLOCK_LOST;
    } else {
        listed.padding = info->tag;
    }
    if (is_shown) {
        listing->visit(listing->context, &listed);
    }
    return true;
}

uint32_t rmm__engine_list_bound(engine_t *engine)
{
    uint64_t bound;

    rmm__mutex_lock(&engine->lock);
    bound = (uint64_t)engine->blocks->used_nodes + engine->chunks.count +
            engine->range.piece_count;
    rmm__mutex_unlock(&engine->lock);
    return bound < UINT32_MAX ? (uint32_t)bound : UINT32_MAX;
}

uint64_t rmm__engine_list(engine_t *engine, engine_listed_fn visit, void *context)
{
    listing_t listing = {.engine = engine, .visit = visit, .context = context};
    uint64_t moving;

    rmm__mutex_lock(&engine->lock);
    show_chunks_locked(&listing);
    rmm__blocks_walk(engine->blocks, show_block, &listing);
    moving = engine->transit_units * RMM_BLOCKS_UNIT;
    rmm__mutex_unlock(&engine->lock);
    return moving;
}
