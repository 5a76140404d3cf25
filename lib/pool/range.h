/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of an engine that maps its memory: range.c reserves the addresses, growth.c and
 * gather.c map pieces of physical memory into them, pieces.c knows the pieces.
 *
 * While a thread maps or unmaps a piece, no other thread can reach it: the piece is out of
 * the array, and its units are in a heap of that thread alone. So no lock is held around a
 * driver call, and two threads may be here at once.
 */
#ifndef RMM_POOL_RANGE_H
#define RMM_POOL_RANGE_H

#include "pool/source.h"

static inline char *rmm__range_address(uint64_t unit)
{
    return (char *)(uintptr_t)(unit * RMM_BLOCKS_UNIT);
}

static inline uint64_t rmm__piece_bytes(const engine_piece_t *piece)
{
    return piece->units * RMM_BLOCKS_UNIT;
}

/* The heaps of a range's units that are not being moved. */
typedef enum range_rest { RANGE_CLEAN, RANGE_ABSENT, RANGE_LOST } range_rest_t;

/* Units being moved from one heap to another. */
typedef struct engine_transit {
    rmm_heap_t heap;
    range_rest_t from;
    uint64_t units;
} engine_transit_t;

/* Take units out of `from`. False: not all are free there, or there is no host memory. */
bool rmm__range_depart(
    engine_t *engine, range_rest_t from, uint64_t unit, uint64_t bytes,
    engine_transit_t *transit_out);
bool rmm__range_depart_locked(
    engine_t *engine, range_rest_t from, uint64_t unit, uint64_t bytes,
    engine_transit_t *transit_out);
/* Put all of them into `to`; the engine now holds `gained` bytes more. */
void rmm__range_arrive(
    engine_t *engine, engine_transit_t *transit, range_rest_t to, int64_t gained);

/* The request as the range has to make room for it. Memory is mapped in granules, which are
 * aligned to their size: a block that is no more aligned than that needs nothing besides. */
rmm_blocks_request_t
rmm__range_request(const engine_t *engine, const rmm_blocks_request_t *request);
/* Where the least memory is missing for this block; false: nowhere. */
bool rmm__range_find_gap_locked(
    engine_t *engine, const rmm_blocks_request_t *request, rmm_blocks_gap_t *gap);

/* Reserve room in the array for so many more pieces; false: no host memory. Each is used by
 * an insertion, or unreserved. Taking a piece out keeps its room reserved. */
bool rmm__pieces_reserve_locked(engine_t *engine, uint64_t more);
void rmm__pieces_unreserve(engine_t *engine, uint64_t more);
void rmm__pieces_insert(engine_t *engine, const engine_piece_t *piece);
void rmm__pieces_take_locked(engine_t *engine, uint32_t index, engine_piece_t *out);
/* Index of the first piece that begins at this unit or above. */
uint32_t rmm__pieces_from_locked(const engine_t *engine, uint64_t unit);
rmm_status_t rmm__pieces_no_memory(void); /* sets the last error */

/* Driver calls for one piece, in a driver scope; they return the driver's error. make()
 * creates the memory and maps it; end() undoes both, or nothing. After map() or make() fails
 * nothing of it is left, unless the piece is stuck: then its addresses must become lost. */
int rmm__piece_map(engine_t *engine, engine_piece_t *piece);
int rmm__piece_let_in(engine_t *engine, const engine_piece_t *piece);
int rmm__piece_make(engine_t *engine, engine_piece_t *piece);
int rmm__piece_end(engine_t *engine, const engine_piece_t *piece);
/* It could not be unmapped: count its bytes as stuck. */
void rmm__piece_stick(engine_t *engine, engine_piece_t *piece);
/* It is not mapped. If it cannot be released, its bytes count as stuck. */
void rmm__piece_release(engine_t *engine, const engine_piece_t *piece);

/* --- the time that mapping takes ------------------------------------------------------ */

/* Pieces were mapped from begin_ns, of rmm__range_now_ns(), until now. */
void rmm__range_note_mapping(engine_t *engine, uint64_t begin_ns);
uint64_t rmm__range_now_ns(void);
/* Mapping has taken so little of the engine's time that it may take what so many pieces take. */
bool rmm__range_has_time_locked(const engine_t *engine, uint64_t pieces);

/* --- growth.c: operations of the source ---------------------------------------------- */

rmm_status_t rmm__range_grow(engine_t *engine, const rmm_blocks_request_t *request);
bool rmm__range_can_grow_locked(
    const engine_t *engine, const rmm_blocks_request_t *request);
rmm_status_t rmm__range_no_addresses(
    const engine_t *engine, uint64_t bytes); /* sets the last error */
/* Do the maximum and the device leave so many bytes? Asks the driver. */
bool rmm__range_has_room(engine_t *engine, uint64_t bytes);

/* --- gather.c ------------------------------------------------------------------------ */

bool rmm__range_gather(
    engine_t *engine, const rmm_blocks_request_t *request, engine_gather_t how,
    rmm_status_t *status);
rmm_status_t rmm__range_trim(engine_t *engine, uint64_t keep_bytes);

#endif /* RMM_POOL_RANGE_H */
