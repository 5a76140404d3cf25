/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast path of an engine: one lock, and one search of the stream's own heap and the clean
 * one. Everything else is on the slow path (alloc_slow.c). See engine.h.
 */
#include "pool/engine_figures.h"

/* --- allocate ------------------------------------------------------------------------ */

static rmm_heap_t own_heap_locked(engine_t *engine, const engine_alloc_t *alloc)
{
    const engine_stream_t *own;

    if (rmm__engine_captures(alloc)) {
        rmm__engine_single_stream_end_locked(engine, true);
        return rmm__engine_capture_heap_locked(engine, &alloc->key);
    }
    own = rmm__engine_stream_find_locked(engine, alloc->key.stream_id);
    if (own == NULL && engine->streams.single != NULL) {
        rmm__engine_single_stream_end_locked(engine, true);
    }
    return own != NULL ? own->heap : engine->clean;
}

/* True: before it cuts a large block, query events, which may show more memory to be clean.
 * A large block in a bad place makes a later one fail. Not in an engine that borrows its
 * memory, and not while another thread has the turn: it queries them. */
static bool is_worth_asking_locked(const engine_t *engine, const engine_alloc_t *alloc)
{
    return alloc->block.units >= LARGE_UNITS && engine->streams.single == NULL &&
           engine->block_units == 0 && engine->source != NULL &&
           engine->streams.with_batches != NULL && rmm__turn_is_free(&engine->turn);
}

RMM_HOT_INLINE rmm_blocks_result_t take_locked(
    engine_t *engine, const engine_alloc_t *alloc, bool has_asked,
    rmm_block_t *block_out)
{
    const rmm_blocks_request_t *request = &alloc->block;
    rmm_heap_t own = own_heap_locked(engine, alloc);
    rmm_blocks_result_t result;

    if (!has_asked && is_worth_asking_locked(engine, alloc)) {
        result = rmm__blocks_take_recent(engine->blocks, own, request, block_out);
    } else {
        result =
            rmm__blocks_take(engine->blocks, own, engine->clean, request, block_out);
    }
    if (result == RMM_BLOCKS_OK) {
        rmm__engine_note_taken_locked(engine, own);
        if (rmm__engine_captures(alloc)) {
            rmm__engine_capture_note_locked(
                engine, &alloc->key,
                rmm__blocks_look_at(engine->blocks, *block_out)->unit);
        }
    }
    return result;
}

/* Everything was tried. Memory freed since the last synchronise may still help. */
static void note_failure_locked(engine_t *engine, const engine_alloc_t *alloc)
{
    if (!rmm__engine_is_all_proven_locked(engine) || engine->transit_units != 0 ||
        engine->promised_bytes != 0) {
        return;
    }
    engine->known_failure = (engine_known_failure_t){
        .units = rmm__engine_to_units(rmm__engine_need(&alloc->block)),
        .changes = engine->changes,
        .graphs_gone = rmm__engine_graphs_gone()};
}

/* Take a block, and let the owner count it. */
RMM_HOT_INLINE rmm_blocks_result_t take_counted_locked(
    engine_t *engine, const engine_alloc_t *alloc, bool has_asked, void **ptr_out)
{
    rmm_block_t block;
    rmm_blocks_result_t result = rmm__engine_is_shut_locked(engine)
                                     ? RMM_BLOCKS_NO_FIT
                                     : take_locked(engine, alloc, has_asked, &block);

    if (result == RMM_BLOCKS_OK) {
        uint32_t padding =
            (uint32_t)(alloc->block.units * RMM_BLOCKS_UNIT - alloc->bytes);
        rmm_block_node_t *node = rmm__blocks_look_at(engine->blocks, block);

        node->tag = padding;
        rmm__blocks_mark(node, alloc->is_marked);
        *ptr_out = (void *)(uintptr_t)(node->unit * RMM_BLOCKS_UNIT);
        if (engine->owner_ops->allocated != NULL) {
            engine->owner_ops->allocated(
                engine->owner, alloc, padding, &engine->figures);
        }
    }
    return result;
}

static rmm_status_t status_of(rmm_blocks_result_t result)
{
    switch (result) {
    case RMM_BLOCKS_OK:
        return RMM_OK;
    case RMM_BLOCKS_NO_STORAGE:
        return rmm__error(
            RMM_ERR_OUT_OF_HOST_MEMORY, "no host memory for a block record");
    case RMM_BLOCKS_NO_FIT:
    case RMM_BLOCKS_NOT_RECENT:
        break;
    }
    return RMM_ERR_OUT_OF_MEMORY;
}

RMM_HOT_INLINE rmm_blocks_result_t take_counted(
    engine_t *engine, const engine_alloc_t *alloc, bool has_asked, void **ptr_out)
{
    rmm_blocks_result_t result;

    if (__builtin_expect(rmm__engine_captures(alloc), false)) {
        rmm__engine_capture_open(engine, &alloc->key, alloc->stream);
    }
    rmm__mutex_lock(&engine->lock);
    result = take_counted_locked(engine, alloc, has_asked, ptr_out);
    rmm__mutex_unlock(&engine->lock);
    return result;
}

rmm_status_t rmm__engine_take(
    engine_t *engine, const engine_alloc_t *alloc, bool has_asked, void **ptr_out)
{
    return status_of(take_counted(engine, alloc, has_asked, ptr_out));
}

rmm_status_t rmm__engine_take_or_note_failure(
    engine_t *engine, const engine_alloc_t *alloc, void **ptr_out)
{
    rmm_blocks_result_t result;

    rmm__mutex_lock(&engine->lock);
    result = take_counted_locked(engine, alloc, true, ptr_out);
    if (result == RMM_BLOCKS_NO_FIT) {
        note_failure_locked(engine, alloc);
    }
    rmm__mutex_unlock(&engine->lock);
    return status_of(result);
}

/* The fast path found no block, or only one that it had better not take yet. */
RMM_COLD static rmm_status_t alloc_otherwise(
    engine_t *engine, const engine_alloc_t *alloc, rmm_blocks_result_t result,
    void **ptr_out)
{
    rmm_status_t status = status_of(result);

    if (result == RMM_BLOCKS_NOT_RECENT) {
        rmm__engine_reclaim_patiently(engine, alloc);
        status = rmm__engine_take(engine, alloc, true, ptr_out);
    }
    return status == RMM_ERR_OUT_OF_MEMORY
               ? rmm__engine_alloc_slow(engine, alloc, ptr_out)
               : status;
}

rmm_status_t
rmm__engine_alloc(engine_t *engine, const engine_alloc_t *alloc, void **ptr_out)
{
    rmm_blocks_result_t result = take_counted(engine, alloc, false, ptr_out);

    return __builtin_expect(result == RMM_BLOCKS_OK, true)
               ? RMM_OK
               : alloc_otherwise(engine, alloc, result, ptr_out);
}

/* --- free ---------------------------------------------------------------------------- */

/* The part of a free that runs without the lock. */
typedef struct after_free {
    bool is_new_stream;
    engine_closing_t closing;
} after_free_t;

static inline bool free_captures(const engine_free_t *freed)
{
    return freed->has_key && freed->key.capture_id != 0;
}

/* The live block of this free, or NONE with the reason in *refusal_out. */
static rmm_block_t find_block_locked(
    const engine_t *engine, const engine_free_t *freed, const char **refusal_out)
{
    uintptr_t address = (uintptr_t)freed->ptr;
    rmm_block_t block = rmm__blocks_look_up(engine->blocks, address / RMM_BLOCKS_UNIT);
    const rmm_block_node_t *node = rmm__blocks_look_at(engine->blocks, block);

    if (block == RMM_BLOCK_NONE || address % RMM_BLOCKS_UNIT != 0) {
        *refusal_out = RMM_ENGINE_NO_SUCH_BLOCK;
        return RMM_BLOCK_NONE;
    }
    if (node->tag >= TAG_SUPERBLOCK) {
        *refusal_out =
            node->tag == TAG_GIVEN_UP ? "freed already" : RMM_ENGINE_NO_SUCH_BLOCK;
        return RMM_BLOCK_NONE;
    }
    if (freed->bytes != node->units * RMM_BLOCKS_UNIT - node->tag) {
        *refusal_out = "it was allocated with another size";
        return RMM_BLOCK_NONE;
    }
    *refusal_out = NULL;
    return block;
}

/* The entry of the stream that frees, or NULL: it could not be identified, or there is no
 * host memory. */
static engine_stream_t *
find_stream_locked(engine_t *engine, const engine_free_t *freed, after_free_t *after)
{
    uint64_t id = freed->key.stream_id;
    engine_stream_t *stream;

    if (!freed->has_key) {
        return NULL;
    }
    stream = rmm__engine_stream_find_locked(engine, id);
    return __builtin_expect(stream != NULL, true)
               ? stream
               : rmm__engine_stream_get_locked(engine, id, &after->is_new_stream);
}

/* The block is never allocated again. */
static void give_up_locked(engine_t *engine, rmm_block_node_t *node)
{
    node->tag = TAG_GIVEN_UP;
    if (engine->owner_ops->lost != NULL) {
        engine->owner_ops->lost(engine->owner, node->units * RMM_BLOCKS_UNIT);
    }
}

/* Into the heap of its stream, whose event will cover it, or into another. */
static void put_back_locked(
    engine_t *engine, const engine_free_t *freed, rmm_block_t block,
    after_free_t *after)
{
    rmm_block_node_t *node = rmm__blocks_look_at(engine->blocks, block);
    uint64_t bytes = node->units * RMM_BLOCKS_UNIT;
    engine_stream_t *stream = NULL;
    rmm_heap_t heap = engine->streams.unproven;
    bool has_heap = true;

    if (__builtin_expect(free_captures(freed), false)) {
        has_heap = rmm__engine_capture_heap_for_free_locked(
            engine, &freed->key, node->unit, &heap);
    } else {
        stream = find_stream_locked(engine, freed, after);
        heap = stream != NULL ? stream->heap : heap;
    }
    if (__builtin_expect(!has_heap, false)) {
        give_up_locked(engine, node);
        return;
    }
    rmm__blocks_free(engine->blocks, block, heap, engine->streams.stamp);
    rmm__engine_note_freed_locked(engine, heap, block);
    if (stream != NULL) {
        rmm__engine_note_free_locked(engine, stream, bytes, &after->closing);
    }
}

static const char *
give_locked(engine_t *engine, const engine_free_t *freed, after_free_t *after)
{
    const char *refusal;
    rmm_block_t block = find_block_locked(engine, freed, &refusal);

    if (block != RMM_BLOCK_NONE) {
        const rmm_block_node_t *node = rmm__blocks_look_at(engine->blocks, block);
        uint32_t padding = node->tag;
        bool is_marked = rmm__blocks_is_marked(node);

        put_back_locked(engine, freed, block, after);
        engine->owner_ops->freed(
            engine->owner, freed, padding, &engine->figures, is_marked);
        if (rmm__engine_is_shut_locked(engine)) {
            rmm__engine_show_locked(engine); /* what was freed is not free memory */
        }
    }
    return refusal;
}

const char *rmm__engine_free(engine_t *engine, const engine_free_t *freed)
{
    const char *refusal;
    after_free_t after;

    after.is_new_stream = false;
    after.closing.is_needed = false;
    if (__builtin_expect(free_captures(freed), false)) {
        rmm__engine_capture_open(engine, &freed->key, freed->stream);
    }
    rmm__mutex_lock(&engine->lock);
    refusal = give_locked(engine, freed, &after);
    rmm__mutex_unlock(&engine->lock);
    if (__builtin_expect(after.closing.is_needed, false)) {
        rmm__engine_record(engine, &after.closing, freed->stream);
    }
    if (__builtin_expect(after.is_new_stream, false)) {
        rmm__engine_reclaim_for_new(engine);
    }
    return refusal;
}

/* A free of a ruined capture goes where memory waits for a synchronise, which is what is wanted. */
const char *rmm__engine_free_late(
    engine_t *engine, const engine_free_t *freed, uint64_t *kept_bytes_out)
{
    engine_free_t late = *freed;
    const char *refusal;

    *kept_bytes_out = 0;
    if (free_captures(freed) || !engine->streams.is_only_device) {
        return rmm__engine_free(engine, freed);
    }
    late.has_key = true;
    late.key = (rmm_stream_key_t){.capture_id = RMM_CAPTURE_RUINED};
    refusal = rmm__engine_free(engine, &late); /* give_locked() has one caller */
    rmm__mutex_lock(&engine->lock);
    *kept_bytes_out = rmm__blocks_free_units(engine->blocks, engine->streams.unproven) *
                      RMM_BLOCKS_UNIT;
    rmm__mutex_unlock(&engine->lock);
    return refusal;
}
