/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a captured graph uses, and when it comes back (docs/decisions/0008).
 *
 * A capture's blocks are in slots of the table, as those of streams: one for each of its
 * streams, with what was taken in the capture and freed there, and its shelf. From the
 * slots the same stream of the same capture takes again: the graph runs that in order.
 *
 * The shelf has what was freed in the capture but taken before it. Work from before the
 * capture may still use it, and nothing orders that before a launch of the graph: so nobody
 * takes it, not even the capture. Which is which, the set `taken` tells, by where a block
 * begins. It may name one too many: a block that was freed elsewhere since, and taken anew.
 * That one was taken during the capture as well, and whoever used it outside had to wait
 * for that on the host before it could be freed in a capture, which nothing else orders
 * behind work from outside.
 *
 * When the graph is gone, blocks of the slots are clean: only the graph used them. Those on
 * the shelf wait for the next synchronise of the device, with the unproven frees; where the
 * process sees several devices, work of another may still use them, and they stay.
 *
 * Cost: nothing without captures. A call of the driver for each capture and pool, two more
 * locks for what is taken or freed in it. Whether graphs are gone is one load, each time
 * that events are asked.
 *
 * Locking: the pool's. graph_gone() runs on any thread and takes none.
 */
#include "resources/pool_impl.h"

#include <stdatomic.h>

#include "core/host_memory.h"
#include "core/pointer_map.h"

#define SHELF_STREAM UINT64_MAX /* no stream's id or handle */

/* The pool's and the graph's together: who ends last frees it, perhaps nobody. */
typedef struct graph_watch {
    atomic_uint owners;
    atomic_bool is_gone;
} graph_watch_t;

struct pool_capture {
    graph_watch_t *watch; /* NULL: nothing will tell, or has told */
    bool is_over;         /* the graph is gone */
    rmm_pointer_map_t taken;
};

/* Of all graphs: who knows an older number has something to look for. */
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

    /* release: the graph's work is over for who sees this (watch_is_gone()) */
    atomic_store_explicit(&watch->is_gone, true, memory_order_release);
    /* release: who sees the number finds the flag */
    atomic_fetch_add_explicit(&gone_count, 1, memory_order_release);
    watch_leave(watch);
}

static bool watch_is_gone(const graph_watch_t *watch)
{
    /* acquire: pairs with graph_gone() */
    return watch != NULL && atomic_load_explicit(&watch->is_gone, memory_order_acquire);
}

/* Tied to the graph that the stream captures into; NULL where that cannot be. */
static graph_watch_t *watch_graph(pool_t *self, rmm_stream_t stream)
{
    graph_watch_t *watch = rmm__calloc(1, sizeof(*watch));
    rmm_driver_scope_t scope;
    int error;

    if (watch == NULL) {
        return NULL;
    }
    if (rmm__driver_scope_enter(&scope, self->driver, self->base.device) != RMM_OK) {
        rmm__free(watch);
        return NULL;
    }
    atomic_init(&watch->owners, 2);
    error = self->driver->capture_watch(stream, graph_gone, watch);
    rmm__driver_scope_leave(&scope);
    if (error != RMM_DRIVER_OK) {
        watch_leave(watch); /* graph_gone() is called all the same */
        watch = NULL;
    }
    return watch;
}

/* --- captures ------------------------------------------------------------------------ */

static rmm_stream_key_t shelf_of(rmm_stream_key_t key)
{
    return (rmm_stream_key_t){SHELF_STREAM, key.capture_id};
}

/* A unit in the guise of a block's address. */
static void *taken_name(uint32_t unit)
{
    return (void *)(((uintptr_t)unit + 1) * POOL_UNIT);
}

static pool_capture_t *capture_create(pool_t *self, rmm_stream_t stream)
{
    pool_capture_t *capture = rmm__calloc(1, sizeof(*capture));

    if (capture != NULL) {
        capture->watch = watch_graph(self, stream);
    }
    return capture;
}

void rmm__pool_capture_destroy(pool_capture_t *capture)
{
    if (capture == NULL) {
        return;
    }
    if (capture->watch != NULL) {
        watch_leave(capture->watch);
    }
    rmm__pointer_map_fini(&capture->taken);
    rmm__free(capture);
}

bool rmm__pool_capture_is_open(const pool_capture_t *capture)
{
    return capture != NULL && capture->watch != NULL;
}

/* The shelf's capture; NULL: the pool was not used in it, or could not note it. */
static pool_capture_t *find_locked(pool_t *self, rmm_stream_key_t key)
{
    pool_stream_t *shelf = rmm__pool_stream_find_locked(self, shelf_of(key));

    return shelf != NULL ? shelf->capture : NULL;
}

void rmm__pool_capture_open(pool_t *self, rmm_stream_key_t key, rmm_stream_t stream)
{
    pool_stream_t *shelf;
    pool_capture_t *capture;
    bool known;

    if (key.capture_id == RMM_CAPTURE_RUINED) {
        return;
    }
    rmm__mutex_lock(&self->lock);
    known = find_locked(self, key) != NULL;
    rmm__mutex_unlock(&self->lock);
    if (known) {
        return;
    }
    capture = capture_create(self, stream);
    if (capture == NULL) {
        return; /* then all is put on a shelf for ever */
    }
    rmm__mutex_lock(&self->lock);
    (void)rmm__pool_captures_settle_locked(self); /* before the table grows */
    shelf = rmm__pool_stream_get_locked(self, shelf_of(key));
    if (shelf != NULL && shelf->capture == NULL) {
        shelf->capture = capture;
        self->watched_captures += capture->watch != NULL;
        capture = NULL;
    }
    rmm__mutex_unlock(&self->lock);
    rmm__pool_capture_destroy(capture); /* another thread was faster */
}

void rmm__pool_capture_note_locked(pool_t *self, rmm_stream_key_t key, uint32_t unit)
{
    pool_capture_t *capture = find_locked(self, key);
    size_t bytes;

    if (capture != NULL &&
        !rmm__pointer_map_find(&capture->taken, taken_name(unit), &bytes) &&
        rmm__pointer_map_reserve(&capture->taken)) {
        rmm__pointer_map_insert(&capture->taken, taken_name(unit), 0);
    }
}

pool_stream_t *
rmm__pool_capture_slot_locked(pool_t *self, rmm_stream_key_t key, rmm_block_t block)
{
    uint32_t unit = rmm__suballoc_block_unit(self->blocks, block);
    pool_capture_t *capture;

    if (key.capture_id == RMM_CAPTURE_RUINED && self->is_only_device) {
        return self->unproven; /* its graph never runs: only work from before it does */
    }
    capture = find_locked(self, key);
    if (capture != NULL && rmm__pointer_map_erase(&capture->taken, taken_name(unit))) {
        return rmm__pool_stream_get_locked(self, key);
    }
    return rmm__pool_stream_get_locked(self, shelf_of(key));
}

/* --- coming back ---------------------------------------------------------------------- */

/* Note which graphs are gone. */
static void mark_over_locked(pool_t *self)
{
    for (uint32_t i = 0; i < self->stream_capacity; i++) {
        pool_capture_t *capture =
            self->streams[i] != NULL ? self->streams[i]->capture : NULL;

        if (capture != NULL && watch_is_gone(capture->watch)) {
            watch_leave(capture->watch);
            capture->watch = NULL;
            capture->is_over = true;
            rmm__pointer_map_fini(&capture->taken);
            self->watched_captures--;
        }
    }
}

static uint64_t empty_locked(pool_t *self, pool_stream_t *slot)
{
    const pool_capture_t *capture = find_locked(self, slot->key);

    if (capture == NULL || !capture->is_over) {
        return 0;
    }
    if (slot->key.stream_id != SHELF_STREAM) {
        return rmm__suballoc_transfer(
            self->blocks, slot->heap, self->clean, UINT64_MAX, 0);
    }
    if (!self->is_only_device) {
        return 0;
    }
    return rmm__suballoc_transfer(
        self->blocks, slot->heap, self->unproven->heap, UINT64_MAX,
        self->unproven->open_stamp);
}

uint64_t rmm__pool_graphs_gone(void)
{
    /* acquire: pairs with graph_gone() */
    return atomic_load_explicit(&gone_count, memory_order_acquire);
}

bool rmm__pool_captures_settle_locked(pool_t *self)
{
    uint64_t moved = 0;
    uint64_t count;

    RMM_ASSERT_LOCKED(&self->lock);
    if (self->watched_captures == 0) {
        return false;
    }
    count = rmm__pool_graphs_gone();
    if (count == self->graphs_gone) {
        return false;
    }
    self->graphs_gone = count;
    mark_over_locked(self);
    for (uint32_t i = 0; i < self->stream_capacity; i++) {
        pool_stream_t *slot = self->streams[i];

        if (slot != NULL && slot->key.capture_id != 0) {
            moved += empty_locked(self, slot);
        }
    }
    if (moved != 0) {
        rmm__pool_figures_locked(self);
    }
    return moved != 0;
}
