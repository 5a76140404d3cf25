/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of an engine that are kept up to date by each change, above all the size of the
 * largest free block.
 */
#ifndef RMM_POOL_ENGINE_FIGURES_H
#define RMM_POOL_ENGINE_FIGURES_H

#include "pool/engine_impl.h"

/* Keep the size of the largest free block. Here by a search. */
void rmm__engine_find_largest_locked(engine_t *engine);

static inline void
rmm__engine_set_largest_locked(engine_t *engine, rmm_heap_t heap, uint64_t units)
{
    engine->largest_units = units;
    engine->largest_heap = heap;
    engine->figures.largest_free_bytes = units * RMM_BLOCKS_UNIT;
}

/* The same after a free into the heap. */
static inline void
rmm__engine_note_freed_locked(engine_t *engine, rmm_heap_t heap, rmm_block_t block)
{
    uint64_t units = rmm__blocks_look_merged(engine->blocks, block);

    engine->changes++;
    if (heap != engine->clean && units > engine->stream_largest) {
        engine->stream_largest = units;
    }
    if (units > engine->largest_units) {
        rmm__engine_set_largest_locked(engine, heap, units);
    }
}

/* The same after a take from this heap or the clean one. */
static inline void rmm__engine_note_taken_locked(engine_t *engine, rmm_heap_t own)
{
    rmm_heap_t heap = engine->largest_heap;
    uint64_t units;

    if (heap != own && heap != engine->clean) {
        return;
    }
    units = rmm__blocks_look_largest(engine->blocks, heap);
    if (units == engine->largest_units) {
        return;
    }
    if (heap == engine->clean && units >= engine->stream_largest) {
        rmm__engine_set_largest_locked(engine, heap, units);
    } else {
        rmm__engine_find_largest_locked(engine);
    }
}

/* Memory came into a heap other than the clean one. */
static inline void rmm__engine_note_larger_locked(engine_t *engine, rmm_heap_t heap)
{
    uint64_t units = rmm__blocks_look_largest(engine->blocks, heap);

    if (units > engine->stream_largest) {
        engine->stream_largest = units;
    }
}

/* Free blocks of any heap may have merged. */
void rmm__engine_note_all_larger_locked(engine_t *engine);

/* After heaps changed other than by one take or free: count again, and tell the owner. */
void rmm__engine_show_locked(engine_t *engine);

/* Free units that have memory. */
static inline uint64_t rmm__engine_free_bytes_locked(const engine_t *engine)
{
    return (rmm__blocks_total_free_units(engine->blocks) - engine->absent_units) *
           RMM_BLOCKS_UNIT;
}

uint64_t rmm__engine_reserved(engine_t *engine);

/* How much the maximum leaves for growth. */
static inline uint64_t rmm__engine_room_locked(const engine_t *engine)
{
    uint64_t held = engine->figures.reserved_bytes + engine->promised_bytes;

    return engine->maximum_bytes > held ? engine->maximum_bytes - held : 0;
}

/* Are all these units in one clean block? */
bool rmm__engine_is_clean_locked(engine_t *engine, uint64_t unit, uint32_t units);

/* Set the last error; returns RMM_ERR_OUT_OF_MEMORY. */
rmm_status_t rmm__engine_no_room(const engine_t *engine, uint64_t room);

/* A synchronise of the device would make no free memory clean that is not clean yet. */
bool rmm__engine_is_all_clean_locked(engine_t *engine);

/* Nor would a wait for all devices. Others may become idle without a change in the engine, so as
 * long as blocks are unproven, no request is known to fail. */
static inline bool rmm__engine_is_all_proven_locked(engine_t *engine)
{
    return rmm__blocks_free_units(engine->blocks, engine->streams.unproven) == 0 &&
           rmm__engine_is_all_clean_locked(engine);
}

#endif /* RMM_POOL_ENGINE_FIGURES_H */
