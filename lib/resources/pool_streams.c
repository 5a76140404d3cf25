/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which stream freed what, and behind which event. See pool_impl.h for the idea.
 *
 * Slots are found by who the stream is (its id, unique for ever), never by its handle,
 * which the driver gives out again. A slot with nothing in it is dropped when the table
 * would have to grow, so that a program that makes streams for ever does not grow it.
 *
 * A batch may be missing (no event could be made or recorded): then the next one covers
 * its frees as well, because events on one stream finish in order.
 */
#include "resources/pool_impl.h"

#include <string.h>

#include "core/host_memory.h"

#define MIN_CAPACITY 16

static bool key_equals(rmm_stream_key_t a, rmm_stream_key_t b)
{
    return a.stream_id == b.stream_id && a.capture_id == b.capture_id;
}

static uint32_t home_of(const pool_t *self, rmm_stream_key_t key)
{
    uint64_t mixed = (key.stream_id ^ (key.capture_id << 32)) * 0x9e3779b97f4a7c15ull;

    return (uint32_t)(mixed >> 32) & (self->stream_capacity - 1);
}

/* Index of the key's slot, or of the empty entry where it would go. */
static uint32_t index_of(const pool_t *self, rmm_stream_key_t key)
{
    uint32_t index = home_of(self, key);

    while (self->streams[index] != NULL &&
           !key_equals(self->streams[index]->key, key)) {
        index = (index + 1) & (self->stream_capacity - 1);
    }
    return index;
}

pool_stream_t *rmm__pool_stream_find_locked(pool_t *self, rmm_stream_key_t key)
{
    pool_stream_t *slot = self->last_stream;

    RMM_ASSERT_LOCKED(&self->lock);
    if (slot != NULL && key_equals(slot->key, key)) {
        return slot;
    }
    if (self->stream_capacity == 0) {
        return NULL;
    }
    slot = self->streams[index_of(self, key)];
    if (slot != NULL) {
        self->last_stream = slot;
    }
    return slot;
}

void rmm__pool_note_stream_locked(pool_t *self, rmm_stream_key_t key)
{
    static const rmm_stream_key_t none = {UINT64_MAX, UINT64_MAX};

    RMM_ASSERT_LOCKED(&self->lock);
    if (key_equals(self->sole, none)) {
        self->sole = key;
    }
    if (!self->is_shared && !key_equals(self->sole, key)) {
        self->is_shared = true;
        rmm__pool_batch_limits_locked(self);
    }
}

static bool slot_is_idle(const pool_t *self, const pool_stream_t *slot)
{
    return slot->pins == 0 &&
           rmm__suballoc_free_blocks(self->blocks, slot->heap) == 0 &&
           !rmm__pool_capture_is_open(slot->capture);
}

static void slot_free(pool_t *self, pool_stream_t *slot)
{
    rmm__pool_batches_drop_locked(self, slot, UINT64_MAX);
    rmm__suballoc_heap_destroy(self->blocks, slot->heap);
    rmm__pool_capture_destroy(slot->capture);
    rmm__free(slot);
}

/* Make the table anew, twice as large if need be, without the idle slots. */
static bool rehash(pool_t *self)
{
    pool_stream_t **old = self->streams;
    pool_stream_t **fresh;
    uint32_t old_capacity = self->stream_capacity;
    uint32_t busy = 0;
    uint32_t capacity = MIN_CAPACITY;

    for (uint32_t i = 0; i < old_capacity; i++) {
        busy += old[i] != NULL && !slot_is_idle(self, old[i]);
    }
    while (capacity < 4 * (busy + 1)) {
        capacity *= 2;
    }
    fresh = rmm__calloc(capacity, sizeof(pool_stream_t *));
    if (fresh == NULL) {
        return false;
    }
    self->streams = fresh;
    self->stream_capacity = capacity;
    self->stream_count = busy;
    self->last_stream = NULL;
    for (uint32_t i = 0; i < old_capacity; i++) {
        if (old[i] != NULL && slot_is_idle(self, old[i])) {
            slot_free(self, old[i]);
        } else if (old[i] != NULL) {
            fresh[index_of(self, old[i]->key)] = old[i];
        }
    }
    rmm__free(old);
    return true;
}

static pool_stream_t *slot_create(pool_t *self, rmm_stream_key_t key)
{
    pool_stream_t *slot = rmm__calloc(1, sizeof(*slot));

    if (slot == NULL) {
        return NULL;
    }
    if (rmm__suballoc_heap_create(self->blocks, &slot->heap) != RMM_SUBALLOC_OK) {
        rmm__free(slot);
        return NULL;
    }
    slot->key = key;
    slot->open_stamp = 1;
    slot->eventless = key.capture_id != 0;
    slot->native = key.stream_id == 0; /* see rmm__driver_stream_enter() */
    return slot;
}

pool_stream_t *rmm__pool_stream_get_locked(pool_t *self, rmm_stream_key_t key)
{
    pool_stream_t *slot = rmm__pool_stream_find_locked(self, key);

    if (slot != NULL) {
        return slot;
    }
    rmm__pool_note_stream_locked(self, key);
    if (2 * (self->stream_count + 1) > self->stream_capacity && !rehash(self)) {
        return NULL;
    }
    slot = slot_create(self, key);
    if (slot != NULL) {
        self->streams[index_of(self, key)] = slot;
        self->stream_count++;
        self->last_stream = slot;
    }
    return slot;
}

pool_stream_t *rmm__pool_slot_for_free_locked(
    pool_t *self, const rmm_stream_key_t *key, rmm_block_t block)
{
    pool_stream_t *slot;

    if (key != NULL && key->capture_id != 0) {
        return rmm__pool_capture_slot_locked(self, *key, block);
    }
    slot = key != NULL ? rmm__pool_stream_get_locked(self, *key) : NULL;
    return slot != NULL ? slot : self->unproven;
}

rmm_status_t rmm__pool_streams_init(pool_t *self)
{
    int devices;

    self->sole = (rmm_stream_key_t){UINT64_MAX, UINT64_MAX};
    rmm__pool_batch_limits_locked(self);
    /* a key that no stream has; not in the table */
    self->unproven = slot_create(self, (rmm_stream_key_t){UINT64_MAX, 0});
    if (self->unproven == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    self->unproven->eventless = true;
    self->is_only_device =
        self->driver->device_count(&devices) == RMM_DRIVER_OK && devices == 1;
    return RMM_OK;
}

void rmm__pool_streams_fini(pool_t *self)
{
    rmm_driver_scope_t scope;
    bool entered =
        rmm__driver_scope_enter(&scope, self->driver, self->base.device) == RMM_OK;

    for (uint32_t i = 0; i < self->stream_capacity; i++) {
        pool_stream_t *slot = self->streams[i];

        for (uint32_t j = 0; slot != NULL && j < slot->batch_count; j++) {
            self->driver->event_destroy(slot->batches[j].event);
        }
        rmm__pool_capture_destroy(slot != NULL ? slot->capture : NULL);
        rmm__free(slot);
    }
    for (uint32_t i = 0; i < self->spare_count; i++) {
        self->driver->event_destroy(self->spare_events[i]);
    }
    if (entered) {
        rmm__driver_scope_leave(&scope);
    }
    rmm__free(self->unproven);
    rmm__free(self->streams);
    rmm__free(self->spare_events);
}

/* --- events ------------------------------------------------------------------------- */

void rmm__pool_event_spare_locked(pool_t *self, rmm_driver_event_t event)
{
    uint32_t capacity = self->spare_capacity;

    if (self->spare_count == capacity) {
        uint32_t wanted = capacity != 0 ? 2 * capacity : 64;
        rmm_driver_event_t *grown = rmm__resize(
            self->spare_events, capacity * sizeof(event), wanted * sizeof(event));

        if (grown == NULL) {
            /* destroying asks the driver, which must not happen under the lock, but
             * without host memory the alternative is a leak */
            self->driver->event_destroy(event);
            return;
        }
        self->spare_events = grown;
        self->spare_capacity = wanted;
    }
    self->spare_events[self->spare_count++] = event;
}

static rmm_driver_event_t spare_take_locked(pool_t *self)
{
    return self->spare_count > 0 ? self->spare_events[--self->spare_count] : NULL;
}

/* An event of the pool's device, or NULL: then the frees wait for the next batch. */
static rmm_driver_event_t event_make(pool_t *self)
{
    rmm_driver_event_t event;
    rmm_driver_scope_t scope;

    if (rmm__driver_scope_enter(&scope, self->driver, self->base.device) != RMM_OK) {
        return NULL;
    }
    if (self->driver->event_create(&event) != RMM_DRIVER_OK) {
        event = NULL;
    }
    rmm__driver_scope_leave(&scope);
    return event;
}

/* --- batches ------------------------------------------------------------------------ */

/*
 * What a stream may keep from the others, behind no event: little of what is held. But an
 * event for each of the first frees would triple their cost, while a pool is small.
 */
static uint64_t batch_limit(const pool_t *self)
{
    uint64_t block_bytes = self->block_units * POOL_UNIT;
    bool counts = block_bytes != 0;
    uint64_t least = counts ? POOL_BATCH_BLOCKS * block_bytes : POOL_BATCH_LEAST;
    uint64_t most = counts ? POOL_BATCH_FREES * block_bytes : POOL_BATCH_BYTES;
    uint64_t share =
        self->reserved_bytes / (counts ? POOL_BATCH_BLOCKS_SHARE : POOL_BATCH_SHARE);

    share = share > least ? share : least;
    return share < most ? share : most;
}

void rmm__pool_batch_limits_locked(pool_t *self)
{
    uint32_t times = self->is_shared ? 1 : POOL_BATCH_ALONE;

    self->batch_frees = POOL_BATCH_FREES * times;
    self->batch_bytes = batch_limit(self) * times;
}

/* What is open in a slot is too much to be kept from the others. */
static bool is_batch(const pool_t *self, const pool_stream_t *slot)
{
    return slot->open_frees >= self->batch_frees ||
           slot->open_bytes >= self->batch_bytes;
}

/* Frees from here on carry the next stamp; those before may be waited for. */
static void
close_stamp_locked(pool_t *self, pool_stream_t *slot, pool_closing_t *closing_out)
{
    *closing_out = (pool_closing_t){
        .slot = slot,
        .stamp = slot->open_stamp++,
        .event = slot->foreign ? NULL : spare_take_locked(self),
        .foreign = slot->foreign,
        .native = slot->native};
    slot->open_frees = 0;
    slot->open_bytes = 0;
    slot->pins++;
}

void rmm__pool_batch_note_locked(
    pool_t *self, pool_stream_t *slot, uint64_t bytes, pool_closing_t *closing_out)
{
    slot->open_frees++;
    slot->open_bytes += bytes;
    if (slot->eventless) {
        return;
    }
    slot->doubtful = !slot->native;
    if (is_batch(self, slot) || slot->open_stamp == 1 || !slot->native) {
        close_stamp_locked(self, slot, closing_out);
    }
}

/* Out of the slot: the first of its batches. */
static void batches_shift(pool_t *self, pool_stream_t *slot, uint32_t gone)
{
    if (gone == 0) {
        return;
    }
    slot->batch_count -= gone;
    self->batch_slots -= slot->batch_count == 0;
    memmove(
        &slot->batches[0], &slot->batches[gone],
        slot->batch_count * sizeof(slot->batches[0]));
}

void rmm__pool_batches_drop_locked(pool_t *self, pool_stream_t *slot, uint64_t up_to)
{
    uint32_t gone = 0;

    while (gone < slot->batch_count && slot->batches[gone].stamp <= up_to) {
        rmm__pool_event_spare_locked(self, slot->batches[gone].event);
        gone++;
    }
    batches_shift(self, slot, gone);
}

void rmm__pool_batch_insert_locked(
    pool_t *self, pool_stream_t *slot, const pool_batch_t *batch)
{
    uint32_t index = slot->batch_count;

    RMM_ASSERT_LOCKED(&self->lock);
    if (slot->batch_count ==
        POOL_STREAM_BATCHES) { /* the next event covers these too */
        rmm__pool_event_spare_locked(self, slot->batches[0].event);
        batches_shift(self, slot, 1);
        index--;
    }
    while (index > 0 && slot->batches[index - 1].stamp > batch->stamp) {
        slot->batches[index] = slot->batches[index - 1];
        index--;
    }
    slot->batches[index] = *batch;
    self->batch_slots += slot->batch_count == 0;
    slot->batch_count++;
}

bool rmm__pool_batch_pop_locked(
    pool_t *self, pool_stream_t *slot, pool_batch_t *batch_out)
{
    uint64_t oldest = rmm__suballoc_oldest_stamp(self->blocks, slot->heap);
    uint32_t useless = 0;
    bool found;

    RMM_ASSERT_LOCKED(&self->lock);
    while (useless < slot->batch_count && slot->batches[useless].stamp < oldest) {
        rmm__pool_event_spare_locked(self, slot->batches[useless].event);
        useless++;
    }
    found = useless < slot->batch_count;
    if (found) {
        *batch_out = slot->batches[useless];
    }
    batches_shift(self, slot, useless + (found ? 1 : 0));
    return found;
}

/* A stream of another device, or one that may be: the only proof is to wait for it, here
 * and now. */
static void
close_by_waiting(pool_t *self, pool_stream_t *slot, uint64_t stamp, rmm_stream_t stream)
{
    int error = rmm__driver_wait_stream(self->driver, stream);

    rmm__mutex_lock(&self->lock);
    slot->pins--;
    if (error == RMM_DRIVER_OK) {
        rmm__suballoc_transfer(self->blocks, slot->heap, self->clean, stamp, 0);
        /* pinned: another thread still waits for later frees */
        slot->doubtful = !slot->native && (slot->open_frees != 0 || slot->pins != 0);
        rmm__pool_figures_locked(self);
    }
    rmm__mutex_unlock(&self->lock);
}

/* False: no event could be had or recorded; error_out says why (OK: none to be had). */
static bool
record(pool_t *self, rmm_stream_t stream, pool_batch_t *batch, int *error_out)
{
    rmm_driver_scope_t scope;

    *error_out = RMM_DRIVER_OK;
    if (batch->event == NULL) {
        batch->event = event_make(self);
    }
    if (batch->event == NULL ||
        !rmm__driver_stream_enter(&scope, self->driver, self->base.device, stream)) {
        return false;
    }
    *error_out = self->driver->event_record(batch->event, stream);
    rmm__driver_stream_leave(&scope, stream);
    return *error_out == RMM_DRIVER_OK;
}

/* The oldest batch that covers free blocks, or the newest, where that is another one. */
static bool pop(pool_t *self, pool_stream_t *slot, bool *newest, pool_batch_t *batch)
{
    uint32_t last;
    bool found = true;

    rmm__mutex_lock(&self->lock);
    last = slot->batch_count - 1;
    *newest = *newest && slot->batch_count > 1 &&
              slot->batches[last].stamp >=
                  rmm__suballoc_oldest_stamp(self->blocks, slot->heap);
    if (*newest) {
        *batch = slot->batches[last];
        slot->batch_count--;
    } else {
        found = rmm__pool_batch_pop_locked(self, slot, batch);
    }
    rmm__mutex_unlock(&self->lock);
    return found;
}

/* After asking: finished blocks become clean, others go back to wait. */
static void
settle(pool_t *self, pool_stream_t *slot, const pool_batch_t *batch, bool is_done)
{
    rmm__mutex_lock(&self->lock);
    if (is_done) {
        rmm__pool_event_spare_locked(self, batch->event);
        rmm__pool_batches_drop_locked(self, slot, batch->stamp);
        rmm__suballoc_transfer(self->blocks, slot->heap, self->clean, batch->stamp, 0);
        rmm__pool_figures_locked(self);
    } else {
        rmm__pool_batch_insert_locked(self, slot, batch);
    }
    rmm__mutex_unlock(&self->lock);
}

/* Events of one stream finish in order. So the oldest is asked first, which most often says
 * that none is done, and then the newest, which may say that all are. */
bool rmm__pool_reclaim(pool_t *self, pool_stream_t *slot)
{
    pool_batch_t batch;
    bool newest = false;
    bool newest_waits = false;
    bool any = false;

    while (pop(self, slot, &newest, &batch)) {
        bool is_done = self->driver->event_query(batch.event) == RMM_DRIVER_OK;

        settle(self, slot, &batch, is_done);
        if (!is_done && !newest) {
            break;
        }
        any |= is_done;
        newest_waits |= !is_done;
        newest = is_done && !newest && !newest_waits;
    }
    return any;
}

static bool is_crowded(uint32_t batch_count)
{
    return batch_count >= POOL_STREAM_BATCHES / 2;
}

/*
 * Now and then, and so a few ns a free: what is finished goes back to all streams, where
 * it merges with its neighbours.
 */
static void reclaim_finished(pool_t *self, pool_stream_t *slot, uint32_t batch_count)
{
    rmm_driver_scope_t scope;

    if (!is_crowded(batch_count)) {
        return;
    }
    if (rmm__driver_scope_enter(&scope, self->driver, self->base.device) == RMM_OK) {
        (void)rmm__pool_reclaim(self, slot);
        rmm__driver_scope_leave(&scope);
    }
}

/*
 * A stream freed for the first time. Many slots may be of streams that are gone, each with
 * some blocks in it: what is finished leaves them, and empty slots go when the table is
 * made anew. Well before it is, because what is asked for in vain now may be done then; at
 * every eighth stream, because all slots are asked.
 */
static void reclaim_if_crowded(pool_t *self)
{
    rmm_driver_scope_t scope;
    bool crowded;

    rmm__mutex_lock(&self->lock);
    crowded = self->stream_capacity > MIN_CAPACITY && self->stream_count % 8 == 0 &&
              4 * self->stream_count >= self->stream_capacity;
    rmm__mutex_unlock(&self->lock);
    if (crowded &&
        rmm__driver_scope_enter(&scope, self->driver, self->base.device) == RMM_OK) {
        (void)rmm__pool_reclaim_all(self, NULL);
        rmm__driver_scope_leave(&scope);
    }
}

/* Without an event the frees wait for the next batch, unless nothing says that an event
 * would ever cover them. */
static void
finish_close(pool_t *self, const pool_closing_t *closing, uint32_t batch_count)
{
    reclaim_finished(self, closing->slot, batch_count);
    if (closing->stamp == 1) {
        reclaim_if_crowded(self);
    }
    rmm__mutex_lock(&self->lock);
    closing->slot->pins--;
    rmm__mutex_unlock(&self->lock);
}

void rmm__pool_batch_close(
    pool_t *self, const pool_closing_t *closing, rmm_stream_t stream)
{
    pool_stream_t *slot = closing->slot;
    pool_batch_t batch = {.stamp = closing->stamp, .event = closing->event};
    int error = RMM_DRIVER_OK;
    bool recorded = !closing->foreign && record(self, stream, &batch, &error);
    uint32_t batch_count;
    bool is_finished;

    rmm__mutex_lock(&self->lock);
    slot->foreign |= error == RMM_DRIVER_INVALID_HANDLE && !closing->native;
    if (recorded) {
        slot->native = true;
        slot->doubtful = false;
        rmm__pool_batch_insert_locked(self, slot, &batch);
    } else if (batch.event != NULL) {
        rmm__pool_event_spare_locked(self, batch.event);
    }
    batch_count = slot->batch_count;
    is_finished = recorded && closing->stamp != 1 && !is_crowded(batch_count);
    slot->pins -= is_finished;
    rmm__mutex_unlock(&self->lock);

    if (!recorded && !closing->native) {
        close_by_waiting(self, slot, closing->stamp, stream);
    } else if (!is_finished) {
        finish_close(self, closing, batch_count);
    }
}
