/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual pool's free pieces: mapped anew side by side, where a request fits the free
 * total but no block of it, or given back to the device.
 *
 * Only pieces that are all in the clean heap: no work of the GPU and no graph uses them.
 */
#include "resources/pool_pieces.h"

/* --- gather -------------------------------------------------------------------------- */

/* The uppermost piece below `below` that is not in [first, end); false: none. */
static bool next_piece(
    const pool_range_t *range, uint64_t below, uint64_t first, uint64_t end,
    uint32_t *index_out)
{
    for (uint32_t i = range->piece_count; i-- > 0;) {
        uint64_t offset = range->pieces[i].offset;

        if (offset < below && (offset < first || offset >= end)) {
            *index_out = i;
            return true;
        }
    }
    return false;
}

/* Its memory has no address any more and no way back. */
static void piece_lose(pool_t *self, const pool_piece_t *piece)
{
    (void)self->driver->physical_release(piece->physical);
    rmm__pool_arrive(self, self->range.absent, -(int64_t)piece->bytes);
}

/* Map a piece that is all clean at another offset, where nothing is. In a scope. */
static bool piece_shift(pool_t *self, uint32_t index, uint64_t offset)
{
    pool_piece_t piece = self->range.pieces[index];
    char *old = self->range.address + piece.offset;

    if (rmm__pool_move_out(self, self->clean, piece.offset, piece.bytes) !=
        RMM_SUBALLOC_OK) {
        return false;
    }
    if (self->driver->address_unmap(old, piece.bytes) != RMM_DRIVER_OK) {
        rmm__pool_arrive(self, self->clean, 0);
        return false;
    }
    rmm__pool_pieces_remove(&self->range, index);
    rmm__pool_arrive(self, self->range.absent, 0);
    piece.offset = offset;
    if (rmm__pool_move_out(self, self->range.absent, offset, piece.bytes) !=
            RMM_SUBALLOC_OK ||
        rmm__pool_piece_map(self, &piece) != RMM_DRIVER_OK) {
        piece_lose(self, &piece);
        return false;
    }
    self->range.tidied_bytes += piece.bytes;
    rmm__pool_pieces_insert(&self->range, &piece);
    rmm__pool_arrive(self, self->clean, 0);
    return true;
}

/* Fill the gap from its front with free pieces from elsewhere. In a scope. */
static bool fill_gap(pool_t *self, const rmm_suballoc_gap_t *gap)
{
    uint64_t start = offset_of(self, gap->unit);
    uint64_t first = start - (uint64_t)gap->before * POOL_UNIT;
    uint64_t end = start + (uint64_t)(gap->units + gap->after) * POOL_UNIT;
    uint64_t room = (uint64_t)gap->room * POOL_UNIT;
    uint64_t below = UINT64_MAX;
    uint64_t done = 0;
    uint32_t index;

    while (done < (uint64_t)gap->units * POOL_UNIT &&
           next_piece(&self->range, below, first, end, &index)) {
        uint64_t bytes = self->range.pieces[index].bytes;

        below = self->range.pieces[index].offset;
        if (bytes <= room - done && piece_shift(self, index, start + done)) {
            done += bytes;
            end = start + done > end ? start + done : end;
        }
    }
    return done != 0;
}

bool rmm__pool_range_gather(pool_t *self, uint64_t need)
{
    rmm_suballoc_gap_t gap;
    rmm_driver_scope_t scope;
    bool any;

    RMM_ASSERT_LOCKED(&self->grow_lock);
    if (!rmm__pool_find_gap(self, need, &gap) ||
        rmm__driver_scope_enter(&scope, self->driver, self->base.device) != RMM_OK) {
        return false;
    }
    any = fill_gap(self, &gap);
    rmm__driver_scope_leave(&scope);
    return any;
}

/* Pieces that are all clean. */
typedef struct free_pieces {
    const pool_t *self;
    uint32_t next; /* the first that was not looked at */
    uint64_t bytes, largest_bytes;
} free_pieces_t;

/* Blocks come by address, as the pieces lie. */
static bool count_free_pieces(void *context, const rmm_block_info_t *info)
{
    free_pieces_t *pieces = context;
    const pool_range_t *range = &pieces->self->range;
    uint64_t start = offset_of(pieces->self, info->unit);
    uint64_t end = start + info->units * POOL_UNIT;
    uint32_t i = pieces->next;

    if (info->heap != pieces->self->clean) {
        return true;
    }
    while (i < range->piece_count && range->pieces[i].offset < start) {
        i++;
    }
    for (; i < range->piece_count &&
           range->pieces[i].offset + range->pieces[i].bytes <= end;
         i++) {
        uint64_t bytes = range->pieces[i].bytes;

        pieces->bytes += bytes;
        if (bytes > pieces->largest_bytes) {
            pieces->largest_bytes = bytes;
        }
    }
    pieces->next = i;
    return true;
}

/* Addresses that any of the free pieces fit into, until there are `need` bytes. Nothing
 * beside them counts: `moving` is empty. */
static bool find_room_apart(pool_t *self, uint64_t need, rmm_suballoc_gap_t *gap)
{
    pool_range_t *range = &self->range;
    free_pieces_t pieces = {.self = self};
    uint64_t room;
    bool found;

    rmm__mutex_lock(&self->lock);
    rmm__suballoc_walk(self->blocks, count_free_pieces, &pieces);
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
    rmm_driver_scope_t scope;
    bool any;

    RMM_ASSERT_LOCKED(&self->grow_lock);
    if (!find_room_apart(self, need, &gap) ||
        rmm__driver_scope_enter(&scope, self->driver, self->base.device) != RMM_OK) {
        return false;
    }
    any = fill_gap(self, &gap);
    rmm__driver_scope_leave(&scope);
    return any;
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
