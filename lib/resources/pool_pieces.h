/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pieces of a virtual pool's memory, for pool_range.c and pool_gather.c.
 *
 * Locking: grow_lock is held around all of this, and a driver scope around what maps.
 */
#ifndef RMM_RESOURCES_POOL_PIECES_H
#define RMM_RESOURCES_POOL_PIECES_H

#include "resources/pool_impl.h"

static inline uint64_t round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

static inline uint32_t to_units(uint64_t bytes)
{
    return (uint32_t)(bytes / POOL_UNIT);
}

static inline uint32_t unit_at(const pool_t *self, uint64_t offset)
{
    return self->range.first_unit + to_units(offset);
}

static inline uint64_t offset_of(const pool_t *self, uint32_t unit)
{
    return (uint64_t)(unit - self->range.first_unit) * POOL_UNIT;
}

/* Units of `from` are nobody's until they arrive, in another heap or the same: OK, NO_FIT
 * (not all of them are free there) or NO_STORAGE. */
rmm_suballoc_result_t
rmm__pool_move_out(pool_t *self, rmm_heap_t from, uint64_t offset, uint64_t bytes);
/* All that is moving arrives; `gained` bytes more are held than before. */
void rmm__pool_arrive(pool_t *self, rmm_heap_t to, int64_t gained);
/* The same to the heap `lost`; `lost` bytes of it have memory that nobody can use. */
void rmm__pool_arrive_lost(pool_t *self, uint64_t gained, uint64_t lost);

/* Where memory is missing least for `need` bytes beside each other; false: nowhere. */
bool rmm__pool_find_gap(pool_t *self, uint64_t need, rmm_suballoc_gap_t *gap);

/* The array of pieces, by offset; false: no host memory. */
bool rmm__pool_pieces_reserve(pool_range_t *range, uint64_t more);
void rmm__pool_pieces_insert(pool_range_t *range, const pool_piece_t *piece);
void rmm__pool_pieces_remove(pool_range_t *range, uint32_t index);
rmm_status_t rmm__pool_no_pieces(void); /* says that there is none */

/* One piece and the driver: its error. make() creates the memory and maps it; end() undoes
 * both, or nothing. After a failure of map() or make() nothing of it is left, unless the
 * piece is stuck: then its addresses must become lost. */
int rmm__pool_piece_map(const pool_t *self, pool_piece_t *piece);
int rmm__pool_piece_make(const pool_t *self, pool_piece_t *piece);
int rmm__pool_piece_end(const pool_t *self, const pool_piece_t *piece);
/* It could not be unmapped: say so. */
void rmm__pool_piece_stick(const pool_t *self, pool_piece_t *piece);

#endif /* RMM_RESOURCES_POOL_PIECES_H */
