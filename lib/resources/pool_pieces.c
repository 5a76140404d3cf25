/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What growing, gathering and trimming a virtual pool share: see pool_pieces.h.
 */
#include "resources/pool_pieces.h"

#include <inttypes.h>
#include <string.h>

#include "core/host_memory.h"
#include "log/log.h"

/* --- places -------------------------------------------------------------------------- */

/* Units change between absent or moving and clean: what is free, and what is held. */
static void count_absent_locked(pool_t *self)
{
    const pool_range_t *range = &self->range;

    self->absent_units = rmm__suballoc_free_units(self->blocks, range->absent) +
                         rmm__suballoc_free_units(self->blocks, range->moving) +
                         rmm__suballoc_free_units(self->blocks, range->lost);
}

rmm_suballoc_result_t
rmm__pool_move_out(pool_t *self, rmm_heap_t from, uint64_t offset, uint64_t bytes)
{
    rmm_suballoc_result_t result;

    rmm__mutex_lock(&self->lock);
    result = rmm__suballoc_move(
        self->blocks, from, self->range.moving, unit_at(self, offset), to_units(bytes),
        0);
    count_absent_locked(self);
    rmm__pool_figures_locked(self);
    rmm__mutex_unlock(&self->lock);
    return result;
}

/* All that is moving arrives; `gained` bytes more are held than before. */
void rmm__pool_arrive(pool_t *self, rmm_heap_t to, int64_t gained)
{
    rmm__mutex_lock(&self->lock);
    (void)rmm__suballoc_transfer(self->blocks, self->range.moving, to, UINT64_MAX, 0);
    self->reserved_bytes += (uint64_t)gained;
    rmm__pool_hope(self);
    count_absent_locked(self);
    if (gained > 0) {
        rmm__figure_add(&self->base.books.slot->growth_count, 1);
    }
    rmm__pool_figures_locked(self);
    rmm__mutex_unlock(&self->lock);
    if (gained >= 0) {
        rmm__place_reserve(self->base.books.place, (uint64_t)gained);
    } else {
        rmm__place_unreserve(self->base.books.place, (uint64_t)-gained);
    }
}

void rmm__pool_arrive_lost(pool_t *self, uint64_t gained, uint64_t lost)
{
    rmm__pool_arrive(self, self->range.lost, (int64_t)gained);
    if (self->shares_books) { /* what is held counts as free there */
        rmm__figure_sub(&self->base.books.slot->free_bytes, lost);
    }
}

rmm_status_t rmm__pool_no_pieces(void)
{
    return rmm__error(RMM_ERR_OUT_OF_HOST_MEMORY, "no host memory to map a piece");
}

bool rmm__pool_find_gap(pool_t *self, uint64_t need, rmm_suballoc_gap_t *gap)
{
    bool found;

    rmm__mutex_lock(&self->lock);
    found = need <= self->range.bytes &&
            rmm__suballoc_find_gap(
                self->blocks, self->range.absent, self->clean, to_units(need),
                to_units(self->range.granule_bytes), gap);
    rmm__mutex_unlock(&self->lock);
    return found;
}

/* --- pieces -------------------------------------------------------------------------- */

bool rmm__pool_pieces_reserve(pool_range_t *range, uint64_t more)
{
    uint64_t wanted = range->piece_capacity != 0 ? range->piece_capacity : 16;
    pool_piece_t *grown;

    while (wanted < range->piece_count + more) {
        wanted *= 2;
    }
    if (wanted == range->piece_capacity) {
        return true;
    }
    grown = rmm__resize(
        range->pieces, range->piece_capacity * sizeof(*grown), wanted * sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    range->pieces = grown;
    range->piece_capacity = (uint32_t)wanted;
    return true;
}

void rmm__pool_pieces_insert(pool_range_t *range, const pool_piece_t *piece)
{
    uint32_t index = range->piece_count;

    RMM_ASSERT(range->piece_count < range->piece_capacity && "room was reserved");
    while (index > 0 && range->pieces[index - 1].offset > piece->offset) {
        range->pieces[index] = range->pieces[index - 1];
        index--;
    }
    range->pieces[index] = *piece;
    range->piece_count++;
}

void rmm__pool_pieces_remove(pool_range_t *range, uint32_t index)
{
    range->piece_count--;
    memmove(
        &range->pieces[index], &range->pieces[index + 1],
        (range->piece_count - index) * sizeof(range->pieces[0]));
}

/* The pool's own device, and those it shares with. */
static int let_devices_in(const pool_t *self, const pool_piece_t *piece)
{
    uint32_t devices = self->range.peers | UINT32_C(1) << self->base.device;
    int error = RMM_DRIVER_OK;

    for (int device = 0; device < 32 && error == RMM_DRIVER_OK; device++) {
        if ((devices >> device & 1) != 0) {
            error = self->driver->address_access(
                self->range.address + piece->offset, piece->bytes, device);
        }
    }
    return error;
}

void rmm__pool_piece_stick(const pool_t *self, pool_piece_t *piece)
{
    piece->is_stuck = true;
    rmm__log_error(
        "pool '%s': %" PRIu64
        " bytes at %p could not be unmapped: they are held, unused, "
        "until the pool ends",
        self->base.name, piece->bytes, (void *)(self->range.address + piece->offset));
}

/* In a scope, as what follows. */
int rmm__pool_piece_map(const pool_t *self, pool_piece_t *piece)
{
    char *address = self->range.address + piece->offset;
    int error = self->driver->address_map(address, piece->bytes, piece->physical);

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    error = let_devices_in(self, piece);
    if (error != RMM_DRIVER_OK &&
        self->driver->address_unmap(address, piece->bytes) != RMM_DRIVER_OK) {
        rmm__pool_piece_stick(self, piece);
    }
    return error;
}

int rmm__pool_piece_make(const pool_t *self, pool_piece_t *piece)
{
    int error = self->driver->physical_create(piece->bytes, &piece->physical);

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    error = rmm__pool_piece_map(self, piece);
    if (error != RMM_DRIVER_OK && !piece->is_stuck) {
        (void)self->driver->physical_release(piece->physical);
    }
    return error;
}

int rmm__pool_piece_end(const pool_t *self, const pool_piece_t *piece)
{
    int error =
        self->driver->address_unmap(self->range.address + piece->offset, piece->bytes);

    if (error != RMM_DRIVER_OK) {
        return error; /* it stays as it is */
    }
    (void)self->driver->physical_release(piece->physical);
    return RMM_DRIVER_OK;
}
