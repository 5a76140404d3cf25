/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows blocks, streams and events, and calls the checkers.
 *
 * The way of a launch: tools/inject hears of it from CUPTI or the simulated GPU, and calls
 * rmm__diag_engine_on_event() with an event whose words are what its parameters hold. If a mode
 * wants it, checkers prepare without the lock (`enter`); under the lock live_blocks.c lists the
 * blocks that the words point into, and `after` of each checker looks at the list and adds its
 * findings (findings.c). rmm__diag_unlock() gives new findings the stack of this thread. What a
 * checker queued on the GPU meanwhile becomes a finding in `settle`, which begins the next call. A
 * copy, fill or prefetch comes here twice: before it happens, for `before`, and as a launch does.
 *
 * Cost: each event is one lock, one search of the map for each word or range that it is given, and
 * what the checkers do.
 */
#include "diag/engine.h"

#include <string.h>
#include <time.h>

#include "core/uncancelled.h"
#include "diag/checker.h"
#include "diag/row.h"

/* --- blocks ------------------------------------------------------------------------ */

static void end_block_locked(
    rmm_diag_engine_t *engine, uint32_t index, const rmm_diag_block_v1_t *by)
{
    RMM_ASSERT_LOCKED(&engine->lock);
    RMM_CHECKERS_CALL(engine, ended, index, by);
    rmm__live_blocks_remove(&engine->blocks, index);
}

/* Memory that is handed out was free: what is still live there was freed unseen, as with its
 * context, or is larger and its owner hands out its parts. */
void rmm__diag_add_block_locked(rmm_diag_call_t *call)
{
    rmm_diag_engine_t *engine = call->engine;
    const rmm_diag_block_v1_t *block = call->block;
    uint32_t index = rmm__live_blocks_overlap(&engine->blocks, block);

    RMM_ASSERT_LOCKED(&engine->lock);
    while (index != RMM_LIVE_NONE) {
        end_block_locked(engine, index, block);
        index = rmm__live_blocks_overlap(&engine->blocks, block);
    }
    call->index = rmm__live_blocks_add(&engine->blocks, block);
    if (call->index == RMM_LIVE_NONE) {
        RMM_CHECKERS_CALL(engine, gone, block->address, rmm__diag_padded_end(block));
    } else {
        RMM_CHECKERS_CALL(engine, allocated, call);
    }
}

void rmm__diag_engine_on_alloc(void *context, const rmm_diag_block_v1_t *block)
{
    rmm_diag_engine_t *engine = context;
    rmm_diag_call_t call;

    if (block->bytes == 0 || block->address + block->bytes < block->address) {
        return;
    }
    (void)rmm__modes_now(&engine->modes);
    RMM_CHECKERS_CALL(engine, settle, engine);
    rmm__diag_call_init(&call, engine);
    call.block = block;
    RMM_CHECKERS_CALL(engine, enter, &call);
    rmm__mutex_lock(&engine->lock);
    call.modes = rmm__diag_modes(engine);
    rmm__diag_add_block_locked(&call);
    rmm__mutex_unlock(&engine->lock);
    RMM_CHECKERS_CALL(engine, leave, &call);
}

/* The driver's memory, allocated on a stream that captures: a node of the graph, which makes the
 * address valid again at each launch. */
static bool is_node(const rmm_block_note_t *note)
{
    const uint32_t flags = RMM_DIAG_BLOCK_CAPTURED | RMM_DIAG_BLOCK_RETURNED |
                           RMM_DIAG_BLOCK_IN_STREAM_ORDER;

    return (note->flags & flags) == flags;
}

static bool is_plain(const rmm_diag_call_t *call, const rmm_block_note_t *note)
{
    return (call->block->flags & RMM_DIAG_BLOCK_CAPTURED) == 0 && !is_node(note) &&
           call->freed.block.resource_id == call->block->resource_id;
}

static void free_block_locked(rmm_diag_call_t *call)
{
    rmm_diag_engine_t *engine = call->engine;
    const rmm_block_note_t *note = &engine->blocks.notes[call->index];

    call->freed = (rmm_freed_block_t){
        .block = rmm__live_blocks_at(&engine->blocks, call->index),
        .freed_stream_id = call->block->stream_id,
        .origin = note->origin,
        .freed = rmm__diag_number_of_locked(engine, call->stack),
        .is_returned = (note->flags & RMM_DIAG_BLOCK_RETURNED) != 0};
    call->freed.block.stream = call->block->stream;
    call->is_plain = is_plain(call, note);
    RMM_CHECKERS_CALL(engine, freed, call);
    end_block_locked(engine, call->index, NULL);
}

void rmm__diag_engine_on_free(void *context, const rmm_diag_block_v1_t *block)
{
    rmm_diag_engine_t *engine = context;
    rmm_diag_call_t call;
    uint32_t findings = 0;

    (void)rmm__modes_now(&engine->modes);
    RMM_CHECKERS_CALL(engine, settle, engine);
    rmm__diag_call_init(&call, engine);
    call.block = block;
    RMM_CHECKERS_CALL(engine, enter, &call);
    findings = rmm__diag_lock(engine);
    call.modes = rmm__diag_modes(engine);
    call.index = rmm__live_blocks_find(&engine->blocks, block);
    if (call.index == RMM_LIVE_NONE) {
        RMM_CHECKERS_CALL(engine, freed_unknown, &call);
    } else {
        free_block_locked(&call);
    }
    rmm__diag_unlock(engine, findings);
    RMM_CHECKERS_CALL(engine, leave, &call);
}

void rmm__diag_engine_on_gone(void *context, uint64_t address, uint64_t bytes)
{
    rmm_diag_engine_t *engine = context;
    uint64_t end = bytes > UINT64_MAX - address ? UINT64_MAX : address + bytes;

    rmm__mutex_lock(&engine->lock);
    RMM_CHECKERS_CALL(engine, gone, address, end);
    rmm__mutex_unlock(&engine->lock);
}

/* Forgets the state of all GPUs: an error may be missed, none is invented. */
void rmm__diag_engine_reset(rmm_diag_engine_t *engine, int32_t device)
{
    rmm_live_blocks_t *blocks = &engine->blocks;
    uint64_t count = 0;

    rmm__mutex_lock(&engine->lock);
    for (uint32_t i = 0; i < blocks->map.fresh; i++) {
        if (RMM_ROW_GET(&blocks->rows[i], live) != 0 &&
            RMM_ROW_GET(&blocks->rows[i], device) == device) {
            end_block_locked(engine, i, NULL);
            count++;
        }
    }
    RMM_CHECKERS_CALL(engine, gone, 0, UINT64_MAX);
    RMM_ROW_ADD(&engine->header->device_resets, 1);
    RMM_ROW_ADD(&engine->header->blocks_reset, count);
    rmm__mutex_unlock(&engine->lock);
}

/* --- events ------------------------------------------------------------------------ */

static bool is_of_graph(uint32_t kind)
{
    return kind == RMM_DIAG_GRAPH_MADE || kind == RMM_DIAG_GRAPH_CHANGED ||
           kind == RMM_DIAG_GRAPH_ENDS || kind == RMM_DIAG_GRAPH_PART;
}

static bool is_launch(const rmm_diag_event_v1_t *event)
{
    return event->kind == RMM_DIAG_LAUNCH || event->kind == RMM_DIAG_GRAPH_LAUNCH;
}

/* The modes in which checkers need the event. */
static uint32_t modes_for(const rmm_diag_event_v1_t *event)
{
    if (is_launch(event) || is_of_graph(event->kind)) {
        return RMM_DIAG_MODES_WITH_GRAPHS;
    }
    if (rmm__event_has_range(event)) {
        if (event->before) {
            return RMM_DIAG_MODE_BOUNDS | RMM_DIAG_MODE_GUARDS;
        }
        return RMM_DIAG_MODES_WITH_USES |
               (event->graph != 0 ? RMM_DIAG_MODE_BOUNDS : 0);
    }
    return RMM_DIAG_MODE_ORDER;
}

static void before_locked(rmm_diag_call_t *call)
{
    for (size_t i = 0; i < rmm__event_range_count(call->event); i++) {
        call->range = rmm__event_range(call->event, i);
        call->culprit = RMM_LIVE_NONE;
        call->is_explained = false;
        RMM_CHECKERS_CALL(call->engine, before, call);
    }
}

static void after_locked(rmm_diag_call_t *call)
{
    if (call->event->kind == RMM_DIAG_LAUNCH || rmm__event_has_range(call->event)) {
        rmm__live_blocks_look(&call->engine->blocks, call->event);
    }
    RMM_CHECKERS_CALL(call->engine, after, call);
}

static void on_event(rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event)
{
    bool is_before = event->before != 0 && rmm__event_has_range(event);
    rmm_diag_call_t call;
    uint32_t findings = 0;

    rmm__diag_call_init(&call, engine);
    call.event = event;
    if (is_launch(event) || is_before) {
        RMM_CHECKERS_CALL(engine, enter, &call);
    }
    findings = rmm__diag_lock(engine);
    call.modes = rmm__diag_modes(engine);
    if (is_before) {
        before_locked(&call);
    } else if (event->before == 0) {
        after_locked(&call);
    }
    rmm__diag_unlock(engine, findings);
    RMM_CHECKERS_CALL(engine, leave, &call);
}

/* Names of streams are kept in every mode, because findings have them. */
static void note_stream(rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event)
{
    bool is_seen = event->kind == RMM_DIAG_STREAM_SEEN && event->word_count > 1;

    if (event->kind == RMM_DIAG_STREAM_SEEN || event->kind == RMM_DIAG_STREAM_CREATE ||
        event->kind == RMM_DIAG_STREAM_DESTROY) {
        rmm__mutex_lock(&engine->lock);
        rmm__stream_names_put(
            &engine->streams, event->stream, is_seen ? event->words[1] : UINT64_MAX);
        rmm__mutex_unlock(&engine->lock);
    }
}

void rmm__diag_engine_on_event(void *context, const rmm_diag_event_v1_t *event)
{
    rmm_diag_engine_t *engine = context;
    uint32_t modes = 0;

    if (event->struct_size < sizeof(*event)) {
        return;
    }
    modes = rmm__modes_now(&engine->modes);
    RMM_CHECKERS_CALL(engine, settle, engine);
    note_stream(engine, event);
    if ((modes & modes_for(event)) != 0) {
        on_event(engine, event);
    }
}

void rmm__diag_engine_parameters_unknown(rmm_diag_engine_t *engine)
{
    rmm__mutex_lock(&engine->lock);
    RMM_ROW_ADD(&engine->header->parameter_failures, 1);
    rmm__mutex_unlock(&engine->lock);
}

/* --- the end ----------------------------------------------------------------------- */

/* False: the thread that holds the mutex seems to be interrupted. Threads hold it for a few
 * microseconds. */
static bool comes_free(rmm_mutex_t *mutex)
{
    RMM_UNCANCELLED;
    const struct timespec pause = {.tv_nsec = 1000000};
    bool is_free = rmm__mutex_trylock(mutex);

    for (int i = 0; i < 200 && !is_free; i++) {
        (void)nanosleep(&pause, NULL);
        is_free = rmm__mutex_trylock(mutex);
    }
    if (is_free) {
        rmm__mutex_unlock(mutex);
    }
    return is_free;
}

void rmm__diag_engine_settle(rmm_diag_engine_t *engine)
{
    /* a lock that came free is not held by this thread: from here on it waits only for others */
    if (engine->on_settle[0].checker != NULL && comes_free(&engine->lock) &&
        comes_free(&engine->stacks.lock)) {
        RMM_CHECKERS_CALL(engine, settle, engine);
    }
}

/* --- modes ------------------------------------------------------------------------- */

void rmm__diag_engine_set_modes(rmm_diag_engine_t *engine, uint32_t modes)
{
    rmm__mode_switch_set(&engine->modes, modes);
}

bool rmm__diag_engine_has_mode(const rmm_diag_engine_t *engine, uint32_t mode)
{
    return (rmm__diag_modes(engine) & mode) != 0;
}
