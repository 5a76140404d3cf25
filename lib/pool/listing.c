/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of an engine; see listing.h. A free block knows its heap, and this file what each
 * heap stands for: a table made under the lock, in memory taken outside of it. Of a live block
 * the engine knows no stream.
 *
 * Locking: takes the engine's lock once for each size of the table that turns out too small.
 */
#include "pool/listing.h"

#include "core/host_memory.h"
#include "pool/engine_impl.h"

typedef struct heap_kind {
    bool is_shown;
    engine_block_state_t state;
    uint64_t stream;
} heap_kind_t;

typedef struct listing {
    const engine_t *engine;
    heap_kind_t *kinds; /* by heap */
    uint32_t kind_capacity;
    engine_listed_fn visit;
    void *context;
} listing_t;

/* --- heaps --------------------------------------------------------------------------- */

static void
set_kind(listing_t *listing, rmm_heap_t heap, engine_block_state_t state, uint64_t id)
{
    listing->kinds[heap] = (heap_kind_t){true, state, id};
}

static void set_graph(void *context, rmm_heap_t heap)
{
    set_kind(context, heap, ENGINE_BLOCK_GRAPH, ENGINE_NO_STREAM);
}

/* Heaps that are not named here are on the move, or stand for addresses without memory. */
static void set_kinds_locked(listing_t *listing)
{
    const engine_t *engine = listing->engine;
    const engine_streams_t *streams = &engine->streams;

    for (uint32_t i = 0; i < streams->capacity; i++) {
        const engine_stream_t *stream = streams->table[i];

        if (stream != NULL) {
            set_kind(listing, stream->heap, ENGINE_BLOCK_CACHED, stream->id);
        }
    }
    set_kind(listing, streams->unproven, ENGINE_BLOCK_CACHED, ENGINE_NO_STREAM);
    rmm__engine_captures_walk_locked(engine, set_graph, listing);
    if (engine->range.address != NULL) {
        set_kind(listing, engine->range.lost, ENGINE_BLOCK_LOST, ENGINE_NO_STREAM);
    }
    /* last: it is the heap of a stream that is alone, too */
    set_kind(listing, engine->clean, ENGINE_BLOCK_FREE, ENGINE_NO_STREAM);
}

/* With the lock, which the caller gives back in any case. */
static bool lock_with_room(listing_t *listing, engine_t *engine)
{
    rmm__mutex_lock(&engine->lock);
    while (engine->blocks->heap_count > listing->kind_capacity) {
        uint32_t wanted = engine->blocks->heap_count + 16;

        rmm__mutex_unlock(&engine->lock);
        rmm__free(listing->kinds);
        listing->kinds = rmm__calloc(wanted, sizeof(listing->kinds[0]));
        listing->kind_capacity = listing->kinds != NULL ? wanted : 0;
        rmm__mutex_lock(&engine->lock);
        if (listing->kinds == NULL) {
            return false;
        }
    }
    return true;
}

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

/* Pieces of a range that are mapped side by side are one. */
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

static void show_chunks_locked(const listing_t *listing)
{
    const engine_chunks_t *chunks = &listing->engine->chunks;

    for (uint32_t i = 0; i < chunks->count; i++) {
        if (chunks->chunks[i].units != 0) {
            show_chunk(listing, chunks->chunks[i].unit, chunks->chunks[i].units);
        }
    }
    show_pieces_locked(listing);
}

/* --- blocks -------------------------------------------------------------------------- */

/* What a stream that is alone freed and is not known to be done is in the clean heap. */
static void
tell_alone(const engine_streams_t *streams, uint64_t stamp, engine_listed_t *listed)
{
    if (listed->state == ENGINE_BLOCK_FREE && streams->alone != NULL &&
        stamp > streams->proven_stamp) {
        listed->state = ENGINE_BLOCK_CACHED;
        listed->stream = streams->alone->id;
    }
}

static bool show_block(void *context, const rmm_block_info_t *info)
{
    const listing_t *listing = context;
    engine_listed_t listed = {
        .state = ENGINE_BLOCK_USED,
        .address = info->unit * RMM_BLOCKS_UNIT,
        .bytes = info->units * RMM_BLOCKS_UNIT,
        .stream = ENGINE_NO_STREAM};

    if (info->heap != RMM_HEAP_NONE) {
        const heap_kind_t *kind = &listing->kinds[info->heap];

        if (!kind->is_shown) {
            return true;
        }
        listed.state = kind->state;
        listed.stream = kind->stream;
        tell_alone(&listing->engine->streams, info->stamp, &listed);
    } else if (info->tag == TAG_LENT) {
        return true;
    } else if (info->tag == TAG_GIVEN_UP) {
        listed.state = ENGINE_BLOCK_LOST;
    } else {
        listed.padding = info->tag;
    }
    listing->visit(listing->context, &listed);
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

bool rmm__engine_list(
    engine_t *engine, engine_listed_fn visit, void *context, uint64_t *moving_out)
{
    listing_t listing = {.engine = engine, .visit = visit, .context = context};
    bool has_room = lock_with_room(&listing, engine);

    if (has_room) {
        set_kinds_locked(&listing);
        show_chunks_locked(&listing);
        rmm__blocks_walk(engine->blocks, show_block, &listing);
        *moving_out = engine->transit_units * RMM_BLOCKS_UNIT;
    }
    rmm__mutex_unlock(&engine->lock);
    rmm__free(listing.kinds);
    return has_room;
}
