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
 * request gets memory that is set aside, not even in the capture. The set `taken` separates the two
 * kinds, by the first unit of a block. It may have one block too many, which was freed
 * outside of the capture and allocated again. That block was allocated during the capture as
 * well. A program that used it outside had to wait for that work on the host before it freed
 * the block in the capture, because nothing else orders a capture after work outside of it.
 *
 * When the graph is gone, blocks of its streams are clean: only the graph used them. Those set
 * aside become unproven (waits.c), because work from before the capture, also of another device,
 * may still use them.
 *
 * Cost: nothing without captures. An engine calls the driver once for each capture. It takes
 * its lock once more for each allocation and free in a capture, twice more for the first; on
 * the slow path once more for each attempt. One load, each time events are queried, shows
 * whether graphs are gone. The other graphs that exist cost nothing, however many there are.
 *
 * Locking: the engine's. graph_watch.c, which knows which graphs are gone, has none.
 */
#include "pool/engine_impl.h"

#include "core/host_memory.h"
#include "pool/engine_figures.h"
#include "pool/graph_watch.h"

#define SET_ASIDE UINT64_MAX /* no stream's id or handle */

typedef struct capture_heap {
    uint64_t stream_id;
    rmm_heap_t heap;
} capture_heap_t;

struct engine_capture {
    uint64_t id;
    graph_watch_t *watch; /* NULL: none (yet) */
    rmm_pointer_map_t taken;
    capture_heap_t *heaps;
    uint32_t heap_count;
    engine_capture_t *previous, *next;
};

/* --- captures ------------------------------------------------------------------------ */

/* The key of a block in `taken`: the address of its first unit. */
static void *taken_name(uint64_t unit)
{
    return (void *)(uintptr_t)(unit * RMM_BLOCKS_UNIT);
}

/* The key of a capture in `by_id`. */
static void *capture_name(uint64_t id)
{
    return (void *)(uintptr_t)id;
}

static void capture_destroy(engine_capture_t *capture)
{
    if (capture->watch != NULL) {
        rmm__graph_watch_leave(capture->watch);
    }
    rmm__pointer_map_fini(&capture->taken);
    rmm__free(capture->heaps);
    rmm__free(capture);
}

/* NULL: the engine was not used in it, or there was no host memory. */
static engine_capture_t *find_locked(const engine_t *engine, uint64_t id)
{
    rmm_pointer_map_entry_t entry;

    return rmm__pointer_map_find_entry(
               &engine->captures.by_id, capture_name(id), &entry)
               ? entry.owner
               : NULL;
}

/* False without host memory, or if another thread has added it first. */
static bool add_locked(engine_captures_t *captures, engine_capture_t *capture)
{
    rmm_pointer_map_entry_t entry = {capture_name(capture->id), 0, capture};
    rmm_pointer_map_entry_t other;

    if (rmm__pointer_map_find_entry(&captures->by_id, entry.ptr, &other) ||
        !rmm__pointer_map_reserve(&captures->by_id)) {
        return false;
    }
    rmm__pointer_map_insert_entry(&captures->by_id, &entry);
    capture->next = captures->first;
    if (capture->next != NULL) {
        capture->next->previous = capture;
    }
    captures->first = capture;
    return true;
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
    engine->blocks->heaps[fresh.heap].tag = HEAP_OF_GRAPH;
    capture->heaps[capture->heap_count] = fresh;
    return &capture->heaps[capture->heap_count++];
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

    if (capture != NULL &&
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

    if (key->capture_id == RMM_CAPTURE_RUINED) {
        *heap_out = engine->streams.unproven;
        return true;
    }
    if (capture != NULL) {
        bool was_taken = rmm__pointer_map_erase(&capture->taken, taken_name(unit));

        heap = get_heap_locked(engine, capture, was_taken ? key->stream_id : SET_ASIDE);
    }
    if (heap == NULL) {
        return false;
    }
    *heap_out = heap->heap;
    return true;
}

/* --- graphs that are gone ------------------------------------------------------------ */

/* Blocks set aside keep their stamps, or get the latest one where they go: a synchronise that
 * began before the graph was gone, but after they were freed, proves them. */
static uint64_t take_set_aside_locked(engine_t *engine, rmm_heap_t heap)
{
    rmm_heap_t unproven = engine->streams.unproven;
    uint64_t there = rmm__blocks_newest_stamp(engine->blocks, unproven);
    uint64_t here = rmm__blocks_newest_stamp(engine->blocks, heap);

    uint64_t moved = rmm__blocks_transfer(
        engine->blocks, heap, unproven, UINT64_MAX, here > there ? here : there);

    rmm__engine_note_larger_locked(engine, unproven);
    return moved;
}

/* End its heaps; their blocks move to where they may be used. Returns how many units. */
static uint64_t end_heaps_locked(engine_t *engine, const engine_capture_t *capture)
{
    uint64_t moved = 0;

    for (uint32_t i = 0; i < capture->heap_count; i++) {
        rmm_heap_t heap = capture->heaps[i].heap;

        if (capture->heaps[i].stream_id != SET_ASIDE) {
            moved += rmm__blocks_transfer(
                engine->blocks, heap, engine->clean, UINT64_MAX,
                rmm__engine_clean_stamp_locked(engine));
        } else {
            moved += take_set_aside_locked(engine, heap);
        }
        rmm__blocks_heap_destroy(engine->blocks, heap);
    }
    return moved;
}

static void remove_locked(engine_t *engine, engine_capture_t *capture)
{
    if (capture->previous != NULL) {
        capture->previous->next = capture->next;
    } else {
        engine->captures.first = capture->next;
    }
    if (capture->next != NULL) {
        capture->next->previous = capture->previous;
    }
    rmm__pointer_map_erase(&engine->captures.by_id, capture_name(capture->id));
    capture_destroy(capture);
}

/* The graph of its capture is gone, unless the driver refused this watch. */
static void
settle_watch_locked(engine_t *engine, const graph_watch_t *watch, uint64_t *moved)
{
    engine_capture_t *capture = find_locked(engine, watch->capture_id);

    if (capture != NULL && capture->watch == watch) {
        *moved += end_heaps_locked(engine, capture);
        remove_locked(engine, capture);
    }
}

bool rmm__engine_captures_settle_locked(engine_t *engine)
{
    graph_watch_t *watch = rmm__graph_queue_take_all(engine->captures.queue);
    uint64_t moved = 0;

    RMM_ASSERT_LOCKED(&engine->lock);
    while (watch != NULL) {
        graph_watch_t *next = watch->next;

        settle_watch_locked(engine, watch, &moved);
        rmm__graph_watch_leave(watch);
        watch = next;
    }
    if (moved != 0) {
        rmm__engine_show_locked(engine);
    }
    return moved != 0;
}

/* --- a capture that uses the engine for the first time ------------------------------- */

/* True: the calling thread has added it, and has its graph watched next. */
static bool add_capture(engine_t *engine, uint64_t id)
{
    engine_capture_t *capture = rmm__calloc(1, sizeof(*capture));
    bool is_added;

    if (capture == NULL) {
        return false; /* blocks freed in it will never be handed out again */
    }
    capture->id = id;
    rmm__mutex_lock(&engine->lock);
    (void)rmm__engine_captures_settle_locked(engine);
    is_added = add_locked(&engine->captures, capture);
    rmm__mutex_unlock(&engine->lock);
    if (!is_added) {
        capture_destroy(capture);
    }
    return is_added;
}

/* The graph may be gone already: then the watch perhaps came out of the queue too early. */
static void watch_capture(engine_t *engine, uint64_t id, rmm_stream_t stream)
{
    graph_watch_t *watch = rmm__graph_watch(engine, id, stream);
    uint64_t moved = 0;

    if (watch == NULL) {
        return;
    }
    rmm__mutex_lock(&engine->lock);
    find_locked(engine, id)->watch = watch; /* without it nothing removes the capture */
    if (rmm__graph_watch_is_gone(watch)) {
        settle_watch_locked(engine, watch, &moved);
        rmm__engine_show_locked(engine);
    }
    rmm__mutex_unlock(&engine->lock);
}

void rmm__engine_capture_open(
    engine_t *engine, const rmm_stream_key_t *key, rmm_stream_t stream)
{
    bool is_known;

    if (key->capture_id == RMM_CAPTURE_RUINED) {
        return; /* its graph never runs */
    }
    rmm__mutex_lock(&engine->lock);
    is_known = find_locked(engine, key->capture_id) != NULL;
    rmm__mutex_unlock(&engine->lock);
    if (!is_known && add_capture(engine, key->capture_id)) {
        watch_capture(engine, key->capture_id, stream);
    }
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

rmm_status_t rmm__engine_captures_init(engine_t *engine)
{
    engine->captures.queue = rmm__graph_queue_create();
    return engine->captures.queue != NULL ? RMM_OK : RMM_ERR_OUT_OF_HOST_MEMORY;
}

void rmm__engine_captures_fini(engine_t *engine)
{
    engine_capture_t *capture = engine->captures.first;

    while (capture != NULL) {
        engine_capture_t *next = capture->next;

        capture_destroy(capture);
        capture = next;
    }
    rmm__pointer_map_fini(&engine->captures.by_id);
    if (engine->captures.queue != NULL) {
        rmm__graph_queue_leave(engine->captures.queue);
    }
}
