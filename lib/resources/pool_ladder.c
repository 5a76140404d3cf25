/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pool tries, in this order, when neither the stream's own heap nor the clean one
 * has a block that fits. Each rung costs more than the one before:
 *   1 take over what other streams' finished events have freed     (asks the driver)
 *   2 let this stream wait, on the device, for one other stream    (orders two streams)
 *   3 synchronise, and map free memory anew, side by side          (virtual pools, where
 *                                                                   much is free)
 *   4 take a chunk from upstream, or map more of the range         (cudaMalloc)
 *   5 synchronise the device and merge everything                  (stops the host)
 *   6 map free memory anew, side by side, and what is still missing (virtual pools)
 *   7 map free memory anew, all of it in one place                  (virtual pools)
 * and then says why it failed.
 *
 * Nothing here holds the pool's lock during a driver call: a slot is pinned instead, and a
 * batch is taken out of it, so that no other thread uses its event meanwhile. Another
 * thread may miss that batch for the moment and go one rung further; it never gets
 * memory that it should not have.
 */
#include "resources/pool_front.h"

#include <inttypes.h>

#include "log/log.h"

#define HUGE_SHARE 64   /* of what is held: a request that large is placed with care */
#define PATIENCE 32u    /* questions about events, some 150 ns each */
#define TIDY_PART 12    /* of what is held; with less free than that the pool grows */
#define TIDY_TIMES 4    /* so often all of the pool may be mapped anew; then it grows */
#define TIDY_WORTH 2048 /* a tidying costs a program as much as this part of the pool */

/* A rung: true if trying again may succeed; false with *status set if it cannot help. */
typedef bool (*rung_fn)(pool_t *self, const pool_want_t *want, rmm_status_t *status);

static bool captures(const pool_want_t *want)
{
    return want->key.capture_id != 0;
}

/* Blocks of this slot may leave it: not a capture's, whose graph may run at any time. */
static bool slot_gives(const pool_stream_t *slot)
{
    return slot != NULL && slot->key.capture_id == 0;
}

/* --- rung 1 ------------------------------------------------------------------------- */

/* The table's index-th slot, pinned; NULL: none there, `but`'s, or nothing to ask for. */
static pool_stream_t *
slot_pin(pool_t *self, uint32_t index, const rmm_stream_key_t *but)
{
    pool_stream_t *slot = NULL;

    rmm__mutex_lock(&self->lock);
    if (index < self->stream_capacity) {
        slot = self->streams[index];
    }
    if (!slot_gives(slot) || slot->batch_count == 0 ||
        (but != NULL && slot->key.stream_id == but->stream_id)) {
        slot = NULL;
    } else {
        slot->pins++;
    }
    rmm__mutex_unlock(&self->lock);
    return slot;
}

static void slot_unpin(pool_t *self, pool_stream_t *slot)
{
    rmm__mutex_lock(&self->lock);
    slot->pins--;
    rmm__mutex_unlock(&self->lock);
}

bool rmm__pool_reclaim_all(pool_t *self, const rmm_stream_key_t *but)
{
    uint32_t capacity;
    bool any;

    rmm__mutex_lock(&self->lock);
    any = rmm__pool_captures_settle_locked(self);
    capacity = self->stream_capacity;
    rmm__mutex_unlock(&self->lock);
    for (uint32_t i = 0; i < capacity; i++) {
        pool_stream_t *slot = slot_pin(self, i, but);

        if (slot != NULL) {
            any |= rmm__pool_reclaim(self, slot);
            slot_unpin(self, slot);
        }
    }
    return any;
}

static bool
reclaim_finished(pool_t *self, const pool_want_t *want, rmm_status_t *status)
{
    rmm_driver_scope_t scope;
    bool any;

    (void)want;
    *status = rmm__driver_scope_enter(&scope, self->driver, self->base.device);
    if (*status != RMM_OK) {
        return false;
    }
    any = rmm__pool_reclaim_all(self, NULL);
    rmm__driver_scope_leave(&scope);
    *status = RMM_ERR_OUT_OF_MEMORY;
    return any;
}

bool rmm__pool_others_have_batches_locked(pool_t *self, const rmm_stream_key_t *key)
{
    const pool_stream_t *own;

    RMM_ASSERT_LOCKED(&self->lock);
    if (self->batch_slots == 0) {
        return false;
    }
    own = rmm__pool_stream_find_locked(self, (rmm_stream_key_t){key->stream_id, 0});
    return self->batch_slots > (own != NULL && own->batch_count != 0);
}

bool rmm__pool_others_have_batches(pool_t *self, const rmm_stream_key_t *key)
{
    bool any;

    rmm__mutex_lock(&self->lock);
    any = rmm__pool_others_have_batches_locked(self, key);
    rmm__mutex_unlock(&self->lock);
    return any;
}

/*
 * How often the others are asked, all of them each time. A huge block in a wrong place is
 * what makes the next one fail, so for that they are asked again for a moment. (Smallest
 * capacity over peak on the trace multi_stream 1.11 instead of 1.22 to 1.26.)
 */
static int rounds_for(pool_t *self, bool is_huge)
{
    uint32_t slots;

    rmm__mutex_lock(&self->lock);
    slots = self->batch_slots;
    rmm__mutex_unlock(&self->lock);
    return is_huge && slots < PATIENCE ? (int)(PATIENCE / (slots + 1)) : 1;
}

void rmm__pool_reclaim_others(pool_t *self, const pool_want_t *want)
{
    bool is_huge = want->units >= rmm__pool_reserved(self) / POOL_UNIT / HUGE_SHARE;
    int rounds = rounds_for(self, is_huge);
    rmm_driver_scope_t scope;

    if (rmm__driver_scope_enter(&scope, self->driver, self->base.device) == RMM_OK) {
        do {
            (void)rmm__pool_reclaim_all(self, is_huge ? NULL : &want->key);
            rounds--;
        } while (rounds > 0 && rmm__pool_others_have_batches(self, &want->key));
        rmm__driver_scope_leave(&scope);
    }
}

/* --- rung 2 ------------------------------------------------------------------------- */

/* A slot that has a large enough block somewhere: its oldest batch, to wait for. */
static bool donor_borrow(
    pool_t *self, const pool_want_t *want, uint32_t *index, pool_stream_t **slot_out,
    pool_batch_t *batch)
{
    bool found = false;

    rmm__mutex_lock(&self->lock);
    for (; *index < self->stream_capacity && !found; *index += !found) {
        pool_stream_t *slot = self->streams[*index];

        if (slot_gives(slot) && slot->key.stream_id != want->key.stream_id &&
            rmm__suballoc_largest_free(self->blocks, slot->heap) >= want->units) {
            found = rmm__pool_batch_pop_locked(self, slot, batch);
            slot->pins += found;
            *slot_out = slot;
        }
    }
    rmm__mutex_unlock(&self->lock);
    return found;
}

/* The wanting stream is ordered behind the batch: its blocks may go to that stream. */
static bool donor_settle(
    pool_t *self, const pool_want_t *want, pool_stream_t *donor,
    const pool_batch_t *batch, bool waiting)
{
    pool_stream_t *own;
    bool moved = false;

    rmm__mutex_lock(&self->lock);
    donor->pins--;
    own = waiting ? rmm__pool_stream_get_locked(self, want->key) : NULL;
    if (own == NULL) {
        rmm__pool_batch_insert_locked(self, donor, batch);
    } else {
        rmm__pool_event_spare_locked(self, batch->event);
        moved = rmm__suballoc_transfer(
                    self->blocks, donor->heap, own->heap, batch->stamp,
                    own->open_stamp) != 0;
        own->open_frees++; /* no event of this stream covers them yet */
        rmm__figure_add(&self->base.books.slot->cross_stream_count, moved);
        rmm__pool_figures_locked(self);
    }
    rmm__mutex_unlock(&self->lock);
    return moved;
}

static bool fits_own(pool_t *self, const pool_want_t *want)
{
    pool_stream_t *own;
    bool fits;

    rmm__mutex_lock(&self->lock);
    own = rmm__pool_stream_find_locked(self, want->key);
    fits = own != NULL && rmm__suballoc_largest_free(self->blocks, own->heap) >=
                              want->units + (want->align_units - 1);
    rmm__mutex_unlock(&self->lock);
    return fits;
}

static bool wait_on_device(pool_t *self, rmm_stream_t stream, rmm_driver_event_t event)
{
    rmm_driver_scope_t scope;
    int error;

    if (!rmm__driver_stream_enter(&scope, self->driver, self->base.device, stream)) {
        return false;
    }
    error = self->driver->stream_wait_event(stream, event);
    rmm__driver_stream_leave(&scope, stream);
    return error == RMM_DRIVER_OK;
}

bool rmm__pool_wait_for_one(pool_t *self, const pool_want_t *want, rmm_status_t *status)
{
    pool_stream_t *donor = NULL;
    pool_batch_t batch;
    uint32_t index = 0;
    bool any = false;

    *status = RMM_ERR_OUT_OF_MEMORY;
    if (captures(want)) {
        return false; /* a wait for outside work would break the capture */
    }
    while (!fits_own(self, want) && donor_borrow(self, want, &index, &donor, &batch)) {
        bool waiting = wait_on_device(self, want->request->stream, batch.event);
        bool moved = donor_settle(self, want, donor, &batch, waiting);

        any |= moved;
        if (!moved) {
            index++;
        }
    }
    return any;
}

static bool clean_fits(pool_t *self, const pool_want_t *want)
{
    bool fits;

    rmm__mutex_lock(&self->lock);
    fits = rmm__suballoc_largest_free(self->blocks, self->clean) >=
           want->units + (want->align_units - 1);
    rmm__mutex_unlock(&self->lock);
    return fits;
}

/* What a free block must have so that the request fits, wherever it begins. */
static uint64_t need_of(const pool_want_t *want)
{
    return ((uint64_t)want->units + (want->align_units - 1)) * POOL_UNIT;
}

/* --- rung 3 ------------------------------------------------------------------------- */

/*
 * Much is free, but scattered or not clean: better use that. Not where tidying has not
 * helped for long: a multiple of the whole pool was mapped anew since it grew last, or it
 * was done so often since then that growing by this request would have been cheaper. So a
 * program that goes on in the same way comes to a size with which it tidies no more.
 */
static bool is_untidy(pool_t *self, uint64_t need)
{
    uint64_t free_bytes;
    uint64_t reserved;

    rmm__mutex_lock(&self->lock);
    free_bytes = pool_free_bytes(self);
    reserved = self->reserved_bytes;
    rmm__mutex_unlock(&self->lock);
    return free_bytes != 0 && free_bytes >= reserved / TIDY_PART &&
           self->range.tidied_bytes / TIDY_TIMES < reserved &&
           reserved / TIDY_WORTH * self->range.tidied_count <= need;
}

static bool tidy(pool_t *self, const pool_want_t *want, rmm_status_t *status)
{
    bool any = false;

    *status = RMM_ERR_OUT_OF_MEMORY;
    if (self->base.upstream != NULL || captures(want)) {
        return false; /* a synchronise would break the capture */
    }
    rmm__mutex_lock(&self->grow_lock);
    if (is_untidy(self, need_of(want)) && rmm__pool_clean_all(self) == RMM_OK) {
        self->range.tidied_count++;
        self->range.tidied_ever++;
        any = clean_fits(self, want) || rmm__pool_range_gather(self, need_of(want));
    }
    rmm__mutex_unlock(&self->grow_lock);
    return any;
}

/* --- rung 4 ------------------------------------------------------------------------- */

/* The same where there is a front: its rescue_lock may be held until the end. */
static void log_growth_later(pool_t *self, uint64_t bytes)
{
    pool_front_t *front = rmm__pool_front(self);

    if (front == NULL) {
        rmm__pool_log_growth(self, bytes);
    } else {
        rmm__figure_add(&front->grown_bytes, bytes);
    }
}

static void log_growth_now(pool_t *self)
{
    pool_front_t *front = rmm__pool_front(self);

    if (front != NULL && rmm__figure_get(&front->grown_bytes) != 0) {
        rmm__pool_log_growth(
            self,
            atomic_exchange_explicit(&front->grown_bytes, 0, memory_order_relaxed));
    }
}

static bool grow_for(pool_t *self, const pool_want_t *want, rmm_status_t *status)
{
    uint64_t need = rmm__pool_whole_growth(self, need_of(want));
    uint64_t wish = rmm__pool_growth_wish(self, need);
    uint64_t before, grown;

    rmm__mutex_lock(&self->grow_lock);
    before = rmm__pool_reserved(self);
    *status = clean_fits(self, want) ? RMM_OK /* another thread has just grown it */
                                     : rmm__pool_grow(self, need, wish);
    grown =
        rmm__pool_reserved(self) - before; /* by this thread: nobody trims meanwhile */
    rmm__mutex_unlock(&self->grow_lock);
    log_growth_later(self, grown);
    return *status == RMM_OK;
}

/* For what a shard needs, if it is a shard's; where there is less left, for less. */
static bool grow(pool_t *self, const pool_want_t *want, rmm_status_t *status)
{
    const pool_want_t shape = rmm__pool_front_shape(self, want);

    return grow_for(self, &shape, status) ||
           (shape.units != want->units && *status == RMM_ERR_OUT_OF_MEMORY &&
            grow_for(self, want, status));
}

/* --- rung 4 ------------------------------------------------------------------------- */

/* The table's slots and the one of unproven frees, by one index. */
static pool_stream_t *slot_at(const pool_t *self, uint32_t index)
{
    return index < self->stream_capacity ? self->streams[index] : self->unproven;
}

void rmm__pool_stamps_close(pool_t *self)
{
    rmm__mutex_lock(&self->lock);
    /* what a graph had on its shelf waits for what is to come */
    (void)rmm__pool_captures_settle_locked(self);
    for (uint32_t i = 0; i <= self->stream_capacity; i++) {
        pool_stream_t *slot = slot_at(self, i);

        if (slot_gives(slot) && !slot->doubtful) {
            slot->pins++;
            slot->sync_stamp = slot->open_stamp++;
            slot->open_frees = 0;
            slot->open_bytes = 0;
        }
    }
    rmm__mutex_unlock(&self->lock);
}

void rmm__pool_stamps_settle(pool_t *self, bool synchronised)
{
    rmm__mutex_lock(&self->lock);
    for (uint32_t i = 0; i <= self->stream_capacity; i++) {
        pool_stream_t *slot = slot_at(self, i);

        if (slot == NULL || slot->sync_stamp == 0) {
            continue; /* a capture's, doubtful, or made meanwhile */
        }
        slot->pins--;
        if (synchronised) {
            rmm__suballoc_transfer(
                self->blocks, slot->heap, self->clean, slot->sync_stamp, 0);
            rmm__pool_batches_drop_locked(self, slot, slot->sync_stamp);
        }
        slot->sync_stamp = 0;
    }
    if (synchronised) {
        (void)rmm__pool_captures_settle_locked(self); /* launches have ended */
        rmm__figure_add(&self->base.books.slot->sync_count, 1);
        rmm__pool_figures_locked(self);
    }
    rmm__mutex_unlock(&self->lock);
}

rmm_status_t rmm__pool_clean_all(pool_t *self)
{
    rmm_driver_scope_t scope;
    rmm_status_t status =
        rmm__driver_scope_enter(&scope, self->driver, self->base.device);
    pool_front_t *front = rmm__pool_front(self);
    int error;

    RMM_ASSERT_LOCKED(&self->grow_lock);
    if (status != RMM_OK) {
        return status;
    }
    if (front != NULL) {
        rmm__front_stamps_close(front);
        error = rmm__driver_barrier(self->driver);
        rmm__front_stamps_settle(front, error == RMM_DRIVER_OK);
        rmm__front_give_back(front);
    } else {
        rmm__pool_stamps_close(self);
        error = rmm__driver_barrier(self->driver);
        rmm__pool_stamps_settle(self, error == RMM_DRIVER_OK);
    }
    rmm__driver_scope_leave(&scope);
    return error == RMM_DRIVER_OK
               ? RMM_OK
               : rmm__driver_error(self->driver, error, "synchronising the device");
}

/* Could growth serve it, as far as the maximum goes? */
static bool can_grow(pool_t *self, const pool_want_t *want)
{
    uint64_t need = need_of(want);
    uint64_t free_bytes;
    uint64_t room;

    rmm__mutex_lock(&self->lock);
    free_bytes = pool_free_bytes(self);
    room = self->maximum_bytes - self->reserved_bytes;
    rmm__mutex_unlock(&self->lock);
    if (self->base.upstream == NULL) {
        need = want->units * POOL_UNIT;
        return room >= self->range.granule_bytes &&
               (room >= need || free_bytes >= need - room);
    }
    return rmm__pool_whole_growth(self, need) <= room;
}

/* More than all that is free, whatever is done with it; or it has been tried. */
static bool only_growth_helps(pool_t *self, const pool_want_t *want)
{
    uint64_t need = want->units * POOL_UNIT;
    uint64_t free_bytes;

    if (rmm__pool_is_hopeless(self, want)) {
        return true;
    }
    if (rmm__pool_front(self) != NULL) {
        return false; /* the shards have free memory as well */
    }
    rmm__mutex_lock(&self->lock);
    free_bytes = pool_free_bytes(self);
    rmm__mutex_unlock(&self->lock);
    return need > free_bytes && (self->base.upstream != NULL || !can_grow(self, want));
}

static bool wait_for_device(pool_t *self, const pool_want_t *want, rmm_status_t *status)
{
    bool cleaned;

    *status = RMM_ERR_OUT_OF_MEMORY;
    if (captures(want)) {
        return false; /* a synchronise would break the capture */
    }
    rmm__mutex_lock(&self->grow_lock);
    cleaned = rmm__pool_clean_all(self) == RMM_OK;
    rmm__mutex_unlock(&self->grow_lock);
    return cleaned;
}

/* --- rung 6 ------------------------------------------------------------------------- */

/* True in any case: with all of the device's memory clean, less is missing than before. */
static bool gather(pool_t *self, const pool_want_t *want, rmm_status_t *status)
{
    *status = RMM_ERR_OUT_OF_MEMORY;
    if (self->base.upstream != NULL) {
        return false;
    }
    rmm__mutex_lock(&self->grow_lock);
    if (!clean_fits(self, want)) {
        (void)rmm__pool_range_gather(self, need_of(want));
    }
    rmm__mutex_unlock(&self->grow_lock);
    return true;
}

/* --- rung 7 ------------------------------------------------------------------------- */

static bool gather_apart(pool_t *self, const pool_want_t *want, rmm_status_t *status)
{
    bool any;

    *status = RMM_ERR_OUT_OF_MEMORY;
    if (self->base.upstream != NULL) {
        return false;
    }
    rmm__mutex_lock(&self->grow_lock);
    any = clean_fits(self, want) || rmm__pool_range_gather_apart(self, need_of(want));
    rmm__mutex_unlock(&self->grow_lock);
    return any;
}

/* --- the ladder --------------------------------------------------------------------- */

enum { LADDER_STREAMS = 2 }; /* the first rungs: no more than other streams' blocks */

/* On RMM_ERR_OUT_OF_MEMORY *synchronised tells whether all was tried. */
static rmm_status_t climb(
    pool_t *self, const pool_want_t *want, size_t first, void **ptr_out,
    rmm_status_t *failure, bool *synchronised)
{
    static const rung_fn ladder[] = {
        reclaim_finished, rmm__pool_wait_for_one, tidy, grow, wait_for_device, gather,
        gather_apart};

    for (size_t i = first; i < sizeof(ladder) / sizeof(ladder[0]); i++) {
        rmm_status_t status;
        bool helped = ladder[i](self, want, &status);

        *synchronised |= helped && ladder[i] == wait_for_device;
        while (helped) {
            status = rmm__pool_take_anywhere(self, want, ptr_out);
            if (status != RMM_ERR_OUT_OF_MEMORY) {
                return status; /* a block, or no host memory for its node */
            }
            /* others were faster, or not all is there: grow until upstream says no */
            helped =
                (ladder[i] == grow || ladder[i] == gather) && grow(self, want, &status);
        }
        if (status != RMM_ERR_OUT_OF_MEMORY) {
            *failure = status; /* upstream's own reason, should nothing else help */
        }
    }
    return RMM_ERR_OUT_OF_MEMORY;
}

/* No more than growth. */
static rmm_status_t alloc_by_growth(
    pool_t *self, const pool_want_t *want, void **ptr_out, rmm_status_t *failure)
{
    if (!can_grow(self, want)) {
        return rmm__error(
            RMM_ERR_OUT_OF_MEMORY, "its maximum of %" PRIu64 " bytes leaves %" PRIu64,
            self->maximum_bytes, self->maximum_bytes - rmm__pool_reserved(self));
    }
    while (grow(self, want, failure)) {
        rmm_status_t status = rmm__pool_take_anywhere(self, want, ptr_out);

        if (status != RMM_ERR_OUT_OF_MEMORY) {
            return status;
        }
    }
    return RMM_ERR_OUT_OF_MEMORY;
}

/*
 * Shards that live on what others give back search all of them again and again, one thread at
 * a time. Better give them more, in a crowd: up to a third more than was ever out.
 */
static bool shards_starve(pool_t *self, pool_front_t *front)
{
    uint64_t peak = RMM_BOOKS_GET(&self->base.books, lifetime_peak_bytes);

    RMM_ASSERT_LOCKED(&front->rescue_lock);
    return ++front->rescues > FRONT_RESCUES &&
           rmm__pool_reserved(self) < peak + peak / 3;
}

/* Behind the front: of other shards, or of streams that are to be waited for. */
static rmm_status_t alloc_from_shards(
    pool_t *self, pool_front_t *front, const pool_want_t *want, void **ptr_out)
{
    rmm_status_t status = RMM_ERR_OUT_OF_MEMORY;
    rmm_status_t refusal;

    if (shards_starve(self, front) && can_grow(self, want) &&
        grow(self, want, &refusal)) {
        front->rescues = 0;
        status = rmm__pool_take_anywhere(self, want, ptr_out);
    }
    return status == RMM_ERR_OUT_OF_MEMORY
               ? rmm__pool_front_rescue(self, front, want, ptr_out)
               : status;
}

/* All rungs. */
static rmm_status_t alloc_by_all(
    pool_t *self, const pool_want_t *want, void **ptr_out, rmm_status_t *failure)
{
    pool_front_t *front = rmm__pool_front(self);
    bool synchronised = false;
    rmm_status_t status;
    uint64_t word;

    if (front != NULL) {
        rmm__mutex_lock(&front->rescue_lock);
    }
    word = rmm__pool_try_begin(self, want);
    if (front == NULL) {
        status = climb(self, want, 0, ptr_out, failure, &synchronised);
    } else {
        status = alloc_from_shards(self, front, want, ptr_out);
        if (status == RMM_ERR_OUT_OF_MEMORY) {
            status = climb(self, want, LADDER_STREAMS, ptr_out, failure, &synchronised);
        }
    }
    rmm__pool_try_end(
        self, word,
        synchronised && status == RMM_ERR_OUT_OF_MEMORY && *failure == status);
    if (front != NULL) {
        rmm__mutex_unlock(&front->rescue_lock);
    }
    return status;
}

rmm_status_t rmm__pool_alloc_slow(pool_t *self, const pool_want_t *want, void **ptr_out)
{
    rmm_status_t failure = RMM_ERR_OUT_OF_MEMORY;
    rmm_status_t status;

    if (only_growth_helps(self, want)) {
        status = alloc_by_growth(self, want, ptr_out, &failure);
    } else {
        status = alloc_by_all(self, want, ptr_out, &failure);
    }
    log_growth_now(self);
    return status == RMM_ERR_OUT_OF_MEMORY ? rmm__pool_give_up(self, want, failure)
                                           : status;
}
