/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a captured graph uses, and when it becomes free again (docs/decisions/0008).
 *
 * Memory freed on a capturing stream is used again by each launch of the graph, on any
 * stream, and no event covers that. So each capture has heaps of its own: one for each of
 * its streams, and one for blocks set aside. The heap of a stream has the blocks that were
 * both allocated and freed in the capture. The same stream of the same capture can allocate
 * them again, because the graph runs that work in order.
 *
 * Set aside are the blocks that were freed in the capture but allocated before it. Earlier
 * work may still use them, and nothing orders that work before a launch of the graph. So no
 * request gets memory that is set aside, not even in the capture. The set `taken` tells the two
 * kinds apart, by the first unit of a block. It may have one block too many, which was freed
 * outside of the capture and allocated again. That block was allocated during the capture as
 * well. A program that used it outside had to wait for that work on the host before it freed
 * the block in the capture, because nothing else orders a capture after work outside of it.
 *
 * When the graph is gone, blocks of its streams are clean: only the graph used them. Those set
 * aside become clean by the next synchronise of the device, as unproven frees do. If the
 * process sees several devices, work of another device may still use them, and they stay.
 *
 * Cost: nothing without captures. An engine calls the driver once for each capture. It takes
 * its lock once more for each allocation and free in a capture, twice more for the first; on
 * the ladder once more for each attempt. One load, each time events are queried, tells
 * whether graphs are gone.
 *
 * Locking: the engine's. graph_gone() runs on any thread and takes none.
 */
#include "pool/engine_impl.h"

#include "core/host_memory.h"
#include "pool/figures.h"

#define SHELF UINT64_MAX /* no stream's id or handle */

/* Owned by the engine and the graph: the last of the two frees it, perhaps neither does. */
typedef struct graph_watch {
    atomic_uint owners;
    atomic_bool is_gone;
} graph_watch_t;

typedef struct capture_heap {
    uint64_t stream_id;
    rmm_heap_t heap;
} capture_heap_t;

struct engine_capture {
    uint64_t id;
    graph_watch_t *watch; /* NULL: none, or the graph is gone */
    bool is_over;         /* the graph is gone */
    rmm_pointer_map_t taken;
    capture_heap_t *heaps;
    uint32_t heap_count;
    engine_capture_t *next;
};

/* Over all graphs of the process. */
static _Atomic(uint64_t) gone_count;

static void watch_leave(graph_watch_t *watch)
{
    /* release: what this owner did; acquire: what the other did, before it is freed */
    if (atomic_fetch_sub_explicit(&watch->owners, 1, memory_order_acq_rel) == 1) {
        rmm__free(watch);
    }
}

static void graph_gone(void *context)
{
    graph_watch_t *watch = context;

    /* release: pairs with watch_is_gone(); the graph's work is over */
    atomic_store_explicit(&watch->is_gone, true, memory_order_release);
    /* release: pairs with rmm__engine_graphs_gone(); the flag is set */
    atomic_fetch_add_explicit(&gone_count, 1, memory_order_release);
    watch_leave(watch);
}

static bool watch_is_gone(const graph_watch_t *watch)
{
    /* acquire: pairs with graph_gone() */
    return watch != NULL && atomic_load_explicit(&watch->is_gone, memory_order_acquire);
}

/* A watch on the graph that the stream captures into; NULL if that is impossible. */
static graph_watch_t *watch_graph(const engine_t *engine, rmm_stream_t stream)
{
    graph_watch_t *watch = rmm__calloc(1, sizeof(*watch));
    rmm_driver_scope_t scope;
    int error;

    if (watch == NULL) {
        return NULL;
    }
    if (rmm__driver_scope_enter(&scope, engine->driver, engine->device) != RMM_OK) {
        rmm__free(watch);
        return NULL;
    }
    atomic_init(&watch->owners, 2);
    error = engine->driver->capture_watch(stream, graph_gone, watch);
    rmm__driver_scope_leave(&scope);
    if (error != RMM_DRIVER_OK) {
        watch_leave(watch); /* graph_gone() is called nevertheless */
        watch = NULL;
    }
    return watch;
}

uint64_t rmm__engine_graphs_gone(void)
{
    /* acquire: pairs with graph_gone() */
    return atomic_load_explicit(&gone_count, memory_order_acquire);
}

/* --- captures ------------------------------------------------------------------------ */

/* The key of a block in `taken`: the address of its first unit. */
static void *taken_name(uint64_t unit)
{
    return (void *)(uintptr_t)(unit * RMM_BLOCKS_UNIT);
}

static engine_capture_t *
capture_create(const engine_t *engine, uint64_t id, rmm_stream_t stream)
{
    engine_capture_t *capture = rmm__calloc(1, sizeof(*capture));

    if (capture != NULL) {
        capture->id = id;
        capture->watch = id != RMM_CAPTURE_RUINED ? watch_graph(engine, stream) : NULL;
    }
    return capture;
}

static void capture_destroy(engine_capture_t *capture)
{
    if (capture == NULL) {
        return;
    }
    if (capture->watch != NULL) {
        watch_leave(capture->watch);
    }
    rmm__pointer_map_fini(&capture->taken);
    rmm__free(capture->heaps);
    rmm__free(capture);
}

/* NULL: the engine was not used in it, or there was no host memory. */
static engine_capture_t *find_locked(const engine_t *engine, uint64_t id)
{
    engine_capture_t *capture = engine->captures.first;

    while (capture != NULL && capture->id != id) {
        capture = capture->next;
    }
    return capture;
}

static const capture_heap_t *
find_heap(const engine_capture_t *capture, uint64_t stream_id)
{
    for (uint32_t i = 0; capture != NULL && i < capture->heap_count; i++) {
        if (capture->heaps[i].stream_id == stream_id) {
            return &capture->heaps[i];
        }
    }
    return NULL;
}

/* Created if missing; NULL without host memory. */
static const capture_heap_t *
get_heap_locked(engine_t *engine, engine_capture_t *capture, uint64_t stream_id)
{
    const capture_heap_t *found = find_heap(capture, stream_id);
    capture_heap_t fresh = {.stream_id = stream_id};
    capture_heap_t *grown;

    if (found != NULL) {
        return found;
    }
    grown = rmm__resize(
        capture->heaps, capture->heap_count * sizeof(fresh),
        (capture->heap_count + 1) * sizeof(fresh));
    if (grown == NULL) {
        return NULL;
    }
    capture->heaps = grown;
    if (rmm__blocks_heap_create(engine->blocks, &fresh.heap) != RMM_BLOCKS_OK) {
        return NULL;
    }
    capture->heaps[capture->heap_count] = fresh;
    return &capture->heaps[capture->heap_count++];
}

void rmm__engine_capture_open(
    engine_t *engine, const rmm_stream_key_t *key, rmm_stream_t stream)
{
    engine_capture_t *capture;
    bool is_known;

    rmm__mutex_lock(&engine->lock);
    is_known = find_locked(engine, key->capture_id) != NULL;
    rmm__mutex_unlock(&engine->lock);
    if (is_known) {
        return;
    }
    capture = capture_create(engine, key->capture_id, stream);
    if (capture == NULL) {
        return; /* blocks freed in it will never be handed out again */
    }
    rmm__mutex_lock(&engine->lock);
    (void)rmm__engine_captures_settle_locked(engine);
    if (find_locked(engine, key->capture_id) == NULL) {
        capture->next = engine->captures.first;
        engine->captures.first = capture;
        engine->captures.watched += capture->watch != NULL;
        capture = NULL;
    }
    rmm__mutex_unlock(&engine->lock);
    capture_destroy(capture); /* another thread has added it first */
}

rmm_heap_t
rmm__engine_capture_heap_locked(engine_t *engine, const rmm_stream_key_t *key)
{
    const capture_heap_t *own =
        find_heap(find_locked(engine, key->capture_id), key->stream_id);

    return own != NULL ? own->heap : engine->clean;
}

void rmm__engine_capture_note_locked(
    engine_t *engine, const rmm_stream_key_t *key, uint64_t unit)
{
    engine_capture_t *capture = find_locked(engine, key->capture_id);
    size_t bytes;

    if (capture != NULL && key->capture_id != RMM_CAPTURE_RUINED &&
        !rmm__pointer_map_find(&capture->taken, taken_name(unit), &bytes) &&
        rmm__pointer_map_reserve(&capture->taken)) {
        rmm__pointer_map_insert(&capture->taken, taken_name(unit), 0);
    }
}

bool rmm__engine_capture_heap_for_free_locked(
    engine_t *engine, const rmm_stream_key_t *key, uint64_t unit, rmm_heap_t *heap_out)
{
    engine_capture_t *capture = find_locked(engine, key->capture_id);
    const capture_heap_t *heap = NULL;

    if (key->capture_id == RMM_CAPTURE_RUINED && engine->streams.is_only_device) {
        *heap_out = engine->streams.unproven; /* its graph never runs */
        return true;
    }
    if (capture != NULL) {
        bool was_taken = rmm__pointer_map_erase(&capture->taken, taken_name(unit));

        heap = get_heap_locked(engine, capture, was_taken ? key->stream_id : SHELF);
    }
    if (heap == NULL) {
        return false;
    }
    *heap_out = heap->heap;
    return true;
}

/* --- graphs that are gone ------------------------------------------------------------ */

/* Move the blocks of its heaps to where they may be used; true: all its heaps are empty. */
static bool
empty_locked(engine_t *engine, const engine_capture_t *capture, uint64_t *moved)
{
    bool is_empty = true;

    for (uint32_t i = 0; i < capture->heap_count; i++) {
        rmm_heap_t heap = capture->heaps[i].heap;

        if (capture->heaps[i].stream_id != SHELF) {
            *moved += rmm__blocks_transfer(
                engine->blocks, heap, engine->clean, UINT64_MAX,
                rmm__engine_clean_stamp_locked(engine));
        } else if (engine->streams.is_only_device) {
            *moved += rmm__blocks_transfer(
                engine->blocks, heap, engine->streams.unproven, UINT64_MAX,
                engine->streams.stamp);
        }
        is_empty &= rmm__blocks_free_units(engine->blocks, heap) == 0;
    }
    return is_empty;
}

static void remove_locked(engine_t *engine, engine_capture_t **link)
{
    engine_capture_t *capture = *link;

    for (uint32_t i = 0; i < capture->heap_count; i++) {
        rmm__blocks_heap_destroy(engine->blocks, capture->heaps[i].heap);
    }
    *link = capture->next;
    capture_destroy(capture);
}

bool rmm__engine_captures_settle_locked(engine_t *engine)
{
    engine_captures_t *captures = &engine->captures;
    engine_capture_t **link = &captures->first;
    uint64_t moved = 0;
    uint64_t count;

    RMM_ASSERT_LOCKED(&engine->lock);
    count = captures->watched != 0 ? rmm__engine_graphs_gone() : captures->graphs_gone;
    if (count == captures->graphs_gone) {
        return false;
    }
    captures->graphs_gone = count;
    while (*link != NULL) {
        engine_capture_t *capture = *link;

        if (watch_is_gone(capture->watch)) {
            watch_leave(capture->watch);
            capture->watch = NULL;
            capture->is_over = true;
            captures->watched--;
        }
        if (capture->is_over && empty_locked(engine, capture, &moved)) {
            remove_locked(engine, link);
        } else {
            link = &capture->next;
        }
    }
    if (moved != 0) {
        rmm__engine_note_larger_locked(engine, engine->streams.unproven);
        rmm__engine_show_locked(engine);
    }
    return moved != 0;
}

void rmm__engine_captures_walk_locked(
    const engine_t *engine, void (*fn)(void *context, rmm_heap_t heap), void *context)
{
    for (const engine_capture_t *capture = engine->captures.first; capture != NULL;
         capture = capture->next) {
        for (uint32_t i = 0; i < capture->heap_count; i++) {
            fn(context, capture->heaps[i].heap);
        }
    }
}

void rmm__engine_captures_fini(engine_t *engine)
{
    engine_capture_t *capture = engine->captures.first;

    while (capture != NULL) {
        engine_capture_t *next = capture->next;

        capture_destroy(capture);
        capture = next;
    }
    engine->captures.first = NULL;
}
