/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual pool's free pieces: mapped anew side by side, where a request fits the free
 * total but no block of it, or given back to the device.
 *
 * Only pieces that are all in the clean heap: no work of the GPU and no graph uses them.
 */
#include "resources/pool_pieces.h"

/* --- gather -------------------------------------------------------------------------- */

/* Pieces that are all clean. */
typedef struct free_pieces {
    pool_t *self;
    uint64_t bytes, largest_bytes;
} free_pieces_t;

static uint32_t first_piece_from(const pool_range_t *range, uint64_t offset)
{
    uint32_t low = 0;
    uint32_t high = range->piece_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (range->pieces[middle].offset < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void mark_pieces_in(void *context, uint32_t unit, uint32_t units)
{
    free_pieces_t *found = context;
    pool_range_t *range = &found->self->range;
    uint64_t start = offset_of(found->self, unit);
    uint64_t end = start + units * POOL_UNIT;
    uint32_t i = first_piece_from(range, start);

    for (; i < range->piece_count &&
           range->pieces[i].offset + range->pieces[i].bytes <= end;
         i++) {
        uint64_t bytes = range->pieces[i].bytes;

        range->pieces[i].is_free = true;
        found->bytes += bytes;
        if (bytes > found->largest_bytes) {
            found->largest_bytes = bytes;
        }
    }
}

/* Looks at the large blocks only, not at all there are. */
static free_pieces_t find_free_pieces_locked(pool_t *self)
{
    free_pieces_t found = {.self = self};

    for (uint32_t i = 0; i < self->range.piece_count; i++) {
        self->range.pieces[i].is_free = false;
    }
    rmm__suballoc_walk_free(
        self->blocks, self->clean, to_units(self->range.granule_bytes), mark_pieces_in,
        &found);
    return found;
}

/* It could not be mapped at its new place. */
static void piece_lose(pool_t *self, const pool_piece_t *piece)
{
    if (piece->is_stuck) {
        rmm__pool_pieces_insert(&self->range, piece);
        rmm__pool_arrive_lost(self, 0, piece->bytes);
    } else {
        (void)self->driver->physical_release(piece->physical);
        rmm__pool_arrive(self, self->range.absent, -(int64_t)piece->bytes);
    }
}

typedef enum shift {
    SHIFT_DONE,
    SHIFT_NONE,  /* it is not free any more, or stays where it is */
    SHIFT_FAILED /* no other may go there either */
} shift_t;

/* Map a piece that is all clean at another offset, where nothing is. In a scope. */
static shift_t piece_shift(pool_t *self, uint32_t index, uint64_t offset)
{
    pool_piece_t piece = self->range.pieces[index];
    char *old = self->range.address + piece.offset;

    if (rmm__pool_move_out(self, self->clean, piece.offset, piece.bytes) !=
        RMM_SUBALLOC_OK) {
        return SHIFT_NONE;
    }
    if (self->driver->address_unmap(old, piece.bytes) != RMM_DRIVER_OK) {
        rmm__pool_arrive(self, self->clean, 0);
        return SHIFT_NONE;
    }
    rmm__pool_pieces_remove(&self->range, index);
    rmm__pool_arrive(self, self->range.absent, 0);
    piece.offset = offset;
    piece.is_free = false;
    if (rmm__pool_move_out(self, self->range.absent, offset, piece.bytes) !=
            RMM_SUBALLOC_OK ||
        rmm__pool_piece_map(self, &piece) != RMM_DRIVER_OK) {
        piece_lose(self, &piece);
        return SHIFT_FAILED;
    }
    self->range.tidied_bytes += piece.bytes;
    rmm__pool_pieces_insert(&self->range, &piece);
    rmm__pool_arrive(self, self->clean, 0);
    return SHIFT_DONE;
}

/* Fill the gap from its front with free pieces from elsewhere, the uppermost first. In a
 * scope. */
static bool fill_gap(pool_t *self, const rmm_suballoc_gap_t *gap)
{
    const pool_range_t *range = &self->range;
    uint64_t start = offset_of(self, gap->unit);
    uint64_t first = start - (uint64_t)gap->before * POOL_UNIT;
    uint64_t end = start + (uint64_t)(gap->units + gap->after) * POOL_UNIT;
    uint64_t room = (uint64_t)gap->room * POOL_UNIT;
    uint64_t done = 0;
    shift_t shift = SHIFT_NONE;

    for (uint32_t i = range->piece_count;
         i-- > 0 && done < (uint64_t)gap->units * POOL_UNIT && shift != SHIFT_FAILED;) {
        uint64_t offset = range->pieces[i].offset;
        uint64_t bytes = range->pieces[i].bytes;

        if (!range->pieces[i].is_free || (offset >= first && offset < end) ||
            bytes > room - done) {
            continue;
        }
        shift = piece_shift(self, i, start + done);
        if (shift == SHIFT_DONE) {
            i += offset > start; /* those between have moved up */
            done += bytes;
            end = start + done > end ? start + done : end;
        }
    }
    return done != 0;
}

static bool fill_in_scope(pool_t *self, const rmm_suballoc_gap_t *gap)
{
    rmm_driver_scope_t scope;
    bool any;

    if (rmm__driver_scope_enter(&scope, self->driver, self->base.device) != RMM_OK) {
        return false;
    }
    any = fill_gap(self, gap);
    rmm__driver_scope_leave(&scope);
    return any;
}

bool rmm__pool_range_gather(pool_t *self, uint64_t need)
{
    rmm_suballoc_gap_t gap;
    bool any;

    RMM_ASSERT_LOCKED(&self->grow_lock);
    rmm__mutex_lock(&self->lock);
    any = find_free_pieces_locked(self).bytes != 0;
    rmm__mutex_unlock(&self->lock);
    return any && rmm__pool_find_gap(self, need, &gap) && fill_in_scope(self, &gap);
}

/* Addresses that any of the free pieces fit into, until there are `need` bytes. Nothing
 * beside them counts: `moving` is empty. */
static bool find_room_apart(pool_t *self, uint64_t need, rmm_suballoc_gap_t *gap)
{
    pool_range_t *range = &self->range;
    free_pieces_t pieces;
    uint64_t room;
    bool found;

    rmm__mutex_lock(&self->lock);
    pieces = find_free_pieces_locked(self);
    room = need + pieces.largest_bytes;
    found = pieces.bytes >= need && room <= range->bytes &&
            rmm__suballoc_find_gap(
                self->blocks, range->absent, range->moving, to_units(room),
                to_units(range->granule_bytes), gap);
    rmm__mutex_unlock(&self->lock);
    if (found) {
        gap->units = to_units(round_up(need, range->granule_bytes));
    }
    return found;
}

bool rmm__pool_range_gather_apart(pool_t *self, uint64_t need)
{
    rmm_suballoc_gap_t gap;

    RMM_ASSERT_LOCKED(&self->grow_lock);
    return find_room_apart(self, need, &gap) && fill_in_scope(self, &gap);
}

/* --- trim ---------------------------------------------------------------------------- */

/* One piece, if all of it is clean. True: it is gone. */
static bool piece_return(pool_t *self, uint32_t index, rmm_status_t *status)
{
    pool_piece_t *piece = &self->range.pieces[index];
    rmm_suballoc_result_t result =
        rmm__pool_move_out(self, self->clean, piece->offset, piece->bytes);
    int error;

    *status = result == RMM_SUBALLOC_NO_STORAGE ? rmm__pool_no_pieces() : RMM_OK;
    if (result != RMM_SUBALLOC_OK) {
        return false;
    }
    error = rmm__pool_piece_end(self, piece);
    if (error != RMM_DRIVER_OK) {
        rmm__pool_arrive(self, self->clean, 0);
        *status = rmm__driver_error(self->driver, error, "unmapping memory");
        return false;
    }
    rmm__pool_arrive(self, self->range.absent, -(int64_t)piece->bytes);
    rmm__pool_pieces_remove(&self->range, index);
    return true;
}

rmm_status_t rmm__pool_range_trim(pool_t *self, uint64_t keep_bytes)
{
    rmm_driver_scope_t scope;
    rmm_status_t status =
        rmm__driver_scope_enter(&scope, self->driver, self->base.device);

    RMM_ASSERT_LOCKED(&self->grow_lock);
    if (status != RMM_OK) {
        return status;
    }
    for (uint32_t i = self->range.piece_count; i-- > 0 && status == RMM_OK;) {
        uint64_t bytes = self->range.pieces[i].bytes;

        if (bytes <= self->reserved_bytes &&
            self->reserved_bytes - bytes >= keep_bytes) {
            (void)piece_return(self, i, &status);
        }
    }
    rmm__driver_scope_leave(&scope);
    return status;
}
