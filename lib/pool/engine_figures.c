/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine's figures of its free memory. The size of the largest free block is exact, mostly
 * without a search of all streams: `stream_largest` is an upper bound for the blocks of their
 * heaps, and they are searched only if the clean heap has no block of that size. With more
 * than SEARCHED_MOST streams and captures the bound itself is shown, since a search at each
 * allocation would cost more than the allocation.
 */
#include "pool/engine_figures.h"

#include <inttypes.h>

#include "pool/streams.h"

#define SEARCHED_MOST 64 /* streams and captures */

/* Over some heaps: the largest block and its heap, or the sum of units. */
typedef struct largest {
    const rmm_blocks_t *blocks;
    rmm_heap_t heap;
    uint64_t units;
} largest_t;

static void look_at_heap(void *context, rmm_heap_t heap)
{
    largest_t *largest = context;
    uint64_t units = rmm__blocks_largest_free(largest->blocks, heap);

    if (units > largest->units) {
        largest->units = units;
        largest->heap = heap;
    }
}

/* Over all heaps but the clean one. */
static largest_t search_streams_locked(const engine_t *engine)
{
    const engine_streams_t *streams = &engine->streams;
    largest_t largest = {engine->blocks, engine->clean, 0};

    for (uint32_t i = 0; i < streams->capacity; i++) {
        if (streams->table[i] != NULL) {
            look_at_heap(&largest, streams->table[i]->heap);
        }
    }
    look_at_heap(&largest, streams->unproven);
    rmm__engine_captures_walk_locked(engine, look_at_heap, &largest);
    return largest;
}

void rmm__engine_note_all_larger_locked(engine_t *engine)
{
    engine->stream_largest = search_streams_locked(engine).units;
}

void rmm__engine_find_largest_locked(engine_t *engine)
{
    largest_t largest = {engine->blocks, engine->clean, 0};

    look_at_heap(&largest, engine->clean);
    if (engine->stream_largest > largest.units &&
        engine->streams.count + engine->captures.by_id.count > SEARCHED_MOST) {
        largest.units = engine->stream_largest;
        largest.heap = RMM_HEAP_NONE;
    } else if (engine->stream_largest > largest.units) {
        largest_t of_streams = search_streams_locked(engine);

        engine->stream_largest = of_streams.units;
        if (of_streams.units > largest.units) {
            largest = of_streams;
        }
    }
    rmm__engine_set_largest_locked(engine, largest.heap, largest.units);
}

void rmm__engine_show_locked(engine_t *engine)
{
    RMM_ASSERT_LOCKED(&engine->lock);
    RMM_ASSERT_HEAVY(rmm__blocks_check(engine->blocks) == NULL);
    RMM_ASSERT_HEAVY(rmm__engine_open_adds_up_locked(engine));
    engine->changes++;
    rmm__engine_bound_open_locked(engine);
    rmm__engine_find_largest_locked(engine);
    engine->figures.free_bytes = rmm__engine_free_bytes_locked(engine);
    if (rmm__engine_is_shut_locked(engine)) {
        engine->figures.free_bytes = 0;
        engine->figures.largest_free_bytes = 0;
    }
    if (engine->owner_ops->figures != NULL) {
        engine->owner_ops->figures(engine->owner, &engine->figures);
    }
}

uint64_t rmm__engine_reserved(engine_t *engine)
{
    uint64_t reserved;

    rmm__mutex_lock(&engine->lock);
    reserved = engine->figures.reserved_bytes;
    rmm__mutex_unlock(&engine->lock);
    return reserved;
}

bool rmm__engine_is_clean_locked(engine_t *engine, uint64_t unit, uint32_t units)
{
    uint64_t block;
    uint32_t block_units;

    return rmm__blocks_free_around(
               engine->blocks, engine->clean, unit, &block, &block_units) &&
           unit + units <= block + block_units;
}

rmm_status_t rmm__engine_no_room(const engine_t *engine, uint64_t room)
{
    return rmm__error(
        RMM_ERR_OUT_OF_MEMORY,
        "its maximum of %" PRIu64 " bytes leaves room for %" PRIu64,
        engine->maximum_bytes, room);
}

static void add_free_units(void *context, rmm_heap_t heap)
{
    largest_t *sum = context;

    sum->units += rmm__blocks_free_units(sum->blocks, heap);
}

bool rmm__engine_is_all_clean_locked(engine_t *engine)
{
    const engine_streams_t *streams = &engine->streams;
    largest_t sum = {engine->blocks, engine->clean, 0};

    if (streams->single != NULL &&
        rmm__blocks_units_after(engine->blocks, engine->clean, streams->proven_stamp) !=
            0) {
        return false;
    }
    add_free_units(&sum, engine->clean);
    if (streams->others_work) {
        add_free_units(&sum, streams->unproven);
    }
    for (uint32_t i = 0; i < streams->capacity; i++) {
        if (streams->table[i] != NULL && streams->table[i]->may_be_foreign) {
            add_free_units(&sum, streams->table[i]->heap);
        }
    }
    rmm__engine_captures_walk_locked(engine, add_free_units, &sum);
    return sum.units + engine->absent_units ==
           rmm__blocks_total_free_units(engine->blocks);
}
